"""Who holds whom: what changes deep inside is known all the way up."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from weakref import ReferenceType, ref

from .frozen import FROZEN_TYPES, is_frozen
from .stamps import clock, is_full, keep, lock

CONTAINER_SLOTS = (
    *("changed_at", "has_untrusted"),
    *("_whole", "_inside", "_repeats", "_owner", "_others", "__weakref__"),
)
_MIXIN_SLOTS: tuple[str, ...] = ()  # a second base of a list or a dict can have none


class Container:
    """What a tracked list and a tracked dict have in common; the class has CONTAINER_SLOTS.

    Always true: if `changed_at` is later than `clock.asked`, all owners know that something changed, all
    the way up; if `has_untrusted`, all owners have it too. Owners are held weakly. One that no longer holds
    a child may still be told of its changes: it then reports too much, which harms nothing.
    """

    __slots__ = _MIXIN_SLOTS

    changed_at: int
    """Later than `since`, an answer of `now()`, if anything in it, however deep, changed since then."""
    has_untrusted: bool
    """A value that can change unseen was put somewhere in it: encode it anew, whatever `changed_at` says."""
    _whole: int  # at this stamp, anything in it may have changed
    _inside: dict[int, int] | None  # id of a child that changed inside -> stamp
    _repeats: bool  # a child may sit in it more than once
    _owner: ReferenceType[Container] | None
    _others: dict[int, ReferenceType[Container]] | None  # further owners, by id

    def __len__(self) -> int:
        raise NotImplementedError

    def _fill(self, plain: Any, held: Callable[[Container, Any], Any]) -> None:
        """Take over what `plain` holds; this one is new and empty."""
        raise NotImplementedError

    def _fold_inside(self) -> None:
        """Shorten `_inside` by reporting more than changed."""
        raise NotImplementedError

    def _begin(self) -> None:
        self.changed_at = self._whole = next(clock.stamps)
        self.has_untrusted = self._repeats = False
        self._inside = self._owner = self._others = None

    def _owners(self) -> list[Container]:
        refs = [] if self._owner is None else [self._owner]
        if self._others:
            refs += list(self._others.values())
        return [owner for each in refs if (owner := each()) is not None]

    def _link(self, owner: Container) -> None:
        """Tell `owner` from now on. Call it before the child is put there: an interrupt may come between."""
        first = None if self._owner is None else self._owner()
        others = self._others
        known = None if not others else others.get(id(owner))
        if first is owner or (known is not None and known() is owner):
            owner._repeats = True
        elif first is None:
            self._owner = ref(owner)
        elif others is None:
            self._others = {id(owner): ref(owner)}
        else:
            if len(others) & (len(others) - 1) == 0:  # at powers of two: owners that died don't pile up
                for ident in [ident for ident, each in list(others.items()) if each() is None]:
                    del others[ident]
            others[id(owner)] = ref(owner)
        if self.has_untrusted:
            owner._distrust()

    def _unlink(self, owner: Container) -> None:
        """`owner` holds it once less. Call it after the child was taken out."""
        if owner._repeats:
            return
        if self._owner is not None and self._owner() is owner:
            self._owner = None
        elif self._others:
            self._others.pop(id(owner), None)
        if owner._inside:
            with lock:
                owner._inside.pop(id(self), None)

    def _spread(self) -> int:
        """A new stamp, of which all its owners know, however far up. Call it with the lock held."""
        stamp = next(clock.stamps)
        asked = clock.asked
        if self.changed_at > asked:
            return stamp
        reached = [self]
        seen = {id(self)}
        for node in reached:
            for owner in node._owners():
                if owner._whole <= asked:
                    owner._inside = keep(owner._inside, id(node), stamp)
                    if is_full(owner._inside, len(owner)):
                        owner._fold_inside()
                if owner.changed_at <= asked and id(owner) not in seen:
                    seen.add(id(owner))
                    reached.append(owner)
        for node in reversed(reached):  # the top first: an interrupt leaves no child ahead of its owners
            node.changed_at = stamp
        return stamp

    def _distrust(self) -> None:
        """Set `has_untrusted` all the way up: for good, even when that value is gone."""
        if self.has_untrusted:
            return
        with lock:
            reached = [self]
            seen = {id(self)}
            for node in reached:
                for owner in node._owners():
                    if not owner.has_untrusted and id(owner) not in seen:
                        seen.add(id(owner))
                        reached.append(owner)
            for node in reversed(reached):
                node.has_untrusted = True


COPIES: dict[type, type[Container]] = {}
"""Plain type -> its tracked one; filled where both are known."""


def adopt(owner: Container, value: Any) -> Any:
    """What to put into `owner` for `value`, linked to it: for a plain list or dict a tracked copy.

    The copy is tracked all the way down; a plain container met twice is copied once. A loop, not a
    recursion: a value may be deep, or sit in itself.
    """
    if type(value) in FROZEN_TYPES:
        return value
    copies: dict[int, Container] = {}
    pending: list[tuple[Any, Container]] = []

    def held(owner: Container, value: Any) -> Any:
        kind = COPIES.get(type(value))
        if kind is not None:
            copy = copies.get(id(value))
            if copy is None:
                copy = copies[id(value)] = kind.__new__(kind)
                pending.append((value, copy))
            value = copy
        if isinstance(value, Container):
            value._link(owner)
        elif not is_frozen(value):
            owner._distrust()
        return value

    value = held(owner, value)
    while pending:
        plain, copy = pending.pop()
        copy._fill(plain, held)
    return value


def release(owner: Container, values: Iterable[object]) -> None:
    """These were taken out of `owner`."""
    for value in values:
        if isinstance(value, Container):
            value._unlink(owner)
