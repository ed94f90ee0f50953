"""An agent's journal: what belongs to its checkpoints and is none itself, in the order it came.

Pending writes of a framework are entries. They are dropped with the checkpoint they belong to, and come back with it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import UnavailableError
from ..storage.base import Key, has_checkpoints, journal_of
from ..storage.record import EMPTIED, Head
from .engine import Engine
from .ranges import Ranges
from .saving.drafts import Draft, about_of, no_entry
from .saving.noting import Noting
from .saving.parked import wait_in
from .saving.ways import Way
from .view import Edit, View

_TRIES = 1000


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a journal; its values are read when they are asked for."""

    head: Head
    kind: str
    of: str
    about: dict[str, Any]

    @property
    def seq(self) -> int:
        return self.head.seq


async def note_by(way: Way, engine: Engine, key: Key, drafts: Sequence[Draft], *, patience: float = 0) -> None:
    """Append entries; durable when it answers. For so many seconds they wait for a save that takes them along."""
    if patience and await wait_in(engine.tip(key).parked, way, drafts, patience):
        return
    noting = Noting(engine, key, drafts)
    for _ in range(_TRIES):
        if await way.commit(noting, engine.committer):
            return
    raise UnavailableError("contended", f"others keep saving agent {key.agent!r}", hint="try again")


def entries(engine: Engine, key: Key, *, after: int = 0, view: View | None = None) -> Iterator[Entry]:
    """An agent's entries beyond `after`, newest first, without those that were dropped: by now, or in a view. What was
    collected since is not among them."""
    journal = Key(key.user, journal_of(key.agent))
    dropped = (view or engine.log.view(key.user, fresh=True)).agent(journal.agent).dropped
    for head in engine.heads(journal, batch=32):
        if head.seq <= after:
            return
        if head.seq not in dropped and EMPTIED not in head.more:
            yield Entry(head, head.kind, *about_of(head))


def values(engine: Engine, entry: Entry) -> list[Any]:
    """What an entry keeps: new values each time."""
    found = engine.state(entry.head) if entry.head.size else []
    if type(found) is not list:
        raise no_entry(entry.head)
    return found


def with_entries(engine: Engine, user: str, view: View, edits: Iterable[Edit]) -> list[Edit]:
    """Edits that drop checkpoints, and with these what their journals hold of them. An entry whose checkpoint is not
    there stays: that may be about to come, from a save that nothing stops any more."""
    found = list(edits)
    for edit in list(found):
        if edit[0] != "drop" or not has_checkpoints(edit[1]):
            continue
        journal = Key(user, journal_of(edit[1]))
        if engine.newest(journal) is None:
            continue
        going = _going(engine, Key(user, edit[1]), Ranges(edit[2]))
        if going := going - view.agent(journal.agent).dropped:
            found.append(("drop", journal.agent, [list(pair) for pair in going.pairs]))
    return found


def _going(engine: Engine, key: Key, dropped: Ranges) -> Ranges:
    """The entries that go when these checkpoints do."""
    names = _names(engine, key, dropped)
    return Ranges.of(entry.seq for entry in entries(engine, key) if entry.of in names)


def _names(engine: Engine, key: Key, seqs: Ranges) -> Collection[str]:
    """What their callers call these checkpoints."""
    first = seqs.pairs[0][0]
    names = set()
    for head in engine.heads(key, before=seqs.pairs[-1][1] + 1):
        if head.seq < first:
            break
        if head.seq in seqs and (name := engine.own_name(head)) is not None:
            names.add(name)
    return names
