"""What one save writes, and what it may name instead of writing it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import ormsgpack

from . import slots
from .against import Base
from .nodes import Item, Place
from .pieces import Pieces, in_agent


class Sink(Protocol):
    """Where slots go: the record of this save, or a pack once that would grow too large."""

    def __call__(self, slot: bytes) -> Place: ...


Stretches = list[tuple[list[bytes], Place | None]]
"""Elements in stretches, each with the place it lies at; None: nowhere yet."""


class Laid(NamedTuple):
    """A run that a journal was given: its elements, and where they lie. `alone`: written against no other."""

    digest: bytes
    elements: list[bytes]
    place: Place
    alone: bool


class Slots:
    """What one save writes. `share` looks up where a large run of this user already lies, `pieces` what the agent's
    journal was given of late; with `journal`, it is the journal that is written."""

    def __init__(
        self,
        put: Sink,
        share: Callable[[bytes], Place | None],
        *,
        compress: bool,
        pieces: Pieces | None = None,
        journal: bool = False,
        bases: Callable[[], Sequence[Base]] = tuple,
    ) -> None:
        self.put = put
        self.share = share
        self.compress = compress
        self.pieces = pieces
        self.journal = journal
        self.bases = bases
        self.keep: Callable[[list[bytes]], Place] | None = None
        """Of a state whose agent has a journal: what puts new elements there, so that they lie in one line with those
        that the journal was given."""
        self.shared: list[tuple[bytes, Place]] = []
        self.laid: list[Laid] = []
        """Of a journal: the runs it was given."""
        self.here: dict[bytes, Place] = {}
        """Of a journal: runs by digest that lie in records before this one of the same unit."""
        self.named = False
        """Whether something of the journal was named that lay there before."""

    def find(self, digest: bytes) -> Place | None:
        """Where the journal has a run of that digest, as this state names it."""
        place = self.here.get(digest) or (self.pieces.find(digest) if self.pieces else None)
        return None if place is None else self._name(place)

    def split(self, elements: Sequence[bytes]) -> Stretches | None:
        """The elements as stretches, each with the place the journal has it at; None where it has none of them."""
        found = self.pieces.split(elements) if self.pieces else None
        return found and [(part, None if place is None else self._name(place)) for part, place in found]

    def _name(self, place: Place) -> Place:
        self.named = True
        return place if self.journal else in_agent(place)

    def put_items(self, items: Sequence[Item]) -> Place:
        data = ormsgpack.packb([item.stored() for item in items])
        return self.put(slots.plain_slot(data, None, compress=self.compress))
