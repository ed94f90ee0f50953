"""Random calls on LangGraph savers, against dictionaries that do the same: every answer is compared.

Two savers on one store take turns, and are closed and opened again in between. `REKINDLE_SEED` picks other runs.
"""

from __future__ import annotations

import io
import os
import random
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import WRITES_IDX_MAP, writes_sort_key

from rekindle import ConflictError, NotFoundError, Store
from rekindle.adapters.langgraph import RekindleSaver
from rekindle.adapters.langgraph.places import agent_of
from rekindle.refs import quote_agent
from rekindle.store.engine import Engine
from rekindle.store.opening import open_storage
from rekindle.store.saving import filling

TORTURE = os.environ.get("REKINDLE_TORTURE") == "1"
SEED = int(os.environ.get("REKINDLE_SEED", "20261118"))
RUNS = {"memory": 9, "sqlite": 5, "file": 2}
LONG = {"memory": 1200, "sqlite": 500, "file": 150}
STEPS = 60
THREADS = ("t", "two|bars", "50%")
SPACES = ("", "sub")
SPECIAL = tuple(WRITES_IDX_MAP)

Write = tuple[str, str, Any]


# -- the model ---------------------------------------------------------------------------------------------------


@dataclass
class Rec:
    """One checkpoint, as the model knows it."""

    id: str
    seq: int
    parent: str | None
    values: dict[str, Any]
    metadata: dict[str, Any]
    writes: dict[tuple[str, int], tuple[str, str, Any]] = field(default_factory=dict)
    """By task and index: (path, channel, value)."""
    by_hand: bool = False
    """Somebody saved it on the thread's agent: the store has it, LangGraph does not see it."""

    @property
    def pending(self) -> list[Write]:
        found = sorted(self.writes.items(), key=lambda item: writes_sort_key(item[1][0], *item[0]))
        return [(task, channel, value) for (task, _), (_, channel, value) in found]


@dataclass
class Agent:
    """A namespace of a thread."""

    recs: dict[str, Rec] = field(default_factory=dict)
    early: dict[str, Rec] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    last: int = 0

    @property
    def whole(self) -> list[Rec]:
        """What was not dropped, the newest first."""
        found = [rec for name, rec in self.recs.items() if name not in self.dropped]
        return sorted(found, key=lambda rec: -rec.seq)

    @property
    def alive(self) -> list[Rec]:
        """The checkpoints of these."""
        return [rec for rec in self.whole if not rec.by_hand]

    def parent(self, rec: Rec) -> str | None:
        """The nearest ancestor that was not dropped."""
        name = rec.parent
        while name in self.dropped:
            name = self.recs[name].parent
        return name


Edits = list[tuple[str, str, set[str]]]
"""("drop" or "keep", agent, ids)."""


def noted(rec: Rec, writes: list[tuple[str, Any]], task: str, path: str) -> None:
    """As LangGraph's own savers keep writes."""
    replaces = all(channel in WRITES_IDX_MAP for channel, _ in writes)
    for index, (channel, value) in enumerate(writes):
        name = (task, WRITES_IDX_MAP.get(channel, index))
        if replaces or name not in rec.writes:
            rec.writes[name] = (path, channel, value)


# -- the machine -------------------------------------------------------------------------------------------------


