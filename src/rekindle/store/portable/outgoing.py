"""Checkpoints on their way out: trees as a portable file has them, every slot of them once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...state.tree.nodes import Index, Kind, Place, Run, item_from
from ...state.tree.read import Reader
from ...state.tree.recall import places_of
from ...state.tree.slots import Slot, apart
from ...state.values import codec
from ...storage.base import Key
from ...storage.record import EMPTIED, Head
from ..answers import id_of
from ..engine import Engine
from ..journal import Entry
from ..saving.tips import JOURNAL_FROM
from ..spans import span_of
from .file import PortableWriter

PIECE, INDEX, HEAD, NOTE = "p", "i", "h", "n"
"""Entries: [PIECE, the piece it goes on from, splices, lengths, bytes], [INDEX, level, items], [HEAD, fields, tree],
[NOTE, fields, values packed], an entry of the agent's journal.
Pieces and indexes are numbered as they come. A tree is a node as records carry it, but for its runs, [last piece,
count, size, flags], and its indexes, [number]."""
ORIGIN = "origin"
"""In a head's `more`: the id it was imported under, where that is another checkpoint's here."""
Name = tuple[Any, int, int]
"""Where a piece lies here."""
NOT_CARRIED = ("parent_alias", ORIGIN, EMPTIED, JOURNAL_FROM)


class Outgoing:
    """Writes checkpoints of one agent, oldest first."""

    def __init__(self, engine: Engine, key: Key, out: PortableWriter) -> None:
        self._engine = engine
        self._key = key
        self._out = out
        self._fetch = engine.fetch(key)
        self._hasher = engine.hasher(key.user)
        self._pieces: dict[tuple[int, Name], int] = {}
        """By the number of the piece it goes on from, and by what it is."""
        self._written = 0
        self._indexes: dict[bytes, int] = {}

    def head(self, head: Head, parent: int, label: str | None) -> None:
        self._engine.root(head)
        name = self._engine.own_name(head) or id_of(self._engine, head)
        fields = {
            "seq": head.seq, "parent": parent, "id": name, "kind": head.kind,
            "time": head.time, "branch": head.branch, "label": label, "agent_type": head.agent_type,
            "status": head.status, "metadata": head.metadata,
            "more": {name: value for name, value in head.more.items() if name not in NOT_CARRIED},
        }  # fmt: skip
        self._out.add([HEAD, fields, self._node(head.root)])

    def note(self, entry: Entry) -> None:
        head = entry.head
        values = codec.pack(self._engine.state(head, opaque=True) if head.size else [])
        self._out.add([NOTE, {"kind": head.kind, "time": head.time, "metadata": head.metadata}, values])

    def _node(self, stored: list[Any]) -> list[Any]:
        kind, about, items = stored
        return [kind, about, [self._item(kind, item) for item in items]]

    def _item(self, kind: Kind, stored: list[Any]) -> list[Any]:
        if len(stored) == 2:
            return [stored[0], self._node(stored[1])]
        if len(stored) == 7:
            return [self._index(kind, stored)]
        return [self._run(kind, stored), *stored[1:4]]

    def _index(self, kind: Kind, stored: list[Any]) -> int:
        number = self._indexes.get(stored[0])
        if number is None:
            index = item_from(stored, self._hasher)
            assert isinstance(index, Index)
            found = Reader(self._fetch, self._hasher).index_items(index, self._fetch([index.place])[0])
            self._out.add([INDEX, index.level, [self._item(kind, item.stored()) for item in found]])
            number = self._indexes[stored[0]] = len(self._indexes)
        return number

    def _run(self, kind: Kind, stored: list[Any]) -> int:
        """The number of a run's last piece; those that are not in the file yet are written."""
        places = places_of(stored)
        names = [name for place in places for name in self._names(place)]
        last = self._known(names)
        if last is None:
            run = item_from(stored, self._hasher)
            assert isinstance(run, Run)
            found = self._fetch(places)
            Reader(lambda _: found, self._hasher).contents([run], kind)  # what is damaged is not handed on
            last = -1
            for name, piece in zip(names, apart([slot for part in found for slot in part]), strict=True):
                number = self._pieces.get((last, name))
                if number is None:
                    number = self._pieces[last, name] = self._piece(last, piece)
                last = number
        return last

    def _known(self, names: Sequence[Name]) -> int | None:
        """The number of the last of these pieces, where all of them are in the file, each going on from the one before:
        what lies in a journal may stand behind one thing in this run, and behind another in that."""
        last: int | None = -1
        for name in names:
            if last is not None:
                last = self._pieces.get((last, name))
        return last

    def _piece(self, before: int, piece: Slot) -> int:
        """The number of a piece that is written; of one that adds nothing, that of the one before."""
        if before >= 0 and not piece.payload and piece.splices is None:
            return before
        splices = None if piece.splices is None else [x for splice in piece.splices for x in splice]
        self._out.add([PIECE, before, splices, piece.lengths, piece.payload])
        self._written += 1
        return self._written - 1

    def _names(self, place: Place) -> Iterable[Name]:
        span = span_of(self._key.agent, place)
        if span is None:
            return [place]
        agent, first, last = span
        return [(agent, seq, place[2]) for seq in range(first, last + 1)]
