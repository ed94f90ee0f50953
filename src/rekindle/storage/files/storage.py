"""Records as JSON files: one a checkpoint, large parts beside it, for an editor, `ls` and `diff` to read.

A record's file is created under a name that was free: that is the compare-and-swap. What it names (groups,
and the alias that leads to it) is durable before it is, and means nothing until it is there.
"""

from __future__ import annotations

import errno
import os
import posixpath
import secrets
import sys
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

from ...errors import CorruptDataError, InvalidInputError, UnavailableError, UnsupportedError
from ...forks import waited_for
from ..base import OPERATIONS, Append, Key, Outcome, Packs, Rewrite, Storage, Stored
from ..disk import Disk, OsDisk
from ..lock import FileLock
from ..packs import FolderPacks
from . import audit, layout
from .filing import Filing
from .intents import Intents, pending_of
from .readable import damaged, document, open_document, read_head
from .shelf import Shelf

FORMAT = 1
T = TypeVar("T")


class _UnsyncedDisk(OsDisk):
    """What `durability="relaxed"` asks for: it survives a kill, a power cut may take the last saves."""

    def sync(self, handle: int) -> None: ...

    def sync_dir(self, path: str) -> None: ...


class FilesStorage(Storage):
    """A folder of JSON files. Tests hand in `disk` and `lock` to run this class on a simulated disk."""

    compresses = False

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        durability: str = "durable",
        create: bool = True,
        disk: Disk | None = None,
        lock: AbstractContextManager[Any] | None = None,
    ) -> None:
        if sys.platform == "win32":
            raise UnsupportedError(
                "no-files-storage", "the files storage needs Linux or macOS", hint="use sqlite:///path"
            )
        self.root = os.path.abspath(os.fspath(root))
        self.url = f"file://{self.root}"
        self._disk = disk or (OsDisk() if durability == "durable" else _UnsyncedDisk())
        self._packs = FolderPacks(self._path(layout.PACKS), self._disk)
        self._intents = Intents(self._disk, self.root)
        self._shelf = Shelf(self._disk, self.root)
        self._filing = Filing(self._shelf)
        self._thread_lock = waited_for(threading.RLock())
        self._pid = os.getpid()
        self._open = True
        with self._errors():
            made = self._find(create)
            self._own_lock = lock is None
            self._lock = lock if lock is not None else FileLock(self._path(layout.LOCK))
            with self._lock:
                if not made:
                    self._make()
                self._secret = self._read_marker()
                self._disk.mkdir(self._path(layout.INTENTS))
                self._intents.finish()

    # -- the folder ---------------------------------------------------------------------------------------

    def _path(self, under: str) -> str:
        return posixpath.join(self.root, under)

    def _find(self, create: bool) -> bool:
        """Whether the store is there. InvalidInputError: the path is something else."""
        try:
            names = set(self._disk.listdir(self.root)) - {layout.LOCK}
        except FileNotFoundError:
            names = set()
            if create:
                self._disk.mkdir(self.root)
        except NotADirectoryError:
            raise self._stranger("it is a file (a SQLite store is opened by its plain path)") from None
        if layout.MARKER in names:
            return True
        if {layout.INTENTS, layout.USERS} & names:
            raise damaged(self._path(layout.MARKER), "is gone")
        if names:
            raise self._stranger(f"it is a folder with other files, {min(names)!r} for one")
        if not create:
            raise UnavailableError(
                "no-store",
                f"there is no store at {self.root}",
                hint="make one with `rekindle init`, or name it with --store",
            )
        return False

    def _stranger(self, why: str) -> InvalidInputError:
        return InvalidInputError(
            "not-a-store", f"{self.root} is not a rekindle store: {why}", hint="name another folder"
        )

    def _make(self) -> None:
        marker = {"store": "files", "format": FORMAT, "secret": secrets.token_hex(32)}
        with suppress(FileExistsError):  # somebody else made it meanwhile
            self._disk.write_new(self._path(layout.MARKER), document(marker))

    def _read_marker(self) -> bytes:
        path = self._path(layout.MARKER)
        fields = open_document(self._disk.read(path), path)
        if fields.get("format", 0) > FORMAT:
            raise UnsupportedError(
                "newer-format",
                f"{self.root} is a store of format {fields['format']}; this version reads up to {FORMAT}",
                hint="upgrade rekindle; nothing was changed",
            )
        return bytes.fromhex(fields["secret"])

    @property
    def packs(self) -> Packs:
        return self._packs

    @property
    def secret(self) -> bytes:
        return self._secret

    # -- access -------------------------------------------------------------------------------------------

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as e:
            raise _translated(e, self.root) from e

    def _live(self) -> None:
        if not self._open:
            raise UnavailableError("closed", f"the store {self.url} is closed")
        if self._pid != os.getpid():
            # a forked child shares its parent's lock: it takes one of its own
            self._pid = os.getpid()
            if self._own_lock:
                self._lock = FileLock(self._path(layout.LOCK))

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self._live()
        with self._errors(), self._thread_lock, self._lock:
            self._intents.finish()
            yield

    def _settled(self, look: Callable[[], T]) -> T:
        """What is there, nothing half: what a writer began is awaited, and ended where the writer is gone."""
        self._live()
        with self._errors():
            before = self._intents.seen()
            try:
                found = look()
                if not pending_of(before) and self._intents.seen() == before:
                    return found
            except CorruptDataError:
                pass  # damaged, or changed by a sweep while it was looked at
            with self._thread_lock, self._lock:
                self._intents.finish()
                return look()

    # -- writing ------------------------------------------------------------------------------------------

    def append(self, batch: Sequence[Append]) -> list[Outcome]:
        with self._writing():
            return [self._append_unit(unit) for unit in batch]

    def _append_unit(self, unit: Append) -> Outcome:
        if self._newest(unit.records[0].key.user) != unit.guard:
            return Outcome.STALE
        named: set[str] = set()
        for record in unit.records:
            if record.alias is not None:
                alias = layout.alias_path(record.key.user, record.alias)
                if alias in named or self._shelf.aliased(record.key.user, record.alias) is not None:
                    return Outcome.KNOWN
                named.add(alias)
            path = layout.record_path(record.key, record.seq)
            if path in named or self._disk.exists(self._path(path)):
                return Outcome.TAKEN
            named.add(path)
        steps = [self._filing.prepare(record) for record in unit.records]
        if len(steps) == 1:
            try:
                self._disk.write_new(self._path(steps[0][1]), steps[0][2].encode())
            except FileExistsError:
                return Outcome.TAKEN
        else:
            self._intents.commit(steps, undo=True)
        for record in unit.records:
            self._filing.share(record)
        return Outcome.CREATED

    def sweep(self, edits: Sequence[Rewrite], guard: int, user: str, forget: Sequence[bytes] = ()) -> bool:
        with self._writing():
            if self._newest(user) != guard:
                return False
            steps = [step for edit in edits for step in self._filing.rewrite(edit)]
            steps += [("delete", layout.shared_path(user, digest), "") for digest in forget]
            if steps:
                self._intents.commit(steps, undo=False)
            return True

    def shrink(self) -> bool:
        """Nothing to do but to clear away what crashed writers left."""
        for folder in self._settled(lambda: list(audit.folders(self._shelf))):
            with self._writing():
                audit.tidy(self._shelf, folder)
        return False

    # -- reading ------------------------------------------------------------------------------------------

    def keys(self, user: str | None = None) -> list[Key]:
        return self._settled(lambda: self._shelf.keys(user))

    def heads(self, key: Key, *, before: int | None = None, limit: int | None = None) -> list[Stored]:
        return self._settled(lambda: self._heads(key, before, limit))

    def _heads(self, key: Key, before: int | None, limit: int | None) -> list[Stored]:
        seqs = [seq for seq in reversed(self._shelf.seqs(key)) if before is None or seq < before]
        found = ((seq, self._shelf.record(key, seq)) for seq in (seqs if limit is None else seqs[:limit]))
        return [Stored(seq, read_head(fields)) for seq, fields in found if fields is not None]

    def head(self, key: Key, seq: int) -> bytes | None:
        fields = self._settled(lambda: self._shelf.record(key, seq))
        return None if fields is None else read_head(fields)

    def bodies(self, key: Key, spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, bytes]]:
        seqs = self._settled(lambda: self._shelf.seqs(key))
        for first, last in spans:
            for seq in seqs[bisect_left(seqs, first) : bisect_right(seqs, last)]:
                body = self._settled(partial(self._shelf.body, key, seq))
                if body is not None:
                    yield seq, body

    def find_shared(self, user: str, digest: bytes) -> tuple[str, int, int] | None:
        return self._settled(lambda: self._shelf.shared(user, digest))

    def shared_in(self, key: Key, spans: Sequence[tuple[int, int]]) -> list[tuple[bytes, int, int]]:
        return self._settled(lambda: self._shelf.shared_in(key, spans))

    def find_alias(self, user: str, alias: str) -> tuple[str, int] | None:
        return self._settled(lambda: self._shelf.aliased(user, alias))

    def newest_operation(self, user: str) -> int:
        return self._settled(lambda: self._newest(user))

    def _newest(self, user: str) -> int:
        return max(self._shelf.seqs(Key(user, OPERATIONS)), default=0)

    # -- the whole ----------------------------------------------------------------------------------------

    def check(self) -> list[str]:
        return self._settled(lambda: audit.check(self._shelf))

    def size(self) -> dict[str, int]:
        return self._settled(lambda: audit.measure(self._shelf))

    def close(self) -> None:
        with self._thread_lock:
            if self._open:
                self._open = False
                if self._own_lock and isinstance(self._lock, FileLock):
                    self._lock.close()


def _translated(error: OSError, root: str) -> UnavailableError:
    path = error.filename or root
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return UnavailableError("disk-full", f"no space left for {path}", hint="free some space; nothing was lost")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return UnavailableError(
            "not-writable",
            f"{path} cannot be read or written: {error.strerror}",
            hint="check its permissions",
        )
    return UnavailableError("io-error", f"{path} could not be read or written: {error.strerror}", hint="check the disk")
