"""Whole threads: deleted, pruned, copied. Each is one operation of the store, and can be undone."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence

from ...errors import ConflictError, InvalidInputError
from ...refs import quote_agent
from ...storage.base import Key
from ...storage.record import Head
from ...store import Store
from ...store.retain import clear, drop
from .places import agent_of
from .reading import Reading
from .shape import metadata_in

STRATEGIES = ("keep_latest", "delete")
_COUNTERS = "counters_since_delta_snapshot"


class Threads:
    def __init__(self, store: Store, reading: Reading) -> None:
        self._store = store
        self._engine = store._engine
        self._reading = reading

    def delete(self, threads: Sequence[str]) -> None:
        agents = [agent for thread in threads for agent in self._reading.of_thread(thread)]
        clear(self._engine, self._store._refs, self._store.user, agents)

    def delete_for_runs(self, runs: Sequence[str]) -> None:
        wanted = set(runs)
        going = {
            agent: [head for head in self._heads(agent) if _run_of(head) in wanted]
            for agent in (self._reading.agents(None) if wanted else ())
        }
        self._drop("delete-runs", runs, going)

    def prune(self, threads: Sequence[str], strategy: str) -> None:
        if strategy not in STRATEGIES:
            raise InvalidInputError("bad-strategy", f"strategy={strategy!r}", hint="'keep_latest' or 'delete'")
        if strategy == "delete":
            self.delete(threads)
            return
        agents = [agent for thread in threads for agent in self._reading.of_thread(thread)]
        self._drop("prune-thread", threads, {agent: self._all_but_latest(agent) for agent in agents})

    def _all_but_latest(self, agent: str) -> list[Head]:
        heads = self._heads(agent)
        if not heads:
            return []
        kept = {heads[0].seq, *self._needed(heads[0])}
        tags = self._engine.log.view(self._store.user, fresh=True).agent(agent).tags
        return [head for head in heads if head.seq not in kept and head.seq not in tags.values()]

    def _needed(self, latest: Head) -> Iterable[int]:
        """The ancestors that hold what a delta channel's value is made of, down to the nearest snapshot of each."""
        left = set(metadata_in(latest).get(_COUNTERS) or ()) - self._reading.state(latest).keys()
        for head in self._store._refs.history(latest):
            if head.seq == latest.seq:
                continue
            if not left:
                return
            yield head.seq
            left -= self._reading.state(head).keys()

    def _heads(self, agent: str) -> list[Head]:
        return list(self._reading.heads(self._reading.key(agent)))

    def _drop(self, verb: str, names: Sequence[str], going: Mapping[str, Sequence[Head]]) -> None:
        chosen = {agent: [head.seq for head in heads] for agent, heads in going.items() if heads}
        if chosen:
            drop(self._engine, self._store.user, verb, ", ".join(map(quote_agent, names[:5])), chosen)

    def copy(self, source: str, target: str) -> None:
        agents = [agent for agent in self._reading.of_thread(source) if self._heads(agent)]
        if any(self._heads(agent) for agent in self._reading.of_thread(target)):
            raise ConflictError("thread-exists", f"there is a thread {target!r}", hint="copy to another, or delete it")
        for agent in agents:
            ns = agent.removeprefix(agent_of(source))
            with tempfile.TemporaryFile() as spool:
                self._store.export(self._newest(agent), spool)
                spool.seek(0)
                self._store.import_(spool, agent_id=agent_of(target) + ns)

    def _newest(self, agent: str) -> str:
        key = Key(self._store.user, agent)
        return f"{quote_agent(agent)}@{next(self._reading.heads(key)).seq}"


def _run_of(head: Head) -> str | None:
    run = metadata_in(head).get("run_id")
    return run if isinstance(run, str) else None
