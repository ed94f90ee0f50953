"""What a power cut must leave of a recording's first operations, and what it may.

Every operation not yet made durable by a sync may have landed or not, each by itself; a write lands sector by
sector, and may make the file longer without bringing its bytes. A landing says which: `{op number: mask}`.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b

from rekindle.testing.crash.log import (
    ROOT,
    Create,
    DataOp,
    Image,
    Link,
    MakeDir,
    Mark,
    NameOp,
    Op,
    Rename,
    Sync,
    SyncDir,
    SyncFailed,
    Truncate,
    Unlink,
    Write,
)

SECTOR = 512
"""What a disk writes whole or not at all."""

WHOLE = -1
"""The mask of an operation that landed whole; else bit i is sector i of the write, and the bit after the last
sector says that the file has its new size."""

JUNK = b"\xa5"
"""What lies where the file grew but its bytes did not land, if not zeros."""

Landing = Mapping[int, int]


@dataclass(slots=True)
class Pending:
    """An operation that no sync has made durable, or one held up behind such a one."""

    number: int
    op: DataOp | NameOp
    unsynced_dirs: frozenset[str] = frozenset()
    durable: bool = False
    lost_sync: bool = False


def sectors(write: Write) -> int:
    """How many sectors the write touches."""
    return (write.offset + len(write.data) - 1) // SECTOR - write.offset // SECTOR + 1


class Ledger:
    """Fed a recording's operations in order, knows what is durable and what is pending after each."""

    def __init__(self, base: Image, *, fsync_keeps_name: bool) -> None:
        self._fsync_keeps_name = fsync_keeps_name
        self._names = base.inodes()
        self._dirs = set(base.dirs)
        self._bytes = {inode: base.files[path] for path, inode in self._names.items()}
        self._data: dict[int, list[Pending]] = {}
        self._meta: list[Pending] = []
        self._contents: dict[object, tuple[bytes, bytes]] = {}

    def feed(self, number: int, op: Op) -> None:
        """The power was still on when the operation ended."""
        match op:
            case Write() | Truncate():
                self._data.setdefault(op.inode, []).append(Pending(number, op))
            case Sync(inode):
                self._sync(inode)
            case SyncFailed(inode):
                for pending in self._data.get(inode, ()):
                    pending.lost_sync = True
            case SyncDir(path):
                for pending in self._meta:
                    pending.unsynced_dirs -= {path}
                self._fold_names()
            case Mark():
                pass
            case _:
                self._meta.append(Pending(number, op, _dirs_of(op)))

    def pending(self) -> list[Pending]:
        """What may have landed or not, in the order it was asked for."""
        found = [p for p in self._meta if not p.durable]
        for ops in self._data.values():
            found += [p for p in ops if not p.durable]
        return sorted(found, key=lambda p: p.number)

    def image(self, landing: Landing, *, junk: bool) -> tuple[Image, bytes]:
        """The disk if just these pending operations landed, and a digest that tells images apart."""
        names, dirs = dict(self._names), set(self._dirs)
        for pending in self._meta:
            if pending.durable or landing.get(pending.number):
                _apply_name(pending.op, names, dirs)
        dirs = {d for d in dirs if all(a in dirs for a in _ancestors(d))}
        files: dict[str, bytes] = {}
        digest = blake2b(digest_size=16)
        for path in sorted(names):
            if posixpath.dirname(path) in dirs:
                files[path], content = self._content(names[path], landing, junk=junk)
                digest.update(path.encode() + b"\0" + content)
        digest.update("\0".join(sorted(dirs)).encode())
        return Image(files, frozenset(dirs)), digest.digest()

    def _sync(self, inode: int) -> None:
        ops = self._data.get(inode, [])
        for pending in ops:
            pending.durable = pending.durable or not pending.lost_sync
        # Folded from the front only: a write that may be lost must stay beneath the later ones.
        held = next((n for n, p in enumerate(ops) if not p.durable), len(ops))
        if held:
            whole = {p.number: WHOLE for p in ops[:held]}
            self._bytes[inode] = _land(self._bytes.get(inode, b""), ops[:held], whole, junk=False)
            self._data[inode] = ops[held:]
        self._contents.clear()
        if self._fsync_keeps_name:
            for pending in self._meta:
                if isinstance(pending.op, Create | Link | Rename) and pending.op.inode == inode:
                    pending.unsynced_dirs = frozenset()
            self._fold_names()

    def _fold_names(self) -> None:
        kept: list[Pending] = []
        disputed: set[str] = set()
        for pending in self._meta:
            pending.durable = not pending.unsynced_dirs
            paths = _paths_of(pending.op)
            if pending.durable and disputed.isdisjoint(paths):
                _apply_name(pending.op, self._names, self._dirs)
            else:
                disputed |= paths
                kept.append(pending)
        self._meta = kept

    def _content(self, inode: int, landing: Landing, *, junk: bool) -> tuple[bytes, bytes]:
        """The file's bytes and their digest, remembered: they are asked for often between two syncs."""
        ops = self._data.get(inode, [])
        landed = tuple((p.number, landing[p.number]) for p in ops if p.number in landing)
        key = (inode, junk, landed, len(ops))
        known = self._contents.get(key)
        if known is None:
            base = self._bytes.get(inode, b"")
            content = _land(base, ops, landing, junk=junk) if ops else base
            known = content, blake2b(content, digest_size=16).digest()
            if len(self._contents) > 512:
                self._contents.clear()
            self._contents[key] = known
        return known


