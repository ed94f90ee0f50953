"""Dropping checkpoints: by a policy with a reason for each, whole agents, everything. All of it can be undone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

from ..errors import InvalidInputError
from ..model import MAIN
from ..refs import quote_agent
from ..retention import Candidate, Plan, Policy, plan
from ..storage.base import Key, has_checkpoints
from ..storage.record import Head
from .answers import id_of
from .engine import Engine
from .journal import with_entries
from .ranges import Ranges
from .resolve import Resolver
from .saving.tips import branch_heads
from .view import AgentView, Edit, View

OPEN = "open"
"""In the `more` of a pre_operation checkpoint that is kept until its operation has ended."""


def candidates(engine: Engine, key: Key, view: AgentView, extra: Mapping[int, str] | None = None) -> list[Candidate]:
    """An agent's checkpoints as a policy sees them, newest first, each with what protects it."""
    heads = engine.heads(key)
    newest = next(heads, None)
    if newest is None:
        return []
    names: dict[int, list[str]] = {}
    # the newest of the same look: what a save adds meanwhile is neither among these nor a head that protects one
    for name, seq in branch_heads(newest, view).items():
        names.setdefault(seq, []).append(f"head of {name}")
    for name, seq in view.tags.items():
        names.setdefault(seq, []).append(f"tag {name}")
    found = []
    for head in chain((newest,), heads):
        if head.seq in view.dropped:
            continue
        protected = names.get(head.seq, [])
        if head.kind == "pre_operation" and head.more.get(OPEN) and head.seq not in view.closed:
            protected = [*protected, "open pre_operation"]
        if extra and head.seq in extra:
            protected = [*protected, extra[head.seq]]
        found.append(
            Candidate(
                head.seq, id_of(engine, head), head.time / 1000, head.kind, head.size, head.branch,
                head.parent or None, tuple(protected),
            )
        )  # fmt: skip
    return found


def as_policy(policy: Policy | str) -> Policy:
    if isinstance(policy, Policy):
        return policy
    if not isinstance(policy, str):
        raise InvalidInputError("policy-invalid", f"{policy!r} is no policy", hint="a Policy(...), or keep-last=10")
    return Policy.parse(policy)


def prune(
    engine: Engine, refs: Resolver, user: str, policy: Policy | str, agent_id: str | None, *, dry_run: bool
) -> Plan:
    """Plan, and unless it is a dry run, carry it out as one operation over all agents it concerns."""
    wanted = as_policy(policy)
    agents = [agent_id] if agent_id is not None else refs.agents()
    made: list[Plan] = []

    def decide(view: View) -> list[Edit] | None:
        plans = [_plan(engine, Key(user, agent), view.agent(agent), wanted) for agent in agents]
        made[:] = [Plan(tuple(d for p in plans for d in p.keep), tuple(d for p in plans for d in p.drop))]
        edits: list[Edit] = [
            ("drop", agent, _pairs(d.candidate.seq for d in p.drop))
            for agent, p in zip(agents, plans, strict=True)
            if p.drop
        ]
        return with_entries(engine, user, view, edits) or None

    if dry_run:
        decide(engine.log.view(user, fresh=True))
    else:
        what = quote_agent(agent_id) if agent_id is not None else "all agents"
        engine.log.operate(user, "prune", f"{what} by {wanted}", decide)
    return made[0]


def _plan(engine: Engine, key: Key, view: AgentView, policy: Policy) -> Plan:
    return plan(candidates(engine, key, view), policy, now=engine.now() / 1000)


def _pairs(seqs: Any) -> list[list[int]]:
    return [list(pair) for pair in Ranges.of(seqs).pairs]


def set_policy(engine: Engine, user: str, policy: Policy | str | None, every: int) -> None:
    if every < 1:
        raise InvalidInputError("bad-every", f"a policy cannot be kept after {every} saves", hint="1 or more")
    new = None if policy is None else {"rules": as_policy(policy).to_dict(), "every": every}

    def decide(view: View) -> list[Edit] | None:
        old = None if view.policy is None else dict(view.policy)
        return None if old == new else [("policy", "", old, new)]

    engine.log.operate(user, "policy", "none" if policy is None else f"{as_policy(policy)} every {every}", decide)


def policy_of(view: View) -> tuple[Policy, int] | None:
    held = view.policy
    return None if held is None else (Policy.from_dict(held["rules"]), held["every"])


def keep_policy(engine: Engine, refs: Resolver, user: str, saved: Head) -> None:
    """After a save: where its turn has come, prune its agent by the store's own policy."""
    held = engine.log.view(user).policy
    if held is None or saved.seq % held["every"]:
        return
    policy = Policy.from_dict(held["rules"])
    prune(engine, refs, user, policy, saved.key.agent, dry_run=False)


def live_count(engine: Engine, user: str) -> int:
    """How many checkpoints a user has. Reads one head an agent."""
    view = engine.log.view(user, fresh=True)
    newest = [engine.newest(key) for key in engine.storage.keys(user) if has_checkpoints(key.agent)]
    return sum(head.seq - len(view.agent(head.key.agent).dropped) for head in newest if head is not None)


