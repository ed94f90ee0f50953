"""Lists of checkpoints, newest first. Only heads are read: a list of 100 costs the same whatever the states are."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import islice

from ..errors import NotFoundError
from ..model import Checkpoint, History
from ..storage.record import Head
from . import answers
from .engine import Engine
from .resolve import AnyRef, Resolver

Checkpoints = list[Checkpoint]


class Listing:
    def __init__(self, engine: Engine, refs: Resolver, user: str) -> None:
        self._engine = engine
        self._refs = refs
        self._user = user

    def list(
        self, agent_id: str | None, *, branch: str | None, kind: str | None, before: AnyRef | None, limit: int | None
    ) -> Checkpoints:
        found = self.heads(agent_id, branch=branch, before=before)
        chosen = (head for head in found if kind is None or head.kind == kind)
        return self.checkpoints(islice(chosen, limit), limit)

    def heads(
        self, agent_id: str | None = None, *, branch: str | None = None, before: AnyRef | None = None
    ) -> Iterator[Head]:
        """Newest first, read as they are asked for."""
        ceiling = self._refs.head(before) if before is not None else None
        if branch is not None:
            return self._on_branch(agent_id, branch, ceiling)
        if agent_id is not None:
            return self._of_agent(agent_id, ceiling) if self._refs.known(agent_id) else iter(())
        return self._of_all(ceiling)

    def checkpoints(self, heads: Iterator[Head], limit: int | None = None) -> Checkpoints:
        view = self._engine.log.view(self._user)
        return History(answers.checkpoint(self._engine, h, view.agent(h.key.agent).labels) for h in heads)

    def history(self, ref: AnyRef, limit: int | None) -> Checkpoints:
        return self.checkpoints(islice(self._refs.history(self._refs.head(ref)), limit))

    def children(self, head: Head) -> Checkpoints:
        dropped = self._engine.log.view(self._user, fresh=True).agent(head.key.agent).dropped
        found = []
        for child in self._engine.heads(head.key):
            if child.seq <= head.seq:
                break
            if child.parent == head.seq and child.seq not in dropped:
                found.append(child)
        return self.checkpoints(iter(found[::-1]))

    def _of_agent(self, agent: str, ceiling: Head | None, batch: int = 64) -> Iterator[Head]:
        view = self._engine.log.view(self._user, fresh=True).agent(agent)
        before = ceiling.seq if ceiling is not None and ceiling.key.agent == agent else None
        for head in self._engine.heads(self._refs.key(agent), before=before, batch=batch):
            if head.seq not in view.dropped:
                yield head

    def newest_first(self) -> Iterator[Head]:
        """Of all agents."""
        return self._of_all(None)

    def _of_all(self, ceiling: Head | None) -> Iterator[Head]:
        """All agents' checkpoints merged by time; within an agent by seq, whatever its clock said."""
        streams = [self._timed(agent, ceiling) for agent in self._refs.agents()]
        return (head for _, head in heapq.merge(*streams, key=lambda pair: pair[0], reverse=True))

    def _timed(self, agent: str, ceiling: Head | None) -> Iterator[tuple[int, Head]]:
        shown: int | None = None
        for head in self._of_agent(agent, ceiling, batch=8):
            # a clock that jumped must not turn an agent's order round
            shown = head.time if shown is None else min(shown, head.time)
            if ceiling is None or ceiling.key.agent == agent or shown < ceiling.time:
                yield shown, head

    def _on_branch(self, agent: str | None, branch: str, ceiling: Head | None) -> Iterator[Head]:
        agents = [agent] if agent is not None else self._refs.agents()
        having = [name for name in agents if branch in self._refs.branches(name)]
        if agent is not None and not having:
            raise NotFoundError(
                "branch-not-found", f"agent {agent!r} has no branch {branch!r}",
                hint=f"list its branches with `rekindle branches {agent}`",
            )  # fmt: skip
        for name in having:
            head = self._engine.head(self._refs.key(name), self._refs.branches(name)[branch])
            for older in self._refs.history(head):
                if ceiling is None or older.seq < ceiling.seq:
                    yield older
