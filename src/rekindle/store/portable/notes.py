"""Entries of a journal on their way in. They come first, dropped, and are shown with the checkpoints they belong to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...errors import UnavailableError
from ...state.values import codec
from ...storage.base import Key, Record, journal_of
from ..engine import Engine
from ..ranges import Ranges
from ..saving.drafts import OF, Draft, Drafts
from ..saving.tips import Tip
from ..view import IMPORTING, Edit, View
from .catalog import Catalog
from .outgoing import NOTE

_TRIES = 100
_AT_ONCE = 256


class Notes:
    """The entries of a portable file, brought into one agent's journal."""

    def __init__(self, engine: Engine, key: Key, catalog: Catalog) -> None:
        self._engine = engine
        self._key = key
        self._journal = Key(key.user, journal_of(key.agent))
        self._catalog = catalog
        self._here: set[int] = set()
        self.first: dict[str, int] = {}
        """Where the entries of each checkpoint begin."""

    def bring(self, summary: str) -> None:
        """Append those that are not here yet; nobody sees them before `edits` are made."""
        known = self._known() if self._catalog.notes else {}
        todo = []
        for number in range(self._catalog.notes):
            _, fields, values = self._catalog.entry(NOTE, number)
            seqs = known.get((fields["kind"], fields["metadata"]), [])
            here = next((seq for seq in seqs if self._is(seq, values) and seq not in self._here), None)
            if here is None:
                todo.append(number)
            else:
                self._note(here, fields)
        for at in range(0, len(todo), _AT_ONCE):
            self._append(todo[at : at + _AT_ONCE], summary)

    def edits(self, view: View) -> list[Edit]:
        """What shows them."""
        shown = Ranges.of(self._here) & view.agent(self._journal.agent).dropped
        return [("keep", self._journal.agent, [list(pair) for pair in shown.pairs])] if shown else []

    def _known(self) -> dict[tuple[str, bytes], list[int]]:
        gone = self._engine.log.view(self._key.user, fresh=True).agent(self._journal.agent).gone
        known: dict[tuple[str, bytes], list[int]] = {}
        for head in self._engine.heads(self._journal):
            if head.seq not in gone:
                known.setdefault((head.kind, head.metadata), []).insert(0, head.seq)
        return known

    def _is(self, seq: int, values: bytes) -> bool:
        head = self._engine.head(self._journal, seq)
        return codec.pack(self._engine.state(head, opaque=True) if head.size else []) == values

    def _note(self, seq: int, fields: dict[str, Any]) -> None:
        self._here.add(seq)
        of = str(codec.unpack(fields["metadata"], opaque=True)[OF])
        self.first[of] = min(seq, self.first.get(of, seq))

    def _append(self, numbers: list[int], summary: str) -> None:
        for _ in range(_TRIES):
            view = self._engine.log.view(self._key.user, fresh=True)
            drafts = Drafts(self._engine, self._key, Tip())
            try:
                records = list(self._records(numbers, drafts, view))
                seqs = Ranges.of(record.seq for record in records)
                edits: list[Edit] = [("drop", self._journal.agent, [list(pair) for pair in seqs.pairs])]
                made = self._engine.log.operate_with(self._key.user, view, records, IMPORTING, summary, edits)
            except BaseException:
                drafts.take_back()
                raise
            if made:
                self._engine.forget(self._key)
                for number, record in zip(numbers, records, strict=True):
                    self._note(record.seq, self._catalog.entry(NOTE, number)[1])
                return
            drafts.take_back()
        raise UnavailableError("contended", f"others keep saving agent {self._key.agent!r}", hint="try again")

    def _records(self, numbers: list[int], drafts: Drafts, view: View) -> Iterator[Record]:
        for number in numbers:
            _, fields, values = self._catalog.entry(NOTE, number)
            about = codec.unpack(fields["metadata"], opaque=True)
            held = codec.unpack(values, opaque=True)
            yield drafts.record(Draft(fields["kind"], str(about.pop(OF)), about, held, fields["time"]), view.seq)
