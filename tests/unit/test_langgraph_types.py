"""LangChain's and LangGraph's values come back equal and of the same types, small, and readable by field name."""

from __future__ import annotations

import datetime as dt
import ipaddress
import re
import subprocess
import sys
import uuid
from collections import OrderedDict
from typing import Any
from zoneinfo import ZoneInfo

import langchain_core.messages as lc
import langgraph.types as lg
import pydantic
import pytest
from langchain_core.agents import AgentAction, AgentActionMessageLog, AgentFinish, AgentStep
from langchain_core.documents import Document
from langchain_core.messages.tool import tool_call
from langchain_core.prompt_values import ChatPromptValue, ChatPromptValueConcrete, ImagePromptValue, StringPromptValue
from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_TYPES
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.store.base import GetOp, Item

from rekindle import Opaque, open_store
from rekindle.adapters.langgraph.types import register_types
from rekindle.errors import InvalidInputError
from rekindle.state.values import codec, models
from rekindle.state.values.canon import same
from rekindle.state.values.registry import entry_for, provide

register_types()

CALL = tool_call(name="search", args={"q": ["a", {"deep": None}]}, id="call-1")
USAGE = {"input_tokens": 3, "output_tokens": 5, "total_tokens": 8, "input_token_details": {"cache_read": 1}}
WILD = {
    "nul": "a\0b", "lone": "\ud800", "nan": float("nan"), "minus": -0.0, "big": 2**100, "tuple": (1, ("x",)),
    "set": {1, 2}, 3: "an int key", "when": dt.datetime(2026, 1, 2, tzinfo=dt.UTC), "ordered": OrderedDict(b=1, a=2),
}  # fmt: skip


def with_private() -> Any:
    message = lc.AIMessage("x")
    object.__setattr__(message, "__pydantic_private__", {"_seen": 1})
    return message


def mutated() -> Any:
    """What was changed since in a way that pydantic does not see."""
    message = lc.AIMessage("x", id="1")
    message.additional_kwargs["later"] = [1]
    message.tool_calls.append(CALL)
    message.type = "ai"
    return message


def with_an_attribute_beside() -> Any:
    message = lc.HumanMessage("x")
    message.__dict__["cached"] = (1,)
    return message


def with_odd_extras() -> Any:
    message = lc.HumanMessage("x", **{"$set": [1], "$private": 2})
    assert message.model_extra
    return message


