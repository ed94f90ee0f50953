"""LangChain's and LangGraph's own values in a state: messages, documents, prompts, sends, commands, interrupts.

They are stored as data by field name, and under names of their own that no move of a class changes.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from zoneinfo import ZoneInfo

from ...state.values.models import by_field_name
from ...state.values.registry import entry_named, provide
from ...state.values.shapes import shape_of
from ...state.values.zones import pack_zone, zone_of

_MESSAGES = (
    "AIMessage",
    "HumanMessage",
    "SystemMessage",
    "ToolMessage",
    "ChatMessage",
    "FunctionMessage",
    "BaseMessage",
)
_TYPES = ("Send", "Interrupt", "Command", "Overwrite", "StateSnapshot", "PregelTask", "TimeoutPolicy")
_ADDRESSES = ("IPv4Address", "IPv4Interface", "IPv4Network", "IPv6Address", "IPv6Interface", "IPv6Network")

_SINCE: dict[str, dict[str, Any]] = {"Send": {"timeout": None}}
"""Slots that came later, with what they are where nothing was said: left out when they are that."""


def register_types() -> None:
    """Let every type be saved that LangGraph's own serializer takes for safe. Those that the installed version does not
    have are passed over, and a type that the program registered itself stays as it is. Harmless a second time."""
    for cls in _models():
        if entry_named(name := f"langchain/{cls.__name__}") is None:
            dump, load = by_field_name(cls)
            provide(cls, name=name, dump=dump, load=load, model=True)
    for cls in _langgraph():
        dump, load = _by_name(cls)
        provide(cls, name=f"langgraph/{cls.__name__.lstrip('_')}", dump=dump, load=load)
    _register_standard()


def _models() -> Iterator[type]:
    """LangChain's models."""
    from langchain_core import agents, documents, messages, prompt_values

    for name in (*_MESSAGES, *(f"{name}Chunk" for name in _MESSAGES), "RemoveMessage"):
        yield from _found(messages, name)
    yield from _found(documents, "Document")
    for name in ("StringPromptValue", "ChatPromptValue", "ChatPromptValueConcrete", "ImagePromptValue"):
        yield from _found(prompt_values, name)
    for name in ("AgentAction", "AgentActionMessageLog", "AgentStep", "AgentFinish"):
        yield from _found(agents, name)


def _langgraph() -> Iterator[type]:
    from langgraph import types
    from langgraph.checkpoint.serde import types as serde
    from langgraph.store import base

    for name in _TYPES:
        yield from _found(types, name)
    for name in ("Item", "GetOp"):
        yield from _found(base, name)
    yield from _found(serde, "_DeltaSnapshot")


def _found(module: Any, name: str) -> Iterator[type]:
    cls = getattr(module, name, None)
    if isinstance(cls, type):
        yield cls


def _by_name(cls: Any) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """How values of a class that is no model become a map by field name, and come back."""
    if issubclass(cls, tuple):
        return (lambda value: value._asdict()), (lambda data: cls(**data))
    dump, load = shape_of(cls)
    since = _SINCE.get(cls.__name__)
    return (_without(dump, since), _with(load, since)) if since else (dump, load)


def _without(dump: Callable[[Any], Any], since: Mapping[str, Any]) -> Callable[[Any], Any]:
    return lambda value: {
        name: item for name, item in dump(value).items() if name not in since or item is not since[name]
    }


def _with(load: Callable[[Any], Any], since: Mapping[str, Any]) -> Callable[[Any], Any]:
    return lambda data: load({**since, **data})


def _register_standard() -> None:
    """Values of the standard library that LangGraph stores and this codec has no code of its own for."""
    for name in _ADDRESSES:
        cls = getattr(ipaddress, name)
        provide(cls, name=f"python/{name}", dump=str, load=cls)
    provide(re.Pattern, name="python/Pattern", dump=lambda p: [p.pattern, p.flags], load=lambda data: re.compile(*data))
    provide(ZoneInfo, name="python/ZoneInfo", dump=pack_zone, load=zone_of)
    provide(dt.timezone, name="python/timezone", dump=pack_zone, load=zone_of)
