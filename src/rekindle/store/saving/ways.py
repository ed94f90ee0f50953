"""Two ways to wait: a thread that blocks, a task that awaits.

What has to wait is written once, as a coroutine that is handed its way. On the blocking way it never suspends, and
`finish` runs it to its end on the spot.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from .commit import Committer
from .save import Saved, Saving

T = TypeVar("T")


class Way(Protocol):
    async def commit(self, saving: Saving, committer: Committer) -> Saved | None:
        """Take the agent's turn and carry out the save's steps; None where it has to begin again."""

    async def read(self, call: Callable[[], T]) -> T:
        """The answer of a call that waits for the storage."""


def finish(body: Coroutine[Any, Any, T]) -> T:
    """The answer of a coroutine that goes the blocking way."""
    try:
        body.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    body.close()
    raise RuntimeError("the blocking way was left: something awaited what was not done yet")


class Blocking:
    """The way of a thread: everything happens in it."""

    async def commit(self, saving: Saving, committer: Committer) -> Saved | None:
        saving.tip.lock.acquire()
        append = saving.begin()
        try:
            outcome = committer.commit(append)
        except BaseException:
            saving.fail()
            raise
        return saving.end(outcome)

    async def read(self, call: Callable[[], T]) -> T:
        return call()


BLOCKING = Blocking()