MESSAGES = [
    lc.HumanMessage("hello"), lc.HumanMessage("hello", id="1", name="Ada"), lc.HumanMessage("", id=None, name=None),
    lc.HumanMessage([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "data:"}}, "plain"]),
    lc.HumanMessage("a\0b \ud800 c"), lc.HumanMessage("x", additional_kwargs=WILD),
    lc.HumanMessage("x", foo=1, bar={"b": (2,)}), lc.HumanMessage("x", additional_kwargs={}, response_metadata={}),
    lc.AIMessage("x"), lc.AIMessage("", tool_calls=[CALL], usage_metadata=USAGE, id="run-1"),
    lc.AIMessage("x", tool_calls=[], invalid_tool_calls=[], additional_kwargs={}, usage_metadata=None, name=None),
    lc.AIMessage("x", response_metadata={"model": "m", "logprobs": None, "took": 0.1}, additional_kwargs=WILD),
    lc.AIMessage("", invalid_tool_calls=[{"name": "n", "args": "{", "id": "i", "error": "e", "type": "invalid_tool_call"}]),
    with_private(), mutated(), with_an_attribute_beside(), with_odd_extras(),
    lc.AIMessageChunk("x"), lc.AIMessageChunk("", tool_call_chunks=[{"name": "n", "args": "{}", "id": "1", "index": 0, "type": "tool_call_chunk"}]),
    lc.SystemMessage("x"), lc.SystemMessageChunk("x"), lc.HumanMessageChunk("x"),
    lc.ToolMessage("x", tool_call_id="1"), lc.ToolMessage("x", tool_call_id="1", artifact={"a": (1,)}, status="error"),
    lc.ToolMessageChunk("x", tool_call_id="1"), lc.ChatMessage("x", role="r"), lc.ChatMessageChunk("x", role="r"),
    lc.FunctionMessage("x", name="f"), lc.FunctionMessageChunk("x", name="f"), lc.RemoveMessage("1"),
    lc.BaseMessage("x", type="own"), lc.BaseMessageChunk("x", type="own"), lc.AIMessage.model_construct(content="x"),
    lc.HumanMessage.model_construct(content=None, id=3),
]  # fmt: skip
OTHERS = [
    Document("text", id="1", metadata={"page": (1, 2)}), Document("text"),
    StringPromptValue(text="x"), ChatPromptValue(messages=[lc.HumanMessage("x")]),
    ChatPromptValueConcrete(messages=[lc.HumanMessage("x")]), ImagePromptValue(image_url={"url": "u", "detail": "low"}),
    AgentAction(tool="t", tool_input={"a": 1}, log="l"), AgentFinish(return_values={"a": 1}, log="l"),
    AgentActionMessageLog(tool="t", tool_input="i", log="l", message_log=[lc.AIMessage("x")]),
    AgentStep(action=AgentAction(tool="t", tool_input="i", log="l"), observation=1),
    lg.Send("node", {"a": (1,)}), lg.Send("node", lc.HumanMessage("x"), timeout=lg.TimeoutPolicy(run_timeout=1.5)),
    lg.Interrupt({"ask": "?"}, "id-1"), lg.Interrupt(1, "id", response_schema={"type": "object"}),
    lg.Command(), lg.Command(update={"a": [lc.AIMessage("x")]}, goto=[lg.Send("n", 1)], resume={"id": 1}, graph="__parent__"),
    lg.Overwrite([1]), lg.TimeoutPolicy(idle_timeout=dt.timedelta(seconds=1)),
    lg.PregelTask("i", "n", ("p", 1), None, (lg.Interrupt(1, "x"),), None, {"r": 1}), lg.PregelTask("i", "n", ()),
    lg.StateSnapshot({"a": 1}, ("n",), {"configurable": {}}, None, "now", None, (lg.PregelTask("i", "n", ()),), ()),
    GetOp(("a", "b"), "k"), _DeltaSnapshot([lc.AIMessage("x"), (1,)]),
]  # fmt: skip
STANDARD = [
    *map(ipaddress.ip_address, ("10.0.0.1", "::1", "fe80::1%eth0")),
    *map(ipaddress.ip_interface, ("10.0.0.1/8", "fe80::1/64", "fe80::1%eth0/64")),
    *map(ipaddress.ip_network, ("10.0.0.0/8", "fe80::/64")),
    re.compile("a+", re.I | re.M), re.compile(rb"\xff"), re.compile("(?x) a # b"),
    ZoneInfo("Europe/Berlin"), dt.UTC, dt.timezone(dt.timedelta(hours=-3, microseconds=1)), dt.timezone(dt.timedelta(0), ""),
    dt.timezone(dt.timedelta(hours=1), "home"),
]  # fmt: skip


def insides(value: Any) -> Any:
    """Everything a model consists of."""
    return [
        list(value.__dict__), value.__dict__, value.__pydantic_fields_set__, value.__pydantic_extra__,
        value.__pydantic_private__,
    ]  # fmt: skip


def name_of(value: Any) -> str:
    return f"{type(value).__name__} {value!r}"[:60].encode("ascii", "backslashreplace").decode()


@pytest.mark.parametrize("value", [*MESSAGES, *OTHERS, *STANDARD], ids=name_of)
def test_a_value_comes_back_equal_and_of_the_same_type(value: Any) -> None:
    for again in (
        codec.unpack(codec.pack(value)),
        codec.unpack(codec.pack({"in": [(value,)], 1: "\ud800"}))["in"][0][0],
    ):
        assert type(again) is type(value)
        assert same(again, value)
        assert again == value or "nan" in repr(value)
        assert repr(again) == repr(value)
        assert codec.pack(again) == codec.pack(value)
        if isinstance(value, pydantic.BaseModel):
            assert same(insides(again), insides(value))


def test_an_item_of_a_store_comes_back() -> None:
    now = dt.datetime(2026, 1, 2, 3, tzinfo=dt.UTC)
    item = Item(value={"a": (1,)}, key="k", namespace=("a", "b"), created_at=now, updated_at=now)
    again = codec.unpack(codec.pack(item))
    assert (again, again.namespace, again.value, again.created_at) == (item, ("a", "b"), {"a": (1,)}, now)


