"""Checkpoints of threads on their way out: one, or a list that reads no state before it is asked for."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any, cast

from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata, CheckpointTuple, DeltaChannelHistory, PendingWrite

from ...errors import NotFoundError
from ...storage.base import Key, has_checkpoints
from ...storage.record import Head, long_id
from ...store import Store
from ...store.saving.tips import entries_from
from .lazy import LazyValues, LazyWrites
from .places import BAR, Place, agent_of, config_of, place_of, thread_of
from .shape import START, is_checkpoint, metadata_in, none, unpack_rest
from .writes import Journal, delta_writes


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread as a list of threads shows it: its newest checkpoint, and when that was put."""

    thread_id: str
    checkpoint_id: str
    updated_at: datetime
    metadata: dict[str, Any]


class Reading:
    """`trusted`: what is handed out is not changed in place, so that a put on it costs what is new."""

    def __init__(self, store: Store, *, trusted: bool = False) -> None:
        self._store = store
        self._engine = store._engine
        self._trusted = trusted

    def key(self, agent: str) -> Key:
        return Key(self._store.user, agent)

    # -- one ---------------------------------------------------------------------------------------------------------

    def find(self, place: Place) -> Head | None:
        """The checkpoint a config means: by its id, or the thread's newest. None where it is not there."""
        key = self.key(place.agent)
        if place.checkpoint is None:
            return next(self.heads(key), None)
        head = self._store._refs.own(place.agent, place.checkpoint)
        return head if head is not None and is_checkpoint(head) else None

    def get(self, place: Place, thread: Any = None) -> CheckpointTuple | None:
        """The checkpoint a config means, read. What is deleted under it is not there: then another is the newest."""
        while (head := self.find(place)) is not None:
            try:
                found = self.tuple_of(place, head, thread)
            except NotFoundError:
                if head.seq not in self._engine.log.view(head.key.user, fresh=True).agent(head.key.agent).gone:
                    raise
                found = None
            if found is not None:
                return found
        return None

    def tuple_of(self, place: Place, head: Head, thread: Any = None) -> CheckpointTuple | None:
        """None where it was dropped since it was found."""
        journal = Journal(self._engine, head.key, after=entries_from(head) - 1)
        if journal.lacks(head):
            return None
        values = self._values(head, journal, bound=self._trusted)
        return self._tuple(place, head, values, journal.pending(head), thread)

    def _values(self, head: Head, journal: Journal, *, bound: bool = False) -> dict[str, Any]:
        values: dict[str, Any] | None = self._engine.bound(head) if bound else None
        if values is None:
            values = self.state(head)
            if bound:
                self._engine.bind(head, values)
        for value in journal.input(head):
            values[START] = value
        return values

    def state(self, head: Head) -> dict[str, Any]:
        """A checkpoint's values, but for the input it was made for."""
        held = self._engine.state(head)
        if not isinstance(held, dict):
            raise none(head)
        return held

    def _name(self, head: Head) -> str:
        return self._engine.own_name(head) or ""

    def _tuple(
        self, place: Place, head: Head, values: Mapping[str, Any], pending: Sequence[PendingWrite], thread: Any = None
    ) -> CheckpointTuple:
        parent = (long_id(head.more.get("parent_alias")) or "").removesuffix("@" + self._engine.tag(head.key.agent))
        checkpoint = {**unpack_rest(head), "id": self._name(head), "channel_values": values}
        return CheckpointTuple(
            cast(Any, config_of(place, self._name(head), thread)),
            cast(Checkpoint, checkpoint),
            cast(CheckpointMetadata, metadata_in(head)),
            cast(Any, config_of(place, parent, thread)) if parent else None,
            cast(Any, pending),
        )

    # -- lists -------------------------------------------------------------------------------------------------------

    def heads(self, key: Key) -> Iterator[Head]:
        """A thread's checkpoints (of one namespace), newest first."""
        dropped = self._engine.log.view(key.user, fresh=True).agent(key.agent).dropped
        for head in self._engine.heads(key, batch=8):
            if head.seq not in dropped and is_checkpoint(head):
                yield head

    def list(
        self, config: Mapping[str, Any] | None, wanted: Mapping[str, Any] | None, before: str | None, limit: int | None
    ) -> Iterator[CheckpointTuple]:
        found = (each for each in self._merged(config, before) if _fits(each[1], wanted))
        journals: dict[Key, Journal] = {}
        for place, head in islice(found, limit):
            journal = journals.setdefault(head.key, Journal(self._engine, head.key))
            if not journal.lacks(head):
                yield self._lazy(place, head, journal)

    def _lazy(self, place: Place, head: Head, journal: Journal) -> CheckpointTuple:
        values = LazyValues(lambda: self._values(head, journal))
        return self._tuple(place, head, values, LazyWrites(lambda: journal.pending(head)))

    def _merged(self, config: Mapping[str, Any] | None, before: str | None) -> Iterator[tuple[Place, Head]]:
        """The checkpoints a config leaves, newest first by their ids; within a thread as they were put."""
        one = place_of(config) if config else None
        if one is not None and one.checkpoint is not None:
            head = self.find(one)
            return iter([(one, head)] if head is not None else [])
        streams = [self._stream(agent, before) for agent in self.agents(config)]
        return ((place, head) for _, place, head in heapq.merge(*streams, key=lambda each: each[0], reverse=True))

    def _stream(self, agent: str, before: str | None) -> Iterator[tuple[str, Place, Head]]:
        key, place = self.key(agent), Place(*thread_of(agent))
        ceiling = 0
        if before is not None:
            self._store._refs.own(agent, before, scans=False)
            ceiling = self._engine.own_seq(key, before)
        shown: str | None = None
        for head in self.heads(key):
            name = self._name(head)
            if before is not None and (head.seq >= ceiling if ceiling else name >= before):
                continue
            # ids of several clocks must not turn a thread's order round
            shown = name if shown is None else min(shown, name)
            yield shown, place, head

    def agents(self, config: Mapping[str, Any] | None) -> Sequence[str]:
        """The agents of a thread (of one namespace where the config names one), or of all threads."""
        if config is None:
            return self._agents("")
        place = place_of(config)
        told = (config.get("configurable") or {}).get("checkpoint_ns")
        return [place.agent] if told is not None else self.of_thread(place.thread)

    def of_thread(self, thread: str) -> Sequence[str]:
        own = agent_of(thread)
        return [own, *self._agents(own + BAR)]

    def _agents(self, prefix: str) -> Sequence[str]:
        names = [key.agent for key in self._engine.storage.keys(self._store.user) if has_checkpoints(key.agent)]
        return [name for name in names if name.startswith(prefix)]

    def threads(self) -> Iterator[Thread]:
        """Threads, the one put to last first."""
        newest = [(thread_of(agent)[0], next(self.heads(self.key(agent)), None)) for agent in self._roots()]
        for thread, head in sorted(newest, key=lambda each: each[1].time if each[1] else 0, reverse=True):
            if head is not None:
                stamp = datetime.fromtimestamp(head.time / 1000, UTC)
                yield Thread(thread, self._name(head), stamp, metadata_in(head))

    def _roots(self) -> Sequence[str]:
        return [agent for agent in self._agents("") if BAR not in agent]

    # -- delta channels ----------------------------------------------------------------------------------------------

    def delta_history(self, place: Place, channels: Sequence[str]) -> dict[str, DeltaChannelHistory]:
        """What the ancestors of a checkpoint wrote to channels, oldest first, down to where one holds the value.
        NotFoundError where one of them was pruned: without it the value would be another."""
        writes: dict[str, list[PendingWrite]] = {channel: [] for channel in channels}
        seeds: dict[str, Any] = {}
        target = self.find(place)
        if target is not None:
            journal = Journal(self._engine, target.key)
            parent = target.parent
            for head in islice(self._store._refs.history(target), 1, None):
                left = [channel for channel in channels if channel not in seeds]
                if not left or head.seq != parent:
                    break
                parent = head.parent
                pending = journal.pending(head)
                values = self._values(head, journal)
                for channel in left:
                    writes[channel][:0] = delta_writes(pending, channel)
                    if channel in values:
                        seeds[channel] = values[channel]
            if parent and len(seeds) < len(channels):
                raise NotFoundError(
                    "parent-gone", f"channels of thread {place.thread!r} are made of checkpoints that were pruned",
                    hint="undo the prune; the saver's own prune() keeps what delta channels are made of",
                )  # fmt: skip
        return {
            channel: cast(
                DeltaChannelHistory,
                {"writes": writes[channel], **({"seed": seeds[channel]} if channel in seeds else {})},
            )
            for channel in channels
        }


def _fits(head: Head, wanted: Mapping[str, Any] | None) -> bool:
    if not wanted:
        return True
    told = metadata_in(head)
    return all(told.get(name) == value for name, value in wanted.items())
