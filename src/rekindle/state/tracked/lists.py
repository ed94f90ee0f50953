"""A list that knows what changed in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import index as as_index
from typing import Any, Self, SupportsIndex, TypeVar, overload

from .frozen import FROZEN_TYPES
from .owners import CONTAINER_SLOTS, Container, adopt, release
from .stamps import Mark, clock, is_full, keep, lock, lowered, newer_than, places, take_older_half

T = TypeVar("T")
_NOTHING: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class ListChanges:
    """What may differ from what a list was; every index in the sets is below `low`."""

    low: int
    """From here on, anything; what is below is where it was. The length, if nothing came, went or moved."""
    replaced: frozenset[int]
    """Another element is there now."""
    inside: frozenset[int]
    """The same tracked element is there, and something changed in it: ask it for its changes."""


class TrackedList(list[T], Container):
    """A list that knows what changed in it.

    Plain lists and dicts put into it become tracked copies, all the way down. copy, deepcopy and pickle make
    tracked ones of it; slices, `.copy()`, `+` and `sorted` plain ones.

    Changes are seen through its methods. C code that writes into a list directly passes by them: heapq, and
    `list.append(tracked, x)`. An operation given an iterable that raises changes nothing.

    One thread at a time may change a container; meanwhile others may change its children or ask for
    `changes`. One that reads while another writes sees what a plain list would show it, perhaps half a step
    of the program; what it missed is in the `changes` since the stamp that it asked for before it read.
    """

    __slots__ = (*CONTAINER_SLOTS, "_marks", "_replaced")

    _marks: tuple[Mark, ...]
    _replaced: dict[int, int] | None  # index -> stamp

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        self = list.__new__(cls)
        self._begin()
        self._marks = ()
        self._replaced = None
        return self

    def __init__(self, iterable: Iterable[T] = _NOTHING, /) -> None:
        if self or iterable is not _NOTHING:
            self[:] = iterable

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> tuple[Any, ...]:
        return type(self), (), None, iter(self)

    def changes(self, since: int) -> ListChanges:
        """What changed since that answer of `now()`; more than that, if it was many answers ago."""
        with lock:
            if self._whole > since:
                return ListChanges(0, frozenset(), frozenset())
            low = next((index for stamp, index in self._marks if stamp > since), len(self))
            replaced = frozenset(index for index in newer_than(self._replaced, since) if index < low)
            inside = self._find(newer_than(self._inside, since))
            return ListChanges(low, replaced, frozenset(index for index in inside if index < low) - replaced)

    def _fill(self, plain: list[Any], held: Callable[[Container, Any], Any]) -> None:
        list.extend(self, plain)
        for index, value in enumerate(plain):
            if type(value) not in FROZEN_TYPES:
                list.__setitem__(self, index, held(self, value))

    def _find(self, idents: set[int]) -> set[int]:
        if not idents:
            return idents
        # from the end, where most changes are
        entries = zip(range(len(self) - 1, -1, -1), reversed(self), strict=False)
        return places(entries, idents, repeats=self._repeats)

    def _fold_inside(self) -> None:
        if self._inside:
            idents, stamp = take_older_half(self._inside)
            self._marks = lowered(self._marks, stamp, min(self._find(idents), default=len(self)))

    def _is_known(self, index: int) -> bool:
        """Whether a change at `index` and after would tell nobody anything new."""
        asked = clock.asked
        marks = self._marks  # read once: a change in a child, in another thread, may put others
        return self._whole > asked or (bool(marks) and marks[-1][0] > asked and marks[-1][1] <= index)

    def _cut(self, index: int) -> None:
        """From `index` on, anything changes."""
        if self._is_known(index):
            return
        with lock:
            stamp = self._spread()
            if index == 0:
                self._whole = stamp
                self._marks = ()
                self._replaced = self._inside = None
            else:
                self._marks = lowered(self._marks, stamp, index)

    def _replace(self, index: int) -> None:
        """Another element comes to `index`."""
        if self._is_known(index) or (self._replaced and self._replaced.get(index, 0) > clock.asked):
            return
        with lock:
            self._replaced = keep(self._replaced, index, self._spread())
            if is_full(self._replaced, len(self)):
                indexes, stamp = take_older_half(self._replaced)
                self._marks = lowered(self._marks, stamp, min(indexes))

    def append(self, value: T, /) -> None:
        if type(value) not in FROZEN_TYPES:
            value = adopt(self, value)
        low = len(self)
        self._cut(low)
        super().append(value)
        self._cut(low)

    def extend(self, iterable: Iterable[T], /) -> None:
        values = [adopt(self, value) for value in iterable]
        low = len(self)
        self._cut(low)
        super().extend(values)
        self._cut(low)

    def insert(self, index: SupportsIndex, value: T, /) -> None:
        low = slice(as_index(index), None).indices(len(self))[0]
        value = adopt(self, value)
        self._cut(low)
        super().insert(low, value)
        self._cut(low)

    @overload
    def __setitem__(self, index: SupportsIndex, value: T, /) -> None: ...
    @overload
    def __setitem__(self, index: slice, value: Iterable[T], /) -> None: ...
    def __setitem__(self, index: SupportsIndex | slice, value: Any, /) -> None:
        if isinstance(index, slice):
            self._set_slice(index, value)
        else:
            self._set_item(range(len(self))[index], value)

    def _set_item(self, index: int, value: Any) -> None:
        old = self[index]
        if old is not value:  # `t[0] += [1]` puts back what was there
            value = adopt(self, value)
        self._replace(index)
        super().__setitem__(index, value)
        self._replace(index)
        if old is not value and isinstance(old, Container):
            old._unlink(self)

    def _set_slice(self, where: slice, values: Iterable[T]) -> None:
        old = self[where]
        leaving = {id(each) for each in old if isinstance(each, Container)}
        new = []
        for value in values:
            if id(value) in leaving:
                leaving.remove(id(value))  # it stays, and stays linked
            else:
                value = adopt(self, value)
            new.append(value)
        low = self._lowest(where)
        self._cut(low)
        super().__setitem__(where, new)
        self._cut(low)
        release(self, (each for each in old if id(each) in leaving))

    def _lowest(self, where: slice) -> int:
        indexes = range(*where.indices(len(self)))
        return indexes.start if indexes.step == 1 else min(indexes, default=len(self))

    def __delitem__(self, index: SupportsIndex | slice, /) -> None:
        old = self[index]
        low = self._lowest(index) if isinstance(index, slice) else range(len(self))[index]
        self._cut(low)
        super().__delitem__(index)
        self._cut(low)
        release(self, old if isinstance(index, slice) else (old,))  # type: ignore[arg-type]

    def pop(self, index: SupportsIndex = -1, /) -> T:
        if not self:
            return super().pop(index)  # raises
        value = self[index]
        del self[index]
        return value

    def remove(self, value: T, /) -> None:
        del self[self.index(value)]

    def clear(self) -> None:
        del self[:]

    def sort(self, *, key: Callable[[T], Any] | None = None, reverse: bool = False) -> None:
        self._cut(0)
        try:
            super().sort(key=key, reverse=reverse)
        finally:
            self._cut(0)

    def reverse(self) -> None:
        self._cut(0)
        super().reverse()
        self._cut(0)

    def __iadd__(self, values: Iterable[T], /) -> Self:  # type: ignore[override,misc]
        self.extend(values)
        return self

    def __imul__(self, times: SupportsIndex, /) -> Self:
        product = super().__mul__(times)
        kept = min(len(self), len(product))
        self[kept:] = product[kept:]
        return self
