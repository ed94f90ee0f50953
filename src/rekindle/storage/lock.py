"""One writer at a time across processes, first come first served: SQLite's own waiting starves the unlucky."""

from __future__ import annotations

import os
import sys
import threading
from types import TracebackType

from ..errors import UnavailableError

if sys.platform != "win32":
    import fcntl


class FileLock:
    """An exclusive lock on a file beside the store. On Windows it does nothing: SQLite's own lock has to do."""

    def __init__(self, path: str, *, patience: float = 30.0) -> None:
        self._path = path
        self._patience = patience
        self._fd = -1
        if sys.platform != "win32":
            try:
                self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            except OSError as e:
                raise UnavailableError(
                    "not-writable", f"the lock file {path} cannot be opened: {e.strerror}",
                    hint="make the store's folder writable, or open a copy of the store",
                ) from e  # fmt: skip

    def __enter__(self) -> FileLock:
        if self._fd < 0:
            return self
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._wait()
        return self

    def _wait(self) -> None:
        """Queue in the kernel, which is fair; a thread does it, so that a stopped holder cannot hang us for ever."""
        got = threading.Event()
        gave_up = threading.Event()
        fd = os.dup(self._fd)

        def queue() -> None:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                got.set()
                if gave_up.is_set():
                    fcntl.flock(fd, fcntl.LOCK_UN)
            finally:
                os.close(fd)

        threading.Thread(target=queue, daemon=True).start()
        if not got.wait(self._patience):
            gave_up.set()
            if got.is_set():
                fcntl.flock(self._fd, fcntl.LOCK_UN)
            raise UnavailableError(
                "store-busy",
                f"another process has held {self._path} for {self._patience:.0f} s",
                hint="find it with `fuser` or `lsof` on that file; a stopped process keeps its lock",
            )

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._fd >= 0:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
