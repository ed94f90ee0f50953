"""Programs that were killed in their second node, and what came after them: the same program with another schema.

A case is two functions, `old` and `new`, which make its graph; each runs in a process of its own, so that both may register
a class under one name.
"""

from __future__ import annotations

import operator
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple

from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from pydantic import BaseModel
from typing_extensions import TypedDict

import rekindle
from rekindle.adapters.langgraph import RekindleSaver

THREAD: Any = {"configurable": {"thread_id": "t"}}
Log = Annotated[list[Any], operator.add]
Graph = Any


class Case(NamedTuple):
    old: Callable[[], Graph]
    new: Callable[[], Graph]


def chain(schema: Any, *names: str, value: Callable[[Any], Any] = lambda state: "note") -> Graph:
    graph: Graph = StateGraph(schema)
    for name in names:
        graph.add_node(name, lambda state, name=name: {"log": [f"{name} {value(state)!r}"]})
    for before, after in zip((START, *names), names, strict=False):
        graph.add_edge(before, after)
    return graph


# -- channels and nodes ----------------------------------------------------------------------------------------------


class Plain(TypedDict, total=False):
    log: Log
    note: Any


def plain() -> Graph:
    return chain(Plain, "a", "b", "c")


def longest_last(old: list[Any], new: list[Any]) -> list[Any]:
    return sorted([*old, *new], key=len)


def joined(old: list[Any], writes: list[list[Any]]) -> list[Any]:
    return [*old, *(item for write in writes for item in write)]


def with_a_channel_more() -> Graph:
    class More(TypedDict, total=False):
        log: Log
        note: Any
        tags: Log
        seen: int

    return chain(More, "a", "b", "c", value=lambda state: (state["tags"], state.get("seen")))


def with_a_channel_less() -> Graph:
    class Less(TypedDict, total=False):
        log: Log

    return chain(Less, "a", "b", "c", value=sorted)


def with_another_reducer() -> Graph:
    class Sorted(TypedDict, total=False):
        log: Annotated[list[Any], longest_last]
        note: Any

    return chain(Sorted, "a", "b", "c")


def with_a_delta_channel() -> Graph:
    class Delta(TypedDict, total=False):
        log: Annotated[list[Any], DeltaChannel(joined, snapshot_frequency=4)]
        note: Any

    return chain(Delta, "a", "b", "c")


def with_a_node_renamed() -> Graph:
    return chain(Plain, "a", "second", "c")


# -- classes ---------------------------------------------------------------------------------------------------------


def noting(cls: Any, *args: Any) -> Graph:
    """A graph whose first node puts a value of the class into the state; the others say what it is."""
    graph: Graph = StateGraph(Plain)
    graph.add_node("a", lambda state: {"note": [cls(*args)], "log": ["a"]})
    for name in ("b", "c"):
        graph.add_node(name, lambda state, name=name: {"log": [f"{name} {state['note'][0]!r}"]})
    for before, after in ((START, "a"), ("a", "b"), ("b", "c")):
        graph.add_edge(before, after)
    return graph


def dataclass_of_one_field() -> Graph:
    @rekindle.register(name="tests/Order")
    @dataclass
    class Order:
        item: str

    return noting(Order, "tea")


def dataclass_of_two_fields() -> Graph:
    @rekindle.register(name="tests/Order")
    @dataclass
    class Order:
        item: str
        prices: list[int] = field(default_factory=lambda: [1])

    return noting(Order, "tea")


def dataclass_of_a_field_without_default() -> Graph:
    @rekindle.register(name="tests/Order")
    @dataclass
    class Order:
        item: str
        price: int

    return noting(Order, "tea", 1)


def dataclass_of_version_2() -> Graph:
    @rekindle.register(name="tests/Order", version=2, upgrade={1: lambda data: {"items": [data["item"]]}})
    @dataclass
    class Order:
        items: list[str]

    return noting(Order, ["tea"])


def dataclass_without_an_upgrade() -> Graph:
    @rekindle.register(name="tests/Order", version=2)
    @dataclass
    class Order:
        items: list[str]

    return noting(Order, ["tea"])


def dataclass_nobody_registered() -> Graph:
    @dataclass
    class Order:
        item: str

    return noting(Order, "tea")


def model_of_one_field() -> Graph:
    class Trip(BaseModel):
        to: str

    rekindle.register(Trip, name="tests/Trip")
    return noting(lambda to: Trip(to=to), "Lisbon")


def model_of_two_fields() -> Graph:
    class Trip(BaseModel):
        to: str
        month: str | None = None

    rekindle.register(Trip, name="tests/Trip")
    return noting(lambda to: Trip(to=to), "Lisbon")


CASES = {
    "channel added": Case(plain, with_a_channel_more),
    "channel removed": Case(plain, with_a_channel_less),
    "reducer changed": Case(plain, with_another_reducer),
    "delta channel": Case(plain, with_a_delta_channel),
    "delta channel taken back": Case(with_a_delta_channel, plain),
    "node renamed": Case(plain, with_a_node_renamed),
    "field with a default": Case(dataclass_of_one_field, dataclass_of_two_fields),
    "field without a default": Case(dataclass_of_one_field, dataclass_of_a_field_without_default),
    "version with an upgrade": Case(dataclass_of_one_field, dataclass_of_version_2),
    "version without an upgrade": Case(dataclass_of_one_field, dataclass_without_an_upgrade),
    "class not registered": Case(dataclass_of_one_field, dataclass_nobody_registered),
    "optional field of a model": Case(model_of_one_field, model_of_two_fields),
}


# -- jobs ------------------------------------------------------------------------------------------------------------


def begin(case: str, url: str) -> None:
    """The old program, killed in its node `b`."""
    graph = CASES[case].old()
    graph.nodes["b"].runnable.func = lambda state: os.kill(os.getpid(), signal.SIGKILL)
    with rekindle.open_store(url) as store:
        graph = graph.compile(checkpointer=RekindleSaver(store))
        graph.invoke({"log": ["begins"], "note": "kept"}, THREAD, durability="sync")


def go_on(case: str, url: str) -> dict[str, Any]:
    """The new program on the old one's thread: the state it ends with, or what it says."""
    with rekindle.open_store(url) as store:
        graph = CASES[case].new().compile(checkpointer=RekindleSaver(store))
        try:
            return {"values": _shown(graph.invoke(None, THREAD)), "next": list(graph.get_state(THREAD).next)}
        except rekindle.RekindleError as e:
            return {"code": e.code, "message": e.message}


def go_on_theirs(case: str) -> dict[str, Any]:
    """The same on LangGraph's own saver, which kept it all in memory."""
    saver = InMemorySaver()
    old = CASES[case].old().compile(checkpointer=saver, interrupt_before=["b"])
    old.invoke({"log": ["begins"], "note": "kept"}, THREAD)
    graph = CASES[case].new().compile(checkpointer=saver)
    return {"values": _shown(graph.invoke(None, THREAD)), "next": list(graph.get_state(THREAD).next)}


def past(case: str, url: str) -> dict[str, Any]:
    """What the old program finds of its own: each checkpoint's values by id. Newer ones it may not be able to read."""
    found = {}
    CASES[case].old()
    with rekindle.open_store(url) as store:
        for each in RekindleSaver(store).list(THREAD):
            try:
                found[each.checkpoint["id"]] = _shown(each.checkpoint["channel_values"].copy())
            except rekindle.RekindleError as e:
                found[each.checkpoint["id"]] = e.code
        found["problems"] = " ".join(map(str, store.verify().problems))
    return found


def _shown(values: dict[str, Any]) -> str:
    return repr(sorted(values.items()))
