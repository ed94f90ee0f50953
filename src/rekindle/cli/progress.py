"""A progress bar on stderr for long work: after 300 ms, on a terminal, gone when the work is done."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .words import size

SHOW_AFTER = 0.3
_EVERY = 0.1
_WIDTH = 24


class Bar:
    """Takes (done, total) as often as one likes and draws now and then."""

    def __init__(self, what: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._what = what
        self._clock = clock
        self._started = clock()
        self._drawn_at: float | None = None

    def __call__(self, done: int, total: int) -> None:
        now = self._clock()
        if now - self._started < SHOW_AFTER:
            return
        if self._drawn_at is not None and now - self._drawn_at < _EVERY and done != total:
            return
        self._drawn_at = now
        sys.stderr.write("\r" + drawn(self._what, done, total, now - self._started) + "\x1b[K")
        sys.stderr.flush()

    def clear(self) -> None:
        if self._drawn_at is not None:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def drawn(what: str, done: int, total: int, seconds: float) -> str:
    if not total:  # nobody knows how much there is
        return f"{what} {size(done)}, {seconds:.0f} s"
    part = min(done / total, 1.0)
    full = int(part * _WIDTH)
    bar = "=" * full + (">" if full < _WIDTH else "") + " " * (_WIDTH - full - 1)
    return f"{what} [{bar}] {part:4.0%}  {done:,} of {total:,}, {seconds:.0f} s"


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """A callback for long work; None where nobody would see it."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield None
        return
    bar = Bar(what)
    try:
        yield bar
    finally:
        bar.clear()
