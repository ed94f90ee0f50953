"""Changes applied to a state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from ...errors import ConflictError, RekindleError
from ..shown.path import Key, Path, Step, render, step_of
from ..values.canon import Canon
from ..values.parts import fields_of, with_entries, with_fields, with_items
from ..values.registry import Opaque
from .change import Change
from .texts import patch_text

_COMES_OR_GOES = ("add", "remove", "move")


def apply(old: Any, changes: Iterable[Change], *, base: Path = ()) -> Any:
    """The state that `changes`, all that `diff(old, new, base=base)` gave, make of `old`: the new one.

    `old` is untouched; the answer shares with it what did not change, and with the changes what they brought.
    Raises ConflictError where the changes do not fit `old`.
    """
    return _edit(old, list(changes), len(base))


def _edit(value: Any, changes: list[Change], depth: int) -> Any:
    """`value`, at `depth` steps of every change's path, with the changes made to it and inside it."""
    if not changes:
        return value
    here = [change for change in changes if len(change.path) == depth]
    if here and here[0].op == "replace":
        return here[0].new
    if isinstance(value, Opaque):
        return Opaque(value.name, value.version, _edit(value.data, changes, depth))
    if here and here[0].op == "text":
        return _edit_text(value, here[0])
    if isinstance(value, (set, frozenset)):
        return _edit_set(value, here)
    if isinstance(value, dict):
        return _edit_dict(value, changes, here, depth)
    fields = fields_of(value)
    if fields is not None:
        return with_fields(value, _edit_entries(fields, changes, depth))
    if isinstance(value, (list, tuple)):
        return with_items(value, _edit_items(list(value), changes, depth))
    raise _misfit(changes[0])


def _edit_text(value: Any, change: Change) -> str:
    made = patch_text(value, change.hunks) if type(value) is str else None
    if made is None:
        raise _misfit(change)
    return made


def _edit_set(value: Any, changes: list[Change]) -> Any:
    canon = Canon()
    held = {canon.key(item): item for item in value}
    for change in changes:
        if change.op == "set_add":
            continue
        if change.op != "set_remove" or held.pop(canon.key(change.old), change) is change:
            raise _misfit(change)
    return with_items(value, [*held.values(), *[change.new for change in changes if change.op == "set_add"]])


def _edit_dict(value: dict[Any, Any], changes: list[Change], here: list[Change], depth: int) -> dict[Any, Any]:
    entries = _edit_entries({step_of(key): held for key, held in value.items()}, changes, depth)
    keys: dict[Step, Any] = {step_of(key): key for key in value}
    for change in changes:
        if len(change.path) == depth + 1 and change.op in ("add", "move"):
            step = change.path[depth]
            keys[step] = step.value if isinstance(step, Key) else step
    order = list(entries)
    if here:
        order = [step_of(key) for key in here[0].new]
        if here[0].op != "reorder" or len(order) != len(entries) or not entries.keys() >= set(order):
            raise _misfit(here[0])
    return with_entries(value, [(keys[step], entries[step]) for step in order])


def _edit_entries(entries: dict[Any, Any], changes: list[Change], depth: int) -> dict[Any, Any]:
    """The entries of a dict or fields of an object, edited; what came stands at the end, as it came."""
    inside: dict[Step, list[Change]] = defaultdict(list)
    comes: list[tuple[Step, Any]] = []
    goes: list[Change] = []
    for change in changes:
        if len(change.path) > depth + 1 or (len(change.path) == depth + 1 and change.op not in _COMES_OR_GOES):
            inside[change.path[depth]].append(change)
        elif len(change.path) == depth + 1:
            if change.op != "remove":
                comes.append((change.path[depth], change.new))
            if change.op != "add":
                goes.append(change)
    made = dict(entries)
    for change in goes:
        step = (change.path if change.from_path is None else change.from_path)[depth]
        if step not in made:
            raise _misfit(change)
        del made[step]
    for step, edits in inside.items():
        if step not in made:
            raise _misfit(edits[0])
        made[step] = _edit(made[step], edits, depth + 1)
    for step, value in comes:
        made[step] = value
    return made


def _edit_items(items: list[Any], changes: list[Change], depth: int) -> list[Any]:
    """The elements of a list, edited: what neither came, went nor moved fills the other places in order."""
    adds: dict[Step, Any] = {}
    moves: dict[Step, Step] = {}
    gone: set[Step] = set()
    inside: dict[tuple[bool, Step], list[Change]] = defaultdict(list)  # (by its old index?, index)
    for change in changes:
        step = change.path[depth]
        if len(change.path) > depth + 1 or change.op not in _COMES_OR_GOES:
            inside[change.op == "remove", step].append(change)
        elif change.op == "add":
            adds[step] = change.new
        elif change.op == "remove":
            gone.add(step)
        elif change.from_path is not None:
            moves[step] = change.from_path[depth]
    away = gone | set(moves.values())
    rest = iter([i for i in range(len(items)) if i not in away])
    made = []
    for j in range(len(items) - len(gone) + len(adds)):
        if j in adds:
            made.append(adds[j])
            continue
        i = moves[j] if j in moves else next(rest, -1)
        if not isinstance(i, int) or not 0 <= i < len(items):
            raise _misfit(changes[0])
        edits = inside.pop((True, i), []) + inside.pop((False, j), [])
        made.append(_edit(items[i], edits, depth + 1))
    if inside or next(rest, None) is not None or not gone <= set(range(len(items))):
        raise _misfit(changes[0])
    return made


def _misfit(change: Change) -> RekindleError:
    return ConflictError(
        "change-does-not-fit",
        f"the change at {render(change.path) or 'the root'} does not fit this state",
        hint="apply all changes of a diff, to the state it was made from",
    )
