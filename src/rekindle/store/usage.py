"""Where the bytes are, by agent. Every record is read for its length; nothing is decoded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from ..storage.base import Key, has_checkpoints, journal_of
from .engine import Engine
from .store import Store

_BATCH = 256


@dataclass(frozen=True, slots=True)
class Usage:
    """One agent. `states` is what its checkpoints would take if each were kept whole."""

    agent_id: str
    checkpoints: int
    states: int
    written: int
    """Bytes of its records as they are stored, dropped ones and its journal too."""
    dropped: int
    """Checkpoints that were dropped and not collected yet."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def usage(store: Store) -> list[Usage]:
    """By agent, in the order they first came; what lies in packs is nobody's own."""
    engine = store._engine
    keys = [key for key in engine.storage.keys(store.user) if has_checkpoints(key.agent)]
    return [_of(engine, key) for key in keys]


def _of(engine: Engine, key: Key) -> Usage:
    view = engine.log.view(key.user, fresh=True).agent(key.agent)
    checkpoints = states = dropped = 0
    seqs = []
    for head in engine.heads(key):
        seqs.append(head.seq)
        if head.seq not in view.dropped:
            checkpoints += 1
            states += head.size
        elif head.seq not in view.gone:
            dropped += 1
    journal = Key(key.user, journal_of(key.agent))
    written = sum(_written(engine, key, seqs)) + sum(_written(engine, journal, [h.seq for h in engine.heads(journal)]))
    return Usage(key.agent, checkpoints, states, written, dropped)


def _written(engine: Engine, key: Key, seqs: list[int]) -> Iterator[int]:
    """Lengths of the records' heads and bodies, a batch at a time."""
    for at in range(0, len(seqs), _BATCH):
        newest, oldest = seqs[at], seqs[min(at + _BATCH, len(seqs)) - 1]
        for _, body in engine.storage.bodies(key, [(oldest, newest)]):
            yield len(body)
        yield from (len(data) for _, data in engine.storage.heads(key, before=newest + 1, limit=_BATCH))
