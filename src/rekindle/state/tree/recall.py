"""A reader that remembers: what a run grew by since it was read last is all that is read of it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any

from ...errors import CorruptDataError
from ..values import codec
from . import slots
from .nodes import Hasher, Kind, Place, Run
from .read import Fetch, Reader, splice_elements

Stored = list[Any]
"""A run (or another part of a tree) as a record carries it."""

LISTS = frozenset({Kind.LIST, Kind.TUPLE, Kind.TRACKED_LIST})
MAPS = frozenset({Kind.MAP, Kind.PAIRS, Kind.TRACKED_MAP, Kind.TRACKED_PAIRS})
_REMEMBERED = 64


class RecallingReader(Reader):
    """Values of registered types come as data. Elements come as they are packed inside of `kind`."""

    def __init__(self, fetch: Fetch, hasher: Hasher) -> None:
        super().__init__(fetch, hasher, opaque=True)
        self._runs: OrderedDict[bytes, list[bytes]] = OrderedDict()
        self._latest: OrderedDict[Any, tuple[Stored, list[bytes]]] = OrderedDict()

    def packed_elements(self, run: Run, kind: Kind) -> list[bytes]:
        """A run's elements, each packed by itself: of a map, keys with their values."""
        held = self._runs.get(run.digest)
        if held is None:
            stored = run.stored()
            start = chain_start(stored)
            before, known = self._latest.get(start, (None, []))
            if before is not None and not (stored[3] | before[3]) & 2 and beyond(before, stored) is not None:
                held = known[: run.count]  # what it was when it was shorter
            else:
                more = beyond(stored, before) if before is not None else None
                held = self.grown(kind, stored, known, more) if more else self.grown(kind, stored, [], None)
                _remember(self._latest, start, (stored, held))
            _remember(self._runs, run.digest, held)
        return held

    def grown(self, kind: Kind, run: Stored, known: list[bytes], more: list[Place] | None) -> list[bytes]:
        """The elements of a run of which those before the places `more` are known (None: none are)."""
        found = [slot for part in self.fetch(places_of(run) if more is None else more) for slot in part]
        return self.with_found(kind, run, known, found)

    def with_found(self, kind: Kind, run: Stored, known: list[bytes], found: Sequence[bytes]) -> list[bytes]:
        """The elements of a run: the known ones, and what the slots after them make of these."""
        digest, count, size, _, _ = run
        if known and found and found[0][:1] and found[0][0] == slots.CONTINUED:
            # a stream begun in a slot before: it is read from there
            known, found = [], [slot for part in self.fetch(places_of(run)) for slot in part]
        elements, apart = splice_elements(found, known)
        content = b"".join(elements)
        if len(content) != size or self._hasher.content(content) != digest:
            raise CorruptDataError("hash-mismatch", "a part of a state is not what was written")
        return elements if apart or kind == Kind.LEAF else _taken_apart(kind, content, count)


def _remember(held: OrderedDict[Any, Any], name: Any, value: Any) -> None:
    held[name] = value
    held.move_to_end(name)
    while len(held) > _REMEMBERED:
        held.popitem(last=False)


def _taken_apart(kind: Kind, content: bytes, count: int) -> list[bytes]:
    """Elements whose lengths were not kept: read, and packed one by one."""
    if kind in LISTS:
        values = codec.unpack(codec.array_header(count) + content, opaque=True)
        return [codec.pack(value, tracks=False) for value in values]
    flat = codec.unpack(codec.array_header(2 * count) + content, opaque=True)
    pairs = zip(flat[::2], flat[1::2], strict=True)
    return [codec.pack(key) + codec.pack(value, tracks=False) for key, value in pairs]


def places_of(run: Stored) -> list[Place]:
    flat = run[4]
    return [(flat[i], flat[i + 1], flat[i + 2]) for i in range(0, len(flat), 3)]


def chain_start(run: Stored) -> Any:
    """The same for runs that grew out of one."""
    first, n, slot = run[4][:3]
    return first, slot, n if type(first) is not int else 0


def beyond(run: Stored, before: Stored) -> list[Place] | None:
    """The places that `run` has after all those of `before`; None where it did not grow from that."""
    flat, start = run[4], before[4]
    last = len(start) - 3
    if len(flat) < len(start) or flat[:last] != start[:last]:
        return None
    (first, n, slot), (first_before, n_before, slot_before) = flat[last : last + 3], start[last:]
    rest = [(flat[i], flat[i + 1], flat[i + 2]) for i in range(last + 3, len(flat), 3)]
    if (first, slot) != (first_before, slot_before):
        return None
    if n == n_before:
        return rest
    if type(first) is not int or n < n_before:
        return None
    return [(first + n_before if first >= 0 else first - n_before, n - n_before, slot), *rest]


def in_order(runs: list[Stored]) -> Iterator[tuple[Stored, Stored | None, list[Place]]]:
    """(run, the one before it that it is read from, the places to read): the longest that only grew first, cut
    down to those it was before; then the others, each from the one it was edited from."""
    grown = sorted((r for r in runs if not r[3] & 2), key=lambda r: -r[1])
    before: Stored | None = None
    for run in grown:
        if before is not None and beyond(before, run) is not None:
            yield run, before, []
        else:
            yield run, None, places_of(run)
            before = run
    before = None
    for run in sorted((r for r in runs if r[3] & 2), key=_pieces):
        more: list[Place] | None = beyond(run, before) if before is not None else None
        if more:
            yield run, before, more
        else:
            yield run, None, places_of(run)
        before = run


def _pieces(run: Stored) -> int:
    return sum(place[1] if type(place[0]) is int else 1 for place in places_of(run))
