"""Freeing the space of what was dropped, while others save.

What is kept needs slots of what was dropped. Records stay where they are: those of which nothing is needed are
taken out, the others are emptied of the rest. The order makes it safe beside savers (docs/design/003-collect.md):
the loss is written down first, then what is needed is marked, then the shared index forgets, then a second
operation makes every save that began before look again, and only then bytes go, in short commits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ..errors import NotFoundError
from ..state.tree.against import bases_of
from ..state.tree.nodes import Child, Index, Item, Node, Place, Run
from ..state.tree.read import Reader
from ..state.tree.slots import pack_body, unpack_body
from ..storage.base import OPERATIONS, Key, Rewrite, agent_of, is_journal
from ..storage.record import EMPTIED, Head, emptied, glimpse, open_head
from .engine import Engine
from .ranges import Ranges
from .spans import span_of
from .view import Edit, View

Progress = Callable[[int, int], None] | None
_BATCH_RECORDS = 256
_BATCH_BYTES = 4 << 20
_MOSTLY, _HEAD = 0.75, 300
"""A record whose slots are all needed, and are so much of it, is left as it is unless its head says something."""


@dataclass
class Needed:
    """Slots of collected records, and packs, that what is kept names."""

    slots: dict[tuple[str, int], set[int]] = field(default_factory=dict)
    packs: set[bytes] = field(default_factory=set)
    entries: set[tuple[str, int]] = field(default_factory=set)
    """Kept records of journals whose slots may be written against others, that are gone."""
    seen: set[tuple[str, Place]] = field(default_factory=set)


def collect(engine: Engine, user: str, progress: Progress) -> int:
    """Bytes freed. Safe beside savers in this and other processes; cut short anywhere, the next one goes on."""
    before = sum(engine.storage.size().values())
    packs = [pack_id for pack_id, _ in engine.storage.packs.list()]
    engine.log.operate(user, "collect", "", lambda view: _loss(engine, user, view))
    gone = {key: held.gone for key in _agents(engine, user) if (held := engine.log.view(user).agent(key.agent)).gone}
    present = {key: found for key, ranges in gone.items() if (found := _present(engine, key, ranges))}
    needed, marked = Needed(), {}
    for key in _agents(engine, user):
        marked[key] = _mark(engine, key, gone, needed, after=0)
    if present or packs:
        _forget(engine, user, present, needed)
        for key in _agents(engine, user):
            _mark(engine, key, gone, needed, after=marked.get(key, 0))
        _note_bases(engine, user, needed)
        _sweep(engine, user, present, needed, progress)
        _drop_packs(engine, user, packs, needed)
    while engine.storage.shrink():
        _let_others_in()
    return max(0, before - sum(engine.storage.size().values()))


def _let_others_in() -> None:
    """Between two commits: a thread that lets a lock go and takes it at once again leaves the others standing."""
    time.sleep(0.0002)


def _agents(engine: Engine, user: str) -> list[Key]:
    return [key for key in engine.storage.keys(user) if key.agent != OPERATIONS]


def _loss(engine: Engine, user: str, view: View) -> list[Edit] | None:
    """Everything that is dropped and not yet gone, with the parents histories have to go on from; and what is left in
    journals of agents that have no checkpoint any more."""
    left = {key.agent: found for key in _agents(engine, user) if (found := _left_over(engine, key, view))}
    edits: list[Edit] = [("drop", agent, [list(p) for p in ranges.pairs]) for agent, ranges in left.items()]
    for agent in dict.fromkeys((*view.agents, *left)):
        held = view.agent(agent)
        going = (held.dropped - held.gone) | left.get(agent, Ranges())
        if not going:
            continue
        stems = []
        for first, last in going.pairs:
            for seq, data in engine.storage.heads(Key(user, agent), before=last + 1, limit=last - first + 1):
                parent = glimpse(data)[0]
                if seq >= first and parent != seq - 1 and not is_journal(agent):
                    stems.append([seq, parent])
        edits.append(("gone", agent, [list(p) for p in going.pairs], stems))
    return edits or None


def _left_over(engine: Engine, journal: Key, view: View) -> Ranges:
    """The entries of a journal whose agent had checkpoints and has none."""
    if not is_journal(journal.agent):
        return Ranges()
    agent = agent_of(journal.agent)
    newest, last = engine.newest(Key(journal.user, agent)), engine.newest(journal)
    if newest is None or last is None or Ranges([(1, newest.seq)]) - view.agent(agent).dropped:
        return Ranges()
    return Ranges([(1, last.seq)]) - view.agent(journal.agent).dropped


def _present(engine: Engine, key: Key, gone: Ranges) -> list[int]:
    """Collected records that are still there: all of them, but for those an earlier collect has taken out."""
    found = []
    for first, last in gone.pairs:
        found += [s for s, _ in engine.storage.heads(key, before=last + 1, limit=last - first + 1) if s >= first]
    return sorted(found)


def _mark(engine: Engine, key: Key, gone: dict[Key, Ranges], needed: Needed, *, after: int) -> int:
    """Note what an agent's kept records beyond `after` need of the gone ones; answers its newest seq.

    What a record names, its parent named or it wrote itself, unless it says that it reaches further: only those
    have to be opened, and those whose parent is gone.
    """
    mine = gone.get(key, Ranges())
    reader = engine.reader(key)
    newest, before = after, None
    while True:
        found = engine.storage.heads(key, before=before, limit=4096)
        for seq, data in found:
            if seq <= after:
                return newest
            newest = max(newest, seq)
            parent, reaches = glimpse(data)
            if seq not in mine and (after or reaches or parent in mine):
                if mine and is_journal(key.agent):
                    needed.entries.add((key.agent, seq))
                _note_record(engine, open_head(key, seq, data), reader, gone, needed)
        if len(found) < 4096:
            return newest
        before = found[-1].seq


def _note_record(engine: Engine, head: Head, reader: Reader, gone: dict[Key, Ranges], needed: Needed) -> None:
    """One kept record. What another collect has taken out since this one began is none any more."""
    try:
        if EMPTIED not in head.more:
            with engine.reading(head):
                _note(head.key, engine.root(head), reader, gone, needed)
    except NotFoundError:
        return


def _note(key: Key, node: Node, reader: Reader, gone: dict[Key, Ranges], needed: Needed) -> None:
    nothing = Ranges()
    mine = gone.get(key, nothing)
    for place in _places(key, node, reader, needed.seen):
        span = span_of(key.agent, place)
        if span is None:
            needed.packs.add(place[0])
            continue
        agent, start, end = span
        theirs = mine if agent == key.agent else gone.get(Key(key.user, agent), nothing)
        if theirs:
            for seq in range(start, end + 1):
                if seq in theirs:
                    needed.slots.setdefault((agent, seq), set()).add(place[2])


def _note_bases(engine: Engine, user: str, needed: Needed) -> None:
    """What slots of journals that stay were written against is needed too. It was dropped with them, or without them
    where they came while that was decided."""
    slots = [(place, numbers) for place, numbers in needed.slots.items() if is_journal(place[0])]
    for (agent, seq), numbers in [*slots, *((place, None) for place in needed.entries)]:
        for _, body in engine.storage.bodies(Key(user, agent), [(seq, seq)]):
            found = [slot for n, slot in enumerate(unpack_body(body)) if numbers is None or n in numbers]
            for base, number in [each for slot in found for each in bases_of(slot)]:
                needed.slots.setdefault((agent, base), set()).add(number)


def _places(key: Key, node: Node, reader: Reader, seen: set[tuple[str, Place]]) -> Iterator[Place]:
    """Every place a state needs; an index met before is not opened again.

    Met there, that is: another of the same digest holds the same content, but may name other places for it.
    """
    todo: list[Item] = list(node.top)
    while todo:
        item = todo.pop()
        if isinstance(item, Child):
            todo += item.node.top
        elif isinstance(item, Run):
            yield from item.places
        else:
            yield item.place
            if (key.agent, item.place) not in seen:
                seen.add((key.agent, item.place))
                todo += _opened(item, reader)


def _opened(index: Index, reader: Reader) -> list[Item]:
    return reader.index_items(index, reader.fetch([index.place])[0])


def _forget(engine: Engine, user: str, present: dict[Key, list[int]], needed: Needed) -> None:
    """Take dead slots out of the shared index, then let no save go through that may have found them there."""
    dead = [
        digest
        for key, seqs in present.items()
        for digest, seq, slot in engine.storage.shared_in(key, Ranges.of(seqs).pairs)
        if slot not in needed.slots.get((key.agent, seq), ())
    ]
    while not engine.storage.sweep((), engine.log.view(user, fresh=True).seq, user, dead):
        pass
    engine.log.operate(user, "collect", "barrier", lambda view: [])


def _sweep(engine: Engine, user: str, present: dict[Key, list[int]], needed: Needed, progress: Progress) -> None:
    total, done = sum(map(len, present.values())), 0
    for key, seqs in present.items():
        newest = engine.newest(key)
        for batch in _batches(engine, key, seqs):
            edits = [e for e in (_edit(key, h, body, newest, needed) for h, body in batch) if e is not None]
            while edits and not engine.storage.sweep(edits, engine.log.view(user, fresh=True).seq, user):
                pass
            _let_others_in()
            done += len(batch)
            if progress is not None:
                progress(done, total)


def _batches(engine: Engine, key: Key, seqs: list[int]) -> Iterator[list[tuple[Head, bytes]]]:
    """Collected records with their bodies, a few at a time: savers wait for no longer than one batch."""
    for at in range(0, len(seqs), _BATCH_RECORDS):
        chunk = seqs[at : at + _BATCH_RECORDS]
        found = engine.storage.heads(key, before=chunk[-1] + 1, limit=chunk[-1] - chunk[0] + 1)
        heads = {seq: open_head(key, seq, data) for seq, data in found if seq >= chunk[0]}
        batch, size = [], 0
        for seq, body in engine.storage.bodies(key, Ranges.of(chunk).pairs):
            if seq in heads:
                batch.append((heads[seq], body))
                size += len(body)
            if size >= _BATCH_BYTES:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch


def _edit(key: Key, head: Head, body: bytes, newest: Head | None, needed: Needed) -> Rewrite | None:
    """What becomes of a gone record: taken out, emptied of what is dead; None where too little of it is."""
    live = needed.slots.get((key.agent, head.seq), set())
    # an agent's newest record stays, empty: its seq must not be given again
    if not live and (newest is None or head.seq != newest.seq):
        return Rewrite(key, head.seq, None, b"")
    slots = unpack_body(body)
    kept = [slot if i in live else b"" for i, slot in enumerate(slots)]
    private = head.metadata or head.label or head.alias or not live
    if kept == slots and (head.root is None or (not private and len(body) >= _MOSTLY * (len(body) + _HEAD))):
        return None
    left = pack_body(kept if live else [])
    return Rewrite(key, head.seq, emptied(head, left), left)


def _drop_packs(engine: Engine, user: str, packs: list[bytes], needed: Needed) -> None:
    """Packs that were there before and that nobody's kept record names."""
    packs = [pack_id for pack_id in packs if pack_id not in needed.packs]
    if not packs:
        return
    for other in {key.user for key in engine.storage.keys() if key.user != user}:
        # a save of theirs that has sealed one of these packs and is not there yet has to begin again
        engine.log.operate(other, "collect", "barrier", lambda view: [])
        for key in _agents(engine, other):
            _mark_packs(engine, key, needed)
    for pack_id in packs:
        if pack_id not in needed.packs:
            engine.storage.packs.delete(pack_id)


def _mark_packs(engine: Engine, key: Key, needed: Needed) -> None:
    gone: dict[Key, Any] = {key: engine.log.view(key.user, fresh=True).agent(key.agent).gone}
    _mark(engine, key, gone, needed, after=0)
