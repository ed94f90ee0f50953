"""Group commit: whoever comes first commits for all who came meanwhile.

No thread of its own: a lone saver commits in its own thread and pays for no hand-over.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from ..storage.base import Append, Outcome

_MOST = 256


class _Waiting:
    __slots__ = ("append", "error", "notify", "outcome", "wake")

    def __init__(self, append: Append, notify: Callable[[], None] | None) -> None:
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
        self._queue: deque[_Waiting] = deque()
        self._leading = threading.Lock()

    def commit(self, append: Append) -> Outcome:
        """Durable on return, or not there at all."""
        me = _Waiting(append, None)
        if not self._queue and self._leading.acquire(blocking=False):
            self._lead([me])
        else:
            me.wake = threading.Lock()
            me.wake.acquire()
            self._queue.append(me)
            while not me.done:
                # in the queue before trying to lead: a leader looks at the queue again after letting go
                if self._leading.acquire(blocking=False):
                    self._lead([])
                else:
                    me.wake.acquire()
        if self._queue:
            self._pass_on()
        return me.result()

    def enqueue(self, append: Append, notify: Callable[[], None]) -> _Waiting:
        """For callers that must not block, who see to it that `drain` runs in some thread afterwards.

        `notify` is called from the committing thread when the outcome is there.
        """
        waiting = _Waiting(append, notify)
        self._queue.append(waiting)
        return waiting

    def drain(self) -> None:
        """Commit all that is queued."""
        while self._queue:
            self._leading.acquire()
            self._lead([])

    def _lead(self, batch: list[_Waiting]) -> None:
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

    def _pass_on(self) -> None:
        """Wake one who waits, to lead next."""
        for waiting in self._queue.copy():
            if waiting.wake is not None:
                _tell(waiting)
                return

    def _write_batch(self, batch: list[_Waiting]) -> None:
        try:
            outcomes = self._write([waiting.append for waiting in batch])
        except BaseException as e:
            for waiting in batch:
                waiting.error = e
            if not isinstance(e, Exception):
                raise
            return
        for waiting, outcome in zip(batch, outcomes, strict=True):
            waiting.outcome = outcome


def _tell(waiting: _Waiting) -> None:
    if waiting.notify is not None:
        waiting.notify()
    elif waiting.wake is not None:
        with suppress(RuntimeError):  # told already, and not awake yet
            waiting.wake.release()