def evict(engine: Engine, users: Sequence[str], spare: int) -> int:
    """Drop the oldest checkpoints of these users until `spare` are left: how many went. Protected ones stay."""
    found = [(user, *each) for user in users for each in _loose(engine, user, engine.log.view(user, fresh=True))]
    excess = sum(live_count(engine, user) for user in users) - spare
    going: dict[str, set[tuple[str, int]]] = {}
    for user, _, seq, agent in sorted(found, key=lambda each: each[1:])[: max(0, excess)]:
        going.setdefault(user, set()).add((agent, seq))
    for user, chosen in going.items():
        engine.log.operate(user, "evict", f"down to {spare}", partial(_evicted, engine, user, chosen))
    return sum(map(len, going.values()))


def _loose(engine: Engine, user: str, view: View) -> list[tuple[float, int, str]]:
    """(time, seq, agent) of what nothing protects; a clock that jumped turns no agent's order round."""
    loose = []
    for key in engine.storage.keys(user):
        shown = float("inf")
        for each in candidates(engine, key, view.agent(key.agent)) if has_checkpoints(key.agent) else ():
            shown = min(shown, each.time)
            if not each.protected:
                loose.append((shown, each.seq, key.agent))
    return loose


def _evicted(engine: Engine, user: str, chosen: set[tuple[str, int]], view: View) -> list[Edit] | None:
    by_agent: dict[str, list[int]] = {}
    for _, seq, agent in _loose(engine, user, view):
        if (agent, seq) in chosen:
            by_agent.setdefault(agent, []).append(seq)
    drops = [("drop", agent, _pairs(seqs)) for agent, seqs in by_agent.items()]
    return with_entries(engine, user, view, drops) or None


def delete_checkpoint(engine: Engine, head: Head) -> bool:
    """Drop one checkpoint, its tags with it; a branch that ended there ends at the nearest ancestor that is left."""
    what = f"{quote_agent(head.key.agent)}@{head.seq}"
    return drop(engine, head.key.user, "delete-checkpoint", what, {head.key.agent: [head.seq]})


def drop(engine: Engine, user: str, verb: str, summary: str, chosen: Mapping[str, Sequence[int]]) -> bool:
    """Drop checkpoints, by agent, as one operation; False where all of them were dropped already. Their tags go with
    them; a branch that ended at one ends at the nearest ancestor that is left."""

    def decide(view: View) -> list[Edit] | None:
        edits = [e for agent, seqs in chosen.items() for e in _dropped(engine, Key(user, agent), view, seqs)]
        return with_entries(engine, user, view, edits) or None

    return engine.log.operate(user, verb, summary, decide) is not None


def _dropped(engine: Engine, key: Key, view: View, seqs: Sequence[int]) -> list[Edit]:
    agent, held = key.agent, view.agent(key.agent)
    going = Ranges.of(seqs) - held.dropped
    if not going:
        return []
    edits: list[Edit] = [("tag", agent, name, seq, None) for name, seq in held.tags.items() if seq in going]
    # every branch is written down: the record that told where they are may be one of these
    for name, seq in branch_heads(engine.newest(key), held).items():
        edits.append(("branch", agent, name, seq, _left_of(engine, key, seq, held, held.dropped | going) or None))
    return [*edits, ("drop", agent, [list(pair) for pair in going.pairs])]


def _left_of(engine: Engine, key: Key, seq: int, held: AgentView, dropped: Ranges) -> int:
    """The checkpoint itself or its nearest ancestor that was not dropped; 0 where there is none."""
    while seq and seq in dropped:
        seq = held.parent_of_gone(seq if seq in held.gone else engine.head(key, seq).parent)
    return seq


def close_operation(engine: Engine, head: Head) -> None:
    """A pre_operation checkpoint whose operation has ended: retention may take it from now on. Undoable."""
    if head.kind != "pre_operation":
        raise InvalidInputError("not-an-operation", f"checkpoint {head.seq} of {head.key.agent!r} is a {head.kind} one")

    def decide(view: View) -> list[Edit] | None:
        closed = head.seq in view.agent(head.key.agent).closed
        return None if closed else [("closed", head.key.agent, head.seq, False, True)]

    engine.log.operate(head.key.user, "complete", f"{quote_agent(head.key.agent)}@{head.seq}", decide)


def clear(engine: Engine, refs: Resolver, user: str, agents: Sequence[str]) -> int:
    """Drop all checkpoints of these agents, their tags and branches with them."""
    return _drop_whole(engine, user, agents, "clear", deleted=False)


def delete_agent(engine: Engine, refs: Resolver, user: str, agent: str) -> int:
    count = _drop_whole(engine, user, [agent], "delete", deleted=True)
    # a save that was under way may have come through just before; none does any more
    return count + _drop_whole(engine, user, [agent], "delete", deleted=True)


def _drop_whole(engine: Engine, user: str, agents: Sequence[str], verb: str, *, deleted: bool) -> int:
    count = 0

    def decide(view: View) -> list[Edit] | None:
        nonlocal count
        count = 0
        edits: list[Edit] = []
        for agent in agents:
            held = view.agent(agent)
            newest = engine.newest(Key(user, agent))
            if newest is None:
                continue
            alive = Ranges([(1, newest.seq)]) - held.dropped
            count += len(alive)
            heads = branch_heads(newest, held)
            edits += [("tag", agent, name, seq, None) for name, seq in held.tags.items()]
            edits += [("branch", agent, name, seq, None) for name, seq in heads.items() if name != MAIN]
            if alive:
                edits.append(("drop", agent, [list(p) for p in alive.pairs]))
            if deleted and not held.deleted:
                edits.append(("deleted", agent, False, True))
        return with_entries(engine, user, view, edits) or None

    engine.log.operate(user, verb, ", ".join(quote_agent(a) for a in agents[:5]), decide)
    return count
