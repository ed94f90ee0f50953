"""`rekindle import --from langgraph` on databases that LangGraph's own saver wrote."""

import datetime as dt
import ipaddress
import json
import operator
import re
import signal
import sqlite3
import subprocess
import sys
import uuid
from collections import deque
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, TypedDict
from zoneinfo import ZoneInfo

import pytest

pytest.importorskip("langgraph.checkpoint.sqlite")

from click.testing import CliRunner, Result
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    AnyMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, Interrupt, Send

import rekindle
from rekindle.adapters.langgraph import RekindleSaver
from rekindle.cli.app import root

STRICT = JsonPlusSerializer(allowed_msgpack_modules=None)


class Chat(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    seen: Annotated[list[Any], operator.add]


def graph(saver: Any) -> Any:
    made = StateGraph(Chat)
    made.add_node("answer", lambda state: {"messages": [AIMessage(f"answer {len(state['messages'])}")], "seen": [1]})
    made.add_edge(START, "answer")
    return made.compile(checkpointer=saver)


def talk(path: Path, turns: int, *threads: str) -> None:
    with closing(sqlite3.connect(path, check_same_thread=False)) as db:
        chat = graph(SqliteSaver(db, serde=STRICT))
        for thread in threads:
            for turn in range(turns):
                chat.invoke({"messages": [HumanMessage(f"turn {turn} " + "lorem ipsum " * 50)]}, at(thread))


def at(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("REKINDLE_STORE", raising=False)
    return tmp_path


def cli(*args: str, code: int = 0) -> Result:
    done = CliRunner().invoke(root, list(args))
    assert done.exit_code == code, f"{args}: {done.exit_code}\n{done.stdout}\n{done.stderr}"
    return done


def refused(*args: str, code: int) -> Any:
    said = cli(*args, code=code).stderr
    error = json.loads(cli(*args, "--json", code=code).stderr)["error"]
    assert error["message"].splitlines()[0] in said
    return error


def test_a_program_goes_on_in_this_store(folder: Path) -> None:
    talk(folder / "chat.sqlite", 30, "ada", "bob")
    before = (folder / "chat.sqlite").read_bytes()
    done = cli("import", "chat.sqlite", "--from", "langgraph")
    assert "imported 180 checkpoints of 2 threads" in done.stdout
    assert "compared each" in done.stdout
    assert "times less" in done.stdout
    assert "RekindleSaver(store)" in done.stderr
    assert (folder / "chat.sqlite").read_bytes() == before
    with rekindle.open_store() as store:
        assert {"ada", "bob"} <= set(store.agents())
        ended = graph(RekindleSaver(store)).invoke({"messages": [HumanMessage("and now?")]}, at("ada"))
        assert len(ended["messages"]) == 62
        assert ended["messages"][-1].content == "answer 61"
        assert store.verify(restore=True, imports=["rekindle.adapters.langgraph"])
    assert "nothing new" not in cli("import", "chat.sqlite", "--from", "langgraph", "--store", "other.db").stdout


def test_again_brings_what_is_new(folder: Path) -> None:
    talk(folder / "chat.sqlite", 2, "ada")
    first = json.loads(cli("import", "chat.sqlite", "--from", "langgraph", "--json").stdout)
    assert first.keys() == {"threads", "checkpoints", "known", "writes", "cut", "orphans", "bytes", "seconds"}
    assert (first["threads"], first["checkpoints"], first["known"]) == (1, 6, 0)
    assert first["bytes"]["source"] == (folder / "chat.sqlite").stat().st_size
    assert first["bytes"]["store"] > 0
    assert "nothing new" in cli("import", "sqlite:///chat.sqlite", "--from", "langgraph").stdout
    talk(folder / "chat.sqlite", 1, "ada", "eve")
    said = cli("import", "chat.sqlite", "--from", "langgraph").stdout
    assert "imported 6 checkpoints of 2 threads" in said
    assert "6 checkpoints of it were here already" in said


def values() -> dict[str, Any]:
    zone = ZoneInfo("Europe/Lisbon")
    return {
        "messages": [
            SystemMessage("s"),
            AIMessageChunk("c"),
            ToolMessage("t", tool_call_id="1"),
            RemoveMessage(id="7"),
        ],
        "calls": [AIMessage("", tool_calls=[{"name": "f", "args": {"x": 1}, "id": "1"}])],
        "documents": [Document("text", metadata={"page": 1})],
        "graph": [Send("node", {"x": 1}), Interrupt(value="why", id="i"), Command(update={"x": 1}, goto="node")],
        "times": [dt.datetime(2026, 1, 2, tzinfo=zone), dt.date(2026, 1, 2), dt.time(3, 4), dt.timedelta(1, 2), dt.UTC],
        "addresses": [ipaddress.ip_address("::1"), ipaddress.ip_network("10.0.0.0/8")],
        "others": [
            uuid.UUID(int=7),
            Decimal("1.50"),
            Path("/srv"),
            re.compile("a+", re.I),
            deque([1]),
            {1},
            frozenset({2}),
        ],
        "plain": [None, True, 1, 1.0, float("nan"), -0.0, "\0 text", b"bytes", [[]], {"1": 1}, {1: 2}, 2**63],
    }


def test_everything_their_serializer_calls_safe_comes_over(folder: Path) -> None:
    with closing(sqlite3.connect("chat.sqlite")) as db:
        saver = SqliteSaver(db, serde=STRICT)
        for n, (name, value) in enumerate(values().items()):
            made: Any = {**empty_checkpoint(), "channel_values": {name: value}, "channel_versions": {name: n + 1}}
            config: Any = {"configurable": {"thread_id": name, "checkpoint_ns": ""}}
            there = saver.put(config, made, {"step": n}, {name: n + 1})
            saver.put_writes(there, [(name, value)], "task")
    done = json.loads(cli("import", "chat.sqlite", "--from", "langgraph", "--json").stdout)
    assert (done["checkpoints"], done["writes"]) == (len(values()), len(values()))
    with rekindle.open_store() as store:
        for name, value in values().items():
            found = RekindleSaver(store).get_tuple(at(name))
            assert found is not None
            expected = STRICT.loads_typed(STRICT.dumps_typed(value))
            assert repr(found.checkpoint["channel_values"][name]) == repr(expected)


DYING = """
import os, signal
from pathlib import Path
import rekindle
from rekindle.adapters.langgraph import RekindleSaver
from rekindle.adapters.langgraph.moving import move

class Dying(RekindleSaver):
    left = 20

    def put_writes(self, *args):
        self.left -= 1
        if not self.left:
            os.kill(os.getpid(), signal.SIGKILL)
        super().put_writes(*args)

move(Path("chat.sqlite"), Dying(rekindle.open_store()))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX system")
def test_an_import_that_was_killed_is_gone_on_with(folder: Path) -> None:
    talk(folder / "chat.sqlite", 10, "ada", "bob")
    assert python("-c", DYING).returncode == -signal.SIGKILL
    done = json.loads(cli("import", "chat.sqlite", "--from", "langgraph", "--json").stdout)
    assert 10 < done["known"] < 30
    assert done["known"] + done["checkpoints"] == 60
    with rekindle.open_store() as store, closing(sqlite3.connect("chat.sqlite", check_same_thread=False)) as db:
        theirs, ours = SqliteSaver(db, serde=STRICT), RekindleSaver(store)
        for one in theirs.list(None):
            found = ours.get_tuple(one.config)
            assert found is not None
            assert found.checkpoint == one.checkpoint
            assert found.pending_writes == one.pending_writes
            assert found.parent_config == one.parent_config
            assert found.metadata == one.metadata


def test_what_is_gone_there_is_said(folder: Path) -> None:
    talk(folder / "chat.sqlite", 2, "ada")
    with closing(sqlite3.connect("chat.sqlite")) as db, db:
        db.execute("DELETE FROM checkpoints WHERE checkpoint_id IN (SELECT min(checkpoint_id) FROM checkpoints)")
    said = cli("import", "chat.sqlite", "--from", "langgraph").stdout
    assert "1 checkpoint had a parent that is gone there" in said
    assert "stayed" in said


def test_the_only_thread_may_get_another_name(folder: Path) -> None:
    talk(folder / "one.sqlite", 1, "ada")
    cli("import", "one.sqlite", "--from", "langgraph", "--agent", "planner")
    with rekindle.open_store() as store:
        assert store.agents() == ["planner"]
    talk(folder / "two.sqlite", 1, "ada", "bob")
    assert refused("import", "two.sqlite", "--from", "langgraph", "--agent", "x", code=2)["code"] == "several-threads"


def test_nothing_is_made_for_what_cannot_be_imported(folder: Path) -> None:
    (folder / "notes.txt").write_text("no database")
    for source, code, name in (
        ("notes.txt", 2, "not-langgraph"), ("missing.sqlite", 4, "no-file"), (".", 2, "is-folder"),
        ("-", 2, "usage"), ("postgresql://server/db", 8, "no-such-import"),
    ):  # fmt: skip
        assert refused("import", source, "--from", "langgraph", code=code)["code"] == name
    talk(folder / "chat.sqlite", 1, "ada")
    error = refused("import", "chat.sqlite", "--from", "langgraph", "--import", "no.such.module", code=2)
    assert error["code"] == "bad-import"
    assert refused("import", "x", "--import", "json", code=2)["code"] == "usage"
    assert not (folder / ".rekindle").exists()


SHOP = """
from dataclasses import dataclass
import rekindle

@rekindle.register(name="shop-order")
@dataclass
class Order:
    customer: str
    price: float
"""
WRITE = """
import sqlite3, shop
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

saver = SqliteSaver(sqlite3.connect("shop.sqlite"), serde=JsonPlusSerializer(allowed_msgpack_modules=None))
values = {"orders": [shop.Order("ada", 12.5)]}
made = {**empty_checkpoint(), "channel_values": values, "channel_versions": {"orders": 1}}
saver.put({"configurable": {"thread_id": "shop", "checkpoint_ns": ""}}, made, {}, {"orders": 1})
"""


def python(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *args], capture_output=True, text=True, timeout=60, check=False)


def test_types_of_the_user_come_over_when_their_module_is_named(folder: Path) -> None:
    (folder / "shop.py").write_text(SHOP)
    assert python("-c", WRITE).returncode == 0
    command = ("-m", "rekindle", "import", "shop.sqlite", "--from", "langgraph")
    without = python(*command)
    assert without.returncode == 2
    assert "thread 'shop'" in without.stderr
    assert "shop.Order, which is not registered" in without.stderr
    assert "--import your.module" in without.stderr
    done = python(*command, "--import", "shop")
    assert (done.returncode, done.stdout.partition(" in ")[0]) == (0, "imported 1 checkpoint of 1 thread"), done.stderr
    with rekindle.open_store() as store:
        assert "shop-order" in repr(store.get("shop@-1").to_dict()) or store.restore("shop@-1", opaque=True)


def test_without_langgraph_it_says_how_to_get_it(folder: Path) -> None:
    run = "import sys; sys.modules['langgraph'] = None; from rekindle.cli import main; main()"
    done = python("-c", run, "import", "chat.sqlite", "--from", "langgraph")
    assert done.returncode == 8
    assert "pip install 'rekindle[langgraph]'" in done.stderr
