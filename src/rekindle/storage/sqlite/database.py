"""The connection to one SQLite file: opened, set up, checked, given to one thread at a time, kept through forks."""

from __future__ import annotations

import os
import secrets
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.resources import files
from typing import Any

from ...errors import CorruptDataError, UnavailableError, UnsupportedError
from ...forks import waited_for
from ...state.tree.nodes import check as checksum
from ..lock import FileLock
from .file import (
    APPLICATION_ID,
    DAMAGE,
    OPEN_FILES,
    RESCUE,
    Access,
    Connect,
    not_a_store,
    refuse_strangers,
    translated,
)
from .file import connect as open_file

FORMAT = 1
_NOBODY = -1


class Database:
    """A store's file. `_access` is its connection for one thread, `_transaction` a commit for all that is in it."""

    def __init__(
        self,
        path: str,
        *,
        durability: str,
        create: bool,
        connect: Connect,
        lock: AbstractContextManager[Any] | None,
    ) -> None:
        self.path = path
        self._connect = connect
        self._synchronous = "FULL" if durability == "durable" else "NORMAL"
        self._thread_lock = waited_for(threading.RLock())
        self._access = Access(self._enter, self._thread_lock, self.path)
        self._db: Any = None
        self._lock: AbstractContextManager[Any] = lock if lock is not None else nullcontext()
        self._file: tuple[int, int] | None = None
        try:
            if connect is open_file:
                with OPEN_FILES.lock:
                    refuse_strangers(self.path, create)
                    self._lock = FileLock(self.path + "-lock") if lock is None else lock
                    self._open()
                    self._file = OPEN_FILES.add(self.path)
            else:
                self._open()
            self._secret = self._meta("secret")
        except BaseException:
            self.close()
            raise

    def _forget(self) -> None:
        """What was remembered of the file may not hold: a transaction was rolled back, or the process is another."""

    def _open(self) -> None:
        with self._errors():
            self._pid = os.getpid()
            self._db = self._connect(self.path)
            try:
                with self._lock:
                    self._set_up()
            except BaseException:
                self._pid = _NOBODY  # what is open by halves would keep its locks; a forked child may try again
                self._db.close()
                raise

    def _set_up(self) -> None:
        db = self._db
        made = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] > 0
        if made:
            self._check_identity()  # before anything is written: it may be somebody else's
        else:
            db.execute("PRAGMA page_size = 1024")  # rows of 1 to 2 KB: larger pages waste up to half the file
            db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        db.execute("PRAGMA journal_mode = WAL")
        # NORMAL loses acknowledged saves when the power goes
        db.execute(f"PRAGMA synchronous = {self._synchronous}")
        if sys.platform == "darwin":
            db.execute("PRAGMA fullfsync = 1")
            db.execute("PRAGMA checkpoint_fullfsync = 1")
        db.execute("PRAGMA secure_delete = FAST")
        db.execute("PRAGMA foreign_keys = OFF")
        if not made:
            self._create()
        self._check_format()
        # SQLite may say "wal" and go on without; a rollback journal's FULL may undo the last commit at a power cut
        if db.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            raise UnavailableError("no-wal", f"{self.path} cannot have a write-ahead log", hint="use a local disk")

    def _create(self) -> None:
        text = files(__package__).joinpath("schema.sql").read_text(encoding="utf-8")
        script = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
        with self._transaction():
            for statement in script.split(";"):
                if statement.strip():
                    self._db.execute(statement)
            self._put_meta("format", str(FORMAT).encode())
            self._put_meta("secret", secrets.token_bytes(32))
            self._put_meta("schema", self._schema())
            self._db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            self._db.execute(f"PRAGMA user_version = {FORMAT}")

    def _check_identity(self) -> int:
        identity: int = self._db.execute("PRAGMA application_id").fetchone()[0]
        tables = {row[0] for row in self._db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if identity != APPLICATION_ID and not {"meta", "records", "agents"} <= tables:
            raise not_a_store(self.path, "it is a SQLite database of another program")
        return identity

    def _check_format(self) -> None:
        identity = self._check_identity()
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        written = self._meta("format").decode("ascii", "replace")
        if identity == APPLICATION_ID and version == int(written) != FORMAT:
            raise UnsupportedError(
                "newer-format", f"{self.path} is a store of format {version}; this version reads up to {FORMAT}",
                hint="upgrade rekindle; nothing was changed",
            )  # fmt: skip
        if (identity, version, written) != (APPLICATION_ID, FORMAT, str(FORMAT)) or (
            self._meta("schema") != self._schema()
        ):
            raise CorruptDataError("bad-header", f"the header of {self.path} is damaged", hint=RESCUE)

    def _schema(self) -> bytes:
        """What the file says its tables are and where they begin: with another root it would read as empty."""
        rows = self._db.execute("SELECT type, name, rootpage, sql FROM sqlite_master ORDER BY name").fetchall()
        return checksum(repr(rows).encode())

    def _meta(self, name: str) -> bytes:
        row = self._row("SELECT value, checksum FROM meta WHERE name = ?", (name,))
        if row is None or not isinstance(row[0], bytes) or checksum(name.encode() + row[0]) != row[1]:
            raise CorruptDataError("bad-meta", f"{self.path} has lost its {name!r}", hint=RESCUE)
        return bytes(row[0])

    def _put_meta(self, name: str, value: bytes) -> None:
        self._db.execute("INSERT INTO meta VALUES (?, ?, ?)", (name, value, checksum(name.encode() + value)))

    @property
    def secret(self) -> bytes:
        return self._secret

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except DAMAGE as e:
            raise translated(e, self.path) from e

    def _enter(self) -> Any:
        """The connection. A process that was forked or restored gets one of its own."""
        if self._db is None:
            raise UnavailableError("closed", f"the store {self.path} is closed")
        if self._pid != os.getpid():
            self._reopen_after_fork()
        return self._db

    def _reopen_after_fork(self) -> None:
        # closing the parent's connection here would release the parent's locks: leave it alone, and its memory
        _abandoned.append(self._db)
        self._forget()
        if isinstance(self._lock, FileLock):
            self._lock = FileLock(self.path + "-lock")
        self._open()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            self._forget()
            raise

    def _row(self, sql: str, args: tuple[Any, ...] = ()) -> Any:
        with self._access as db:
            return db.execute(sql, args).fetchone()

    def _rows(self, sql: str, args: tuple[Any, ...] = ()) -> list[Any]:
        with self._access as db:
            return db.execute(sql, args).fetchall()  # type: ignore[no-any-return]

    def close(self) -> None:
        with self._thread_lock:
            db, self._db = self._db, None
            try:
                if db is not None and self._pid == os.getpid():
                    with self._errors():
                        db.close()
            finally:
                if isinstance(self._lock, FileLock):
                    self._lock.close()
                if self._file is not None:
                    OPEN_FILES.remove(self._file)
                    self._file = None


_abandoned: list[Any] = []
