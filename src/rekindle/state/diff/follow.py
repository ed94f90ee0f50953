"""One value followed by its path through many states of a history, reading as little of them as will do.

States are compared where the path leads, by their digests; content is read only of the run that holds the value,
and of a run that grew since the state before only what was added. Works on descriptions of states as records
carry them (lists, see nodes.py of the tree), which most of a history need not be made into nodes for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..shown.path import ABSENT, Key, Path, find
from ..tree.nodes import Hasher, Index, Kind, Place, check_node, item_from, node_from
from ..tree.read import Fetch
from ..tree.recall import LISTS, MAPS, RecallingReader, chain_start, in_order
from ..values import codec

Stored = list[Any]
"""A node, or one of its items: a child has 2 parts, a run 5, an index 7. As records carry them."""

_TEXTS = frozenset({Kind.STR, Kind.BYTES})
_UNTRACKED = {
    Kind.TRACKED_LIST: Kind.LIST, Kind.TRACKED_MAP: Kind.MAP, Kind.TRACKED_PAIRS: Kind.PAIRS,
}  # fmt: skip
_FETCHED = 64
_REMEMBERED = 20_000


@dataclass(slots=True)
class Whole:
    """The value is a node of its own."""

    node: Stored


@dataclass(slots=True)
class Held:
    """The value is in one of these runs of a `kind` of node.

    `target` tells the element: its place in the run, its packed key, or None for all of it; `rest` leads on in it.
    """

    kind: Kind
    runs: list[Stored]
    target: int | bytes | None
    rest: Path


@dataclass(slots=True)
class Inside:
    """The value is somewhere in a node: under a key that only reading all of it finds."""

    node: Stored
    rest: Path


Spot = Whole | Held | Inside | None


class Follower:
    """Follows one path through states of one agent. A container that became a tracked one has not changed.

    A path that counts from the end means, everywhere, the place that is in the state `resolve` was given.
    """

    def __init__(self, path: Path, fetch: Fetch, hasher: Hasher) -> None:
        self._fetch = fetch
        self._hasher = hasher
        self._reader = RecallingReader(fetch, hasher)
        self._opened: dict[bytes, list[Stored]] = {}
        self._known: dict[tuple[bytes, Any], bytes | None] = {}
        self._elements: list[bytes] = []
        self._last: tuple[bytes, Path, bytes | None] | None = None
        self._where = self._at = 0  # of the run that held the key last, and of its entry in that
        self._set_path(path)

    def _set_path(self, path: Path) -> None:
        self._path = path
        self._packed = [_packed(step) for step in path]

    def resolve(self, root: Stored) -> None:
        """Give every step that counts from the end the index it has in this state."""
        path = self._path
        for depth, step in enumerate(path):
            if isinstance(step, int) and step < 0:
                self._set_path(path[:depth])
                length = self._length(self.answers([root])[0])
                if length + step >= 0:
                    path = (*path[:depth], length + step, *path[depth + 1 :])
        self._set_path(path)

    def _length(self, answer: Any) -> int:
        if isinstance(answer, list):
            return _count(answer)
        value = codec.unpack(answer, opaque=True) if answer is not None else None
        value = value.data if isinstance(value, codec.Opaque) else value
        return len(value) if isinstance(value, (list, tuple)) else 0

    def answers(self, roots: Sequence[Stored]) -> list[Any]:
        """What is at the path in each of these states, given oldest first: None where nothing is.

        An answer is the packed value, or the node that is the value; `differ` compares them.
        """
        if len(self._known) > _REMEMBERED:
            self._known.clear()
        for root in roots:
            check_node(root)
        spots = [self._spot(root) for root in roots]
        held = [spot for spot in spots if isinstance(spot, Held)]
        # a key is mostly where it was: look at the other runs of a map only where it is not
        at = self._where
        self._learn([(spot.kind, spot.target, run) for spot in held for run in spot.runs[at : at + 1]])
        missing = [spot for spot in held if self._find(spot) is None]
        self._learn([(spot.kind, spot.target, run) for spot in missing for run in spot.runs])
        return [self._answer(spot) for spot in spots]

    # -- down the path -----------------------------------------------------------------------------------------------

    def _spot(self, node: Stored) -> Spot:
        for depth, step in enumerate(self._path):
            kind, _, items = node
            while kind == Kind.OBJECT:
                kind, _, items = node = items[0][1]
            if kind == Kind.LEAF:
                return Held(Kind.LEAF, items, None, self._path[depth:])
            if kind in LISTS and type(step) is int:
                item, at = self._item_at(items, step)
                if item is None:
                    return None
                if len(item) == 5:
                    return Held(kind, [item], at, self._path[depth + 1 :])
                node = item[1]
            elif kind in MAPS and type(step) is not int:
                packed = self._packed[depth]
                if packed is None:
                    return Inside(node, self._path[depth:])
                runs = []
                for item in self._flat(items):
                    if len(item) == 5:
                        runs.append(item)
                    elif item[0] == packed:
                        node = item[1]
                        break
                else:
                    return Held(kind, runs, packed, self._path[depth + 1 :])
            else:
                return None
        return Held(Kind.LEAF, node[2], None, ()) if node[0] == Kind.LEAF else Whole(node)

    def _item_at(self, items: list[Stored], index: int) -> tuple[Stored | None, int]:
        """The run or child that holds an element, and its place in that."""
        while index >= 0:
            for item in items:
                count = _count_of(item)
                if index < count:
                    break
                index -= count
            else:
                break
            if len(item) != 7:
                return item, index
            items = self._open(item)
        return None, 0

    def _flat(self, items: list[Stored]) -> list[Stored]:
        if all(len(item) != 7 for item in items):
            return items
        return [x for item in items for x in (self._flat(self._open(item)) if len(item) == 7 else [item])]

    def _open(self, stored: Stored) -> list[Stored]:
        digest = stored[0]
        held = self._opened.get(digest)
        if held is None:
            index = item_from(stored, self._hasher)
            assert isinstance(index, Index)
            items = self._reader.index_items(index, self._fetch([index.place])[0])
            held = self._opened[digest] = [item.stored() for item in items]
        return held

    # -- what a run holds --------------------------------------------------------------------------------------------

    def _learn(self, wanted: Iterable[tuple[Kind, int | bytes | None, Stored]]) -> None:
        """Look into every run that is not known yet. Those that began as the same run are read as one."""
        chains: dict[Any, list[Stored]] = {}
        distinct = {(run[0], target): (kind, run) for kind, target, run in wanted}
        for (digest, target), (kind, run) in distinct.items():
            if (digest, target) not in self._known:
                chains.setdefault((kind, target, chain_start(run)), []).append(run)
        todo: list[tuple[Any, Stored, Stored | None, list[Place]]] = []
        for (kind, target, *_), runs in chains.items():
            todo += [((kind, target), *step) for step in in_order(runs)]
        for first in range(0, len(todo), _FETCHED):
            self._read(todo[first : first + _FETCHED])

    def _read(self, todo: list[tuple[Any, Stored, Stored | None, list[Place]]]) -> None:
        fetched = iter(self._fetch([place for _, _, _, places in todo for place in places]))
        for (kind, target), run, before, places in todo:
            found = [slot for _ in places for slot in next(fetched)]
            name = (run[0], target)
            if before is not None and not places:  # the same run, when it was shorter
                elements = self._elements[: run[1]]
            else:
                elements = self._reader.with_found(kind, run, self._elements if before is not None else [], found)
                self._elements = elements
            self._known[name] = self._pick(elements, target)

    def _pick(self, elements: list[bytes], target: int | bytes | None) -> bytes | None:
        """The element, as packed; of an entry of a map its value. None where it is not among these."""
        if target is None:
            return b"".join(elements)
        if isinstance(target, int):
            return elements[target] if target < len(elements) else None
        at = self._at
        # no packed key is the beginning of another one
        if not (at < len(elements) and elements[at].startswith(target)):
            at = next((i for i, element in enumerate(elements) if element.startswith(target)), -1)
            if at < 0:
                return None
            self._at = at
        return elements[at][len(target) :]

    # -- answers -----------------------------------------------------------------------------------------------------

    def _answer(self, spot: Spot) -> Any:
        if spot is None or isinstance(spot, Whole):
            return None if spot is None else spot.node
        if isinstance(spot, Inside):
            return _repacked(find(self._value(spot.node), spot.rest))
        element = self._find(spot)
        return None if element is None else self._value_in(element, spot.rest)

    def _find(self, spot: Held) -> bytes | None:
        """The element, in those runs that are known."""
        known, target = self._known, spot.target
        for at, run in enumerate(spot.runs):
            element = known.get((run[0], target))
            if element is not None:
                self._where = at
                return element
        return None

    def _value_in(self, element: bytes, rest: Path) -> bytes | None:
        last = self._last
        if last is None or last[0] != element or last[1] != rest:
            value = _repacked(find(codec.unpack(element, opaque=True), rest))
            last = self._last = (element, rest, value)
        return last[2]

    def _value(self, node: Stored) -> Any:
        return self._reader.value(node_from(node, self._hasher))

    def differ(self, a: Any, b: Any) -> bool:
        """Whether two answers are of values that differ."""
        if a is b or a is None or b is None:
            return a is not b
        if isinstance(a, bytes) and isinstance(b, bytes):
            return a != b
        if isinstance(a, list) and isinstance(b, list):
            return self._nodes_differ(a, b)
        return self._packed_value(a) != self._packed_value(b)

    def _packed_value(self, answer: Any) -> bytes | None:
        return answer if isinstance(answer, bytes) else _repacked(self._value(answer))

    def _nodes_differ(self, a: Stored, b: Stored) -> bool:
        if a == b:
            return False
        kinds = [_UNTRACKED.get(node[0], node[0]) for node in (a, b)]
        if kinds[0] != kinds[1]:
            return self._packed_value(a) != self._packed_value(b)
        if a[1] != b[1]:
            return True
        text = kinds[0] in _TEXTS
        if (text and _size(a) != _size(b)) or (not text and _count(a) != _count(b)):
            return True
        kind = Kind.BYTES if text else a[0]  # a stretch of a text may begin inside a character
        for left, right in _aligned(self._flat(a[2]), self._flat(b[2]), text):
            if len(left) == len(right) == 1 and len(left[0]) == len(right[0]):
                if len(left[0]) == 5:
                    if left[0][0] != right[0][0]:  # as many elements, other bytes
                        return True
                elif left[0][0] != right[0][0] or self._nodes_differ(left[0][1], right[0][1]):
                    return True
            elif self._packed_value([kind, a[1], left]) != self._packed_value([kind, b[1], right]):
                return True
        return False


def _packed(step: Any) -> bytes | None:
    """A key as it is stored; None for one that is known by its text only."""
    if isinstance(step, Key):
        return None if step.value is ABSENT else codec.pack(step.value)
    return codec.pack(step)


def _repacked(value: Any) -> bytes | None:
    return None if value is ABSENT else codec.pack(value, tracks=False)


def _count_of(item: Stored) -> int:
    return item[1] if len(item) == 5 else item[2] if len(item) == 7 else 1


def _count(node: Stored) -> int:
    return sum(map(_count_of, node[2]))


def _size(node: Stored) -> int:
    return sum(item[2] if len(item) == 5 else item[3] for item in node[2])


def _aligned(a: list[Stored], b: list[Stored], text: bool) -> Iterator[tuple[list[Stored], list[Stored]]]:
    """Items of two nodes of the same length, in the shortest stretches that end at the same place in both."""
    i = j = at_a = at_b = 0
    left: list[Stored] = []
    right: list[Stored] = []
    while i < len(a) or j < len(b):
        if at_a <= at_b and i < len(a):
            left.append(a[i])
            at_a += a[i][2] if text else _count_of(a[i])
            i += 1
        else:
            right.append(b[j])
            at_b += b[j][2] if text else _count_of(b[j])
            j += 1
        if at_a == at_b and left and right:
            yield left, right
            left, right = [], []
    if left or right:
        yield left, right
