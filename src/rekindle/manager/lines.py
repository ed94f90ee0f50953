"""Which live object last saved what. Objects are told apart by identity: two agents of one id have a line each."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from typing import Any

_STRONG = 256
"""Objects that cannot be referred to weakly are held, the latest so many."""


class Lines:
    def __init__(self) -> None:
        self._weak: dict[int, tuple[weakref.ref[Any], tuple[str, str], Any]] = {}
        self._strong: OrderedDict[int, tuple[Any, tuple[str, str], Any]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, agent: Any, key: tuple[str, str]) -> Any:
        """The line of an object under that (user, agent id); None where it has none."""
        with self._lock:
            weak = self._weak.get(id(agent))
            if weak is not None and weak[0]() is agent and weak[1] == key:
                return weak[2]
            strong = self._strong.get(id(agent))
            return strong[2] if strong is not None and strong[0] is agent and strong[1] == key else None

    def put(self, agent: Any, key: tuple[str, str], line: Any) -> None:
        at = id(agent)
        try:
            ref = weakref.ref(agent, lambda dead: self._forget(at, dead))
        except TypeError:
            with self._lock:
                self._strong[at] = (agent, key, line)
                self._strong.move_to_end(at)
                while len(self._strong) > _STRONG:
                    self._strong.popitem(last=False)
            return
        with self._lock:
            self._weak[at] = (ref, key, line)

    def _forget(self, at: int, dead: weakref.ref[Any]) -> None:
        held = self._weak.get(at)  # no lock: this may run in the middle of a call that holds it
        if held is not None and held[0] is dead:
            self._weak.pop(at, None)
