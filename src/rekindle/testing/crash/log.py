"""What a simulated disk was asked to do, in order. Every operation is durable only once a sync says so.

A file is an inode number: its bytes and its names become durable apart from each other.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

ROOT = "/"


@dataclass(frozen=True, slots=True)
class Write:
    inode: int
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Truncate:
    inode: int
    size: int


@dataclass(frozen=True, slots=True)
class Sync:
    """The bytes of the inode are durable; its names are not (POSIX promises no more)."""

    inode: int


@dataclass(frozen=True, slots=True)
class SyncFailed:
    """The writes since the last sync may land or not, and no later sync helps (Linux marks them clean)."""

    inode: int


@dataclass(frozen=True, slots=True)
class Create:
    path: str
    inode: int


@dataclass(frozen=True, slots=True)
class Link:
    path: str
    inode: int


@dataclass(frozen=True, slots=True)
class Unlink:
    path: str


@dataclass(frozen=True, slots=True)
class Rename:
    """One step: after a power cut the old name is there or the new one, never neither."""

    source: str
    target: str
    inode: int


@dataclass(frozen=True, slots=True)
class MakeDir:
    path: str


@dataclass(frozen=True, slots=True)
class SyncDir:
    """The names made and removed in the directory until now are durable."""

    path: str


@dataclass(frozen=True, slots=True)
class Mark:
    """The program was told something by now: a save has returned."""

    label: Hashable


DataOp = Write | Truncate
NameOp = Create | Link | Unlink | Rename | MakeDir
Op = DataOp | NameOp | Sync | SyncFailed | SyncDir | Mark


@dataclass(frozen=True)
class Image:
    """The contents of a disk: bytes by absolute path, and the directories."""

    files: Mapping[str, bytes] = field(default_factory=lambda: MappingProxyType({}))
    dirs: frozenset[str] = frozenset({ROOT})

    def inodes(self) -> dict[str, int]:
        """The inode numbers a disk made from this image gives its files."""
        return {path: number for number, path in enumerate(sorted(self.files))}


@dataclass(frozen=True)
class Recording:
    """A disk as it was, wholly durable, and what was done to it since."""

    base: Image
    ops: tuple[Op, ...]


def describe(op: Op) -> str:
    """The operation in one line; written data by its length only."""
    match op:
        case Write(inode, offset, data):
            return f"write {len(data)} bytes at {offset} of inode {inode}"
        case Truncate(inode, size):
            return f"truncate inode {inode} to {size}"
        case Sync(inode):
            return f"sync inode {inode}"
        case SyncFailed(inode):
            return f"failed sync of inode {inode}"
        case Create(path, inode):
            return f"create {path} (inode {inode})"
        case Link(path, inode):
            return f"link {path} (inode {inode})"
        case Unlink(path):
            return f"unlink {path}"
        case Rename(source, target, inode):
            return f"rename {source} to {target} (inode {inode})"
        case MakeDir(path):
            return f"mkdir {path}"
        case SyncDir(path):
            return f"sync directory {path}"
        case Mark(label):
            return f"mark {label!r}"
