"""Two ways to wait: a thread that blocks, a task that awaits.

What has to wait is written once, as a coroutine that is handed its way. On the blocking way it never suspends, and
`finish` runs it to its end on the spot.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

from .commit import Committer, Waiting
from .saving import Saved, Saving

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


class Awaiting:
    """The way of tasks: states are encoded in the loop's thread, where nobody changes them meanwhile; everything that
    waits for the storage happens in other threads.

    A save ends in the thread that commits it, whether or not its task still waits: a task that is cancelled leaves
    nothing behind, and a loop that stands still keeps no other saver waiting.
    """

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._pid = os.getpid()
        self._asked = False
        self._post: _Post | None = None

    async def commit(self, saving: Saving, committer: Committer) -> Saved | None:
        if saving.must_read():
            await self.read(saving.learn)
        loop = asyncio.get_running_loop()
        await _take(saving, loop)
        append = saving.begin()
        post = self._post
        if post is None or post.loop is not loop:
            post = self._post = _Post(loop)
        answer: asyncio.Future[Saved | None] = loop.create_future()
        committer.enqueue(append, lambda waiting: post.send(answer, *_ended(saving, waiting)))
        self._drain(committer, loop)
        return await answer

    def _drain(self, committer: Committer, loop: asyncio.AbstractEventLoop) -> None:
        """See to it that the queue is drained from now on: one job runs, at most one more waits."""
        if self._asked:
            return
        self._asked = True
        loop.call_soon(self._start_draining, committer)  # first let other tasks that are ready come along

    def _start_draining(self, committer: Committer) -> None:
        if self._pool is None or self._pid != os.getpid():  # threads do not come along into a forked process
            self._pool, self._pid = ThreadPoolExecutor(1, "rekindle-commit"), os.getpid()
        self._pool.submit(self._drain_now, committer)

    def _drain_now(self, committer: Committer) -> None:
        self._asked = False  # before looking: who comes later asks again
        committer.drain()

    async def read(self, call: Callable[[], T]) -> T:
        return await asyncio.to_thread(call)

    def close(self) -> None:
        """When what was queued is committed."""
        if self._pool is not None and self._pid == os.getpid():
            self._pool.shutdown()
        self._pool = None


async def _take(saving: Saving, loop: asyncio.AbstractEventLoop) -> None:
    turn = saving.tip.lock
    while True:
        told: asyncio.Future[None] = loop.create_future()
        tell = _teller(saving, loop, told)
        if turn.ask(tell):
            return
        try:
            await told
        except BaseException:
            turn.leave(tell)
            raise


def _teller(saving: Saving, loop: asyncio.AbstractEventLoop, told: asyncio.Future[None]) -> Callable[[], None]:
    def tell() -> None:
        try:
            loop.call_soon_threadsafe(_settle, told, None, None)
        except RuntimeError:  # the loop is closed: nobody is there who could take the turn
            saving.tip.lock.leave(tell)

    return tell


def _ended(saving: Saving, waiting: Waiting) -> tuple[Saved | None, BaseException | None]:
    try:
        outcome = waiting.result()
    except BaseException as e:  # noqa: BLE001  it is the task's to raise
        saving.fail()
        return None, e
    try:
        return saving.end(outcome), None
    except BaseException as e:  # noqa: BLE001  it is the task's to raise
        return None, e


def _settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():  # its task was cancelled
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)


class _Post:
    """Answers on their way into a loop: those of one commit wake it once."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._letters: deque[tuple[asyncio.Future[Any], Any, BaseException | None]] = deque()
        self._called = False

    def send(self, future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
        self._letters.append((future, result, error))
        if self._called:
            return
        self._called = True
        try:
            self.loop.call_soon_threadsafe(self._deliver)
        except RuntimeError:
            self._letters.clear()  # the loop is closed: nobody waits any more

    def _deliver(self) -> None:
        self._called = False  # before looking: what comes later calls again
        while self._letters:
            _settle(*self._letters.popleft())
