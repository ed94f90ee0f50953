"""Turning operations round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..errors import ConflictError, NotFoundError
from ..refs import quote_agent
from ..storage.base import Key
from .engine import Engine
from .saving.tips import branch_heads
from .view import Edit, Operation, View, advance, destroyed, inverse


def undo(engine: Engine, user: str, seq: int | None) -> Operation:
    """Append the operation that turns one round: the last that was not undone yet, or the one asked for.

    A branch that has gone on since keeps its place: what was saved on it is not lost from sight. So does a tag that was
    moved since, and a label that was changed. ConflictError where what a name would lead to again was taken out, or
    what it dropped was collected: no older one is turned round in its place.
    """
    past = engine.log.operations(user)
    if seq is None:
        target = next((op for op in reversed(past) if op.stands), None)
        if target is None:
            raise NotFoundError("nothing-to-undo", "there is no operation to undo", hint="see `rekindle undo --list`")
    else:
        target = next((op for op in past if op.seq == seq), None)
        if target is None:
            raise NotFoundError("no-operation", f"there is no operation {seq}", hint="see `rekindle undo --list`")
        if not target.stands:
            why = f": operation {target.undone_by} undid it already" if target.undone_by else ""
            raise ConflictError(
                "not-undoable", f"operation {seq} ({target.verb}) cannot be undone{why}",
                hint="`rekindle undo --list` shows what can be",
            )  # fmt: skip

    def decide(view: View) -> list[Edit]:
        lost = destroyed(view, target.edits)
        if lost:
            agent, ranges = next(iter(lost.items()))
            raise ConflictError(
                "collected", f"{len(ranges)} checkpoint{'' if len(ranges) == 1 else 's'} of agent {quote_agent(agent)} "
                f"that operation {target.seq} dropped are gone for good: there was a collect since",
                hint="an older operation can be named: see `rekindle undo --list`",
            )  # fmt: skip
        edits = inverse(edit for edit in target.edits if not _went_on(engine, user, view, edit))
        _refuse_names_of_dropped(view, edits, target)
        return edits

    done = engine.log.operate(user, "undo", f"{target.verb} {target.summary}", decide, undoes=target.seq)
    assert done is not None
    return done


def _went_on(engine: Engine, user: str, view: View, edit: Edit) -> bool:
    """Whether a name is no longer where the edit put it (or was told to stay where it was)."""
    verb, agent, *rest = edit
    if verb not in ("branch", "tag", "label"):
        return False
    name, old, new = rest
    if verb != "branch":
        held = view.agent(agent)
        return bool((held.tags if verb == "tag" else held.labels).get(name) != new)
    heads = branch_heads(engine.newest(Key(user, agent)), view.agent(agent))
    return bool(old == new or heads.get(name) != new)


def _refuse_names_of_dropped(view: View, edits: Sequence[Edit], target: Operation) -> None:
    """No branch or tag may come to lead where nothing is."""
    after = advance(view, replace(target, seq=view.seq + 1, edits=tuple(edits)))
    for verb, agent, name, *rest in edits:
        held = after.agent(agent)
        if verb not in ("branch", "tag") or rest[-1] is None or rest[-1] not in held.dropped:
            continue
        gone = rest[-1] in held.gone
        raise ConflictError(
            "collected" if gone else "not-undoable",
            f"operation {target.seq} cannot be undone: the {verb} {name!r} of agent {quote_agent(agent)} would lead to "
            f"checkpoint {rest[-1]}, which was {'collected' if gone else 'pruned'} since",
            hint=None if gone else "undo that first",
        )
