"""Forking while other threads use a store: none of their locks may go along into the child, where nobody lets them go.

What is held for a moment is waited for before the fork, by the thread that forks, and let go on both sides after it. So
no thread is inside of SQLite then either, whose own locks cannot be made anew. What is held longer, through a whole
save, is made anew in the child: there, nobody is saving.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Any, Protocol, TypeVar
from weakref import WeakSet

PATIENCE, _SOON = 30.0, 0.05
L = TypeVar("L")


class Renewed(Protocol):
    def after_fork(self) -> None: ...


_forking = threading.RLock()
_locks: WeakSet[Any] = WeakSet()
_renewed: WeakSet[Renewed] = WeakSet()
_taken: list[Any] = []


def waited_for(lock: L) -> L:
    """A lock that is held for a moment only."""
    _locks.add(lock)
    return lock


def renew(owner: Renewed) -> None:
    """Call its `after_fork` in every child."""
    _renewed.add(owner)


def _before() -> None:
    _forking.acquire()
    end = time.monotonic() + PATIENCE
    while not _take(last=time.monotonic() > end):
        _let_go()


def _take(*, last: bool) -> bool:
    """Whether all are ours. One that is not soon may be held by a thread that waits for another of them: let all go
    and try again, but the last time."""
    for lock in list(_locks):
        if lock.acquire(timeout=_SOON):
            _taken.append(lock)
        elif not last:
            return False
    return True


def _let_go() -> None:
    while _taken:
        _taken.pop().release()


def _after() -> None:
    _let_go()
    _forking.release()


def _in_child() -> None:
    for owner in list(_renewed):
        owner.after_fork()
    _after()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_in_child)
