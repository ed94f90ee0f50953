"""Who wants to know of what a manager does."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from typing import Any, TypeVar

from ..errors import InvalidInputError
from .doors import Door

EVENTS = ("checkpoint_saved", "checkpoint_restored")

_log = logging.getLogger("rekindle.manager")
F = TypeVar("F", bound=Callable[..., Any])


class Listeners:
    """Called in the order they came. One that raises is logged; the others are called all the same."""

    def __init__(self) -> None:
        self._by_event: dict[str, list[Callable[..., Any]]] = {event: [] for event in EVENTS}

    def add(self, event: str, listener: F) -> F:
        if event not in self._by_event:
            raise InvalidInputError("bad-event", f"there is no event {event!r}", hint="one of " + ", ".join(EVENTS))
        if not callable(listener):
            raise InvalidInputError("bad-listener", f"a listener is a function, not {listener!r}")
        self._by_event[event].append(listener)
        return listener

    def any(self, event: str) -> bool:
        return bool(self._by_event[event])

    async def tell(self, door: Door, event: str, *about: Any) -> None:
        for listener in tuple(self._by_event[event]):
            try:
                answer = listener(*about)
                if inspect.isawaitable(answer):
                    await door.run(lambda told=answer: told)  # type: ignore[misc]
            except Exception:  # noqa: BLE001  whatever it is, the checkpoint is there, and others want to know
                _log.exception("listener_failed", extra={"event": event, "listener": _name(listener)})


def _name(listener: Callable[..., Any]) -> str:
    return getattr(listener, "__qualname__", type(listener).__qualname__)
