"""What the parts of a portable file must look like. Past this, the types in it are trusted."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from ...state.tree.nodes import Kind
from ...state.values import codec
from ...storage.record import FIRST_TIME, LAST_TIME
from ..saving.drafts import OF
from .file import damaged
from .outgoing import HEAD, INDEX, NOTE, PIECE

_MOST = 1 << 63
_KINDS = frozenset(int(kind) for kind in Kind)
_ALONE = {int(Kind.LEAF): 4, int(Kind.OBJECT): 2}
_FIELDS = {
    "seq": int, "parent": int, "id": str, "kind": str, "time": int, "branch": str, "agent_type": str, "status": str,
    "metadata": bytes, "more": dict,
}  # fmt: skip


def check_entry(entry: list[Any]) -> None:
    kind = entry[0]
    if kind == PIECE and len(entry) == 5:
        _, before, splices, lengths, data = entry
        fine = _is_number(before, least=-1) and _are_numbers(splices) and _are_numbers(lengths) and type(data) is bytes
        _refuse_unless(fine and len(splices or ()) % 3 == 0, "a piece")
    elif kind == INDEX and len(entry) == 3:
        _refuse_unless(_is_number(entry[1]), "an index")
        _check_items(entry[2])
    elif kind == HEAD and len(entry) == 3:
        _check_fields(entry[1])
        _check_tree(entry[2])
    elif kind == NOTE and len(entry) == 3:
        _check_note(entry[1], entry[2])
    else:
        raise damaged("it holds an entry of no known kind")


def check_end(end: dict[str, Any]) -> None:
    for name in ("branches", "tags"):
        told = end.get(name)
        fine = type(told) is dict and all(type(key) is str and _is_number(seq) for key, seq in told.items())
        _refuse_unless(fine, "a list of " + name)
    _refuse_unless(end.get("closed") is not None and _are_numbers(end["closed"]), "a list of ended operations")


def _check_fields(fields: Any) -> None:
    fine = type(fields) is dict and all(type(fields.get(name)) is kind for name, kind in _FIELDS.items())
    fine = fine and all(_is_number(fields[name]) for name in ("seq", "parent"))
    fine = fine and FIRST_TIME <= fields["time"] <= LAST_TIME
    fine = fine and type(fields.get("label")) in (str, type(None)) and _is_plain(fields["more"])
    fine = fine and (not fields["metadata"] or type(codec.unpack(fields["metadata"], opaque=True)) is dict)
    _refuse_unless(fine, "a checkpoint")


def _check_note(fields: Any, values: Any) -> None:
    fine = type(fields) is dict and type(fields.get("kind")) is str and type(fields.get("time")) is int
    fine = fine and FIRST_TIME <= fields["time"] <= LAST_TIME and type(fields.get("metadata")) is bytes
    about = codec.unpack(fields["metadata"], opaque=True) if fine else None
    fine = fine and type(about) is dict and type(about.get(OF)) in (str, UUID) and type(values) is bytes
    _refuse_unless(fine and type(codec.unpack(values, opaque=True)) is list, "an entry of a journal")


def _check_tree(tree: Any) -> None:
    fine = type(tree) is list and len(tree) == 3 and type(tree[0]) is int and tree[0] in _KINDS
    about = tree[1] if fine else None
    if about is not None:
        fine = type(about) is list and len(about) == 2 and type(about[0]) is str and _is_number(about[1])
    _refuse_unless(fine, "a state")
    _check_items(tree[2])
    alone = _ALONE.get(tree[0])
    _refuse_unless(alone is None or list(map(len, tree[2])) == [alone], "a state")


def _check_items(items: Any) -> None:
    _refuse_unless(type(items) is list, "a state")
    for item in items:
        if type(item) is list and len(item) == 2 and type(item[0]) is bytes:
            _check_tree(item[1])
        else:
            _refuse_unless(type(item) is list and len(item) in (1, 4) and _are_numbers(item), "a state")


def _is_number(value: Any, least: int = 0) -> bool:
    return type(value) is int and least <= value < _MOST


def _are_numbers(values: Any) -> bool:
    return values is None or (type(values) is list and all(map(_is_number, values)))


def _is_plain(value: Any) -> bool:
    if type(value) is dict:
        return all(type(key) is str and _is_plain(held) for key, held in value.items())
    if type(value) is list:
        return all(map(_is_plain, value))
    return value is None or type(value) in (str, bytes, bool, float) or _is_number(value, least=-_MOST)


def _refuse_unless(fine: bool, what: str) -> None:
    if not fine:
        raise damaged(f"it holds {what} that is none")