def test_values_live_through_a_store_however_large_and_in_whatever_run(tmp_path: Any) -> None:
    large = [type(m)("y" * 6000, id=str(n)) for n, m in enumerate([lc.HumanMessage("x"), lc.AIMessage("x")])]
    state = {"messages": [*MESSAGES, *large] * 3, "others": OTHERS, "standard": {str(v): v for v in STANDARD}}
    with open_store(str(tmp_path / "s.db")) as store:
        store.save("a", state)
        state["messages"].append(lc.HumanMessage("one more"))
        store.save("a", state)
    with open_store(str(tmp_path / "s.db")) as store:
        again = store.restore("a")
        assert same(again, state)
        assert same(store.restore("a@1")["messages"], state["messages"][:-1])
        assert store.verify()


def test_every_type_that_langgraph_takes_for_safe_can_be_saved() -> None:
    import importlib

    plain = {"set", "frozenset", "deque", "datetime", "date", "time", "timedelta", "UUID", "Decimal", "compile"}
    paths = {"Path", "PosixPath", "WindowsPath"}
    missing = []
    for module, name in SAFE_MSGPACK_TYPES:
        if name in plain | paths:
            continue
        if entry_for(getattr(importlib.import_module(module), name)) is None:
            missing.append((module, name))
    assert missing == []
    assert entry_for(re.Pattern) is not None


def test_no_message_of_langchain_is_forgotten() -> None:
    kinds = {cls for cls in vars(lc).values() if isinstance(cls, type) and issubclass(cls, lc.BaseMessage)}
    kinds |= {getattr(lc, name) for name in lc.__all__ if isinstance(getattr(lc, name), type) and issubclass(getattr(lc, name), lc.BaseMessage)}  # fmt: skip
    assert len(kinds) > 12
    assert [cls for cls in kinds if entry_for(cls) is None] == []


def test_a_message_is_stored_by_field_name_and_takes_little_more_than_its_text() -> None:
    human, ai = lc.HumanMessage("x" * 1024, id=str(uuid.uuid4())), lc.AIMessage("x" * 1024, id=str(uuid.uuid4()))
    assert len(codec.pack(human)) < 1150
    assert len(codec.pack(ai)) < 1160
    stored = codec.unpack(codec.pack(ai), opaque=True)
    assert stored == Opaque("langchain/AIMessage", 1, {"content": "x" * 1024, "id": ai.id})
    called = codec.unpack(codec.pack(lc.AIMessage("", tool_calls=[CALL], foo=1)), opaque=True)
    assert called.data == {"content": "", "tool_calls": [CALL], "foo": 1}
    sent = codec.unpack(codec.pack(lg.Send("n", 1)), opaque=True)
    assert sent == Opaque("langgraph/Send", 1, {"node": "n", "arg": 1})
    assert codec.unpack(codec.pack(lg.PregelTask("i", "n", ())), opaque=True).data["name"] == "n"


def test_a_diff_and_blame_go_by_field() -> None:
    store = open_store("memory://")
    state = {"messages": [lc.HumanMessage("a", id="1"), lc.AIMessage("b", id="2", tool_calls=[CALL])]}
    first = store.save("a", state)
    state["messages"][1].content = "c"
    second = store.save("a", state)
    state["messages"].append(lc.HumanMessage("d", id="3"))
    store.save("a", state)
    assert [(c.op, c.path, c.old, c.new) for c in store.diff(first, second)] == [
        ("replace", ("messages", 1, "content"), "b", "c")
    ]
    assert [c.seq for c in store.blame("a", "messages[1].content")] == [2, 1]
    assert [c.seq for c in store.blame("a", "messages[1].tool_calls[0].name")] == [1]


def test_two_values_restored_share_no_default() -> None:
    one, two = codec.unpack(codec.pack([lc.AIMessage("x"), lc.AIMessage("x")]))
    one.additional_kwargs["mine"] = one.tool_calls.append(CALL)
    one.extra = 1
    assert (two.additional_kwargs, two.tool_calls, two.model_extra) == ({}, [], {})
    assert codec.unpack(codec.pack(lc.AIMessage("x"))).additional_kwargs == {}


