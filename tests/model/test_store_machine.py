"""Random operations on a store, against a dictionary that does the same: every answer is compared.

Two handles on one store take turns, and are closed and opened again in between. `REKINDLE_SEED` picks other runs.
"""

import io
import itertools
import os
import shutil
import tempfile
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from rekindle import Checkpoint, ConflictError, NotFoundError, Store
from rekindle.store.engine import Engine
from rekindle.store.opening import open_storage

TORTURE = os.environ.get("REKINDLE_TORTURE") == "1"
SEED = os.environ.get("REKINDLE_SEED")
RUNS = {"memory": 300, "sqlite": 60, "file": 15}
STEPS = 40
AGENTS = ("a", "b", "c d")
NAMES = ("main", "side", "v1", "x@y", "main-2")
PROFILE = settings(
    max_examples=1, stateful_step_count=STEPS, deadline=None, derandomize=SEED is None, database=None,
    suppress_health_check=list(HealthCheck), print_blob=False,
)  # fmt: skip


# -- the model ---------------------------------------------------------------------------------------------------


@dataclass
class Rec:
    """One save, as the model knows it."""

    agent: str
    seq: int
    parent: int
    branch: str
    kind: str
    label: str | None
    metadata: dict[str, Any]
    state: Any
    id: str
    order: int


@dataclass
class Agent:
    recs: dict[int, Rec] = field(default_factory=dict)
    heads: dict[str, int] = field(default_factory=dict)
    tags: dict[str, int] = field(default_factory=dict)
    labels: dict[int, str | None] = field(default_factory=dict)
    dropped: set[int] = field(default_factory=set)
    gone: set[int] = field(default_factory=set)
    deleted: bool = False

    @property
    def branches(self) -> dict[str, int]:
        return {name: seq for name, seq in self.heads.items() if seq not in self.dropped}

    @property
    def alive(self) -> list[Rec]:
        return [self.recs[seq] for seq in sorted(self.recs, reverse=True) if seq not in self.dropped]

    def label(self, seq: int) -> str | None:
        return self.labels.get(seq, self.recs[seq].label)

    def history(self, seq: int) -> list[Rec]:
        found = []
        while seq:
            if seq not in self.dropped:
                found.append(self.recs[seq])
            seq = self.recs[seq].parent
        return found


@dataclass
class Op:
    """One operation: what it changed, each with what was there before."""

    verb: str
    edits: list[tuple[Any, ...]]
    undoes: int = 0
    undone: bool = False


class Model:
    def __init__(self) -> None:
        self.agents: dict[str, Agent] = {}
        self.ops: list[Op] = []
        self.ids: dict[str, Rec] = {}

    def of(self, agent: str) -> Agent:
        return self.agents.setdefault(agent, Agent())

    def operate(self, verb: str, edits: list[tuple[Any, ...]], undoes: int = 0) -> None:
        self.ops.append(Op(verb, edits, undoes))
        for edit in edits:
            self.apply(edit)

    def apply(self, edit: tuple[Any, ...]) -> None:
        verb, held, rest = edit[0], self.of(edit[1]), edit[2:]
        if verb == "drop":
            held.dropped |= rest[0]
        elif verb == "keep":
            held.dropped -= rest[0]
        elif verb == "deleted":
            held.deleted = rest[1]
        else:
            where: dict[Any, Any] = {"branch": held.heads, "tag": held.tags, "label": held.labels}[verb]
            name, _, new = rest
            if new is None and verb != "label":
                where.pop(name, None)
            else:
                where[name] = new

    def undo(self) -> type[Exception] | None:
        """What an undo of the last operation that can be would say; None where it is done."""
        target = next(
            (op for op in reversed(self.ops) if op.edits and not op.undone and not op.undoes and op.verb != "collect"),
            None,
        )
        if target is None:
            return NotFoundError
        if any(edit[0] == "drop" and edit[2] & self.of(edit[1]).gone for edit in target.edits):
            return ConflictError
        turned = []
        for edit in reversed(target.edits):
            if edit[0] == "branch" and self.of(edit[1]).branches.get(edit[2]) != edit[4]:
                continue  # it has gone on since, and stays where it is
            if edit[0] in ("drop", "keep"):
                turned.append(("keep" if edit[0] == "drop" else "drop", edit[1], edit[2]))
            else:
                turned.append((*edit[:-2], edit[-1], edit[-2]))
        self.operate("undo", turned, undoes=self.ops.index(target) + 1)
        target.undone = True
        return None

    def collect(self) -> None:
        loss = False
        for held in self.agents.values():
            loss = loss or bool(held.dropped - held.gone)
            held.gone |= held.dropped
            for seq in held.gone:
                if self.ids.get(held.recs[seq].id) is held.recs[seq]:  # an id may be given again once it is collected
                    del self.ids[held.recs[seq].id]
        if loss:
            self.ops.append(Op("collect", []))


