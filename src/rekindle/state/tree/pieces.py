"""What an agent's journal was given of late: a checkpoint that holds it too names it, and does not write it again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from .against import MOST, Base
from .nodes import JOURNAL_SPAN, Place

_LEAST = 64
"""Bytes: for less, a place costs what it saves."""
_MOST_BYTES, _MOST = 64 << 10, 256
_BASES = 4
_LEAST_BASE = 64


class Pieces:
    """Runs of a journal by digest, and by the elements they begin with. The oldest are forgotten.

    Places are as the journal has them; a checkpoint's run names them with `in_agent`.
    """

    def __init__(self) -> None:
        self._places: OrderedDict[bytes, Place] = OrderedDict()
        self._elements: OrderedDict[bytes, tuple[list[bytes], Place]] = OrderedDict()
        self._bytes = 0
        self._slots: OrderedDict[int, frozenset[int]] = OrderedDict()
        self._bases: OrderedDict[str, list[Base]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._places)

    def clear(self) -> None:
        self._places.clear()
        self._elements.clear()
        self._slots.clear()
        self._bases.clear()
        self._bytes = 0

    def bases(self, of: str) -> list[Base]:
        """What was written on that checkpoint: it may be said again, a little otherwise."""
        return self._bases.get(of, [])

    def keep_base(self, of: str, base: Base) -> None:
        held = self._bases.setdefault(of, [])
        if len(base[2]) >= _LEAST_BASE and sum(len(content) for _, _, content in [*held, base]) <= MOST:
            held.append(base)
        if len(self._bases) > _BASES:
            self._bases.popitem(last=False)

    def appended(self, seq: int, slots: frozenset[int]) -> None:
        """A record of the journal is there, with something in these slots."""
        self._slots[seq] = slots
        if len(self._slots) > JOURNAL_SPAN:
            self._slots.popitem(last=False)

    def add(self, digest: bytes, elements: list[bytes], place: Place) -> None:
        size = sum(map(len, elements))
        if size < _LEAST:
            return
        self._places[digest] = place
        if len(self._places) > _MOST:
            self._places.popitem(last=False)
        if type(place[0]) is not int or size > _MOST_BYTES:
            return
        self._bytes += size
        if (held := self._elements.pop(elements[0], None)) is not None:
            self._bytes -= sum(map(len, held[0]))
        self._elements[elements[0]] = (elements, place)
        while self._bytes > _MOST_BYTES:
            self._bytes -= sum(map(len, self._elements.popitem(last=False)[1][0]))

    def find(self, digest: bytes) -> Place | None:
        """Where a run of that digest lies."""
        return self._places.get(digest)

    def split(self, elements: Sequence[bytes]) -> list[tuple[list[bytes], Place | None]] | None:
        """The elements as stretches, each with where it lies; None where none of them is known."""
        if self._elements.keys().isdisjoint(elements):
            return None
        found: list[tuple[list[bytes], Place | None]] = []
        new: list[bytes] = []
        at = 0
        while at < len(elements):
            known = self._elements.get(elements[at])
            if known is None or list(elements[at : at + len(known[0])]) != known[0]:
                new.append(elements[at])
                at += 1
                continue
            if new:
                found.append((new, None))
                new = []
            found.append(known)
            at += len(known[0])
        return [*found, (new, None)] if new else found

    def joined(self, places: list[Place], new: Place) -> list[Place]:
        """A checkpoint's places with one more of the journal: one span, where what lies between is known to hold
        nothing of that slot."""
        first, _, slot = new
        last, n, before = places[-1] if places else (0, 0, 0)
        if type(last) is int and last < 0 and before == slot and self._is_free(n - last, -first, slot):
            span = 1 - first + last
            if 0 < span <= JOURNAL_SPAN:
                return [*places[:-1], (last, span, slot)]
        return [*places, new]

    def _is_free(self, start: int, end: int, slot: int) -> bool:
        return start <= end and all(slot not in self._slots.get(seq, (slot,)) for seq in range(start, end))


def in_agent(place: Place) -> Place:
    """A place of the journal, as a state of its agent names it."""
    return (-place[0], *place[1:]) if type(place[0]) is int else place
