"""SQLite on a simulated disk: an apsw VFS, and a connection that speaks as sqlite3's does in autocommit.

Only here is apsw imported. One VFS serves every disk; a file's first folder says whose it is.
"""

from __future__ import annotations

import errno
import itertools
import posixpath
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

import apsw

from rekindle.testing.crash.disk import SimDisk

_VFS_NAME = "rekindle-crash"

Params = Sequence[Any] | Mapping[str, Any]

_DIR_SYNCED = apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL | apsw.SQLITE_OPEN_WAL
_UNLOCKED, _SHARED, _RESERVED = apsw.SQLITE_LOCK_NONE, apsw.SQLITE_LOCK_SHARED, apsw.SQLITE_LOCK_RESERVED
_EXCLUSIVE = apsw.SQLITE_LOCK_EXCLUSIVE


Locks = dict[int, dict[object, int]]


@dataclass(frozen=True)
class _Mount:
    """The name under which SQLite knows a disk, and who holds which lock on its files."""

    name: str
    locks: Locks


_disks: WeakValueDictionary[str, SimDisk] = WeakValueDictionary()
_mounts: WeakKeyDictionary[SimDisk, _Mount] = WeakKeyDictionary()
_numbers = itertools.count()


def _mount(disk: SimDisk) -> _Mount:
    mount = _mounts.get(disk)
    if mount is None:
        mount = _mounts[disk] = _Mount(f"disk{next(_numbers)}", {})
        _disks[mount.name] = disk
    return mount


def _place(name: str) -> tuple[SimDisk, str]:
    mount, _, rest = name.lstrip("/").partition("/")
    return _disks[mount], "/" + rest


def _failure(kind: type[apsw.Error], text: str, code: int) -> apsw.Error:
    """An exception that SQLite gets this extended result code from."""
    failure = kind(text)
    vars(failure).update(result=code & 0xFF, extendedresult=code)
    return failure


def _sqlite_error(error: OSError, code: int) -> apsw.Error:
    """What SQLite's own VFS for Unix would answer."""
    if error.errno == errno.ENOSPC:
        return _failure(apsw.FullError, str(error), apsw.SQLITE_FULL)
    return _failure(apsw.IOError, str(error), code)


class _File:
    """An open file. What SQLite's VFS for Unix does, with the disk's operations in place of system calls."""

    __slots__ = ("_delete", "_disk", "_inode", "_locks", "_path", "_sync_dir")

    def __init__(self, disk: SimDisk, path: str, flags: int) -> None:
        self._disk = disk
        self._path = path
        self._inode = self._disk.open(path, create=bool(flags & apsw.SQLITE_OPEN_CREATE))
        self._locks = _mount(disk).locks.setdefault(self._inode, {})
        self._delete = bool(flags & apsw.SQLITE_OPEN_DELETEONCLOSE)
        # The Unix VFS syncs a journal's folder at the journal's first sync, but never for the database.
        self._sync_dir = bool(flags & apsw.SQLITE_OPEN_CREATE and flags & _DIR_SYNCED)

    def xRead(self, amount: int, offset: int) -> bytes:
        try:
            return self._disk.read(self._inode, offset, amount)
        except OSError as error:
            raise _sqlite_error(error, apsw.SQLITE_IOERR_READ) from error

    def xWrite(self, data: bytes, offset: int) -> None:
        try:
            self._disk.write(self._inode, offset, bytes(data))
        except OSError as error:
            raise _sqlite_error(error, apsw.SQLITE_IOERR_WRITE) from error

    def xTruncate(self, size: int) -> None:
        try:
            self._disk.truncate(self._inode, size)
        except OSError as error:
            raise _sqlite_error(error, apsw.SQLITE_IOERR_TRUNCATE) from error

    def xSync(self, flags: int) -> None:
        try:
            self._disk.sync(self._inode)
        except OSError as error:
            raise _sqlite_error(error, apsw.SQLITE_IOERR_FSYNC) from error
        if self._sync_dir:
            try:
                self._disk.sync_dir(posixpath.dirname(self._path))
            except OSError as error:
                raise _sqlite_error(error, apsw.SQLITE_IOERR_DIR_FSYNC) from error
            self._sync_dir = False

    def xFileSize(self) -> int:
        return self._disk.size(self._inode)

    def xLock(self, level: int) -> None:
        others = max((held for owner, held in self._locks.items() if owner is not self), default=_UNLOCKED)
        mine = self._locks.get(self, _UNLOCKED)
        if mine >= level:
            return
        second_writer = others == _RESERVED and level >= _RESERVED
        if others > _RESERVED or second_writer or (others and level == _EXCLUSIVE):
            raise _failure(apsw.BusyError, "database is locked", apsw.SQLITE_BUSY)
        self._locks[self] = level

    def xUnlock(self, level: int) -> None:
        if level == _UNLOCKED:
            self._locks.pop(self, None)
        else:
            self._locks[self] = level

    def xCheckReservedLock(self) -> bool:
        return any(held >= _RESERVED for held in self._locks.values())

    def xClose(self) -> None:
        self._locks.pop(self, None)
        if self._delete:
            self._disk.unlink(self._path)

    def xFileControl(self, op: int, ptr: int) -> bool:
        return False

    def xSectorSize(self) -> int:
        return 4096

    def xDeviceCharacteristics(self) -> int:
        return apsw.SQLITE_IOCAP_POWERSAFE_OVERWRITE

    def excepthook(self, *error: object) -> bool:
        """Nothing is printed: what a file raises reaches the caller as SQLite's answer."""
        return True


