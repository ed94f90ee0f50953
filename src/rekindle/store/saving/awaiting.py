"""How tasks wait for a store: never in the event loop's thread."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from .commit import Committer, Waiting
from .ways import Steps

T = TypeVar("T")


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

    async def commit(self, saving: Steps[T], committer: Committer) -> T | None:
        if saving.must_read():
            await self.read(saving.learn)
        loop = asyncio.get_running_loop()
        await _take(saving, loop)
        append = saving.begin()
        post = self._post
        if post is None or post.loop is not loop:
            post = self._post = _Post(loop)
        answer: asyncio.Future[T | None] = loop.create_future()
        committer.enqueue(append, lambda waiting: post.send(answer, *_ended(saving, waiting)))
        self._drain(committer)
        return await answer

    def _drain(self, committer: Committer) -> None:
        """See to it that the queue is drained from now on: one job runs, at most one more waits."""
        if self._pid != os.getpid():  # threads do not come along into a forked process
            self._pool, self._pid, self._asked = None, os.getpid(), False
        if self._asked:
            return
        self._asked = True
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, "rekindle-commit")
        self._pool.submit(self._drain_now, committer)

    def _drain_now(self, committer: Committer) -> None:
        self._asked = False  # before looking: who comes later asks again
        committer.drain()

    async def read(self, call: Callable[[], T]) -> T:
        return await asyncio.to_thread(call)

    async def wait(self, future: Future[T], seconds: float | None) -> T | None:
        try:
            return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(future)), seconds)
        except TimeoutError:
            return None

    def close(self) -> None:
        """When what was queued is committed."""
        if self._pool is not None and self._pid == os.getpid():
            self._pool.shutdown()
        self._pool = None


async def _take(saving: Steps[Any], loop: asyncio.AbstractEventLoop) -> None:
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


def _teller(saving: Steps[Any], loop: asyncio.AbstractEventLoop, told: asyncio.Future[None]) -> Callable[[], None]:
    def tell() -> None:
        try:
            loop.call_soon_threadsafe(_settle, told, None, None)
        except RuntimeError:  # the loop is closed: nobody is there who could take the turn
            saving.tip.lock.leave(tell)

    return tell


def _ended(saving: Steps[T], waiting: Waiting) -> tuple[T | None, BaseException | None]:
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
