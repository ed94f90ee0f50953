"""One SQLite file: what it is before SQLite touches it, the connection, and SQLite's errors as ours."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...errors import CorruptDataError, InvalidInputError, RekindleError, UnavailableError
from ...forks import waited_for

APPLICATION_ID = 0x72656B69  # "reki"
_MAGIC = b"SQLite format 3\0"
RESCUE = "run `rekindle verify` to see what is whole; restore the file from a copy, or export what can be read"

DAMAGE = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite raises; where its message would quote damaged text, that text does not decode."""

Connect = Callable[[str], Any]


def connect(path: str) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30.0, cached_statements=64)


class Access:
    """The connection for one thread at a time, SQLite's errors made ours. Every call goes through it: no generator."""

    __slots__ = ("_enter", "_lock", "_path")

    def __init__(self, enter: Callable[[], Any], lock: Any, path: str) -> None:
        self._enter = enter
        self._lock = lock
        self._path = path

    def __enter__(self) -> Any:
        self._lock.acquire()
        try:
            return self._enter()
        except BaseException:
            self._lock.release()
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: object) -> None:
        self._lock.release()
        if isinstance(error, DAMAGE):
            raise translated(error, self._path) from error


def not_a_store(path: str, why: str) -> InvalidInputError:
    return InvalidInputError("not-a-store", f"{path} is not a rekindle store: {why}", hint="name another file")


class OpenFiles:
    """The database files this process has open, by device and inode.

    Closing any descriptor of a file drops all POSIX locks the process has on it, SQLite's too: a file that a
    connection is open on is never opened by hand.
    """

    def __init__(self) -> None:
        self.lock = waited_for(threading.RLock())
        self._counts: Counter[tuple[int, int]] = Counter()

    def add(self, path: str) -> tuple[int, int]:
        found = os.stat(path)
        key = (found.st_dev, found.st_ino)
        with self.lock:
            self._counts[key] += 1
        return key

    def remove(self, key: tuple[int, int]) -> None:
        with self.lock:
            self._counts[key] -= 1

    def holds(self, found: os.stat_result) -> bool:
        return self._counts[found.st_dev, found.st_ino] > 0


OPEN_FILES = OpenFiles()


def refuse_strangers(path: str, create: bool) -> None:
    """Say what a path is before SQLite writes to it; `OPEN_FILES.lock` is held until SQLite has it open."""
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
            raise not_a_store(path, "it is no file but a pipe, a socket or a device")
        if OPEN_FILES.holds(found):
            return
        with open(path, "rb") as f:
            header = f.read(100)
    except FileNotFoundError:
        if not create:
            raise UnavailableError(
                "no-store",
                f"there is no store at {path}",
                hint="make one with `rekindle init`, or name it with --store",
            ) from None
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise UnavailableError(
                "not-writable",
                f"the folder of {path} cannot be made: {e.strerror}",
                hint="make the folder above it writable, or name another path",
            ) from e
        return
    except IsADirectoryError:
        raise not_a_store(path, "it is a folder (a files store is opened as file:///path)") from None
    except OSError as e:
        raise UnavailableError(
            "not-readable", f"{path} cannot be read: {e.strerror}", hint="check its permissions"
        ) from e
    start = header[:16]
    if start and start != _MAGIC:
        alike = sum(a == b for a, b in zip(start, _MAGIC, strict=False))
        if alike >= 14:
            raise CorruptDataError("bad-header", f"the header of {path} is damaged", hint=RESCUE)
        raise not_a_store(path, "it is not a SQLite file")
    if _is_anothers(header) and not os.path.exists(path + "-wal"):
        raise not_a_store(path, "it is a SQLite database of another program")


def _is_anothers(header: bytes) -> bool:
    """Whether a file's header names another program: no byte of its id is ours, and it has a table."""
    pages, identity = header[28:32], header[68:72]
    ours = APPLICATION_ID.to_bytes(4)
    return int.from_bytes(pages) > 1 and not any(a == b for a, b in zip(identity, ours, strict=False))


def translated(error: sqlite3.Error | UnicodeDecodeError, path: str) -> RekindleError:
    """SQLite's error as ours: by what the caller can do."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or isinstance(
        error, (sqlite3.IntegrityError, UnicodeDecodeError)
    ):
        return CorruptDataError("bad-file", f"{path} is damaged: {error}", hint=RESCUE)
    if code == sqlite3.SQLITE_FULL:
        return UnavailableError("disk-full", f"no space left for {path}; nothing was lost", hint="free some space")
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
        return UnavailableError("not-writable", f"{path} cannot be written: {error}", hint="check its permissions")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return UnavailableError("store-busy", f"{path} is locked by another program", hint="try again")
    if code == sqlite3.SQLITE_IOERR:
        return UnavailableError("io-error", f"{path} could not be read or written: {error}", hint="check the disk")
    if code in (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG) or isinstance(
        error, (sqlite3.OperationalError, sqlite3.DataError, sqlite3.DatabaseError)
    ):
        return CorruptDataError("bad-file", f"{path} does not look as it should: {error}", hint=RESCUE)
    return UnavailableError("sqlite", f"{path}: {error}")