class _Vfs(apsw.VFS):
    """Time, sleep and chance come from the machine's VFS, files from the disks."""

    def __init__(self) -> None:
        super().__init__(_VFS_NAME, base="")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> Any:
        flags[1] = flags[0]
        if name is None:
            return _File(SimDisk(), "/temporary", flags[0])
        disk, path = _place(name if isinstance(name, str) else name.filename())
        try:
            return _File(disk, path, flags[0])
        except OSError as error:
            raise _failure(apsw.CantOpenError, str(error), apsw.SQLITE_CANTOPEN) from error

    def xDelete(self, name: str, sync_dir: bool) -> None:
        disk, path = _place(name)
        try:
            disk.unlink(path)
            if sync_dir:
                disk.sync_dir(posixpath.dirname(path))
        except FileNotFoundError as error:
            raise _sqlite_error(error, apsw.SQLITE_IOERR_DELETE_NOENT) from error
        except OSError as error:
            raise _sqlite_error(error, apsw.SQLITE_IOERR_DELETE) from error

    def xAccess(self, name: str, flags: int) -> bool:
        disk, path = _place(name)
        return disk.exists(path)

    def xFullPathname(self, name: str) -> str:
        return posixpath.normpath("/" + name)

    def excepthook(self, *error: object) -> bool:
        """Nothing is printed: what the VFS raises reaches the caller as SQLite's answer."""
        return True


_vfs = _Vfs()


class SimCursor:
    """The rows of a statement, as sqlite3's cursor gives them."""

    def __init__(self, connection: SimConnection, cursor: apsw.Cursor) -> None:
        self._connection = connection
        self._cursor = cursor
        self.rowcount = -1
        self.lastrowid: int | None = None

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self

    def __next__(self) -> tuple[Any, ...]:
        with self._connection.speaking():
            return next(self._cursor)

    def fetchone(self) -> tuple[Any, ...] | None:
        with self._connection.speaking():
            return next(self._cursor, None)

    def fetchmany(self, size: int = 1) -> list[tuple[Any, ...]]:
        with self._connection.speaking():
            return list(itertools.islice(self._cursor, size))

    def fetchall(self) -> list[tuple[Any, ...]]:
        with self._connection.speaking():
            return list(self._cursor)

    def close(self) -> None:
        with self._connection.speaking():
            self._cursor.close(True)


