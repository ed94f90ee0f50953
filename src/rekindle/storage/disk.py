"""The few steps a files storage takes on a disk, and the two ways of writing that leave nothing half.

`write_new` and `replace` are written once, on primitives: real ones here, simulated ones in the crash
tests.
"""

from __future__ import annotations

import errno
import os
import posixpath
import secrets
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress

TEMP_PREFIX = ".tmp-"
"""A name that begins so is a write that never ended."""


class Disk(ABC):
    """A file system. Errors are OSErrors, as they came. Safe to use from several threads and processes."""

    def __init__(self, *, token: Callable[[], str]) -> None:
        self._token = token

    def write_new(self, path: str, data: bytes) -> None:
        """Make a file. On return its bytes and name are durable; FileExistsError if the name is taken.

        The name never shows a part of the data. After any other error the file is there, whole, or not.
        """
        temp = self._write_temp(path, data)
        try:
            self.link(temp, path)
        finally:
            self.unlink(temp)
        self.sync_dir(posixpath.dirname(path))

    def replace(self, path: str, data: bytes) -> None:
        """Give the file these bytes, durably. A reader sees the old bytes or the new, never a part."""
        temp = self._write_temp(path, data)
        try:
            self.rename(temp, path)
        except BaseException:
            with suppress(OSError):
                self.unlink(temp)
            raise
        self.sync_dir(posixpath.dirname(path))

    def mkdir(self, path: str) -> None:
        """On return the directory is there, durably, with those above it that were missing."""
        if self.exists(path):
            # Its maker may not have synced it yet, and what we write beneath must not be lost with it. Where
            # we may not read the folder above, whoever set this one up answers for it.
            with suppress(PermissionError):
                self.sync_dir(posixpath.dirname(path))
            return
        parent = posixpath.dirname(path)
        if parent and not self.exists(parent):
            self.mkdir(parent)
        with suppress(FileExistsError):
            self.make_dir(path)
        self.sync_dir(parent)

    def listdir(self, path: str) -> list[str]:
        """The names in the directory, sorted; what a write that never ended left is not among them."""
        return [name for name in self.names(path) if not name.startswith(TEMP_PREFIX)]

    def leftovers(self, path: str) -> list[str]:
        """The names of writes in the directory that have not ended: under way in some process, or cut off."""
        return [name for name in self.names(path) if name.startswith(TEMP_PREFIX)]

    def _write_temp(self, path: str, data: bytes) -> str:
        temp = posixpath.join(posixpath.dirname(path), TEMP_PREFIX + self._token())
        handle = self.create(temp)
        try:
            try:
                rest = memoryview(data)
                while rest:
                    rest = rest[self.write(handle, rest) :]
                self.sync(handle)
            finally:
                self.close(handle)
        except BaseException:
            with suppress(OSError):
                self.unlink(temp)
            raise
        return temp

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Bytes of the file from an offset on; fewer where it ends before."""
        return self.read(path)[offset : offset + length]

    def size(self, path: str) -> int:
        """The bytes the file takes."""
        return len(self.read(path))

    # The primitives: one step each, nothing durable but by `sync` and `sync_dir`.

    @abstractmethod
    def read(self, path: str) -> bytes:
        """All the bytes of the file."""

    @abstractmethod
    def create(self, path: str) -> int:
        """Make an empty file that was not there and open it for writing."""

    @abstractmethod
    def write(self, handle: int, data: memoryview) -> int:
        """Write at the end; answers how many bytes were taken, at least one."""

    @abstractmethod
    def sync(self, handle: int) -> None:
        """The file's bytes are durable; its name is not."""

    @abstractmethod
    def close(self, handle: int) -> None: ...

    @abstractmethod
    def link(self, source: str, target: str) -> None:
        """A second name for the file; FileExistsError if the name is taken."""

    @abstractmethod
    def rename(self, source: str, target: str) -> None:
        """The file goes by the new name, in one step, in place of what had it."""

    @abstractmethod
    def unlink(self, path: str) -> None:
        """The name is gone; durably so after `sync_dir`."""

    @abstractmethod
    def make_dir(self, path: str) -> None: ...

    @abstractmethod
    def sync_dir(self, path: str) -> None:
        """The names made and removed in the directory until now are durable."""

    @abstractmethod
    def names(self, path: str) -> list[str]:
        """The names in the directory, sorted, leftovers too."""

    @abstractmethod
    def exists(self, path: str) -> bool: ...


class OsDisk(Disk):
    """The machine's own file system."""

    def __init__(self, *, token: Callable[[], str] = lambda: secrets.token_hex(8)) -> None:
        super().__init__(token=token)

    def read(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        with open(path, "rb") as file:
            file.seek(offset)
            return file.read(length)

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def create(self, path: str) -> int:
        # Windows would write two bytes for a line's end without O_BINARY, which others do not have
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)

    def write(self, handle: int, data: memoryview) -> int:
        return os.write(handle, data)

    def sync(self, handle: int) -> None:
        _flush(handle)

    def close(self, handle: int) -> None:
        os.close(handle)

    def link(self, source: str, target: str) -> None:
        os.link(source, target)

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def make_dir(self, path: str) -> None:
        os.mkdir(path)

    def sync_dir(self, path: str) -> None:
        if sys.platform == "win32":
            return  # a folder cannot be opened there, and NTFS logs its names by itself
        handle = os.open(path or ".", os.O_RDONLY)
        try:
            _flush(handle)
        finally:
            os.close(handle)

    def names(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def exists(self, path: str) -> bool:
        return os.path.lexists(path)


if sys.platform == "darwin":
    import fcntl

    def _flush(handle: int) -> None:
        # fsync on macOS leaves the bytes in the drive's cache; a file system without the call has only fsync.
        try:
            fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.EINVAL, errno.ENOTTY):
                raise
            os.fsync(handle)

else:

    def _flush(handle: int) -> None:
        os.fsync(handle)
