"""What a state looks like when it is cut up: a node a large container, runs of its elements, indexes over runs.

A run is a group of neighbouring elements, named by the keyed hash of their bytes. Where those bytes lie (places) is
a hint beside the hash and outside of it: the same state has the same digest wherever its parts were written.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from blake3 import blake3

from ...errors import CorruptDataError
from .looks import Look

DIGEST = 16
"""Bytes of a digest: a 128-bit MAC under the user's key, which nobody without the key can collide."""


class Kind(IntEnum):
    """What a node is. The numbers are stored: only add."""

    LEAF = 0  # any value, packed whole
    LIST = 1
    TUPLE = 2
    MAP = 3  # keys are plain str
    PAIRS = 4  # any keys
    STR = 5
    BYTES = 6
    OBJECT = 7  # a registered type; its data is the one child
    TRACKED_LIST = 8
    TRACKED_MAP = 9
    TRACKED_PAIRS = 10


Place = tuple[Any, int, int]
"""(seq, n, slot): that slot of n records on end of the agent itself; with -seq, of its journal, where records that
have no such slot hold nothing of it; (agent, seq, slot): of another agent of the user; (pack id, offset, length): a
range of a pack. The first part's type (int, str, bytes) tells them apart."""

JOURNAL_SPAN = 1024
"""The most records of a journal that one place may mean."""


@dataclass(slots=True)
class Run:
    """Neighbouring elements. `closed`: nothing is appended to it any more.

    What this process remembers beside: `raw` and `lengths` of what is likely to be edited, `packed` (the elements
    behind a header, or what they look like) to compare with; of one that grows `stream`, its live compressor, and
    `hashed`, its hash so far.
    """

    digest: bytes
    count: int
    size: int
    places: list[Place]
    closed: bool = True
    spliced: bool = False
    raw: bytes | None = None
    lengths: list[int] | None = None
    packed: bytes | Look | None = None
    stream: Any = None
    hashed: Any = None

    def stored(self) -> list[Any]:
        flags = self.closed | self.spliced << 1
        return [self.digest, self.count, self.size, flags, [x for place in self.places for x in place]]

    def entry(self) -> bytes:
        return b"R" + self.digest + struct.pack("<QQ", self.count, self.size)


@dataclass(slots=True)
class Child:
    """One large element, a node of its own. `key` is its packed key in a map, empty in a list."""

    key: bytes
    node: Node
    count: int = 1

    @property
    def size(self) -> int:
        return self.node.size

    @property
    def digest(self) -> bytes:
        return self.node.digest

    def stored(self) -> list[Any]:
        return [self.key, self.node.stored()]

    def entry(self) -> bytes:
        return b"C" + struct.pack("<Q", len(self.key)) + self.key + self.node.digest_entry()


@dataclass(slots=True)
class Index:
    """A few neighbouring items, written down once and named by hash, so that a root stays small."""

    digest: bytes
    level: int
    count: int
    size: int
    place: Place
    items: list[Item] = field(default_factory=list)
    end: int = 0
    """How many items there are in its layer up to its own last one; known in a tree that is read or made."""

    def stored(self) -> list[Any]:
        return [self.digest, self.level, self.count, self.size, *self.place]

    def entry(self) -> bytes:
        return b"I" + self.digest + struct.pack("<QQ", self.count, self.size)


Item = Run | Child | Index


@dataclass(slots=True)
class Node:
    """A container (or a long text) by its items. `top` is what a record carries: indexes and what is not yet folded.

    `items` is the same flat: runs and children only, None until read. `about` is the name and version of a
    registered type. `source` and `stamp` belong to change detection in this process: what it was made of, and when.
    """

    kind: Kind
    top: list[Item]
    items: list[Run | Child] | None
    about: list[Any] | None = None
    levels: list[list[Index]] = field(default_factory=list)
    digest: bytes = b""
    source: Any = None
    stamp: int = 0
    count: int = field(init=False)
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.count = sum([item.count for item in self.top])
        self.size = sum([item.size for item in self.top])

    def stored(self) -> list[Any]:
        return [int(self.kind), self.about, [item.stored() for item in self.top]]

    def digest_entry(self) -> bytes:
        return bytes((self.kind,)) + repr(self.about).encode() + self.digest


class Hasher:
    """Digests under one user's key: sharing, and what a hash can be compared with, never crosses users."""

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        self._key = key

    def content(self, data: bytes | memoryview) -> bytes:
        return blake3(data, key=self._key).digest(DIGEST)

    def longer(self, hashed: Any, before: bytes, more: bytes) -> Any:
        """The hash so far (`digest(DIGEST)` of it is the digest) of a content that is `more` longer than `before`.

        `hashed` is that of `before`, where it was kept: then nothing is hashed twice.
        """
        longer = blake3(before, key=self._key) if hashed is None else hashed.copy()
        longer.update(more)
        return longer

    def items(self, items: list[Item]) -> bytes:
        return blake3(b"".join([item.entry() for item in items]), key=self._key).digest(DIGEST)

    def seal(self, node: Node) -> bytes:
        """Set and answer a node's digest: what identifies the value, its kind and type included."""
        node.digest = self.items(node.top)
        return node.digest

    def root(self, node: Node) -> bytes:
        return blake3(node.digest_entry(), key=self._key).digest(DIGEST)


