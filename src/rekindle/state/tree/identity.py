"""Which elements of a list or dict are the very objects they were when it was written last.

A node remembers as its source what it was made of: a copy of the list or dict, which keeps the objects alive (an
identity alone may come again). Only plain lists and dicts have one; what is inside of objects, tuples and tracked
containers is not looked at by identity.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from itertools import compress, count
from operator import is_not
from typing import Any

from ..tracked import TrackedDict, TrackedList
from ..tracked.frozen import is_frozen
from ..values.codec import OWN
from ..values.registry import entry_for
from .nodes import Child, Node

_TRACKED = frozenset((TrackedList, TrackedDict))
_LOOKED_INTO = _TRACKED | {list, dict}
_MISSING: Any = object()

Clean = Callable[[int, int], bool]
"""(at, count): whether so many elements from there are known to be the same."""


@dataclass(frozen=True, slots=True)
class Elements:
    """What a list's node was made of. `loose`: where there is what is looked into though it is the same object."""

    held: list[Any]
    loose: list[int]


def elements_of(held: list[Any], node: Node, before: Elements | None = None, start: int = 0) -> Elements:
    """The source of a list's node; before `start` it is what `before` says."""
    loose: list[int] = []
    at = node.count
    for item in reversed(node.items or ()):
        if at <= start:
            break
        at -= item.count
        looked_into = _LOOKED_INTO if isinstance(item, Child) else _TRACKED
        if not looked_into.isdisjoint(map(type, held[at : at + item.count])):
            loose += [i for i in range(at + item.count - 1, at - 1, -1) if type(held[i]) in looked_into]
    known = before.loose[: bisect_left(before.loose, at)] if before is not None else []
    return Elements(held, [*known, *reversed(loose)])


def list_changes(now: list[Any], before: Elements) -> tuple[int, Clean]:
    """(start, clean): elements before `start` are the same."""
    low = min(len(now), len(before.held))
    changed = list(compress(count(), map(is_not, now, before.held)))
    if before.loose:
        changed = sorted({*changed, *before.loose})
    return min([low, *changed[:1]]), _clean(changed, low)


def map_changes(now: dict[Any, Any], before: dict[Any, Any]) -> tuple[Container[Any], Clean]:
    """(changed, clean): the keys whose values are not known to be the same, and stretches of entries that are."""
    loose = [i for i, value in enumerate(now.values()) if not _stays(value)]
    moved = compress(count(), map(is_not, now, before))
    changed = sorted({*compress(count(), map(is_not, now.values(), before.values())), *moved, *loose})
    return _Differing(now, before), _clean(changed, min(len(now), len(before)))


class _Differing:
    """The keys of a dict whose values are other objects than before, or may have changed in place."""

    def __init__(self, now: dict[Any, Any], before: dict[Any, Any]) -> None:
        self._now = now
        self._before = before

    def __contains__(self, key: object) -> bool:
        value = self._now[key]
        return self._before.get(key, _MISSING) is not value or not _stays(value)


def _stays(value: Any) -> bool:
    """Whether a dict's value that is the same object is taken for unchanged: it cannot change, or is an object of a
    registered type. Lists, dicts, sets and arrays are looked at."""
    kind = type(value)
    return kind is str or is_frozen(value) or (kind not in OWN and entry_for(kind) is not None)


def _clean(changed: Sequence[int], low: int) -> Clean:
    return lambda at, n: at + n <= low and bisect_left(changed, at) == bisect_left(changed, at + n)
