"""A dict that knows what changed in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Self, SupportsIndex, TypeVar

from .frozen import FROZEN_TYPES, is_frozen
from .owners import CONTAINER_SLOTS, Container, adopt, release
from .stamps import K, clock, is_full, keep, lock, newer_than, places, take_older_half

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class DictChanges(Generic[K]):
    """What may differ from what a dict was.

    That dict without the `removed` keys, then with the `replaced` ones set in the order of the present dict,
    has the keys, values and order of the present dict.
    """

    replaced: frozenset[K]
    """Keys that are there with another value, new ones too."""
    inside: frozenset[K]
    """Keys that have the same tracked value, and something changed in it: ask it for its changes."""
    removed: frozenset[K]
    """Keys that were deleted; one that was then added again is in `replaced` too: it has moved to the end."""
    all: bool
    """Anything may differ: the other fields are empty."""


class TrackedDict(dict[K, V], Container):
    """A dict that knows what changed in it. What TrackedList says holds here too."""

    __slots__ = (*CONTAINER_SLOTS, "_removed", "_replaced")

    _replaced: dict[K, int] | None  # key -> stamp
    _removed: dict[K, int] | None

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        self = dict.__new__(cls)
        self._begin()
        self._replaced = self._removed = None
        return self

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args or kwargs:  # called again, it adds: so does dict's
            self.update(*args, **kwargs)

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> tuple[Any, ...]:
        return type(self), (), None, None, iter(self.items())

    def changes(self, since: int) -> DictChanges[K]:
        """What changed since that answer of `now()`; more than that, if it was many answers ago."""
        with lock:
            if self._whole > since:
                return DictChanges(frozenset(), frozenset(), frozenset(), all=True)
            replaced = frozenset(key for key in newer_than(self._replaced, since) if key in self)
            inside = frozenset(self._find(newer_than(self._inside, since))) - replaced
            removed = newer_than(self._removed, since)
            # one that is here and was not set again is only about to go, in another thread
            leaving = {key for key in removed if key in self and key not in replaced}
            return DictChanges(replaced, inside, frozenset(removed - leaving), all=False)

    def _fill(self, plain: dict[Any, Any], held: Callable[[Container, Any], Any]) -> None:
        dict.update(self, plain)
        for key, value in plain.items():
            if type(key) is not str and not is_frozen(key):
                self._distrust()
            if type(value) not in FROZEN_TYPES:
                dict.__setitem__(self, key, held(self, value))

    def _find(self, idents: set[int]) -> set[K]:
        if not idents:
            return set()
        return places(reversed(self.items()), idents, repeats=self._repeats)

    def _fold_inside(self) -> None:
        if self._inside:
            self._whole = max(self._whole, take_older_half(self._inside)[1])

    def _replace(self, key: K) -> None:
        """Another value comes to `key`."""
        asked = clock.asked
        if self._whole > asked or (self._replaced and self._replaced.get(key, 0) > asked):
            return
        with lock:
            self._replaced = self._kept(self._replaced, key)

    def _remove(self, key: K) -> None:
        """`key` goes."""
        asked = clock.asked
        if self._whole > asked or (self._removed and self._removed.get(key, 0) > asked):
            return
        with lock:
            self._removed = self._kept(self._removed, key)

    def _kept(self, pending: dict[K, int] | None, key: K) -> dict[K, int]:
        pending = keep(pending, key, self._spread())
        if is_full(pending, len(self)):
            self._whole = max(self._whole, take_older_half(pending)[1])
        return pending

    def __setitem__(self, key: K, value: V, /) -> None:
        old = self.get(key)
        if type(value) not in FROZEN_TYPES and old is not value:
            value = adopt(self, value)
        if type(key) is not str and not is_frozen(key):
            self._distrust()
        self._replace(key)
        super().__setitem__(key, value)
        self._replace(key)
        if old is not value and isinstance(old, Container):
            old._unlink(self)

    def __delitem__(self, key: K, /) -> None:
        old = self[key]
        try:
            self._remove(key)
            super().__delitem__(key)
        except BaseException:
            self._rewrite()  # interrupted: whether the key went, and will keep its place when set, is open
            raise
        self._remove(key)
        if isinstance(old, Container):
            old._unlink(self)

    def pop(self, key: K, /, *default: Any) -> Any:
        if key not in self:
            return super().pop(key, *default)
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[K, V]:
        if not self:
            return super().popitem()  # raises
        key = next(reversed(self))
        return key, self.pop(key)

    def clear(self) -> None:
        old = list(self.values())
        self._rewrite()
        super().clear()
        self._rewrite()
        release(self, old)

    def _rewrite(self) -> None:
        if self._whole <= clock.asked:
            with lock:
                self._whole = self._spread()
                self._replaced = self._removed = self._inside = None

    def setdefault(self, key: K, default: Any = None, /) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, *args: Any, **kwargs: Any) -> None:
        for key, value in dict(*args, **kwargs).items():
            self[key] = value

    def __ior__(self, other: Any, /) -> Self:  # type: ignore[override,misc]
        self.update(other)
        return self
