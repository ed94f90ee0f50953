"""The manager's two ways to wait, and calls that come in both: `save` awaits, `save_sync` blocks, the body is one."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from ..store.saving.awaiting import Awaiting
from ..store.saving.ways import Blocking, Way, finish

P = ParamSpec("P")
T = TypeVar("T")


class Door(Way, Protocol):
    """A way that can also go through code of the user that awaits."""

    async def run(self, call: Callable[[], Awaitable[T]]) -> T: ...


class AwaitingDoor(Awaiting):
    async def run(self, call: Callable[[], Awaitable[T]]) -> T:
        return await call()


class BlockingDoor(Blocking):
    """For scripts and notebooks. What awaits is run to its end in a thread with a loop of its own: this one's thread
    may have a loop that is running."""

    async def run(self, call: Callable[[], Awaitable[T]]) -> T:
        async def whole() -> T:
            return await call()

        with ThreadPoolExecutor(1, "rekindle-sync") as thread:
            return thread.submit(asyncio.run, whole()).result()


class HasDoors(Protocol):
    awaiting: AwaitingDoor
    blocking: BlockingDoor


M = TypeVar("M", bound=HasDoors)


def awaited(
    body: Callable[Concatenate[M, Door, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[M, P], Coroutine[Any, Any, T]]:
    @wraps(body)
    async def call(self: M, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await body(self, self.awaiting, *args, **kwargs)

    _name(call, body, "")
    return call


def blocking(body: Callable[Concatenate[M, Door, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[M, P], T]:
    @wraps(body)
    def call(self: M, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return finish(body(self, self.blocking, *args, **kwargs))

    _name(call, body, "_sync")
    return call


def _name(call: Any, body: Any, ending: str) -> None:
    """The twin's own name and signature, for help() and tracebacks."""
    call.__name__ = body.__name__.strip("_") + ending
    call.__qualname__ = body.__qualname__.rpartition(".")[0] + "." + call.__name__
    signature = inspect.signature(body)
    call.__signature__ = signature.replace(parameters=[p for n, p in signature.parameters.items() if n != "door"])