def check(data: bytes) -> bytes:
    """The un-keyed checksum of stored bytes: verifying a store needs no key."""
    return blake3(data).digest(8)


def derive_key(secret: bytes, user: str) -> bytes:
    return blake3(user.encode(), key=secret).digest(32)


_MOST, _MOST_RECORDS = 1 << 32, 1 << 22
_RUN = (bytes, int, int, int, list)
_INDEX = (bytes, int, int, int)
_ALONE = {Kind.LEAF: 5, Kind.OBJECT: 2}
"""The kinds of one item, and how many parts that has."""


def check_node(stored: Any) -> None:
    """CorruptDataError where this is not what a record carries as the description of a state."""
    try:
        _check_node(stored)
    except (TypeError, ValueError, IndexError, RecursionError) as e:
        raise CorruptDataError(
            "bad-node", f"a state's description is not one: {e}", hint="run `rekindle verify`"
        ) from e


def _check_node(stored: Any) -> None:
    kind, about, items = stored
    if type(kind) is not int or type(items) is not list:
        raise ValueError("it is of no kind, or has no items")
    if about is not None and (list(map(type, about)) != [str, int] or about[1] < 1):
        raise ValueError("it names no type")
    alone = _ALONE.get(Kind(kind))
    if alone and (len(items) != 1 or len(items[0]) != alone):
        raise ValueError("it holds what its kind does not")
    for item in items:
        check_item(item)


def check_item(item: Any) -> None:
    """The same of one item; ValueError or TypeError."""
    types = tuple(map(type, item))
    if types == (bytes, list):
        _check_node(item[1])
    elif types == _RUN:
        _check_places(item[4])
        if not (0 <= item[1] < _MOST and item[2] >= 0):
            raise ValueError("a part's count or size cannot be")
    elif types[:4] == _INDEX and len(item) == 7:
        _check_places(item[4:])
        if not (item[1] >= 0 and 0 <= item[2] < _MOST and item[3] >= 0):
            raise ValueError("an index's count or size cannot be")
    else:
        raise ValueError("an item of it is none")


def _check_places(flat: list[Any]) -> None:
    if not flat or len(flat) % 3:
        raise ValueError("a place is three values")
    firsts = [first for first in flat[::3] if type(first) not in (str, bytes)]
    numbers = [*flat[1::3], *flat[2::3], *(abs(first) for first in firsts)]
    if not set(map(type, numbers)) <= {int} or min(numbers) < 0 or max(numbers) >= 1 << 62:
        raise ValueError("a place cannot be")
    records = 0
    for first, n in zip(flat[::3], flat[1::3], strict=True):
        records += n if type(first) is int else 1
        if type(first) is int and (n < 1 or abs(first) + n > _MOST or (first < 0 and n > JOURNAL_SPAN)):
            raise ValueError("a place is beyond every record")
    if records > _MOST_RECORDS:
        raise ValueError("a part lies in more records than it can")


def node_from(stored: Any, hasher: Hasher) -> Node:
    """The node a record carries; children come with it, what lies behind indexes does not."""
    check_node(stored)
    return _node_from(stored, hasher)


def _node_from(stored: Any, hasher: Hasher) -> Node:
    kind, about, items = stored
    node = Node(Kind(kind), [item_from(item, hasher) for item in items], None, about)
    if not any(isinstance(item, Index) for item in node.top):
        node.items = list(node.top)  # type: ignore[arg-type]
    hasher.seal(node)
    return node


def item_from(stored: Any, hasher: Hasher) -> Item:
    """Of an item that was checked."""
    if len(stored) == 2:
        return Child(stored[0], _node_from(stored[1], hasher))
    if len(stored) == 5:
        digest, count, size, flags, flat = stored
        places = [(flat[i], flat[i + 1], flat[i + 2]) for i in range(0, len(flat), 3)]
        return Run(digest, count, size, places, bool(flags & 1), bool(flags & 2))
    digest, level, count, size, *place = stored
    return Index(digest, level, count, size, (place[0], place[1], place[2]))


def walk(node: Node) -> list[Item]:
    """Every item a node names directly, those of its children included (not what lies behind indexes)."""
    found: list[Item] = []
    for item in node.top:
        found.append(item)
        if isinstance(item, Child):
            found += walk(item.node)
    return found
