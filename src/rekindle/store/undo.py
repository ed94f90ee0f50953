"""Turning operations round."""

from __future__ import annotations

from ..errors import ConflictError, NotFoundError
from ..refs import quote_agent
from ..storage.base import Key
from .engine import Engine
from .tips import branch_heads
from .view import Edit, Operation, View, destroyed, inverse


def undo(engine: Engine, user: str, seq: int | None) -> Operation:
    """Append the operation that turns one round: the last that was not undone yet, or the one asked for.

    A branch that has gone on since keeps its place: what was saved on it is not lost from sight.
    """
    past = engine.operations(user)
    if seq is None:
        target = next((op for op in reversed(past) if op.undoable), None)
        if target is None:
            raise NotFoundError("nothing-to-undo", "there is no operation to undo", hint="see `rekindle undo --list`")
    else:
        target = next((op for op in past if op.seq == seq), None)
        if target is None:
            raise NotFoundError("no-operation", f"there is no operation {seq}", hint="see `rekindle undo --list`")
        if not target.undoable:
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
            )  # fmt: skip
        return inverse(edit for edit in target.edits if not _went_on(engine, user, view, edit))

    done = engine.operate(user, "undo", f"{target.verb} {target.summary}", decide, undoes=target.seq)
    assert done is not None
    return done


def _went_on(engine: Engine, user: str, view: View, edit: Edit) -> bool:
    """Whether a branch is no longer where the edit put it (or was told to stay where it was)."""
    verb, agent, *rest = edit
    if verb != "branch":
        return False
    name, old, new = rest
    heads = branch_heads(engine.newest(Key(user, agent)), view.agent(agent))
    return bool(old == new or heads.get(name) != new)
