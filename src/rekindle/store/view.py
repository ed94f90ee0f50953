"""What a user's operation log comes to: branches, tags, labels, what was dropped, what policy is kept.

An operation is a list of edits; each edit knows what was there before, so every operation can be turned round.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from .ranges import Ranges

Edit = Sequence[Any]
"""("branch", agent, name, old, new) | ("tag", agent, name, old, new) | ("label", agent, seq, old, new) |
("drop", agent, ranges) | ("keep", agent, ranges) | ("gone", agent, ranges, stems) | ("deleted", agent, old, new) |
("closed", agent, seq, old, new) | ("policy", "", old, new); old and new are None where there is nothing."""


_ALL = 1 << 62


class Pointer(NamedTuple):
    """Where a branch points, since which operation, and what was the agent's newest record when that was decided."""

    seq: int | None
    operation: int
    seen: int = _ALL


@dataclass(frozen=True)
class AgentView:
    branches: Mapping[str, Pointer] = field(default_factory=dict)
    tags: Mapping[str, int] = field(default_factory=dict)
    labels: Mapping[int, str | None] = field(default_factory=dict)
    dropped: Ranges = field(default_factory=Ranges)
    gone: Ranges = field(default_factory=Ranges)
    """Of the dropped: what `collect` has taken out for good."""
    stems: Mapping[int, int] = field(default_factory=dict)
    """Parents of those that are gone, where it is not the seq before: histories go on beyond them."""
    deleted: bool = False
    closed: Ranges = field(default_factory=Ranges)
    """The pre_operation checkpoints whose operation has ended."""

    def parent_of_gone(self, seq: int) -> int:
        """The nearest ancestor of a collected record that was not collected; 0 when there is none."""
        while seq in self.gone:
            seq = self.stems.get(seq, seq - 1)
        return seq


IMPORTING = "import-part"
"""Records that came, dropped until the rest of their import is there."""
_FOR_GOOD = ("collect", IMPORTING)


@dataclass(frozen=True)
class Operation:
    """One entry of the operation log. `undoes` is the operation it turned round, `undone_by` the one that did it;
    `collected`: of what it dropped some is gone for good."""

    seq: int
    time: int
    verb: str
    summary: str
    edits: tuple[Edit, ...]
    undoes: int = 0
    undone_by: int = 0
    seen: Mapping[str, int] = field(default_factory=dict)
    """By agent, where branches are edited: the newest record the decision rests on."""
    collected: bool = False

    @property
    def stands(self) -> bool:
        """Whether it is one to turn round, and nothing has."""
        return bool(self.edits) and not self.undone_by and not self.undoes and self.verb not in _FOR_GOOD

    @property
    def undoable(self) -> bool:
        return self.stands and not self.collected


@dataclass(frozen=True)
class View:
    """A user's operation log, folded. `seq` is the newest operation in it."""

    seq: int = 0
    agents: Mapping[str, AgentView] = field(default_factory=dict)
    policy: Mapping[str, Any] | None = None

    def agent(self, agent: str) -> AgentView:
        return self.agents.get(agent) or _NOTHING


_NOTHING = AgentView()


def advance(view: View, operation: Operation) -> View:
    """The view after one more operation."""
    agents = dict(view.agents)
    policy = view.policy
    for edit in operation.edits:
        verb, agent = edit[0], edit[1]
        if verb == "policy":
            policy = edit[3]
        else:
            agents[agent] = _edited(agents.get(agent) or _NOTHING, edit, operation)
    return View(operation.seq, agents, policy)


def _edited(held: AgentView, edit: Edit, operation: Operation) -> AgentView:
    verb = edit[0]
    if verb == "branch":
        pointer = Pointer(edit[4], operation.seq, operation.seen.get(edit[1], _ALL))
        return replace(held, branches={**held.branches, edit[2]: pointer})
    if verb == "tag":
        tags = {name: seq for name, seq in held.tags.items() if name != edit[2]}
        return replace(held, tags=tags if edit[4] is None else {**tags, edit[2]: edit[4]})
    if verb == "label":
        return replace(held, labels={**held.labels, edit[2]: edit[4]})
    if verb == "deleted":
        return replace(held, deleted=edit[3])
    if verb == "closed":
        this = Ranges.of([edit[2]])
        return replace(held, closed=held.closed | this if edit[4] else held.closed - this)
    ranges = Ranges(edit[2])
    if verb == "drop":
        return replace(held, dropped=held.dropped | ranges)
    if verb == "keep":
        return replace(held, dropped=held.dropped - ranges)
    stems = {**held.stems, **dict(edit[3])}
    return replace(held, dropped=held.dropped | ranges, gone=held.gone | ranges, stems=stems)


def inverse(edits: Iterable[Edit]) -> list[Edit]:
    """Edits that bring back what was there before these."""
    turned: list[Edit] = []
    for edit in reversed(list(edits)):
        verb = edit[0]
        if verb in ("drop", "keep"):
            turned.append(("keep" if verb == "drop" else "drop", edit[1], edit[2]))
        elif verb != "gone":
            turned.append((*edit[:-2], edit[-1], edit[-2]))
    return turned


def destroyed(view: View, edits: Iterable[Edit]) -> Mapping[str, Ranges]:
    """What of an operation's drops has been collected since, by agent: that much cannot come back."""
    lost = {}
    for edit in edits:
        if edit[0] == "drop" and (gone := Ranges(edit[2]) & view.agent(edit[1]).gone):
            lost[edit[1]] = gone
    return lost


# A view as plain values, for a snapshot in the log.


def to_state(view: View) -> dict[str, Any]:
    return {
        "agents": {
            name: [
                {b: list(p) for b, p in held.branches.items()},
                dict(held.tags),
                [[seq, text] for seq, text in held.labels.items()],
                [list(p) for p in held.dropped.pairs],
                [list(p) for p in held.gone.pairs],
                [list(p) for p in held.stems.items()],
                held.deleted,
                [list(p) for p in held.closed.pairs],
            ]
            for name, held in view.agents.items()
        },
        "policy": None if view.policy is None else dict(view.policy),
    }


def from_state(state: Mapping[str, Any], seq: int) -> View:
    agents = {
        name: AgentView(
            {b: Pointer(*p) for b, p in branches.items()},
            dict(tags),
            dict(labels),
            Ranges(dropped),
            Ranges(gone),
            dict(stems),
            deleted,
            Ranges(closed),
        )
        for name, (branches, tags, labels, dropped, gone, stems, deleted, closed) in state["agents"].items()
    }
    return View(seq, agents, state["policy"])
