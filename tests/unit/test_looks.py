"""Models that did not change are seen not to have changed by what they look like; every change of one is saved."""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import pydantic
import pytest
from langchain_core.messages import AIMessage, HumanMessage

from rekindle import Store, open_store, register, tracked
from rekindle.adapters.langgraph.types import register_types
from rekindle.state.tree.looks import Look, look
from rekindle.state.tree.nodes import Child, Node, Run
from rekindle.state.values.canon import same
from rekindle.storage.base import Key
from rekindle.store import engine

register_types()


@register(name="looks.Said")
class Said(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    content: Any = ""
    additional_kwargs: dict[str, Any] = {}
    tool_calls: list[Any] = []
    name: str | None = None
    flag: Any = True
    _seen: Any = pydantic.PrivateAttr(default=1)


@register(name="looks.Told")
class Told(pydantic.BaseModel):
    """With the same fields, so that only the class tells the two apart."""

    model_config = pydantic.ConfigDict(extra="allow")
    content: Any = ""
    additional_kwargs: dict[str, Any] = {}
    tool_calls: list[Any] = []
    name: str | None = None
    flag: Any = True
    _seen: Any = pydantic.PrivateAttr(default=1)


@register(name="looks.Own")
class Own(pydantic.BaseModel):
    """A model that says itself what it holds."""

    text: str

    def to_state(self) -> Any:
        return {"t": self.text}

    @classmethod
    def from_state(cls, data: Any) -> Any:
        return cls(text=data["t"])


@pytest.fixture
def store() -> Iterator[Store]:
    with open_store("memory://") as store:
        yield store


def runs_of(store: Store, seq: int) -> list[Run]:
    """Every run of a tree that this process remembers."""
    tree = store._engine.tip(Key("local", "a")).trees[seq]

    def below(node: Node) -> list[Run]:
        items = node.items or []
        return [x for item in items for x in (below(item.node) if isinstance(item, Child) else [item])]

    return below(tree)


def said(n: int) -> Any:
    kwargs = {"deep": {"list": [1, {"x": True}], "zero": 0.0}}
    return Said(content=f"message {n} " * 10, additional_kwargs=kwargs, tool_calls=[{"args": {"n": n}}], more=[n])


def ai(n: int) -> Any:
    kwargs = {"deep": {"list": [1, {"x": True}], "zero": 0.0}}
    call = {"name": "t", "args": {"n": n}, "id": f"c{n}", "type": "tool_call"}
    return AIMessage(f"message {n} " * 10, id=str(n), additional_kwargs=kwargs, tool_calls=[call], more=[n])


def put(path: str, value: Any) -> Callable[[Any], None]:
    """A mutation that sets what a path leads to."""

    def mutate(message: Any) -> None:
        at: Any = message
        *way, last = path.split(".")
        for step in way:
            at = at[int(step) if isinstance(at, list) else step] if isinstance(at, dict | list) else getattr(at, step)
        if isinstance(at, dict | list):
            at[int(last) if isinstance(at, list) else last] = value
        else:
            setattr(at, last, value)

    mutate.__name__ = f"{path} = {value!r}"
    return mutate


def set_an_equal_value(message: Any) -> None:
    message.name = message.name


def unset(message: Any) -> None:
    message.__pydantic_fields_set__.discard("tool_calls")


def reorder(message: Any) -> None:
    message.additional_kwargs["deep"] = dict(reversed(message.additional_kwargs["deep"].items()))


def take_an_extra_away(message: Any) -> None:
    del message.__pydantic_extra__["more"]


def give_a_private_attribute(message: Any) -> None:
    object.__setattr__(message, "__pydantic_private__", {"_seen": 2})


def keep_an_attribute_beside(message: Any) -> None:
    message.__dict__["cached"] = 1


MUTATIONS = [
    put("content", "other"), put("content", [{"type": "text", "text": "x"}]), put("content", "a\0b"),
    put("content", "\ud800"), put("tool_calls.0.args.n", -1), put("additional_kwargs.deep.list.1.x", 1),
    put("additional_kwargs.deep.list.1.x", 1.0), put("additional_kwargs.deep.list.0", True),
    put("additional_kwargs.deep.list.0", 1.0), put("additional_kwargs.deep.zero", -0.0), put("additional_kwargs.deep.zero", 0),
    put("additional_kwargs.deep.zero", float("nan")), put("additional_kwargs.deep.zero", 2**70),
    put("additional_kwargs.deep.list", (1, {"x": True})), put("additional_kwargs.deep.list", {1, 2}),
    put("additional_kwargs.deep.list", tracked([1, {"x": True}])), put("additional_kwargs.deep", OrderedDict(list=1)),
    put("additional_kwargs.new", None), put("additional_kwargs.new", Told(content="a model in a model")),
    put("additional_kwargs", {}), put("more", [5]), put("another", 1), put("__pydantic_extra__.more.0", "x"),
    put("name", "Ada"), set_an_equal_value, unset, reorder, take_an_extra_away, give_a_private_attribute,
    keep_an_attribute_beside, put("__class__", None),
]  # fmt: skip


def mutated(message: Any, mutate: Callable[[Any], None]) -> Any:
    """The message, mutated in place, or what takes its place."""
    if mutate.__name__.startswith("__class__"):
        other = Told if isinstance(message, Said) else HumanMessage
        made = other.model_construct()
        for name in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__"):
            object.__setattr__(made, name, getattr(message, name))
        return made
    mutate(message)
    return message


@pytest.mark.parametrize("make", [said, ai])
@pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda mutate: ascii(mutate.__name__))
def test_every_change_inside_a_message_is_saved(store: Store, make: Callable[[int], Any], mutate: Any) -> None:
    state = {"messages": [make(n) for n in range(200)], "n": 0}
    for _ in range(3):
        state["n"] += 1
        store.save("a", state)
    assert any(isinstance(run.packed, Look) for run in runs_of(store, 3))
    before = copy.deepcopy(state)
    for at in (70, 199):
        state["messages"][at] = mutated(state["messages"][at], mutate)
    assert not same(state, before)
    store.save("a", state)
    store.save("a", state)
    for checkpoint, meant in ((3, before), (4, state), (5, state)):
        again = store.restore(f"a@{checkpoint}")
        assert same(again, meant)
        assert [type(m) for m in again["messages"]] == [type(m) for m in meant["messages"]]
        assert list(again["messages"][70].__dict__) == list(meant["messages"][70].__dict__)


