"""Change stamps: what was changed since when, in little room.

One counter stamps all changes. Nobody can tell apart two changes between which no stamp was asked for with
`now()`, so a container records, and tells its owners, only the first of them: the others cost a comparison.

A change is recorded before it is made, so that an exception out of nowhere (KeyboardInterrupt) leaves none
unrecorded; and again after it, so that a saver in another thread that asked for a stamp meanwhile finds it
at its next save. One lock guards all records.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import count, takewhile
from threading import RLock
from typing import TypeVar

from ...forks import waited_for

K = TypeVar("K", bound=Hashable)
Mark = tuple[int, int]
"""(stamp, index): at this stamp, anything from this index on may have changed."""

MARKS = 64
PENDING = 256


class Clock:
    """The last stamp that `now()` gave out, and the stamps to come."""

    __slots__ = ("asked", "stamps")

    def __init__(self) -> None:
        self.asked = 0
        self.stamps = count(1)


clock = Clock()
lock = waited_for(RLock())  # reentrant: a signal handler or a finalizer may change tracked containers at any point


def now() -> int:
    """A stamp such that everything changed after this call is reported as changed since it.

    Ask first, then read: what another thread changes meanwhile is then reported again, never lost.
    """
    with lock:
        clock.asked = stamp = next(clock.stamps)
        return stamp


def lowered(marks: tuple[Mark, ...], stamp: int, index: int) -> tuple[Mark, ...]:
    """`marks` and (stamp, index), without those that say nothing more; both rise from each to the next.

    Past MARKS of them the older half becomes one, as new as its newest and as low as its lowest: it reports
    too much to one who asks about a time dozens of calls of `now()` ago.
    """
    newer = [mark for mark in marks if mark[0] > stamp]
    if newer and newer[0][1] <= index:
        return marks
    kept = [mark for mark in marks if mark[0] <= stamp and mark[1] < index]
    kept += [(stamp, index), *newer]
    if len(kept) > MARKS:
        half = MARKS // 2
        kept[:half] = [(kept[half - 1][0], kept[0][1])]
    return tuple(kept)


def keep(pending: dict[K, int] | None, key: K, stamp: int) -> dict[K, int]:
    """`pending` with `key` as its newest: its order is that of the stamps."""
    if pending is None:
        return {key: stamp}
    pending.pop(key, None)
    pending[key] = stamp
    return pending


def newer_than(pending: dict[K, int] | None, since: int) -> set[K]:
    """The keys stamped after `since`; looks at no more than these."""
    if not pending:
        return set()
    return {key for key, _ in takewhile(lambda entry: entry[1] > since, reversed(pending.items()))}


def is_full(pending: dict[K, int], size: int) -> bool:
    """Whether to fold, in a container of this size: a fold scans it, so the larger it is the rarer."""
    return len(pending) > PENDING and len(pending) > size >> 4


def take_older_half(pending: dict[K, int]) -> tuple[set[K], int]:
    """Remove the older half; answer its keys and its newest stamp."""
    older = list(pending.items())[: len(pending) // 2]
    for key, _ in older:
        del pending[key]
    return {key for key, _ in older}, older[-1][1]


def places(entries: Iterable[tuple[K, object]], idents: set[int], *, repeats: bool) -> set[K]:
    """The keys of the values with these ids. Stops where each was met, unless one may sit there twice."""
    found: set[K] = set()
    missing = set(idents)
    for key, value in entries:
        if id(value) in idents:
            found.add(key)
            missing.discard(id(value))
            if not (missing or repeats):
                break
    return found