def shown(model: Model, rec: Rec) -> tuple[Any, ...]:
    parent = model.of(rec.agent).recs[rec.parent].id if rec.parent else None
    label = model.of(rec.agent).label(rec.seq)
    return (rec.id, rec.agent, rec.seq, parent, rec.branch, rec.kind, label, rec.metadata)


def seen(c: Checkpoint) -> tuple[Any, ...]:
    return (c.id, c.agent_id, c.seq, c.parent_checkpoint_id, c.branch, c.kind, c.label, c.metadata)


# -- the machine -------------------------------------------------------------------------------------------------


class Machine(RuleBasedStateMachine):
    scheme = "memory"

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.url = "memory://" if self.scheme == "memory" else f"{self.scheme}:///{self.folder}/store"
        self.model = Model()
        self.collected: set[str] = set()
        self.orders = itertools.count(1)
        self.ticks = itertools.count(1_700_000_000)
        self.storage = open_storage(self.url) if self.scheme == "memory" else None
        self.handles = [self.opened(), self.opened()]
        self.turn = 0

    def opened(self) -> Store:
        storage = self.storage if self.storage is not None else open_storage(self.url)
        return Store(Engine(storage, clock=lambda: float(next(self.ticks))), "local")

    @property
    def store(self) -> Store:
        return self.handles[self.turn]

    def teardown(self) -> None:
        try:
            self.check_everything(self.store)
            if self.scheme != "memory":
                with self.opened() as fresh:
                    self.check_everything(fresh)
        finally:
            for handle in self.handles:
                handle.close()
            shutil.rmtree(self.folder)

    def said(self, call: Callable[[], Any], error: type[Exception] | None) -> Any:
        """What the store answers; it has to refuse where the model does, and only there."""
        if error is None:
            return call()
        with pytest.raises(error):
            call()
        return None

    def some_rec(self, data: st.DataObject, *, dropped: bool = False) -> Rec | None:
        recs = [r for held in self.model.agents.values() for r in (held.recs.values() if dropped else held.alive)]
        return data.draw(st.sampled_from(sorted(recs, key=lambda r: r.order))) if recs else None

    # saving

    @rule(
        agent=st.sampled_from(AGENTS), size=st.sampled_from([0, 3, 40, 5000]), n=st.integers(0, 3),
        branch=st.sampled_from([None, None, None, *NAMES[:3]]), ident=st.sampled_from([None] * 5 + ["i1", "i2"]),
        kind=st.sampled_from(["manual", "step"]), label=st.sampled_from([None, "l"]),
        on=st.sampled_from(["head", "head", "head", "any", "strict"]), data=st.data(),
    )  # fmt: skip
    def save(
        self, agent: str, size: int, n: int, branch: str | None, ident: str | None, kind: str, label: str | None,
        on: str, data: st.DataObject,
    ) -> None:  # fmt: skip
        held = self.model.of(agent)
        parent = None
        if on != "head" and held.alive:
            parent = data.draw(st.sampled_from(held.alive))
        self.saved(
            agent, size, n, branch=branch, ident=ident, kind=kind, label=label, parent=parent, strict=on == "strict"
        )

    @rule(agent=st.sampled_from(AGENTS), count=st.integers(1, 9), branch=st.sampled_from([None, None, "side"]))
    def grow(self, agent: str, count: int, branch: str | None) -> None:
        for n in range(count):
            self.saved(agent, (3, 3000)[n % 2], n % 4, branch=branch)

    def saved(
        self, agent: str, size: int, n: int, *, branch: str | None = None, ident: str | None = None,
        kind: str = "manual", label: str | None = None, parent: Rec | None = None, strict: bool = False,
    ) -> None:  # fmt: skip
        held = self.model.of(agent)
        state = {"text": "xyz "[n] * size, "list": list(range(n * 20)), "order": next(self.orders)}
        metadata = {"n": n} if n else {}

        def call() -> Checkpoint:
            return self.store.save(
                agent, state, parent=parent.id if parent else None, branch=branch, kind=kind, label=label,
                metadata=metadata, id=ident, strict=strict,
            )  # fmt: skip

        error, places = self.placed(held, parent, branch, strict=strict)
        if held.deleted:
            error = ConflictError
        known = self.model.ids.get(ident) if ident else None
        if error is None and known is not None:
            if known.agent != agent or known.seq in held.dropped:
                error = ConflictError
            else:
                assert seen(call())[:4] == shown(self.model, known)[:4]
                return
        if error is None and ident in self.collected:
            # a collected record that others still name a part of, or an agent's newest, keeps its id: refused then
            try:
                done = call()
            except ConflictError as e:
                assert e.code in ("id-deleted", "id-taken")
                return
        else:
            done = self.said(call, error)
        if done is None:
            return
        base = parent.seq if parent else held.branches.get(branch or "main", 0)
        seq = max(held.recs, default=0) + 1
        assert (done.seq, done.agent_id, done.kind, done.label) == (seq, agent, kind, label)
        assert done.branch in places or (not places and done.branch not in held.branches)
        assert ident is None or done.id == ident
        rec = Rec(agent, seq, base, done.branch, kind, label, metadata, deepcopy(state), done.id, state["order"])
        held.recs[seq] = rec
        held.heads[done.branch] = seq
        if ident:
            self.model.ids[ident] = rec
        assert seen(done) == shown(self.model, rec)
        assert self.store.restore(done) == state

    def placed(
        self, held: Agent, parent: Rec | None, branch: str | None, *, strict: bool
    ) -> tuple[type[Exception] | None, set[str]]:
        """(the error, the branches it may be on; none: one of its own)."""
        if parent is None:
            if branch not in (None, "main") and branch not in held.branches:
                return NotFoundError, set()
            return None, {branch or "main"}
        at_head = {name for name, seq in held.branches.items() if seq == parent.seq}
        meant = {branch} if branch else (at_head or {parent.branch})
        if any(name not in held.branches or held.branches[name] == parent.seq for name in meant):
            return None, meant
        return (ConflictError if strict else None), set()

    # names

    @rule(name=st.sampled_from(NAMES), data=st.data())
    def fork(self, name: str, data: st.DataObject) -> None:
        rec = self.some_rec(data)
        if rec is None:
            return
        held = self.model.of(rec.agent)
        taken = name in held.branches or name in held.tags
        done = self.said(lambda: self.store.fork(rec.id, name), ConflictError if taken else None)
        if not taken:
            assert done.id == rec.id
            self.model.operate("fork", [("branch", rec.agent, name, None, rec.seq)])

    @rule(name=st.sampled_from(NAMES), move=st.booleans(), data=st.data())
    def tag(self, name: str, move: bool, data: st.DataObject) -> None:
        rec = self.some_rec(data)
        if rec is None:
            return
        held = self.model.of(rec.agent)
        old = held.tags.get(name)
        error = None
        if old != rec.seq and ((old is not None and not move) or name in held.branches):
            error = ConflictError
        self.said(lambda: self.store.tag(rec.id, name, move=move), error)
        if error is None and old != rec.seq:
            self.model.operate("tag", [("tag", rec.agent, name, old, rec.seq)])

    @rule(agent=st.sampled_from(AGENTS), name=st.sampled_from(NAMES))
    def untag(self, agent: str, name: str) -> None:
        old = self.model.of(agent).tags.get(name)
        self.said(lambda: self.store.untag(agent, name), NotFoundError if old is None else None)
        if old is not None:
            self.model.operate("untag", [("tag", agent, name, old, None)])

    @rule(text=st.sampled_from([None, "l", "other"]), data=st.data())
    def label(self, text: str | None, data: st.DataObject) -> None:
        rec = self.some_rec(data)
        if rec is None:
            return
        held = self.model.of(rec.agent)
        old = held.label(rec.seq)
        assert self.store.label(rec.id, text).label == text
        if old != text:
            self.model.operate("label", [("label", rec.agent, rec.seq, old, text)])

    @rule(agent=st.sampled_from(AGENTS), name=st.sampled_from(NAMES))
    def delete_branch(self, agent: str, name: str) -> None:
        held = self.model.of(agent)
        error = NotFoundError if name not in held.branches else ConflictError if name == "main" else None
        self.said(lambda: self.store.delete_branch(agent, name), error)
        if error is None:
            self.model.operate("delete-branch", [("branch", agent, name, held.branches[name], None)])

    # space

    @rule(keep=st.integers(1, 3), agent=st.sampled_from([None, *AGENTS]), dry=st.sampled_from([False, False, True]))
    def prune(self, keep: int, agent: str | None, dry: bool) -> None:
        edits: list[tuple[Any, ...]] = []
        for name in [agent] if agent else list(self.model.agents):
            held = self.model.of(name)
            safe = {*held.branches.values(), *held.tags.values(), *(r.seq for r in held.alive[:keep])}
            going = {r.seq for r in held.alive} - safe
            if going and (agent or held.branches):
                edits.append(("drop", name, going))
        if agent and not self.model.of(agent).recs:
            self.said(lambda: self.store.prune(f"keep-last={keep}", agent_id=agent, dry_run=dry), NotFoundError)
            return
        plan = self.store.prune(f"keep-last={keep}", agent_id=agent, dry_run=dry)
        meant = {self.model.of(name).recs[seq].id for _, name, seqs in edits for seq in seqs}
        assert {d.candidate.id for d in plan.drop} == meant
        if edits and not dry:
            self.model.operate("prune", edits)

    @rule()
    def collect(self) -> None:
        assert self.store.collect() >= 0
        self.model.collect()
        gone = {r.id for held in self.model.agents.values() for r in held.recs.values() if r.seq in held.gone}
        self.collected = gone - self.model.ids.keys()

    @rule()
    def undo(self) -> None:
        # the model is asked first: what it would say of an operation that cannot be undone is what the store says
        error = self.model.undo()
        self.said(self.store.undo, error)

    @rule(agent=st.sampled_from(AGENTS), seldom=st.integers(0, 5))
    def delete(self, agent: str, seldom: int) -> None:
        held = self.model.of(agent)
        if seldom:
            return  # an agent that is gone takes no saves
        if not held.recs:
            self.said(lambda: self.store.delete(agent), NotFoundError)
            return
        assert self.store.delete(agent) == len(held.alive)
        edits = self.whole(agent) + ([("deleted", agent, False, True)] if not held.deleted else [])
        if edits:
            self.model.operate("delete", edits)

    @rule(agents=st.lists(st.sampled_from(AGENTS), unique=True))
    def clear(self, agents: list[str]) -> None:
        if not all(self.model.of(agent).recs for agent in agents):
            self.said(lambda: self.store.clear(agents), NotFoundError)
            return
        edits = [edit for agent in agents for edit in self.whole(agent)]
        assert self.store.clear(agents) == sum(len(self.model.of(agent).alive) for agent in agents)
        if edits:
            self.model.operate("clear", edits)

    def whole(self, agent: str) -> list[tuple[Any, ...]]:
        held = self.model.of(agent)
        edits: list[tuple[Any, ...]] = [("tag", agent, name, seq, None) for name, seq in held.tags.items()]
        edits += [("branch", agent, name, seq, None) for name, seq in held.branches.items() if name != "main"]
        alive = {r.seq for r in held.alive}
        return edits + ([("drop", agent, alive)] if alive else [])

    # handles

    @rule()
    def take_turns(self) -> None:
        self.turn = 1 - self.turn

    @rule()
    def reopen(self) -> None:
        if self.storage is None:
            self.store.close()
        self.handles[self.turn] = self.opened()

    # looking back

    @rule(data=st.data(), limit=st.sampled_from([None, 0, 1, 3]))
    def look(self, data: st.DataObject, limit: int | None) -> None:
        rec = self.some_rec(data, dropped=True)
        if rec is None:
            return
        held = self.model.of(rec.agent)
        if rec.seq in held.dropped:
            if self.model.ids.get(rec.id, rec) is not rec:
                return  # its id was given again after a collect
            for call in (self.store.get, self.store.restore, self.store.history, self.store.children):
                self.said(lambda call=call: call(rec.id), NotFoundError)
            return
        assert seen(self.store.get(rec.id)) == shown(self.model, rec)
        assert self.store.restore(rec.id) == rec.state
        history = [shown(self.model, r) for r in held.history(rec.seq)][:limit]
        assert [seen(c) for c in self.store.history(rec.id, limit=limit)] == history
        children = [shown(self.model, r) for r in held.alive[::-1] if r.parent == rec.seq]
        assert [seen(c) for c in self.store.children(rec.id)] == children
        earlier = [shown(self.model, r) for r in held.alive if r.seq < rec.seq][:limit]
        assert [seen(c) for c in self.store.list(rec.agent, before=rec.id, limit=limit)] == earlier

    @rule(agent=st.sampled_from(AGENTS), kind=st.sampled_from(["manual", "step"]), name=st.sampled_from(NAMES))
    def list_some(self, agent: str, kind: str, name: str) -> None:
        held = self.model.of(agent)
        of_kind = [shown(self.model, r) for r in held.alive if r.kind == kind]
        assert [seen(c) for c in self.store.list(agent, kind=kind)] == of_kind
        if name in held.branches:
            on_branch = [shown(self.model, r) for r in held.history(held.branches[name])]
            assert [seen(c) for c in self.store.list(agent, branch=name)] == on_branch
        else:
            self.said(lambda: self.store.list(agent, branch=name), NotFoundError)

    @rule(data=st.data())
    def carry_over(self, data: st.DataObject) -> None:
        """An exported agent comes back in another store as it is here."""
        rec = self.some_rec(data)
        if rec is None:
            return
        held = self.model.of(rec.agent)
        file = io.BytesIO()
        self.store.export(rec.id, file)
        file.seek(0)
        with Store(Engine(open_storage("memory://")), "local") as other:
            other.import_(file)
            assert [c.id for c in other.list(rec.agent, limit=None)] == [r.id for r in held.alive]
            for r in held.alive:
                assert other.restore(r.id) == r.state
            assert other.verify().problems == []

    @invariant()
    def agents_and_names(self) -> None:
        model = self.model
        having = [name for name, held in model.agents.items() if held.branches]
        assert set(self.store.agents()) == set(having)
        for name, held in model.agents.items():
            if not held.recs:
                continue
            assert {n: c.seq for n, c in self.store.branches(name).items()} == held.branches
            assert {n: c.seq for n, c in self.store.tags(name).items()} == held.tags

    def check_everything(self, store: Store) -> None:
        alive = [r for held in self.model.agents.values() for r in held.alive]
        ordered = sorted(alive, key=lambda r: -r.order)
        listed = [seen(c) for c in store.list(limit=None)]
        assert sorted(listed) == sorted(shown(self.model, r) for r in ordered if self.model.of(r.agent).branches)
        for held in self.model.agents.values():
            for rec in held.alive:
                assert store.restore(rec.id) == rec.state
        done = [op.verb for op in store.operations() if op.summary != "barrier"]
        assert done == [op.verb for op in self.model.ops]
        assert store.verify().problems == []


@pytest.mark.parametrize("scheme", list(RUNS))
def test_a_store_does_what_a_dictionary_does(scheme: str) -> None:
    machine: Any = type(f"{scheme.title()}Machine", (Machine,), {"scheme": scheme})
    if SEED is not None:
        machine = seed(int(SEED))(machine)
    print(f"REKINDLE_SEED={SEED or 'unset: the same runs every time'}")
    runs = RUNS[scheme] * (100 if TORTURE else 1)
    run_state_machine_as_test(machine, settings=settings(PROFILE, max_examples=runs))
