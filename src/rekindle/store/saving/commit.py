"""Group commit: whoever comes first commits for all who came meanwhile.

No thread of its own: a lone saver commits in its own thread and pays for no hand-over.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from ...errors import UnavailableError
from ...storage.base import Append, Outcome

_MOST = 256
_TICK = 0.0001
"""Seconds: about what it takes a saver to encode a small state."""


class Waiting:
    __slots__ = ("append", "error", "notify", "outcome", "wake")

    def __init__(self, append: Append, notify: Callable[[Waiting], None] | None) -> None:
        self.append = append
        self.outcome: Outcome | None = None
        self.error: BaseException | None = None
        self.notify = notify
        self.wake: threading.Lock | None = None

    @property
    def done(self) -> bool:
        return self.outcome is not None or self.error is not None

    def result(self) -> Outcome:
        if self.error is not None:
            raise self.error
        assert self.outcome is not None
        return self.outcome


class Committer:
    """Commits through `write` (a storage's `append`), one batch at a time, in the order of arrival."""

    def __init__(self, write: Callable[[Sequence[Append]], list[Outcome]]) -> None:
        self._write = write
        self._queue: deque[Waiting] = deque()
        self._leading = threading.Lock()
        self._usual = 1

    def commit(self, append: Append) -> Outcome:
        """Durable on return, or not there at all."""
        me = Waiting(append, None)
        if not self._queue and self._leading.acquire(blocking=False):
            self._lead([me])
        else:
            me.wake = threading.Lock()
            me.wake.acquire()
            self._queue.append(me)
            try:
                self._wait(me, me.wake)
            except BaseException:  # Ctrl-C: what is not begun never will be
                with suppress(ValueError):
                    self._queue.remove(me)
                raise
        if self._queue:
            self._pass_on()
        return me.result()

    def _wait(self, me: Waiting, wake: threading.Lock) -> None:
        while not me.done:
            # in the queue before trying to lead: a leader looks at the queue again after letting go
            if self._leading.acquire(blocking=False):
                self._lead([])
            else:
                wake.acquire()

    def enqueue(self, append: Append, notify: Callable[[Waiting], None]) -> None:
        """For callers that must not block, who see to it that `drain` runs in some thread afterwards.

        `notify` is called from the committing thread when the outcome is there (`result()`); it must not raise.
        """
        self._queue.append(Waiting(append, notify))

    def drain(self) -> None:
        """Commit all that is queued, and what tasks are about to queue."""
        while self._queue:
            self._gather()
            self._leading.acquire()
            self._lead([])

    def _lead(self, batch: list[Waiting]) -> None:
        """Commit a batch; the caller has taken the lead, which is given back."""
        try:
            while len(batch) < _MOST and self._queue:
                batch.append(self._queue.popleft())
            if batch:
                self._write_batch(batch)
        finally:
            self._leading.release()
            for waiting in batch:
                _tell(waiting)

    def _gather(self) -> None:
        """Where many came together of late, wait for them as long as they keep coming.

        Tasks that wait for one commit queue up again one after the other; small commits in between cost more than one
        large one. Threads do not need it: they queue up while another commits.
        """
        came = -1
        while came < len(self._queue) < self._usual:
            came = len(self._queue)
            time.sleep(_TICK)
        self._usual = max(len(self._queue), self._usual * 7 // 8)

    def _pass_on(self) -> None:
        """Wake one who waits, to lead next."""
        for waiting in self._queue.copy():
            if waiting.wake is not None:
                _tell(waiting)
                return

    def _write_batch(self, batch: list[Waiting]) -> None:
        try:
            outcomes = self._write([waiting.append for waiting in batch])
        except BaseException as e:
            stopped = not isinstance(e, Exception)  # Ctrl-C, in whichever thread happened to lead
            for waiting in batch:
                waiting.error = _interrupted() if stopped else e
            if stopped:
                raise
            return
        for waiting, outcome in zip(batch, outcomes, strict=True):
            waiting.outcome = outcome


def _interrupted() -> UnavailableError:
    return UnavailableError("interrupted", "the commit was interrupted, and may have come through", hint="look again")


def _tell(waiting: Waiting) -> None:
    if waiting.notify is not None:
        waiting.notify(waiting)
    elif waiting.wake is not None:
        with suppress(RuntimeError):  # told already, and not awake yet
            waiting.wake.release()
