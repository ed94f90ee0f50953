"""What kind of node a value makes, and whether it is large enough to make one."""

from __future__ import annotations

from typing import Any

from ..tracked import TrackedDict, TrackedList
from ..values.registry import entry_for
from .nodes import Kind

ANY_KEYS = frozenset({Kind.PAIRS, Kind.TRACKED_PAIRS})
FAMILY = {
    Kind.PAIRS: Kind.MAP, Kind.TRACKED_MAP: Kind.MAP, Kind.TRACKED_PAIRS: Kind.MAP, Kind.TRACKED_LIST: Kind.LIST,
}  # fmt: skip
"""Kinds whose nodes hold the same elements in the same way: one may follow another."""

_KINDS: dict[type, Kind] = {
    list: Kind.LIST,
    tuple: Kind.TUPLE,
    dict: Kind.MAP,
    str: Kind.STR,
    bytes: Kind.BYTES,
    TrackedList: Kind.TRACKED_LIST,
    TrackedDict: Kind.TRACKED_MAP,
}


def kind_of(value: Any, tracks: bool) -> Kind | None:
    """The kind of node a value of this type makes; None for what is never cut up."""
    t = type(value)
    kind = _KINDS.get(t)
    if kind is not None:
        return kind if tracks or kind < Kind.TRACKED_LIST else Kind.LIST if kind == Kind.TRACKED_LIST else Kind.MAP
    return Kind.OBJECT if entry_for(t) is not None else None


def plain_keys(value: dict[Any, Any]) -> bool:
    if set(map(type, value)) - {str}:
        return False
    try:
        "".join(value).encode()
    except UnicodeEncodeError:
        return False
    return True


def room_left(value: Any, room: int) -> int:
    """`room` less about what the value takes when encoded; negative as soon as it is too much."""
    t = type(value)
    if t is str or t is bytes:
        return room - len(value)
    if t is dict or t is TrackedDict:
        for key, x in value.items():
            room -= len(key) if type(key) is str else 8
            if type(x) is str:
                room -= len(x)
            else:
                room = room_left(x, room)
            if room < 0:
                break
        return room
    if t in _SEQUENCES:
        room -= len(value)
        for x in value if room >= 0 else ():
            if type(x) not in _SMALL:
                room = room_left(x, room)
                if room < 0:
                    break
        return room
    if t in _SMALL:
        return room - 2
    return _room_beside(value, room)


def _room_beside(value: Any, room: int) -> int:
    """The same beside an object, by what it holds."""
    held = getattr(value, "__dict__", None)
    if type(held) is dict:
        return room_left(held, room - 16)
    taken = getattr(value, "nbytes", None)
    if type(taken) is int:  # an array's; a class of arrays has one too, which is no number
        return room - taken
    entry = entry_for(type(value))
    return room_left(entry.dump(value), room - 16) if entry is not None else room - 16


_SMALL = frozenset((int, float, bool, type(None)))
_SEQUENCES = frozenset((list, tuple, TrackedList))
