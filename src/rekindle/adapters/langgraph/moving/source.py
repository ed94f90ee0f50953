"""A database of LangGraph's SqliteSaver, opened to be read. Nothing in it is ever changed."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from ....errors import (
    CorruptDataError,
    InvalidInputError,
    NotFoundError,
    RekindleError,
    UnavailableError,
    UnsupportedError,
)
from .order import Node, Write, in_order

CHECKPOINTS = {"thread_id", "checkpoint_ns", "checkpoint_id", "parent_checkpoint_id", "type", "checkpoint", "metadata"}
WRITES = {"thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "idx", "channel", "type", "value"}
Row = tuple[str | None, bytes]
"""How something was encoded, and its bytes."""


def path_of(source: str) -> Path:
    """The file that a plain path or `sqlite:///path` (four slashes: absolute) names."""
    scheme, found, rest = source.partition("://")
    if found and scheme.lower() != "sqlite":
        raise UnsupportedError(
            "no-such-import", f"this version cannot import from {scheme}://",
            hint="it reads the SQLite databases of langgraph: name the file",
        )  # fmt: skip
    return Path(rest.removeprefix("/") if found else source).expanduser()


def bytes_of(path: Path) -> int:
    """What the database takes on disk, with its log."""
    files = (path, path.with_name(path.name + "-wal"))
    return sum(file.stat().st_size for file in files if file.exists())


@contextmanager
def opened(path: Path) -> Iterator[Source]:
    """The database, read-only. A program may go on writing to it meanwhile."""
    if path.is_dir():
        raise InvalidInputError("is-folder", f"{path} is a folder", hint="name the database file of the SqliteSaver")
    if not path.exists():
        raise NotFoundError("no-file", f"there is no file {path}")
    with closing(_connected(path)) as db:
        yield Source(db, path)


def check(path: Path) -> None:
    """Raises what `opened` would for a path that is no such database."""
    with opened(path):
        return


class Source:
    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self._db = db
        self._path = path
        self._check()
        self._task_path = "task_path" if "task_path" in self._columns("writes") else "''"

    def count(self) -> int:
        """Checkpoints of all threads."""
        return int(self._rows("SELECT count(*) FROM checkpoints")[0][0])

    def orphans(self) -> int:
        """Pending writes whose checkpoint is not there any more; their own code never reads them."""
        query = (
            "SELECT count(*) FROM writes w WHERE NOT EXISTS (SELECT 1 FROM checkpoints c WHERE "
            "c.thread_id = w.thread_id AND c.checkpoint_ns = w.checkpoint_ns AND c.checkpoint_id = w.checkpoint_id)"
        )
        return int(self._rows(query)[0][0])

    def threads(self) -> list[str]:
        return [thread for (thread,) in self._rows("SELECT DISTINCT thread_id FROM checkpoints ORDER BY thread_id")]

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """What is read inside is of one moment, whoever writes meanwhile."""
        self._rows("BEGIN")
        try:
            yield
        finally:
            self._rows("ROLLBACK")

    def encodings(self, thread: str) -> set[str | None]:
        """How the checkpoints and writes of a thread were encoded; no content is read for it."""
        query = "SELECT DISTINCT type FROM checkpoints WHERE thread_id = ? UNION "
        query += "SELECT DISTINCT type FROM writes WHERE thread_id = ?"
        return {kind for (kind,) in self._rows(query, thread, thread)}

    def nodes(self, thread: str) -> Iterator[Node]:
        """The checkpoints of a thread, parents before children."""
        query = "SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id FROM checkpoints WHERE thread_id = ?"
        return in_order(self._rows(query, thread))

    def checkpoint(self, thread: str, node: Node) -> tuple[Row, Any]:
        """The checkpoint and its metadata, as they are stored."""
        query = "SELECT type, checkpoint, metadata FROM checkpoints "
        query += "WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"
        kind, data, metadata = self._rows(query, thread, node.namespace, node.id)[0]
        return (kind, data), metadata

    def writes(self, thread: str, node: Node) -> list[Write]:
        """The pending writes of a checkpoint; the value of each is its Row."""
        query = f"SELECT task_id, {self._task_path}, idx, channel, type, value FROM writes "
        query += "WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"
        rows = self._rows(query, thread, node.namespace, node.id)
        return [Write(task, path, idx, channel, (kind, data)) for task, path, idx, channel, kind, data in rows]

    def _check(self) -> None:
        missing = CHECKPOINTS - self._columns("checkpoints") or WRITES - self._columns("writes")
        if not missing:
            return
        hint = "name the file that langgraph's SqliteSaver or AsyncSqliteSaver writes"
        if "thread_ts" in self._columns("checkpoints"):
            hint = "it was written by a langgraph before 0.2, whose checkpoints no later one reads either"
        raise InvalidInputError("not-langgraph", f"{self._path} is no database of langgraph checkpoints", hint=hint)

    def _columns(self, table: str) -> set[str]:
        return {name for (name,) in self._rows("SELECT name FROM pragma_table_info(?)", table)}

    def _rows(self, query: str, *values: object) -> list[Any]:
        try:
            return self._db.execute(query, values).fetchall()
        except sqlite3.Error as e:
            raise _told(e, self._path) from e


def _connected(path: Path) -> sqlite3.Connection:
    uri = path.resolve().as_uri()
    db = sqlite3.connect(f"{uri}?mode=ro", uri=True, isolation_level=None)
    try:
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as e:
        db.close()
        if e.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise _told(e, path) from e
        return _without_log(path, uri, e)
    except sqlite3.Error as e:
        db.close()
        raise _told(e, path) from e
    return db


def _without_log(path: Path, uri: str, why: sqlite3.Error) -> sqlite3.Connection:
    """The database where no file can be made beside it, which a log would need; right only while there is no log."""
    log = path.with_name(path.name + "-wal")
    if not os.access(path, os.R_OK) or (log.exists() and log.stat().st_size):
        raise UnavailableError(
            "not-readable", f"{path} cannot be opened where it is: {why}",
            hint=f"copy it, with {log.name} beside it, to a folder that can be written to, and import the copy",
        ) from why  # fmt: skip
    return sqlite3.connect(f"{uri}?mode=ro&immutable=1", uri=True, isolation_level=None)


def _told(error: sqlite3.Error, path: Path) -> RekindleError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_NOTADB:
        return InvalidInputError(
            "not-langgraph", f"{path} is no SQLite database",
            hint="name the file that langgraph's SqliteSaver or AsyncSqliteSaver writes",
        )  # fmt: skip
    if code == sqlite3.SQLITE_CORRUPT:
        return CorruptDataError("bad-file", f"{path} is damaged: {error}", hint="`sqlite3 FILE .recover` may help")
    return UnavailableError("import-failed", f"{path} cannot be read: {error}")