class Machine:
    def __init__(self, scheme: str, folder: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.url = "memory://" if scheme == "memory" else f"{scheme}:///{folder}/store"
        self.storage = open_storage(self.url) if scheme == "memory" else None
        if self.storage is not None:
            self.storage.compresses = seed % 3 > 0  # as SQLite: what is said again, a little otherwise, is named
        self.now = 1_700_000_000.0
        self.agents: dict[str, Agent] = {}
        self.edits: dict[int, Edits] = {}
        self.undone: set[int] = set()
        self.pool: list[Any] = []
        self.copies = 0
        self.log: list[str] = []
        self.handles = [self.opened(), self.opened()]

    def opened(self) -> RekindleSaver:
        storage = self.storage if self.storage is not None else open_storage(self.url)
        return RekindleSaver(Store(Engine(storage, clock=self.tick), "local"))

    def tick(self) -> float:
        self.now += 1
        return self.now

    def close(self) -> None:
        for handle in self.handles:
            handle.close()

    @property
    def saver(self) -> RekindleSaver:
        return self.handles[0]

    def of(self, agent: str) -> Agent:
        return self.agents.setdefault(agent, Agent())

    def run(self, steps: int) -> None:
        acts = [act for act, weight in WEIGHTS.items() for _ in range(weight)]
        for n in range(steps):
            act = self.rng.choice(acts)
            self.log.append(act)
            getattr(self, act)()
            if n % 12 == 11:
                self.check_everything(self.saver)
        for handle in self.handles:
            self.check_everything(handle)
        self.check_everything(self.opened() if self.storage is not None else self.handles[0])
        report = self.saver.store.verify()
        assert report, report.problems

    def said(self, call: Callable[[], Any], error: type[Exception] | None) -> Any:
        """What the saver answers; it has to refuse where the model does, and only there."""
        if error is None:
            return call()
        with pytest.raises(error):
            call()
        return None

    # what is put

    def text(self) -> str:
        size = self.rng.choice([3, 40, 40, 200, 200, 700, 700, 3000, 9000, 40_000])
        words = [f"{self.rng.randrange(1 << 24):x}" for _ in range(size // 6 + 1)]
        return " ".join(words)[:size]

    def message(self) -> Any:
        kind, text = self.rng.randrange(4), self.text()
        if kind == 0:
            made: Any = HumanMessage(text)
        elif kind == 1:
            made = AIMessage(text, additional_kwargs={"n": self.rng.randrange(5)})
        elif kind == 2:
            made = {"role": "user", "content": text, "id": None}
        else:
            made = text
        self.pool.append(made)
        del self.pool[:-30]
        return made

    def some_message(self) -> Any:
        return deepcopy(self.rng.choice(self.pool)) if self.pool and self.rng.random() < 0.5 else self.message()

    def with_id(self, message: Any) -> Any:
        """As a reducer gives messages an id."""
        name = str(uuid.UUID(int=self.rng.getrandbits(128)))
        if isinstance(message, dict) and message.get("id", 1) is None:
            return {**message, "id": name}
        if isinstance(message, (HumanMessage, AIMessage)) and message.id is None:
            return message.model_copy(update={"id": name})
        return message

    def value(self) -> Any:
        rng = self.rng
        made = rng.randrange(9)
        if made == 0:
            return rng.choice(
                [None, True, 1, 1.0, -5, "", b"\0\xff", "short", 2**70, (1, [2]), [], {}, [[]], {"a": []}]
            )
        if made == 1:
            return {"messages": [self.some_message() for _ in range(rng.randrange(4))], "n": rng.randrange(9)}
        if made == 2:
            return {f"k{n}": self.text() for n in range(rng.randrange(5))}
        if made == 3:
            return {"a": [self.text()], (1, 2): [1], "b": self.some_message()}
        if made == 4:
            return self.some_message()
        if made == 5:
            return [rng.randrange(1 << 30) for _ in range(rng.choice([1, 100, 3000]))]
        if made == 6:
            return {"a": [1, 2, self.some_message()], "b": {"c": [self.some_message()]}, "t": (self.text(),), "l": [""]}
        if made == 7 and rng.random() < 0.2:
            return rng.randbytes(300_000)
        return [self.some_message() for _ in range(rng.randrange(6))]

    def writes(self) -> list[tuple[str, Any]]:
        rng = self.rng
        if rng.random() < 0.25:
            return [(channel, self.value()) for channel in rng.sample(SPECIAL, rng.randint(1, 2))]
        channels = ["messages", "messages", "note", "branch:to:b", *SPECIAL[:1]]
        return [(rng.choice(channels), self.value()) for _ in range(rng.randint(1, 3))]

    def grown(self, before: dict[str, Any]) -> dict[str, Any]:
        """The values of a checkpoint after another."""
        rng, values = self.rng, deepcopy(before)
        values.pop("__start__", None)
        held = values.get("messages", [])
        if not isinstance(held, list):
            held = []
        luck = rng.random()
        if luck < 0.6:
            held = [*held, *(self.with_id(self.some_message()) for _ in range(rng.choice([1, 1, 2, 5])))]
        elif luck < 0.7:
            rng.shuffle(held)
        elif luck < 0.75 and held:
            held[rng.randrange(len(held))] = self.some_message()
        elif luck < 0.8:
            held = held[rng.randrange(3) :]
        elif luck < 0.85:
            held = [self.with_id(each) for each in held]
        values["messages"] = held
        if rng.random() < 0.3:
            values["note"] = self.value()
        if rng.random() < 0.1:
            values["last"] = held[-1:]
        if rng.random() < 0.15:
            values["__start__"] = self.value()
        if rng.random() < 0.1 and len(held) > 2:
            values["turned"] = held[::-1]
        return values

    # putting

    def some_agent(self) -> tuple[str, str]:
        return self.rng.choice(THREADS), self.rng.choice((*SPACES, ""))

    def config(self, thread: str, ns: str, checkpoint: str | None = None) -> Any:
        told = {"thread_id": thread, "checkpoint_ns": ns}
        return {"configurable": told if checkpoint is None else {**told, "checkpoint_id": checkpoint}}

    def new_id(self) -> str:
        return str(uuid.UUID(int=(int(self.tick()) << 80) | self.rng.getrandbits(60)))

    def put_one(
        self, thread: str, ns: str, parent: Rec | None, values: dict[str, Any], name: str | None = None
    ) -> Rec | None:
        held = self.of(agent_of(thread, ns))
        name = name or self.new_id()
        metadata = {"source": "loop", "step": self.rng.randrange(4), "run_id": f"r{self.rng.randrange(6)}"}
        versions = dict.fromkeys(values, 1)
        checkpoint: Any = {
            "v": 4, "id": name, "ts": "2026-01-01T00:00:00+00:00", "channel_values": deepcopy(values),
            "channel_versions": versions, "versions_seen": {"a": versions}, "updated_channels": None,
        }  # fmt: skip
        error = NotFoundError if parent is not None and parent.id in held.dropped else None
        config = self.config(thread, ns, parent.id if parent else None)
        done = self.said(lambda: self.saver.put(config, checkpoint, deepcopy(metadata), versions), error)  # type: ignore[arg-type]
        if done is None:
            return None
        assert done["configurable"]["checkpoint_id"] == name
        held.last += 1
        rec = Rec(name, held.last, parent.id if parent else None, values, metadata)
        if name in held.early:
            rec.writes = held.early.pop(name).writes
        held.recs[name] = rec
        if self.rng.random() < 0.1:  # once more: it is known
            self.saver.put(config, checkpoint, deepcopy(metadata), versions)  # type: ignore[arg-type]
        return rec

    def write_on(self, thread: str, ns: str, rec: Rec, writes: list[tuple[str, Any]], task: str, path: str) -> None:
        held = self.of(agent_of(thread, ns))
        if rec.id in held.gone:
            return
        error = ConflictError if rec.id in held.dropped else None
        config = self.config(thread, ns, rec.id)
        self.said(lambda: self.saver.put_writes(config, deepcopy(writes), task, path), error)
        if error is None:
            noted(rec, writes, task, path)

    def put(self) -> None:
        thread, ns = self.some_agent()
        held = self.of(agent_of(thread, ns))
        recs = list(held.recs.values())
        alive = held.alive
        parent = None
        recs = [rec for rec in recs if not rec.by_hand]
        luck = self.rng.random()
        if alive and luck < 0.7:
            parent = alive[0]
        elif recs and luck < 0.95:
            parent = self.rng.choice(recs)
        name = None
        if held.early and self.rng.random() < 0.7:
            name = self.rng.choice(list(held.early))
            parent = held.recs[held.early[name].parent] if held.early[name].parent else None  # type: ignore[index]
        self.put_one(thread, ns, parent, self.grown(parent.values if parent else {}), name)

    def step(self) -> None:
        """As a graph goes: an input, what tasks write on it, what comes of that."""
        thread, ns = self.some_agent()
        held = self.of(agent_of(thread, ns))
        rec = held.alive[0] if held.alive else None
        before = dict(rec.values) if rec else {}
        before.pop("__start__", None)
        told = {"messages": [self.some_message() for _ in range(self.rng.choice([1, 1, 2]))]}
        rec = self.put_one(thread, ns, rec, {**before, "__start__": told})
        assert rec is not None
        for _ in range(self.rng.randint(1, 3)):
            self.write_on(thread, ns, rec, [*told.items(), ("branch:to:a", None)], "00000000-start", "")
            values = dict(rec.values)
            values.pop("__start__", None)
            new = [self.with_id(each) if self.rng.random() < 0.7 else each for each in told["messages"]]
            values["messages"] = [*(values.get("messages") or []), *new]
            if self.rng.random() < 0.2:
                self.write_on(thread, ns, rec, [("__interrupt__", [self.value()])], "other", "~pull")
            rec = self.put_one(thread, ns, rec, values)
            assert rec is not None
            told = {"messages": [self.some_message()]}

    def many_writes(self) -> None:
        thread, ns = self.some_agent()
        recs = [rec for rec in self.of(agent_of(thread, ns)).recs.values() if not rec.by_hand]
        if not recs:
            return
        rec = self.rng.choice([recs[-1], self.rng.choice(recs)])
        task = self.rng.choice(["a", "b", "9e107d9d-372b-b682-6bd8-1d3542a419d6"])
        path = self.rng.choice(["", "", "~__pregel_pull, b", "~__pregel_push, 1"])
        writes = self.writes()
        for _ in range(self.rng.choice([1, 1, 2])):
            self.write_on(thread, ns, rec, writes, task, path)
            if self.rng.random() < 0.5:
                writes = [(channel, self.said_anew(value)) for channel, value in writes]

    def said_anew(self, value: Any) -> Any:
        if isinstance(value, list):
            again = [self.with_id(each) for each in value]
            self.rng.shuffle(again)
            return again
        return self.with_id(value)

    def early_writes(self) -> None:
        """Writes on a checkpoint that is put later."""
        thread, ns = self.some_agent()
        held = self.of(agent_of(thread, ns))
        name = self.rng.choice([*held.early, self.new_id()]) if len(held.early) < 3 else next(iter(held.early))
        parent = held.alive[0] if held.alive else None
        rec = held.early.setdefault(name, Rec(name, 0, parent and parent.id, {}, {}))
        self.write_on(thread, ns, rec, self.writes(), "early", "")
        if self.rng.random() < 0.6:
            parent = held.recs[rec.parent] if rec.parent else None
            self.put_one(thread, ns, parent, self.grown(parent.values if parent else {}), name)

    def put_by_hand(self) -> None:
        """A state that somebody saves on a thread's agent: it is no checkpoint of the thread."""
        thread, ns = self.some_agent()
        held = self.of(agent_of(thread, ns))
        if not held.alive:
            return
        newest = held.alive[0]
        state = {**deepcopy(newest.values), "by": "hand"}
        saved = self.saver.store.save(agent_of(thread, ns), state)
        held.last += 1
        assert saved.seq == held.last
        assert self.saver.store.restore(saved) == state
        held.recs[saved.id] = Rec(saved.id, saved.seq, None, state, {"run_id": None}, by_hand=True)

    # threads

    def operated(self, edits: Edits, act: Callable[[], object]) -> None:
        """An operation, and what the model makes of it."""
        before = len(self.saver.store.operations())
        act()
        made = self.saver.store.operations()[before:]
        edits = [edit for edit in edits if edit[2]]
        if edits:
            assert len(made) == 1
            self.edits[made[0].seq] = edits
            self.apply(edits)

    def apply(self, edits: Edits) -> None:
        for verb, agent, ids in edits:
            held = self.of(agent)
            held.dropped = held.dropped | ids if verb == "drop" else held.dropped - ids
            if not held.whole:
                held.early.clear()

    def dropping(self, agent: str, recs: list[Rec]) -> tuple[str, str, set[str]]:
        return ("drop", agent, {rec.id for rec in recs})

    def of_thread(self, thread: str) -> list[str]:
        return [agent_of(thread, ns) for ns in SPACES]

    def delete_thread(self) -> None:
        thread = self.rng.choice(THREADS)
        edits = [self.dropping(agent, self.of(agent).whole) for agent in self.of_thread(thread)]
        self.operated(edits, lambda: self.saver.delete_thread(thread))

    def delete_for_runs(self) -> None:
        runs = self.rng.sample([f"r{n}" for n in range(6)], self.rng.randint(1, 2))
        edits = [
            self.dropping(agent, [rec for rec in held.alive if rec.metadata["run_id"] in runs])
            for agent, held in self.agents.items()
        ]
        self.operated(edits, lambda: self.saver.delete_for_runs(runs))

    def prune_thread(self) -> None:
        thread = self.rng.choice(THREADS)
        edits = [self.dropping(agent, self.of(agent).alive[1:]) for agent in self.of_thread(thread)]
        self.operated(edits, lambda: self.saver.prune([thread]))

    def prune_store(self) -> None:
        store = self.saver.store
        where = {c.id: (agent, c.seq) for agent in store.agents() for c in store.list(agent, limit=None)}
        plan = store.prune("keep-last=3", dry_run=True)
        going = {where[d.candidate.id] for d in plan.drop}
        edits = [
            self.dropping(agent, [rec for rec in held.whole if (agent, rec.seq) in going])
            for agent, held in self.agents.items()
        ]
        edits = [edit for edit in edits if edit[2]]
        before = len(store.operations())
        store.prune("keep-last=3")
        for made in store.operations()[before:]:
            self.edits[made.seq] = edits
        self.apply(edits)

    def undo(self) -> None:
        store = self.saver.store
        target = next((op for op in reversed(store.operations()) if op.stands), None)
        if target is None:
            self.said(store.undo, NotFoundError)
            return
        edits = self.edits.get(target.seq, [])
        gone = any(verb == "drop" and ids & self.of(agent).gone for verb, agent, ids in edits)
        if gone or target.collected:
            self.said(store.undo, ConflictError)
            return
        store.undo()
        self.apply([("keep" if verb == "drop" else "drop", agent, ids) for verb, agent, ids in reversed(edits)])

    def collect(self) -> None:
        self.saver.store.collect()
        for held in self.agents.values():
            held.gone |= held.dropped

    def copy_thread(self) -> None:
        source = self.rng.choice(THREADS)
        agents = [agent for agent in self.of_thread(source) if self.of(agent).alive]
        self.copies += 1
        target = f"copy {self.copies}"
        before = len(self.saver.store.operations())
        self.saver.copy_thread(source, target)
        made = [op for op in self.saver.store.operations()[before:] if op.verb == "import"]
        assert len(made) == len(agents)
        for agent, op in zip(agents, made, strict=True):
            name = agent_of(target) + agent.removeprefix(agent_of(source))
            self.agents[name] = copied(self.of(agent))
            self.edits[op.seq] = [("keep", name, set(self.of(name).recs))]
        if agents:
            self.compare_thread(self.saver, target, "")

    def carry_over(self) -> None:
        """A thread in another store is the same."""
        thread, ns = self.some_agent()
        agent = agent_of(thread, ns)
        if not self.of(agent).alive:
            return
        file, newest = io.BytesIO(), self.of(agent).alive[0]
        self.saver.store.export(f"{quote_agent(agent)}@{newest.seq}", file)
        other = RekindleSaver(Store(Engine(open_storage("memory://"), clock=self.tick), "local"))
        for again in (False, True):
            file.seek(0)
            assert bool(other.store.import_(file)) is not again
            self.compare_thread(other, thread, ns, copied(self.of(agent)))
        found = other.get_tuple(self.config(thread, ns))
        assert found is not None
        other.put_writes(found.config, [("more", ["more"])], "more")
        assert ("more", "more", ["more"]) in other.get_tuple(found.config).pending_writes  # type: ignore[union-attr,operator]
        assert found.checkpoint["id"] == newest.id
        report = other.store.verify()
        assert report, report.problems
        other.close()

    # handles

    def take_turns(self) -> None:
        self.handles.reverse()

    def reopen(self) -> None:
        if self.storage is None:
            self.handles[0].close()
        self.handles[0] = self.opened()

    # looking

    def look(self) -> None:
        thread, ns = self.some_agent()
        held = self.of(agent_of(thread, ns))
        recs = [rec for rec in held.recs.values() if not rec.by_hand]
        for rec in self.rng.sample(recs, min(3, len(recs))):
            self.compare_one(self.saver, thread, ns, rec)
        self.compare_newest(self.saver, thread, ns, held.alive)

    def list_some(self) -> None:
        thread, ns = self.some_agent()
        alive = self.of(agent_of(thread, ns)).alive
        limit = self.rng.choice([None, None, 0, 1, 4])
        step = self.rng.choice([None, 0, 1, 2])
        before = self.rng.choice(alive) if alive and self.rng.random() < 0.5 else None
        wanted = [
            rec
            for rec in alive
            if (before is None or rec.seq < before.seq) and (step is None or rec.metadata["step"] == step)
        ]
        found = self.saver.list(
            self.config(thread, ns), limit=limit, filter=None if step is None else {"step": step},
            before=None if before is None else self.config(thread, ns, before.id),
        )  # fmt: skip
        for each, rec in zip(list(found), wanted[:limit], strict=True):
            self.compare(each, thread, ns, rec)

    def compare_by_hand(self) -> None:
        """What the store itself makes of threads."""
        thread, ns = self.some_agent()
        agent = agent_of(thread, ns)
        alive = self.of(agent).alive
        if len(alive) > 1:
            a, b = self.rng.sample(alive, 2)
            store, name = self.saver.store, quote_agent(agent)
            changes = store.diff(f"{name}@{a.seq}", f"{name}@{b.seq}")
            told = [{k: v for k, v in rec.values.items() if k != "__start__"} for rec in (a, b)]
            assert bool(list(changes)) == (repr(told[0]) != repr(told[1]))
            if "messages" in b.values:
                assert list(store.blame(f"{name}@{b.seq}", "messages"))
            list(store.grep("no such text", f"{name}@{a.seq}"))

    def check_everything(self, saver: RekindleSaver) -> None:
        for thread in (*THREADS, *(f"copy {n + 1}" for n in range(self.copies))):
            for ns in SPACES:
                self.compare_thread(saver, thread, ns)
        want = {rec.id for held in self.agents.values() for rec in held.alive}
        assert {each.checkpoint["id"] for each in saver.list(None)} == want

    def compare_thread(self, saver: RekindleSaver, thread: str, ns: str, held: Agent | None = None) -> None:
        held = held or self.of(agent_of(thread, ns))
        found = list(saver.list(self.config(thread, ns)))
        for each, rec in zip(found, held.alive, strict=True):
            self.compare(each, thread, ns, rec)
        for rec in held.alive:
            self.compare(saver.get_tuple(self.config(thread, ns, rec.id)), thread, ns, rec)
        self.compare_newest(saver, thread, ns, held.alive)

    def compare_newest(self, saver: RekindleSaver, thread: str, ns: str, alive: list[Rec]) -> None:
        found = saver.get_tuple(self.config(thread, ns))
        if not alive:
            assert found is None
        else:
            self.compare(found, thread, ns, alive[0])

    def compare_one(self, saver: RekindleSaver, thread: str, ns: str, rec: Rec) -> None:
        found = saver.get_tuple(self.config(thread, ns, rec.id))
        if rec.id in self.of(agent_of(thread, ns)).dropped:
            assert found is None
        else:
            self.compare(found, thread, ns, rec)

    def compare(self, found: Any, thread: str, ns: str, rec: Rec) -> None:
        assert found is not None
        assert found.checkpoint["id"] == rec.id
        assert found.config == self.config(thread, ns, rec.id)
        assert found.metadata == {**found.metadata, **rec.metadata}
        parent = self.config(thread, ns, rec.parent) if rec.parent else None
        assert found.parent_config == parent
        values = dict(found.checkpoint["channel_values"])
        assert values.keys() == rec.values.keys()
        same({name: values[name] for name in rec.values}, rec.values)
        same([tuple(each) for each in found.pending_writes], rec.pending)


def same(found: Any, wanted: Any) -> None:
    assert found == wanted
    assert repr(found) == repr(wanted), "of other types"


def copied(held: Agent) -> Agent:
    copy = Agent()
    for rec in held.whole[::-1]:
        copy.last += 1
        copy.recs[rec.id] = replace(rec, seq=copy.last, parent=held.parent(rec), writes=dict(rec.writes))
    return copy


WEIGHTS = {
    "put": 10, "step": 8, "many_writes": 10, "early_writes": 3, "put_by_hand": 1, "delete_thread": 1,
    "delete_for_runs": 1, "prune_thread": 1, "prune_store": 1, "undo": 3, "collect": 2, "copy_thread": 1,
    "carry_over": 2, "take_turns": 5, "reopen": 2, "look": 3, "list_some": 3, "compare_by_hand": 2,
}  # fmt: skip


@contextmanager
def small_packs(seed: int) -> Iterator[None]:
    """In most runs a save of some KB streams its rest into a pack."""
    with mock.patch.object(filling, "SPILL", (3_000, 3_000, 20_000, filling.SPILL)[seed % 4]):
        yield


def played(scheme: str, folder: Path, seed: int, steps: int) -> None:
    machine = Machine(scheme, folder, seed)
    try:
        with small_packs(seed):
            machine.run(steps)
    except BaseException as e:
        e.add_note(f"{scheme}, seed {seed}: {len(machine.log)} steps, the last {machine.log[-8:]}")
        raise
    finally:
        machine.close()


@pytest.mark.parametrize("scheme", RUNS)
def test_every_answer_is_what_the_model_says(scheme: str, tmp_path: Path) -> None:
    for n in range(RUNS[scheme]):
        played(scheme, tmp_path / str(n), SEED + n, STEPS)


@pytest.mark.torture
@pytest.mark.parametrize("scheme", LONG)
def test_every_answer_is_what_the_model_says_for_long(scheme: str, tmp_path: Path) -> None:
    for n in range(LONG[scheme]):
        played(scheme, tmp_path / str(n), SEED + 1000 + n, STEPS * random.Random(n).choice([1, 2, 5]))
