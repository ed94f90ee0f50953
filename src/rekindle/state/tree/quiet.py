"""Python's cyclic collector, kept from looking through what a decoder makes: many objects and no cycles."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ...forks import waited_for

_MANY, _FULL = 100_000, 1_000_000
"""From how many objects on they are settled; after how many settled ones the collector looks through everything."""

_lock = waited_for(threading.Lock())
_quiet = 0
_was_on = False
_settled = 0


@contextmanager
def quiet_gc() -> Iterator[None]:
    """No collection by itself inside, in any thread."""
    global _quiet, _was_on
    with _lock:
        if _quiet == 0:
            _was_on = gc.isenabled()
            gc.disable()
        _quiet += 1
    try:
        yield
    finally:
        with _lock:
            _quiet -= 1
            if _quiet == 0 and _was_on:
                _settle(gc.get_count()[0])
                gc.enable()


def _settle(made: int) -> None:
    """Count very many new objects as old: the next collection of young ones would look through them all.

    That puts off the collections of old ones too, so those are made here. Objects that the program has frozen are
    left alone: thawing ours would thaw them.
    """
    global _settled
    if made < _MANY or gc.get_freeze_count():
        return
    gc.freeze()
    gc.unfreeze()
    _settled += made
    if _settled >= _FULL:
        _settled = 0
        gc.collect()
