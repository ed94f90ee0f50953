"""Two ways to wait: a thread that blocks, a task that awaits.

What has to wait is written once, as a coroutine that is handed its way. On the blocking way it never suspends, and
`finish` runs it to its end on the spot.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

from ...storage.base import Append, Outcome
from .commit import Committer
from .tips import Tip

T = TypeVar("T")
Answer = TypeVar("Answer", covariant=True)


class Steps(Protocol[Answer]):
    """A save in steps: the turn of `tip` is taken, `begin`, the commit of what that answers, `end` or `fail`, which
    give the turn back. `end` answers None where it has to begin again."""

    @property
    def tip(self) -> Tip: ...
    def must_read(self) -> bool:
        """Whether `begin` would have to wait for the storage to know where it goes: call `learn` in a thread then."""

    def learn(self) -> None: ...
    def begin(self) -> Append: ...
    def end(self, outcome: Outcome) -> Answer | None: ...
    def fail(self) -> None: ...


class Way(Protocol):
    async def commit(self, saving: Steps[T], committer: Committer) -> T | None:
        """Take the agent's turn and carry out the steps; None where it has to begin again."""

    async def read(self, call: Callable[[], T]) -> T:
        """The answer of a call that waits for the storage."""

    async def wait(self, future: Future[T], seconds: float | None) -> T | None:
        """What others answer; None where they have not after so long."""


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

    async def commit(self, saving: Steps[T], committer: Committer) -> T | None:
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

    async def wait(self, future: Future[T], seconds: float | None) -> T | None:
        try:
            return future.result(seconds)
        except TimeoutError:
            return None


BLOCKING = Blocking()
