"""Entries of a journal in the making: records that are appended with a checkpoint, or by themselves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from ...state.tree.apart import ApartWriter
from ...state.tree.nodes import Place
from ...state.tree.runs import Slots
from ...state.tree.slots import pack_body
from ...state.values import codec
from ...storage.base import Key, Record, journal_of
from ...storage.record import Head, seal
from ..engine import Engine
from .filling import Filling
from .tips import Tip

OF = "of"
"""In the metadata of an entry: the id of the checkpoint it belongs to."""
_UUID = 36


def short(name: str) -> UUID | str:
    """A name that is the text of a UUID as a UUID, which takes half the bytes; `str` gives it back."""
    if len(name) == _UUID:
        try:
            if str(found := UUID(name)) == name:
                return found
        except ValueError:
            pass
    return name


@dataclass(frozen=True, slots=True)
class Draft:
    """An entry to be appended: why (`kind`), to which checkpoint it belongs (an id of the caller's own, which may
    come later), what is known about it, and the values it keeps."""

    kind: str
    of: str
    about: dict[str, Any] = field(default_factory=dict)
    values: list[Any] = field(default_factory=list)
    time: int | None = None
    """Not now but then, in milliseconds."""


class Drafts:
    """Records of one agent's journal, in order; the agent's turn is taken. Nothing of them is remembered before they
    are there (`created`)."""

    def __init__(self, engine: Engine, key: Key, tip: Tip) -> None:
        self._engine = engine
        self._key = Key(key.user, journal_of(key.agent))
        self._tip = tip
        self._made: list[tuple[str, int, int, Slots]] = []
        self._fillings: list[Filling] = []

    def settle(self) -> None:
        """Know where the journal ends."""
        if self._tip.journal is None:
            newest = self._engine.newest(self._key)
            self._tip.journal = newest.seq if newest is not None else 0

    def record(self, draft: Draft, guard: int) -> Record:
        """The next record; large values are in a pack, sealed."""
        self.settle()
        assert self._tip.journal is not None
        engine, seq = self._engine, self._tip.journal + len(self._made) + 1
        filling = Filling(engine.storage.packs, seq)
        self._fillings.append(filling)
        out = Slots(filling.put, self._share, compress=engine.storage.compresses, pieces=self._tip.pieces, journal=True)
        self._reached = False
        writer = ApartWriter(engine.hasher(self._key.user), engine.reader(self._key), out)
        node = writer.values(draft.values)
        filling.seal()
        body = pack_body(filling.slots)
        head = Head(
            self._key, seq, 0, draft.kind, engine.now() if draft.time is None else draft.time, node.size, "", b"",
            engine.hasher(self._key.user).root(node), node.stored(), None, "", "",
            codec.pack({OF: short(draft.of), **draft.about}), None, {}, guard,
            reaches=out.named or filling.packed or self._reached,
        )  # fmt: skip
        data, _ = seal(head, body, compress=engine.storage.compresses)
        self._made.append((draft.of, seq, len(filling.slots), out))
        shared = tuple((digest, place[2]) for digest, place in out.shared if type(place[0]) is int)
        return Record(self._key, seq, data, body, None, shared)

    def _share(self, digest: bytes) -> Place | None:
        place = self._engine.shared_place(self._key, digest)
        self._reached = self._reached or place is not None
        return place

    def created(self) -> None:
        """They are there: what they hold can be named from now on."""
        for of, seq, slots, out in self._made:
            self._tip.journal = seq
            self._tip.note_early(of, seq)
            self._tip.pieces.appended(seq, slots)
            for digest, elements, place in out.laid:
                self._tip.pieces.add(digest, elements, place)

    def take_back(self) -> None:
        for filling in self._fillings:
            filling.abort()
