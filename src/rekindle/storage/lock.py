"""One writer at a time across processes, first come first served: SQLite's own waiting starves the unlucky."""

from __future__ import annotations

import os
import sys
import threading
from types import TracebackType

from ..errors import UnavailableError

if sys.platform != "win32":
    import fcntl

PATIENCE = 30.0


class FileLock:
    """An exclusive lock on a file beside the store. On Windows it does nothing: SQLite's own lock has to do.

    One thread at a time may use it, and a forked process needs one of its own.
    """

    def __init__(self, path: str, *, patience: float = PATIENCE) -> None:
        self._path = path
        self._patience = patience
        self._fd = self._held = -1
        self._queue: _Queue | None = None
        if sys.platform != "win32":
            self._fd = self._held = _open(path)

    def __enter__(self) -> FileLock:
        if self._fd < 0:
            return self
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._held = self._fd
        except BlockingIOError:
            self._held = self._wait()
        return self

    def _wait(self) -> int:
        """The descriptor that got the lock in the end."""
        queue = self._queue
        if queue is None:
            queue = self._queue = _Queue(_open(self._path))
        try:
            got = queue.get(self._patience)
        except BaseException:  # Ctrl-C
            self._abandon(queue)
            raise
        if not got:
            self._abandon(queue)
            raise UnavailableError(
                "store-busy",
                f"another process has held {self._path} for {self._patience:.0f} s",
                hint="find it with `fuser` or `lsof` on that file; a stopped process keeps its lock",
            )
        return queue.fd

    def _abandon(self, queue: _Queue) -> None:
        self._queue = None
        queue.leave()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._held >= 0:
            fcntl.flock(self._held, fcntl.LOCK_UN)

    def close(self) -> None:
        """Harmless a second time."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = self._held = -1
        if self._queue is not None:
            self._abandon(self._queue)

    def __del__(self) -> None:
        """Of a store that was never closed; and in a forked child, which must not hold on to the parent's lock."""
        self.close()


class _Queue:
    """Waits for a file's lock in a thread of its own, which the kernel queues fairly and which may be left waiting.

    The thread is kept from one wait to the next: making one costs more than most waits. Its descriptor is its own, so
    that one left behind takes nothing from anybody when its turn comes.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._asked, self._got = threading.Lock(), threading.Lock()
        self._asked.acquire()
        self._got.acquire()
        self._left = threading.Event()
        threading.Thread(target=self._run, name="rekindle-lock", daemon=True).start()

    def get(self, patience: float) -> bool:
        """Whether it is ours in time. If not, call `leave`: the thread waits on."""
        self._asked.release()
        return self._got.acquire(timeout=patience)

    def leave(self) -> None:
        """Let the thread go, as soon as it can, and the lock with it."""
        self._left.set()
        if self._asked.locked():
            self._asked.release()

    def _run(self) -> None:
        try:
            while True:
                self._asked.acquire()
                if self._left.is_set():
                    return
                fcntl.flock(self.fd, fcntl.LOCK_EX)
                if self._left.is_set():
                    return
                self._got.release()
        finally:
            os.close(self.fd)  # and with it the lock


def _open(path: str) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as e:
        raise UnavailableError(
            "not-writable", f"the lock file {path} cannot be opened: {e.strerror}",
            hint="make the store's folder writable, or open a copy of the store",
        ) from e  # fmt: skip
