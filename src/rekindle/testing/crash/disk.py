"""A disk in memory that remembers, in order, everything it was asked to do, and can be told to fail.

It behaves as a file system does while the power is on: every write is seen at once. What would be left after
a power cut is `crash_states(disk.recording())`.
"""

from __future__ import annotations

import errno
import os
import posixpath
import threading
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

from rekindle.testing.crash import log
from rekindle.testing.crash.log import ROOT, Image, Op, Recording

Fault = Literal["EIO", "ENOSPC"]


@dataclass(frozen=True)
class _Failure:
    at: int
    error: Fault
    sticky: bool


class SimDisk:
    """Files in memory. Paths are absolute; errors are OSErrors. Safe to use from several threads at once."""

    def __init__(self, image: Image | None = None) -> None:
        self._base = Image() if image is None else image
        self._names = self._base.inodes()
        self._dirs = set(self._base.dirs)
        self._data: dict[int, bytes | bytearray] = {
            inode: self._base.files[path] for path, inode in self._names.items()
        }
        self._next = len(self._names)
        self._ops: list[Op] = []
        self._tokens = 0
        self._failure: _Failure | None = None
        self._lock = threading.RLock()
        self.calls = 0
        """How many calls could have failed so far: what `fail_at` counts."""
        self.failed = 0
        """How many of them were made to fail."""
        self.failed_first = 0
        """Which of them, counted from 1, was the first since `fail_at`; 0: none yet."""

    # -- what a test asks ------------------------------------------------------------------------------------

    def mark(self, label: Hashable) -> None:
        """Note that by now the program under test has been told something, such as "save 7 is safe"."""
        with self._lock:
            self._ops.append(log.Mark(label))

    def recording(self) -> Recording:
        """All that was done since this disk was made: what `crash_states` reads."""
        with self._lock:
            return Recording(self._base, tuple(self._ops))

    def image(self) -> Image:
        """The disk as programs see it now, as if all of it had been synced."""
        with self._lock:
            files = {path: bytes(self._data[inode]) for path, inode in self._names.items()}
            return Image(files, frozenset(self._dirs))

    def fail_at(self, n: int, error: Fault = "EIO", *, sticky: bool = False) -> None:
        """Make the n-th call from now fail, and with `sticky` all after it; a failing write lands in part.

        ENOSPC waits for the first call from the n-th on that asks for space: no other would ever get it.
        """
        if n < 1:
            raise ValueError("n counts from 1")
        with self._lock:
            self._failure = _Failure(self.calls + n, error, sticky)
            self.failed_first = 0

    def heal(self) -> None:
        """No call fails any more."""
        with self._lock:
            self._failure = None

    def _call(self, what: str, *, grows: bool = False) -> None:
        self.calls += 1
        failure = self._failure
        if failure is None or self.calls < failure.at or (failure.error == "ENOSPC" and not grows):
            return
        if not failure.sticky:
            self._failure = None
        self.failed += 1
        self.failed_first = self.failed_first or self.calls
        number = getattr(errno, failure.error)
        raise OSError(number, os.strerror(number), what)

    # -- bytes -----------------------------------------------------------------------------------------------

    def open(self, path: str, *, create: bool = False, exclusive: bool = False) -> int:
        """The inode behind the path; `create` makes a missing file, `exclusive` wants it missing."""
        with self._lock:
            inode = self._names.get(path)
            self._call(path, grows=create and inode is None)
            if path in self._dirs:
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
            if inode is not None:
                if exclusive:
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
                return inode
            if not create:
                raise _missing(path)
            self._need_parent(path)
            inode = self._new_inode()
            self._names[path] = inode
            self._ops.append(log.Create(path, inode))
            return inode

    def read(self, inode: int, offset: int, amount: int) -> bytes:
        """Up to `amount` bytes; fewer at the end of the file."""
        with self._lock:
            self._call("read")
            return bytes(self._data[inode][offset : offset + amount])

    def size(self, inode: int) -> int:
        with self._lock:
            return len(self._data[inode])

    def write(self, inode: int, offset: int, data: bytes) -> None:
        """All of the data, or, where it fails, its first half and an OSError."""
        with self._lock:
            try:
                self._call("write", grows=offset + len(data) > len(self._data[inode]))
            except OSError:
                self._put(inode, offset, data[: len(data) // 2])
                raise
            self._put(inode, offset, data)

    def truncate(self, inode: int, size: int) -> None:
        with self._lock:
            self._call("truncate", grows=size > len(self._data[inode]))
            held = self._own(inode)
            if size < len(held):
                del held[size:]
            else:
                held.extend(bytes(size - len(held)))
            self._ops.append(log.Truncate(inode, size))

    def sync(self, inode: int) -> None:
        """The file's bytes are durable; its name is not yet."""
        with self._lock:
            try:
                self._call("sync")
            except OSError:
                self._ops.append(log.SyncFailed(inode))
                raise
            self._ops.append(log.Sync(inode))

    # -- names -----------------------------------------------------------------------------------------------

    def link(self, source: str, target: str) -> None:
        """A second name for the file; FileExistsError if the name is taken."""
        with self._lock:
            self._call(target, grows=True)
            inode = self._inode(source)
            if target in self._names or target in self._dirs:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
            self._need_parent(target)
            self._names[target] = inode
            self._ops.append(log.Link(target, inode))

    def rename(self, source: str, target: str) -> None:
        """The file has the new name and not the old; what had the new name loses it. Files only."""
        with self._lock:
            self._call(target, grows=True)
            inode = self._inode(source)
            self._need_parent(target)
            if target in self._dirs:
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), target)
            del self._names[source]
            self._names[target] = inode
            self._ops.append(log.Rename(source, target, inode))

    def unlink(self, path: str) -> None:
        with self._lock:
            self._call(path)
            self._inode(path)
            del self._names[path]
            self._ops.append(log.Unlink(path))

    def mkdir(self, path: str) -> None:
        with self._lock:
            self._call(path, grows=True)
            if path in self._names or path in self._dirs:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
            self._need_parent(path)
            self._dirs.add(path)
            self._ops.append(log.MakeDir(path))

    def sync_dir(self, path: str) -> None:
        """The names made and removed in the directory until now are durable."""
        with self._lock:
            self._call(path)
            if path not in self._dirs:
                raise _missing(path)
            self._ops.append(log.SyncDir(path))

    def listdir(self, path: str) -> list[str]:
        """The names in the directory, sorted."""
        with self._lock:
            self._call(path)
            if path not in self._dirs:
                raise _missing(path)
            start = path if path == ROOT else path + "/"
            found = (p[len(start) :] for p in (*self._names, *self._dirs) if p.startswith(start))
            return sorted(name for name in found if name and "/" not in name)

    def exists(self, path: str) -> bool:
        with self._lock:
            return path in self._names or path in self._dirs

    def token(self) -> str:
        """A text that is in no path of the disk and was not given before: the simulation's chance."""
        with self._lock:
            while True:
                text, self._tokens = f"{self._tokens:016x}", self._tokens + 1
                if not any(text in path for path in self._names):
                    return text

    # -- inside ----------------------------------------------------------------------------------------------

    def _new_inode(self) -> int:
        inode, self._next = self._next, self._next + 1
        self._data[inode] = b""
        return inode

    def _inode(self, path: str) -> int:
        if path not in self._names:
            raise _missing(path)
        return self._names[path]

    def _need_parent(self, path: str) -> None:
        if posixpath.dirname(path) not in self._dirs:
            raise _missing(posixpath.dirname(path))

    def _own(self, inode: int) -> bytearray:
        """The file's bytes to change in place: an image's are shared until then."""
        held = self._data[inode]
        if isinstance(held, bytes):
            held = self._data[inode] = bytearray(held)
        return held

    def _put(self, inode: int, offset: int, data: bytes) -> None:
        if not data:
            return
        held = self._own(inode)
        if len(held) < offset:
            held.extend(bytes(offset - len(held)))
        held[offset : offset + len(data)] = data
        self._ops.append(log.Write(inode, offset, data))


def _missing(path: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