def test_two_messages_that_swap_their_classes_are_seen(store: Store) -> None:
    state = {"messages": [(Said if n % 2 else Told)(content="same " * 30) for n in range(100)]}
    for _ in range(3):
        store.save("a", state)
    state["messages"][50:52] = state["messages"][51:49:-1]
    store.save("a", state)
    assert same(store.restore("a"), state)


def test_only_models_that_say_nothing_of_themselves_are_looked_at() -> None:
    assert look([said(1), ai(2)]) == look([said(1), ai(2)])
    assert look([said(1), ai(2)]) != look([said(1), ai(3)])
    assert look([said(1), {"content": "no model"}]) is None
    assert look([Own(text="x")]) is None
    assert look([Said(content=(1,))]) is None
    assert look([Said(content=said(1))]) is None


def test_a_model_registered_under_another_name_is_written_under_it(store: Store) -> None:
    class Renamed(pydantic.BaseModel):
        text: str

    state = {"messages": [Renamed(text=f"text {n} " * 10) for n in range(100)]}
    register(Renamed, name="looks.Before")
    for _ in range(3):
        store.save("a", state)
    register(Renamed, name="looks.After")
    store.save("a", state)
    stored = [store.restore(f"a@{seq}", opaque=True)["messages"][50].name for seq in (3, 4)]
    assert stored == ["looks.Before", "looks.After"]


def test_what_is_remembered_of_runs_stays_within_its_bytes(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_TIP_BYTES", 60_000)
    state = {"messages": [ai(n) for n in range(500)], "texts": [f"text {n} " * 20 for n in range(500)], "n": 0}
    for _ in range(4):
        state["n"] += 1
        store.save("a", state)
        kept = [run.packed for run in runs_of(store, state["n"]) if run.packed is not None]
        assert sum(x.size if isinstance(x, Look) else len(x) for x in kept) <= 60_000
    assert kept
    assert same(store.restore("a"), state)
