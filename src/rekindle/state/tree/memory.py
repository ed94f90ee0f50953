"""What was read of late: neighbouring checkpoints share most of their bytes, and some are restored again and again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

from ...forks import waited_for


class Memory:
    """Values by name, up to `limit` bytes of them in all; the least used go first. Safe from several threads.

    What is put in was checked against its hash, and is never changed. Digests are keyed by user: nobody is given
    what is another's.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._room = limit
        self._held: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = waited_for(threading.Lock())

    def get(self, name: Hashable) -> Any:
        """None where it is not held."""
        with self._lock:
            held = self._held.get(name)
            if held is None:
                return None
            self._held.move_to_end(name)
            return held[0]

    def put(self, name: Hashable, value: Any, size: int) -> None:
        if size > self._limit // 8:  # one large value would drive out all others
            return
        with self._lock:
            self._room += self._held.pop(name, (None, 0))[1] - size
            self._held[name] = value, size
            while self._room < 0:
                self._room += self._held.popitem(last=False)[1][1]


NOTHING = Memory(0)
"""For readers that must see what is stored now."""
