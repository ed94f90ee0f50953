"""Functions after each call of which something is saved."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection
from functools import wraps
from typing import Any, Protocol

from ..errors import InvalidInputError
from ..model import Checkpoint, check_kind, check_label
from ..state.values import codec
from ..store.saving.save import check_metadata


class Saver(Protocol):
    def save(self, label: str | None, *, kind: str, metadata: dict[str, Any] | None) -> Checkpoint: ...
    async def asave(self, label: str | None, *, kind: str, metadata: dict[str, Any] | None) -> Checkpoint: ...


def as_step(
    saver: Saver,
    function: Callable[..., Any],
    *,
    label: str | None,
    kind: str,
    metadata: dict[str, Any] | None,
    arguments: Collection[str],
) -> Callable[..., Any]:
    """The function, saving after each call that did not raise. Metadata that cannot be saved keep it from running."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidInputError(
            "not-a-step", f"{_name(function)} is a generator: nobody can tell when it is done", hint="call save() there"
        )
    check_metadata({} if metadata is None else metadata)
    chosen = _chosen(function, (arguments,) if isinstance(arguments, str) else arguments)
    facts = {"label": check_label(_name(function) if label is None else label), "kind": check_kind(kind)}

    def about(args: Any, kwargs: Any) -> dict[str, Any]:
        told = {**(metadata or {}), **chosen(args, kwargs)}
        codec.pack(told)
        return {**facts, "metadata": told}

    if inspect.iscoroutinefunction(function):

        @wraps(function)
        async def astep(*args: Any, **kwargs: Any) -> Any:
            told = about(args, kwargs)
            return await _after(saver, function(*args, **kwargs), told)

        return astep

    @wraps(function)
    def step(*args: Any, **kwargs: Any) -> Any:
        told = about(args, kwargs)
        answer = function(*args, **kwargs)
        if inspect.isawaitable(answer):
            return _after(saver, answer, told)
        saver.save(**told)
        return answer

    return step


async def _after(saver: Saver, answer: Awaitable[Any], told: dict[str, Any]) -> Any:
    result = await answer
    await saver.asave(**told)
    return result


def _name(function: Callable[..., Any]) -> str:
    """A function's; a partial's is that of what it calls, an object's that of its class."""
    inner = getattr(function, "func", function)
    return str(getattr(inner, "__name__", type(inner).__name__))


def _chosen(function: Callable[..., Any], arguments: Collection[str]) -> Callable[[Any, Any], dict[str, Any]]:
    """What a call gives to the chosen arguments, by name."""
    if not arguments:
        return lambda args, kwargs: {}
    signature = inspect.signature(function)
    if unknown := set(arguments) - set(signature.parameters):
        raise InvalidInputError("bad-argument", f"{_name(function)} has no argument {sorted(unknown)[0]!r}")

    def choose(args: Any, kwargs: Any) -> dict[str, Any]:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return {name: bound.arguments[name] for name in arguments}

    return choose