class SimConnection:
    """What a storage uses of sqlite3.Connection with `isolation_level=None`. Its errors are sqlite3's.

    Several threads may use it, one at a time; the others wait.
    """

    def __init__(self, disk: SimDisk, name: str, *, exclusive: bool) -> None:
        self._disk = disk
        self._lock = threading.RLock()
        with _translated():
            self._apsw = apsw.Connection(f"/{_mount(disk).name}/{name.lstrip('/')}", vfs=_VFS_NAME)
            if exclusive:
                self._apsw.execute("PRAGMA locking_mode = EXCLUSIVE")

    @contextmanager
    def speaking(self) -> Iterator[None]:
        """One thread at a time, apsw's errors as sqlite3's."""
        with self._lock, _translated():
            yield

    def execute(self, sql: str, params: Params = (), /) -> SimCursor:
        with self.speaking():
            cursor = SimCursor(self, self._apsw.execute(sql, params or None))
            if _changes_rows(sql):
                cursor.rowcount, cursor.lastrowid = self._apsw.changes(), self._apsw.last_insert_rowid()
            return cursor

    def executemany(self, sql: str, params: Iterable[Params], /) -> SimCursor:
        with self.speaking():
            before = self._apsw.total_changes()
            cursor = SimCursor(self, self._apsw.executemany(sql, params))
            cursor.rowcount = self._apsw.total_changes() - before
            return cursor

    def executescript(self, sql: str, /) -> SimCursor:
        with self.speaking():
            if self._apsw.in_transaction:
                self._apsw.execute("COMMIT")
            return SimCursor(self, self._apsw.execute(sql))

    @property
    def in_transaction(self) -> bool:
        with self.speaking():
            return self._apsw.in_transaction

    @property
    def total_changes(self) -> int:
        with self.speaking():
            return self._apsw.total_changes()

    def interrupt(self) -> None:
        with _translated():
            self._apsw.interrupt()

    def close(self) -> None:
        """As sqlite3 does it: the last connection brings the WAL into the database and removes it."""
        with self.speaking():
            self._apsw.close(True)

    def abandon(self) -> None:
        """Close as a killed process does: what is in the WAL stays there."""
        with self.speaking():
            self._apsw.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            self._apsw.close(True)


def connect(disk: SimDisk, name: str, *, exclusive: bool = True) -> SimConnection:
    """Open, or make, the database of this name on the disk.

    `exclusive` is needed for WAL: an apsw VFS has no shared memory, and a WAL that one connection has to
    itself needs none. Rollback journals are never deleted then; without it they go as they do in any program.
    A fault that SQLite goes on after goes to sys.unraisablehook: `PRAGMA journal_mode = WAL`
    that failed answers the old mode.
    """
    return SimConnection(disk, name, exclusive=exclusive)


def _changes_rows(sql: str) -> bool:
    return sql.lstrip()[:7].upper().startswith(("INSERT", "UPDATE", "DELETE", "REPLACE"))


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except apsw.Error as error:
        raise _as_sqlite3(error) from error


_CLASSES: dict[int, type[sqlite3.Error]] = {
    apsw.SQLITE_INTERNAL: sqlite3.InternalError,
    apsw.SQLITE_NOTFOUND: sqlite3.InternalError,
    apsw.SQLITE_TOOBIG: sqlite3.DataError,
    apsw.SQLITE_CONSTRAINT: sqlite3.IntegrityError,
    apsw.SQLITE_MISMATCH: sqlite3.IntegrityError,
    apsw.SQLITE_MISUSE: sqlite3.InterfaceError,
    apsw.SQLITE_RANGE: sqlite3.InterfaceError,
    apsw.SQLITE_CORRUPT: sqlite3.DatabaseError,
    apsw.SQLITE_NOTADB: sqlite3.DatabaseError,
    apsw.SQLITE_FORMAT: sqlite3.DatabaseError,
    apsw.SQLITE_AUTH: sqlite3.DatabaseError,
}


def _as_sqlite3(error: apsw.Error) -> sqlite3.Error:
    """The exception CPython's sqlite3 raises for the same result code."""
    extended: int | None = getattr(error, "extendedresult", None)
    if isinstance(error, apsw.ConnectionClosedError | apsw.CursorClosedError):
        return sqlite3.ProgrammingError("Cannot operate on a closed database.")
    if extended is None:
        return sqlite3.ProgrammingError(str(error))
    translated = _CLASSES.get(extended & 0xFF, sqlite3.OperationalError)(str(error))
    translated.sqlite_errorcode = extended
    names = apsw.mapping_extended_result_codes | apsw.mapping_result_codes
    translated.sqlite_errorname = str(names.get(extended, extended))
    return translated
