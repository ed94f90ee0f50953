"""The files storage's `Disk` on a simulated disk: every primitive step is one operation of its log."""

from __future__ import annotations

from rekindle.storage.disk import Disk
from rekindle.testing.crash.disk import SimDisk


class SimFiles(Disk):
    """Give it to a storage in place of OsDisk. Paths are absolute; `/` is there from the start."""

    def __init__(self, disk: SimDisk) -> None:
        super().__init__(token=disk.token)
        self._disk = disk
        self._ends: dict[int, int] = {}

    def read(self, path: str) -> bytes:
        inode = self._disk.open(path)
        return self._disk.read(inode, 0, self._disk.size(inode))

    def create(self, path: str) -> int:
        inode = self._disk.open(path, create=True, exclusive=True)
        self._ends[inode] = 0
        return inode

    def write(self, handle: int, data: memoryview) -> int:
        self._disk.write(handle, self._ends[handle], bytes(data))
        self._ends[handle] += len(data)
        return len(data)

    def sync(self, handle: int) -> None:
        self._disk.sync(handle)

    def close(self, handle: int) -> None:
        del self._ends[handle]

    def link(self, source: str, target: str) -> None:
        self._disk.link(source, target)

    def rename(self, source: str, target: str) -> None:
        self._disk.rename(source, target)

    def unlink(self, path: str) -> None:
        self._disk.unlink(path)

    def make_dir(self, path: str) -> None:
        self._disk.mkdir(path)

    def sync_dir(self, path: str) -> None:
        self._disk.sync_dir(path)

    def names(self, path: str) -> list[str]:
        return self._disk.listdir(path)

    def exists(self, path: str) -> bool:
        return self._disk.exists(path)
