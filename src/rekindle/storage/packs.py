"""Packs as files of a folder, and in memory."""

from __future__ import annotations

import errno
import posixpath
import threading
from contextlib import suppress

from ..errors import CorruptDataError, InvalidInputError, UnavailableError
from .base import Packs, PackWriter
from .disk import TEMP_PREFIX, Disk, OsDisk

_SUFFIX = ".pack"


class FolderPacks(Packs):
    """A file a pack, under its final name only once it is whole and synced."""

    def __init__(self, folder: str, disk: Disk | None = None) -> None:
        self._folder = folder
        self._disk = disk or OsDisk()

    def create(self, pack_id: bytes) -> PackWriter:
        try:
            self._disk.mkdir(self._folder)
            return _FileWriter(self._disk, self._path(pack_id), self._temp(pack_id))
        except OSError as e:
            raise _unwritable(self._folder, e) from e

    def read(self, pack_id: bytes, offset: int, length: int) -> bytes:
        try:
            data = self._disk.read_range(self._path(pack_id), offset, length)
        except FileNotFoundError as e:
            raise CorruptDataError("pack-missing", f"the pack {pack_id.hex()} is gone from {self._folder}") from e
        except OSError as e:
            raise _unreadable(self._path(pack_id), e) from e
        if len(data) != length:
            raise CorruptDataError("pack-short", f"the pack {pack_id.hex()} is shorter than it was")
        return data

    def list(self) -> list[tuple[bytes, int]]:
        try:
            names = self._disk.names(self._folder)
        except FileNotFoundError:
            return []
        except OSError as e:
            raise _unreadable(self._folder, e) from e
        return [pack for name in names if (pack := self._listed(name)) is not None]

    def _listed(self, name: str) -> tuple[bytes, int] | None:
        """None for what is no pack, or has gone meanwhile."""
        try:
            pack_id = bytes.fromhex(name.removeprefix(TEMP_PREFIX).removesuffix(_SUFFIX))
            return pack_id, self._disk.size(posixpath.join(self._folder, name))
        except (FileNotFoundError, ValueError):
            return None
        except OSError as e:
            raise _unreadable(posixpath.join(self._folder, name), e) from e

    def delete(self, pack_id: bytes) -> None:
        gone = 0
        try:
            for path in (self._path(pack_id), self._temp(pack_id)):
                try:
                    self._disk.unlink(path)
                except FileNotFoundError:
                    gone += 1
            if gone < 2:
                self._disk.sync_dir(self._folder)
        except OSError as e:
            raise _unwritable(self._folder, e) from e

    def _path(self, pack_id: bytes) -> str:
        return posixpath.join(self._folder, pack_id.hex() + _SUFFIX)

    def _temp(self, pack_id: bytes) -> str:
        return posixpath.join(self._folder, TEMP_PREFIX + pack_id.hex())


class _FileWriter:
    def __init__(self, disk: Disk, path: str, temp: str) -> None:
        self._disk = disk
        self._path = path
        self._temp = temp
        self._offset = 0
        self._handle = disk.create(temp)
        self._open = True

    def append(self, data: bytes) -> int:
        at = self._offset
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[self._disk.write(self._handle, rest) :]
        except OSError as e:
            raise _unwritable(self._path, e) from e
        self._offset += len(data)
        return at

    def seal(self) -> None:
        try:
            self._disk.sync(self._handle)
            self._close()
            self._disk.rename(self._temp, self._path)
            self._disk.sync_dir(posixpath.dirname(self._path))
        except OSError as e:
            raise _unwritable(self._path, e) from e

    def abort(self) -> None:
        with suppress(OSError):
            self._close()
        for path in (self._temp, self._path):
            with suppress(OSError):
                self._disk.unlink(path)

    def _close(self) -> None:
        # once: a second time would close whatever has been given the number since
        if self._open:
            self._open = False
            self._disk.close(self._handle)


class MemoryPacks(Packs):
    def __init__(self) -> None:
        self._packs: dict[bytes, bytes | bytearray] = {}
        self._lock = threading.Lock()

    def create(self, pack_id: bytes) -> PackWriter:
        with self._lock:
            if pack_id in self._packs:
                raise InvalidInputError("pack-exists", f"there is a pack {pack_id.hex()} already")
            data = self._packs[pack_id] = bytearray()
        return _MemoryWriter(self._packs, pack_id, data)

    def read(self, pack_id: bytes, offset: int, length: int) -> bytes:
        data = self._packs.get(pack_id)
        if data is None:
            raise CorruptDataError("pack-missing", f"the pack {pack_id.hex()} is gone")
        if offset + length > len(data):
            raise CorruptDataError("pack-short", f"the pack {pack_id.hex()} is shorter than it was")
        return bytes(data[offset : offset + length])

    def list(self) -> list[tuple[bytes, int]]:
        with self._lock:
            return [(pack_id, len(data)) for pack_id, data in self._packs.items()]

    def delete(self, pack_id: bytes) -> None:
        with self._lock:
            self._packs.pop(pack_id, None)


class _MemoryWriter:
    def __init__(self, packs: dict[bytes, bytes | bytearray], pack_id: bytes, data: bytearray) -> None:
        self._packs = packs
        self._id = pack_id
        self._data = data

    def append(self, data: bytes) -> int:
        at = len(self._data)
        self._data += data
        return at

    def seal(self) -> None:
        self._packs[self._id] = bytes(self._data)

    def abort(self) -> None:
        self._packs.pop(self._id, None)


def _unwritable(path: str, error: OSError) -> UnavailableError:
    code = "disk-full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "io-error"
    hint = "nothing was lost; free some space or check the disk"
    return UnavailableError(code, f"{path} cannot be written: {error.strerror}", hint=hint)


def _unreadable(path: str, error: OSError) -> UnavailableError:
    return UnavailableError("io-error", f"{path} cannot be read: {error.strerror}", hint="check the disk")