def _land(base: bytes, ops: list[Pending], landing: Landing, *, junk: bool) -> bytes:
    held, size = bytearray(base), len(base)
    for pending in ops:
        how = WHOLE if pending.durable else landing.get(pending.number, 0)
        op = pending.op
        if isinstance(op, Truncate):
            if how:
                del held[min(op.size, size) :]
                _fill(held, op.size, b"\0")
                size = op.size
        elif isinstance(op, Write):
            end = op.offset + len(op.data)
            if junk and how != WHOLE and end > size:
                _fill(held, op.offset, b"\0")
                start = max(op.offset, size)
                held[start:end] = JUNK * (end - start)
            size = max(size, _land_write(held, op, how))
    _fill(held, size, b"\0")
    del held[size:]
    return bytes(held)


def _land_write(held: bytearray, write: Write, how: int) -> int:
    """Put the sectors that landed; answers how long the file must be for them."""
    start, end = write.offset, write.offset + len(write.data)
    if how == WHOLE:
        _fill(held, start, b"\0")
        held[start:end] = write.data
        return end
    first, count, reach = start // SECTOR, sectors(write), 0
    for n in range(count):
        if how >> n & 1:
            low, high = max(start, (first + n) * SECTOR), min(end, (first + n + 1) * SECTOR)
            _fill(held, low, b"\0")
            held[low:high] = write.data[low - start : high - start]
            reach = high
    return end if how >> count & 1 else reach


def _fill(held: bytearray, size: int, byte: bytes) -> None:
    if len(held) < size:
        held.extend(byte * (size - len(held)))


def _apply_name(op: DataOp | NameOp, names: dict[str, int], dirs: set[str]) -> None:
    match op:
        case Create(path, inode) | Link(path, inode):
            names[path] = inode
        case Unlink(path):
            names.pop(path, None)
        case Rename(source, target, inode):
            names.pop(source, None)
            names[target] = inode
        case MakeDir(path):
            dirs.add(path)


def _paths_of(op: DataOp | NameOp) -> set[str]:
    match op:
        case Rename(source, target):
            return {source, target}
        case Create(path) | Link(path) | Unlink(path) | MakeDir(path):
            return {path}
        case _:
            return set()


def _dirs_of(op: NameOp) -> frozenset[str]:
    return frozenset(posixpath.dirname(path) for path in _paths_of(op))


def _ancestors(path: str) -> Iterator[str]:
    while path != ROOT:
        path = posixpath.dirname(path)
        yield path