def test_a_field_that_came_since_has_its_default_and_one_that_went_is_kept() -> None:
    class Before(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(extra="allow")
        text: str
        gone: int = 1

    class After(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(extra="allow")
        text: str
        notes: list[str] = pydantic.Field(default_factory=list)
        size: int = 7
        seen: dict[str, list[int]] = {"a": [1]}
        first: str = pydantic.Field(default_factory=lambda data: data["text"][:1])

    class Wants(After):
        asked: str

    for cls in (Before, After, Wants):
        dump, load = models.by_field_name(cls)
        provide(cls, name=f"types.{cls.__name__}", dump=dump, load=load, model=True)
    stored = codec.unpack(codec.pack(Before(text="hello", gone=3)), opaque=True).data
    one, two = (codec.unpack(codec.pack(Opaque("types.After", 1, stored))) for _ in range(2))
    assert (one.text, one.notes, one.size, one.seen, one.first) == ("hello", [], 7, {"a": [1]}, "h")
    assert (one.model_extra, one.model_fields_set) == ({"gone": 3}, {"text", "gone"})
    one.seen["a"].append(2)
    one.notes.append("mine")
    assert (two.seen, two.notes) == ({"a": [1]}, [])
    with pytest.raises(InvalidInputError) as raised:
        codec.unpack(codec.pack(Opaque("types.Wants", 1, stored)))
    assert raised.value.code == "type-load-failed"
    assert "'asked'" in raised.value.message


def test_a_default_of_another_type_that_is_equal_is_kept() -> None:
    message = lc.AIMessage("x")
    message.additional_kwargs = OrderedDict()
    message.type = type("Word", (str,), {})("ai")  # type: ignore[assignment]
    with pytest.raises(InvalidInputError):  # it is not taken for the default: so it is seen that nobody registered it
        codec.pack(message)
    message.type = "ai"
    message.tool_calls = ()  # type: ignore[assignment]
    again = codec.unpack(codec.pack(message))
    assert (type(again.additional_kwargs), again.tool_calls) == (OrderedDict, ())


ALONE = """
import sys
import rekindle
from langchain_core.messages import AIMessage, HumanMessage
from rekindle.state.values import codec

rekindle.register(AIMessage, name="mine.AI")
mine = codec.pack(AIMessage("x", id="1"))
from rekindle.adapters.langgraph.types import register_types
register_types()
register_types()
assert codec.pack(AIMessage("x", id="1")) == mine
assert codec.unpack(mine) == AIMessage("x", id="1")
# what was stored before it was registered here can be read, and so can a message registered afterwards
ours = codec.pack(HumanMessage("y"))
rekindle.register(HumanMessage, name="mine.Human")
assert codec.unpack(ours) == HumanMessage("y")
assert b"mine.Human" in codec.pack(HumanMessage("y"))
named = codec.pack(rekindle.Opaque("langchain/AIMessage", 1, {"content": "x"}))
assert codec.unpack(named) == AIMessage("x")
"""


def test_a_class_that_the_program_registered_keeps_its_name() -> None:
    subprocess.run([sys.executable, "-c", ALONE], check=True)


def test_rekindle_is_imported_without_any_framework() -> None:
    code = "import rekindle, rekindle.cli, rekindle.adapters, sys; assert not {'langgraph', 'langchain_core', 'pydantic'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "data",
    [
        None, 1, "x", [], [1], {}, {"content": 1, "$set": 5}, {"content": "x", "$set": [[1]]}, {"$private": 1}, {"": ""},
        [{}, [], None, None], [{"content": 1}, 5, 1, 1], {"content": "x", "type": b"", "$private": 3, "z": 1},
    ],
    ids=repr,
)  # fmt: skip
def test_data_that_is_no_message_is_refused_or_read(data: Any) -> None:
    for name in (
        "langchain/AIMessage",
        "langgraph/Send",
        "langgraph/PregelTask",
        "python/IPv4Address",
        "python/ZoneInfo",
    ):
        try:
            codec.unpack(codec.pack(Opaque(name, 1, data)))
        except InvalidInputError as e:
            assert e.code == "type-load-failed"
