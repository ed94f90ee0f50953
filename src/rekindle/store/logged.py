"""What a record of the operation log says, checked where it enters: past this, the types of edits are trusted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import CorruptDataError
from .view import Operation, View, from_state

_MOST = 1 << 32
"""Beyond every seq."""

Fits = Callable[[Any], bool]


def _is(*kinds: type) -> Fits:
    return lambda value: type(value) in kinds


def _seq(value: Any) -> bool:
    return type(value) is int and 0 <= value < _MOST


def _seq_or_none(value: Any) -> bool:
    return value is None or _seq(value)


def _pairs(value: Any) -> bool:
    return type(value) is list and all(type(p) is list and len(p) == 2 and all(map(_seq, p)) for p in value)


def _policy(value: Any) -> bool:
    if value is None:
        return True
    return type(value) is dict and type(value.get("rules")) is dict and _seq(value.get("every")) and value["every"] > 0


_text, _text_or_none, _flag = _is(str), _is(str, type(None)), _is(bool)
_EDITS: dict[str, tuple[Fits, ...]] = {
    "branch": (_text, _text, _seq_or_none, _seq_or_none),
    "tag": (_text, _text, _seq_or_none, _seq_or_none),
    "label": (_text, _seq, _text_or_none, _text_or_none),
    "drop": (_text, _pairs),
    "keep": (_text, _pairs),
    "gone": (_text, _pairs, _pairs),
    "deleted": (_text, _flag, _flag),
    "closed": (_text, _seq, _flag, _flag),
    "policy": (_text, _policy, _policy),
}


def operation_from(seq: int, time: int, told: Any) -> Operation:
    """CorruptDataError where this is not what a record of the log holds."""
    try:
        edits = tuple(tuple(edit) for edit in told["edits"])
        seen = told.get("seen", {})
        fine = all(_fits(edit) for edit in edits) and _seq(told["undoes"])
        fine = fine and type(told["verb"]) is type(told["summary"]) is str and type(seen) is dict
        if fine and all(type(agent) is str and _seq(newest) for agent, newest in seen.items()):
            return Operation(seq, time, told["verb"], told["summary"], edits, told["undoes"], seen=seen)
    except (TypeError, KeyError, AttributeError) as e:
        raise _damaged(seq) from e
    raise _damaged(seq)


def _fits(edit: tuple[Any, ...]) -> bool:
    shape = _EDITS.get(edit[0]) if edit and type(edit[0]) is str else None
    return shape is not None and len(edit) == len(shape) + 1 and all(f(x) for f, x in zip(shape, edit[1:], strict=True))


def view_from(snapshot: Any, seq: int) -> View:
    """The view a snapshot holds."""
    try:
        return from_state(snapshot, seq)
    except (TypeError, ValueError, KeyError, AttributeError) as e:
        raise _damaged(seq) from e


def _damaged(seq: int) -> CorruptDataError:
    return CorruptDataError("bad-record", f"operation {seq} is not one", hint="run `rekindle verify`")
