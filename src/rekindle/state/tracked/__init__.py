"""Lists and dicts that know what changed in them, so that a save looks at that and at nothing else."""

from __future__ import annotations

from typing import TypeVar, overload

from ...errors import InvalidInputError
from .dicts import DictChanges, TrackedDict
from .frozen import is_frozen
from .lists import ListChanges, TrackedList
from .owners import COPIES, Container, adopt, release
from .stamps import K, now

__all__ = ["DictChanges", "ListChanges", "TrackedDict", "TrackedList", "is_frozen", "now", "tracked"]

T = TypeVar("T")
V = TypeVar("V")

COPIES.update({list: TrackedList, dict: TrackedDict})


@overload
def tracked(value: list[T]) -> TrackedList[T]: ...
@overload
def tracked(value: dict[K, V]) -> TrackedDict[K, V]: ...
def tracked(value: object) -> object:
    """A tracked copy of a plain list or dict and of all those in it; what is tracked already stays itself.

    What sits in several places, or in itself, does so in the copy. Other values are kept as they are. From
    then on the copy is what to change: changes to the original don't reach it.
    """
    if isinstance(value, Container):
        return value
    kind = type(value)
    if kind not in COPIES:
        raise InvalidInputError(
            "cannot-track",
            f"cannot track a {kind.__qualname__}",
            hint="pass a list or a dict, not a subclass",
        )
    holder: TrackedList[object] = TrackedList()  # adoption is by an owner; this one lets go again
    copy = adopt(holder, value)
    release(holder, (copy,))
    return copy
