"""Real graphs on a RekindleSaver: what LangGraph promises of a checkpointer, and what others' savers get wrong."""

import asyncio
import logging
import operator
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, Send, interrupt

import rekindle
from rekindle.adapters.langgraph import RekindleSaver, checkpoint_node
from rekindle.storage.base import Key


class Chat(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]
    note: Any


def thread(name: str = "t", **more: Any) -> Any:
    return {"configurable": {"thread_id": name, **more}}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[rekindle.Store]:
    with rekindle.open_store(tmp_path / "chat.db") as opened:
        yield opened


@pytest.fixture
def saver(store: rekindle.Store) -> RekindleSaver:
    return RekindleSaver(store)


def chain(*names: str) -> StateGraph[Any]:
    """A graph of nodes in a row, each of which appends its name to the log."""
    graph: StateGraph[Any] = StateGraph(Chat)
    for name in names:
        graph.add_node(name, lambda state, name=name: {"log": [f"{name} {len(state.get('log', []))} " + "x" * 200]})
    for a, b in zip((START, *names), (*names, END), strict=True):
        graph.add_edge(a, b)
    return graph


def test_a_run_goes_on_in_another_process_where_it_stopped(tmp_path: Path) -> None:
    url = str(tmp_path / "chat.db")
    with RekindleSaver.from_conn_string(url) as saver:
        graph = chain("a", "b", "c").compile(checkpointer=saver, interrupt_before=["b"])
        graph.invoke({"log": ["hello"]}, thread())
    with RekindleSaver.from_conn_string(url) as saver:
        graph = chain("a", "b", "c").compile(checkpointer=saver)
        assert graph.get_state(thread()).next == ("b",)
        done = graph.invoke(None, thread())
    assert [line.split()[0] for line in done["log"]] == ["hello", "a", "b", "c"]


def test_a_person_is_asked_and_answers_later(saver: RekindleSaver) -> None:
    def ask(state: Chat) -> Chat:
        return {"log": [interrupt({"question": "go on?"})]}

    graph: Any = StateGraph(Chat)
    graph.add_node("ask", ask)
    graph.add_edge(START, "ask")
    graph = graph.compile(checkpointer=saver)
    asked = graph.invoke({"log": []}, thread())
    assert asked["__interrupt__"][0].value == {"question": "go on?"}
    assert graph.get_state(thread()).tasks[0].interrupts[0].value == {"question": "go on?"}
    assert graph.invoke(Command(resume="yes"), thread())["log"] == ["yes"]


def test_sends_run_side_by_side_and_the_tasks_that_were_done_are_not_run_again(saver: RekindleSaver) -> None:
    ran: list[int] = []

    def work(state: Any) -> Chat:
        ran.append(state["n"])
        if state["n"] == 2 and ran.count(2) == 1:
            raise RuntimeError("the second one fails the first time")
        return {"log": [state["n"]]}

    graph: Any = StateGraph(Chat)
    graph.add_node("plan", lambda state: {})
    graph.add_node("work", work)
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", lambda state: [Send("work", {"n": n}) for n in (1, 2, 3)], ["work"])
    graph = graph.compile(checkpointer=saver)
    with pytest.raises(RuntimeError):
        graph.invoke({"log": []}, {**thread(), "max_concurrency": 1})
    before = list(ran)
    assert sorted(graph.invoke(None, thread())["log"]) == [1, 2, 3]
    assert ran.count(1) == 1, "what task 1 had written was there"
    assert before


def test_a_subgraph_has_a_namespace_and_its_past_can_be_gone_back_to(saver: RekindleSaver) -> None:
    inner = chain("one", "two").compile(checkpointer=True)
    outer: Any = StateGraph(Chat)
    outer.add_node("inner", inner)
    outer.add_edge(START, "inner")
    outer = outer.compile(checkpointer=saver)
    outer.invoke({"log": ["hello"]}, thread())
    namespaces = {each.config["configurable"]["checkpoint_ns"] for each in saver.list(thread())}
    assert namespaces == {"", "inner"}
    [root] = list(saver.threads())
    assert root.thread_id == "t"
    inside = list(saver.list(thread(checkpoint_ns="inner")))
    assert [each.metadata["step"] for each in inside] == [2, 1, 0, -1]
    past = inside[1]
    found = saver.get_tuple(past.config)
    assert found is not None
    assert len(found.checkpoint["channel_values"]["log"]) == 2


def test_going_back_and_on_is_a_branch(saver: RekindleSaver, store: rekindle.Store) -> None:
    graph = chain("a", "b").compile(checkpointer=saver)
    graph.invoke({"log": ["hello"]}, thread())
    history = list(graph.get_state_history(thread()))
    before_b = next(each for each in history if each.next == ("b",))
    forked = graph.update_state(before_b.config, {"log": ["by hand"]})
    done = graph.invoke(None, forked)
    assert [line.split()[0] for line in done["log"]] == ["hello", "a", "by", "b"]
    assert len(store.branches("t")) == 2
    assert graph.get_state(thread()).values == done, "the newest is what the thread is at"
    first = graph.get_state(history[0].config).values
    assert [line.split()[0] for line in first["log"]] == ["hello", "a", "b"], "the other one is as it was"
    assert store.verify(restore=False)


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_every_durability_ends_the_same(saver: RekindleSaver, durability: Any) -> None:
    graph = chain("a", "b", "c").compile(checkpointer=saver)
    for text in ("one", "two"):
        graph.invoke({"log": [text]}, thread(), durability=durability)
    log = graph.get_state(thread()).values["log"]
    assert [line.split()[0] for line in log] == ["one", "a", "b", "c", "two", "a", "b", "c"]
    count = len(list(saver.list(thread())))
    assert count == (2 if durability == "exit" else 10)


def test_one_saver_serves_threads_and_tasks(tmp_path: Path) -> None:
    async def run() -> None:
        async with RekindleSaver.from_conn_string(tmp_path / "chat.db") as saver:
            graph = chain("a", "b").compile(checkpointer=saver)
            await asyncio.gather(*(graph.ainvoke({"log": [n]}, thread(f"t{n}")) for n in range(8)))
            assert [len((await graph.aget_state(thread(f"t{n}"))).values["log"]) for n in range(8)] == [3] * 8
            listed = [each async for each in saver.alist(thread("t3"))]
            assert [each.metadata["step"] for each in listed] == [2, 1, 0, -1]
        with RekindleSaver.from_conn_string(tmp_path / "chat.db") as saver:
            assert len(saver.get_tuple(thread("t5")).checkpoint["channel_values"]["log"]) == 3  # type: ignore[union-attr]

    asyncio.run(run())


class Mood(Enum):
    CALM = "calm"


@rekindle.register(name="tests/Order")
@dataclass
class Order:
    item: str
    price: tuple[int, str]


rekindle.register(Mood, name="tests/Mood")

WILD = [
    "a\0b", "\ud800", float("nan"), 2**200, -(2**65), (1, (2,)), {1: "one", (1, 2): "two"}, {"a"}, Mood.CALM,
    Order("tea", (3, "EUR")), b"\0\xff", frozenset({1}), 1 + 2j, None, True,
]  # fmt: skip


@pytest.mark.parametrize("value", WILD, ids=repr)
def test_what_others_lose_comes_back(saver: RekindleSaver, value: Any, caplog: pytest.LogCaptureFixture) -> None:
    graph: Any = StateGraph(Chat)
    graph.add_node("keep", lambda state: {"note": value, "log": [value]})
    graph.add_edge(START, "keep")
    graph = graph.compile(checkpointer=saver)
    with caplog.at_level(logging.WARNING):
        graph.invoke({"note": value, "log": [value]}, thread(who="a\0b"))
        found = graph.get_state(thread()).values
    assert repr(found["note"]) == repr(value)
    assert type(found["note"]) is type(value)
    assert repr(found["log"]) == repr([value, value])
    assert [write for each in saver.list(thread()) for write in each.pending_writes or ()]
    assert {each.metadata["who"] for each in saver.list(thread())} == {"a\0b"}
    assert not caplog.records


def test_a_class_nobody_registered_is_refused_with_its_place(saver: RekindleSaver) -> None:
    @dataclass
    class Stranger:
        x: int

    graph: Any = StateGraph(Chat)
    graph.add_node("keep", lambda state: {"note": [Stranger(1)]})
    graph.add_edge(START, "keep")
    with pytest.raises(rekindle.InvalidInputError) as refused:
        graph.compile(checkpointer=saver).invoke({"log": []}, thread())
    assert refused.value.code == "type-unregistered"


def test_what_comes_late_brings_no_deleted_thread_back(saver: RekindleSaver, store: rekindle.Store) -> None:
    graph = chain("a").compile(checkpointer=saver)
    graph.invoke({"log": ["hello"]}, thread())
    last = saver.get_tuple(thread())
    assert last is not None
    saver.delete_thread("t")
    with pytest.raises(rekindle.RekindleError) as late:
        saver.put(last.config, {**empty_checkpoint(), "id": "later"}, {}, {})
    assert late.value.code == "parent-gone"
    with pytest.raises(rekindle.ConflictError) as later:
        saver.put_writes(last.config, [("log", ["late"])], "task")
    assert later.value.code == "checkpoint-deleted"
    inside = {"configurable": {"thread_id": "t", "checkpoint_ns": "sub"}}
    with pytest.raises(rekindle.ConflictError) as below:
        saver.put(inside, empty_checkpoint(), {"parents": {"": last.checkpoint["id"]}}, {})
    assert below.value.code == "checkpoint-deleted"
    assert saver.get_tuple(thread()) is None
    assert list(saver.threads()) == []
    graph.invoke({"log": ["anew"]}, thread())
    assert len(graph.get_state(thread()).values["log"]) == 2
    store.collect()
    assert len(graph.get_state(thread()).values["log"]) == 2
    assert store.verify()


def test_deleting_a_thread_can_be_undone(saver: RekindleSaver, store: rekindle.Store) -> None:
    graph = chain("a").compile(checkpointer=saver, interrupt_before=["a"])
    graph.invoke({"log": ["hello"]}, thread())
    before = [(each.checkpoint["id"], list(each.pending_writes or ())) for each in saver.list(thread())]
    assert any(writes for _, writes in before)
    saver.delete_thread("t")
    assert list(saver.list(thread())) == []
    store.undo()
    assert [(each.checkpoint["id"], list(each.pending_writes or ())) for each in saver.list(thread())] == before


def test_two_writers_are_both_kept_and_told_of(
    saver: RekindleSaver, store: rekindle.Store, caplog: pytest.LogCaptureFixture
) -> None:
    graph = chain("a").compile(checkpointer=saver)
    graph.invoke({"log": ["hello"]}, thread())
    begun = saver.get_tuple(thread())
    assert begun is not None
    graph.invoke({"log": ["first"]}, thread())
    second = {**begun.checkpoint, "id": "00000000-0000-0000-0000-000000000002"}
    with caplog.at_level(logging.WARNING, "rekindle.langgraph"):
        fresh = RekindleSaver(store)
        fresh.put(begun.config, second, {"source": "loop", "step": 9}, {})
    assert "two writers on thread 't'" in caplog.text
    assert set(store.branches("t")) == {"main", "main-2"}
    strict = RekindleSaver(store, two_writers="refuse")
    with pytest.raises(rekindle.ConflictError) as refused:
        strict.put(begun.config, {**second, "id": "00000000-0000-0000-0000-000000000003"}, {}, {})
    assert refused.value.code == "head-moved"
    strict.get_tuple(begun.config)  # asked for by its id: a fork, and no second writer
    strict.put(begun.config, {**second, "id": "00000000-0000-0000-0000-000000000004"}, {}, {})
    assert set(store.branches("t")) == {"main", "main-2", "main-3"}


def test_who_only_looked_at_a_checkpoint_may_be_a_second_writer_later(
    saver: RekindleSaver, store: rekindle.Store
) -> None:
    strict = RekindleSaver(store, two_writers="refuse")
    chain("a").compile(checkpointer=saver).invoke({"log": ["hello"]}, thread())
    newest = strict.get_tuple(thread())
    assert newest is not None
    strict.get_tuple(newest.config)  # somebody looks at it
    begun = strict.get_tuple(thread())  # a run begins
    assert begun is not None
    chain("a").compile(checkpointer=saver).invoke({"log": ["first"]}, thread())
    with pytest.raises(rekindle.ConflictError) as refused:
        strict.put(begun.config, {**begun.checkpoint, "id": "00000000-0000-0000-0000-000000000002"}, {}, {})
    assert refused.value.code == "head-moved"


def test_a_list_reads_no_state(saver: RekindleSaver) -> None:
    loads: list[int] = []

    class Counted:
        def to_state(self) -> int:
            return 1

        @classmethod
        def from_state(cls, state: int) -> "Counted":
            loads.append(state)
            return cls()

    rekindle.register(Counted, name="tests/Counted")
    graph: Any = StateGraph(Chat)
    graph.add_node("keep", lambda state: {"log": [Counted()]})
    graph.add_edge(START, "keep")
    graph = graph.compile(checkpointer=saver)
    for _ in range(3):
        graph.invoke({"log": [Counted()]}, thread())
    loads.clear()
    found = list(saver.list(thread(), limit=100))
    assert [each.checkpoint["channel_versions"] for each in found]
    assert [each.metadata["source"] for each in found].count("input") == 3
    assert loads == []
    assert len(found[0].checkpoint["channel_values"]["log"]) == 6
    assert len(loads) == 6


def test_threads_are_listed_the_newest_first(saver: RekindleSaver) -> None:
    graph = chain("a").compile(checkpointer=saver)
    for name in ("one", "two|with a bar", "50%", "one"):
        graph.invoke({"log": [name]}, thread(name))
    assert {each.thread_id for each in saver.threads()} == {"one", "two|with a bar", "50%"}
    assert next(saver.threads()).thread_id == "one"
    assert next(saver.threads()).metadata["source"] == "loop"


def test_a_thread_is_copied_with_what_is_pending_on_it(saver: RekindleSaver, store: rekindle.Store) -> None:
    graph = chain("a", "b").compile(checkpointer=saver, interrupt_before=["b"])
    graph.invoke({"log": ["hello"]}, thread())
    saver.copy_thread("t", "copy")
    assert [e.checkpoint["id"] for e in saver.list(thread("copy"))] == [
        e.checkpoint["id"] for e in saver.list(thread())
    ]
    graph.invoke(None, thread("copy"))
    assert len(graph.get_state(thread("copy")).values["log"]) == 3
    assert len(graph.get_state(thread()).values["log"]) == 2
    assert store.verify()


def test_pruning_keeps_what_a_delta_channel_is_made_of(saver: RekindleSaver, store: rekindle.Store) -> None:
    def joined(value: list[Any], writes: list[list[Any]]) -> list[Any]:
        return [*value, *(item for write in writes for item in write)]

    class Delta(TypedDict):
        log: Annotated[list[Any], DeltaChannel(joined, snapshot_frequency=4)]

    def built(checkpointer: Any) -> Any:
        graph: Any = StateGraph(Delta)
        graph.add_node("a", lambda state: {"log": [f"a {len(state['log'])}"]})
        graph.add_edge(START, "a")
        return graph.compile(checkpointer=checkpointer)

    theirs, ours = built(InMemorySaver()), built(saver)
    for n in range(7):
        assert ours.invoke({"log": [n]}, thread()) == theirs.invoke({"log": [n]}, thread())
    before = len(list(saver.list(thread())))
    saver.prune(["t"])
    assert 1 < len(list(saver.list(thread()))) < before
    assert ours.get_state(thread()).values == theirs.get_state(thread()).values
    store.collect()
    assert ours.invoke({"log": ["on"]}, thread()) == theirs.invoke({"log": ["on"]}, thread())


def test_a_delta_channel_of_pruned_checkpoints_is_no_shorter_value(saver: RekindleSaver, store: rekindle.Store) -> None:
    def joined(value: list[Any], writes: list[list[Any]]) -> list[Any]:
        return [*value, *(item for write in writes for item in write)]

    class Delta(TypedDict):
        log: Annotated[list[Any], DeltaChannel(joined, snapshot_frequency=1000)]

    graph: Any = StateGraph(Delta)
    graph.add_node("a", lambda state: {"log": [f"a {len(state['log'])}"]})
    graph.add_edge(START, "a")
    graph = graph.compile(checkpointer=saver)
    for n in range(5):
        graph.invoke({"log": [n]}, thread())
    whole = graph.get_state(thread()).values
    store.prune("keep-last=2")
    for call in (lambda: graph.get_state(thread()), lambda: graph.invoke({"log": ["on"]}, thread())):
        with pytest.raises(rekindle.NotFoundError) as refused:
            call()
        assert refused.value.code == "parent-gone"
    store.undo()
    assert graph.get_state(thread()).values == whole


def test_versions_of_another_saver_are_gone_on_with(saver: RekindleSaver) -> None:
    assert saver.get_next_version(None, None) == 1
    assert saver.get_next_version(7, None) == 8
    texts = ["00000000000000000000000000000009.0.5"]
    for _ in range(3):
        texts.append(saver.get_next_version(texts[-1], None))
    assert texts == sorted(texts)
    assert texts[-1].startswith("00000000000000000000000000000012.")


def test_a_thread_is_an_agent_of_the_store(saver: RekindleSaver, store: rekindle.Store) -> None:
    graph: Any = StateGraph(MessagesState)
    graph.add_node("agent", lambda state: {"messages": [AIMessage("the answer " * 20)]})
    graph.add_edge(START, "agent")
    graph = graph.compile(checkpointer=saver)
    for _ in range(3):
        graph.invoke({"messages": [HumanMessage("a question " * 20)]}, thread("chat"))
    assert store.agents() == ["chat"]
    assert [c.label for c in store.history("chat", limit=3)] == ["loop 7", "loop 6", "input 5"]
    changes = store.diff("chat@-2", "chat")
    assert [change.path for change in changes if change.op == "add"] == [("messages", 5)]
    assert [c.label for c in store.blame("chat", "messages[1].content")] == ["loop 1"]
    assert store.verify(restore=True, imports=["rekindle.adapters.langgraph"])


def test_exported_threads_bring_their_pending_writes(
    saver: RekindleSaver, store: rekindle.Store, tmp_path: Path
) -> None:
    graph = chain("a", "b").compile(checkpointer=saver, interrupt_before=["b"])
    graph.invoke({"log": ["hello"]}, thread())
    store.export("t", tmp_path / "t.rekindle")
    with rekindle.open_store(tmp_path / "other.db") as other:
        other.import_(tmp_path / "t.rekindle")
        elsewhere = RekindleSaver(other)
        here = [(each.checkpoint["id"], list(each.pending_writes or ())) for each in saver.list(thread())]
        assert [(each.checkpoint["id"], list(each.pending_writes or ())) for each in elsewhere.list(thread())] == here
        assert len(chain("a", "b").compile(checkpointer=elsewhere).invoke(None, thread())["log"]) == 3
        assert other.import_(tmp_path / "t.rekindle") == []
        assert other.verify()


class Clocked(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]
    last_checkpoint_at: str
    checkpoint_count: int


def test_the_checkpoint_node_saves_when_its_interval_has_passed(saver: RekindleSaver, store: rekindle.Store) -> None:
    now = [1_000_000.0]
    graph: Any = StateGraph(Clocked)
    graph.add_node("work", lambda state: {"log": ["work"]})
    graph.add_node("checkpoint", checkpoint_node(interval=30, clock=lambda: now[0]))
    graph.add_edge(START, "work")
    graph.add_edge("work", "checkpoint")
    graph = graph.compile(checkpointer=saver)
    counts = []
    for passed in (0, 29, 1, 30, -500):
        now[0] += passed
        counts.append(graph.invoke({"log": []}, thread(), durability="exit").get("checkpoint_count"))
    assert counts == [1, 1, 2, 3, 4]
    kept = store.list("t|~routine")
    assert [c.label for c in kept] == ["checkpoint 4", "checkpoint 3", "checkpoint 2", "checkpoint 1"]
    assert {c.kind for c in kept} == {"routine"}
    assert [len(store.restore(c)["log"]) for c in kept] == [5, 4, 3, 1]


def test_the_checkpoint_node_never_fails_the_graph(caplog: pytest.LogCaptureFixture) -> None:
    graph: Any = StateGraph(Chat)
    graph.add_node("checkpoint", checkpoint_node())
    graph.add_edge(START, "checkpoint")
    with caplog.at_level(logging.ERROR, "rekindle.langgraph"):
        assert graph.compile().invoke({"log": [1]}, thread())["log"] == [1]
    assert "checkpoint_failed" in caplog.text


class Wide(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]
    summary: str
    facts: dict[str, Any]
    pair: tuple[str, ...]
    seen: set[str]


def test_channels_of_every_shape_come_back_and_so_does_every_entry(saver: RekindleSaver, store: rekindle.Store) -> None:
    def step(state: Wide) -> Wide:
        n = len(state["log"])
        return {
            "log": [f"{n} " + "l" * 300, {"n": n, "text": "m" * 300}],
            "summary": f"so far {n} " + "s" * 500,
            "facts": {**state.get("facts", {}), f"fact {n}": "f" * 700, "count": n},
            "pair": (f"{n}", "p" * 400),
            "seen": {*state.get("seen", ()), f"{n}" * 200},
        }

    graph: Any = StateGraph(Wide)
    graph.add_node("step", step)
    graph.add_edge(START, "step")
    ours, theirs = graph.compile(checkpointer=saver), graph.compile(checkpointer=InMemorySaver())
    for n in range(6):
        given = {"log": [f"ask {n} " + "q" * 300]}
        assert ours.invoke(given, thread()) == theirs.invoke(given, thread())
    for mine, other in zip(ours.get_state_history(thread()), theirs.get_state_history(thread()), strict=True):
        assert type(mine.values.get("pair", ())) is tuple  # theirs comes back as a list
        assert {**mine.values, "pair": 0} == {**other.values, "pair": 0}
        assert (mine.next, mine.metadata) == (other.next, other.metadata)
        assert [task.name for task in mine.tasks] == [task.name for task in other.tasks]
    report = store.verify(restore=True, imports=["rekindle.adapters.langgraph"])
    assert not report.problems
    assert report.entries > 12


def test_what_tasks_wrote_is_committed_with_the_checkpoint_that_follows(
    saver: RekindleSaver, store: rekindle.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rekindle.adapters.langgraph.putting._PATIENCE", 60)
    first = saver.put(thread(checkpoint_ns=""), {**empty_checkpoint(), "id": "1"}, {}, {})
    commits: list[int] = []
    append = store._engine.committer._write
    store._engine.committer._write = lambda batch: commits.append(len(batch)) or append(batch)  # type: ignore[func-returns-value]
    tip = store._engine.tip(Key("local", "t"))
    with ThreadPoolExecutor(3) as pool:
        given = [
            pool.submit(saver.put_writes, first, [("log", [text * 50])], task)
            for task, text in (("a", "one"), ("b", "two"), ("c", Stranger()))
        ]
        while len(tip.parked) < 3 and not any(each.done() for each in given):
            time.sleep(0)
        checkpoint: Any = {**empty_checkpoint(), "id": "2", "channel_values": {"log": ["one" * 50, "two" * 50]}}
        saver.put(first, checkpoint, {}, {"log": 2})
        assert [each.exception() for each in given[:2]] == [None, None]
        assert isinstance(given[2].exception(), rekindle.InvalidInputError)
    assert commits == [1]
    found = saver.get_tuple(first)
    assert found is not None
    assert [(task, value) for task, _, value in found.pending_writes or ()] == [
        ("a", ["one" * 50]),
        ("b", ["two" * 50]),
    ]
    assert store.verify()


class Stranger:
    """Of a type that nobody registered."""

    def __mul__(self, _: int) -> "Stranger":
        return self


def test_trusted_hands_the_same_objects_out_and_reads_what_others_put(tmp_path: Path) -> None:
    graph: Any = StateGraph(MessagesState)
    graph.add_node("agent", lambda state: {"messages": [AIMessage(f"answer {len(state['messages'])} " + "x" * 300)]})
    graph.add_edge(START, "agent")
    with (
        RekindleSaver.from_conn_string(tmp_path / "chat.db", changes="trusted") as trusted,
        RekindleSaver.from_conn_string(tmp_path / "chat.db") as other,
    ):
        mine, theirs = graph.compile(checkpointer=trusted), graph.compile(checkpointer=other)
        for n in range(12):
            said = (mine, theirs)[n % 4 == 3].invoke({"messages": [HumanMessage(f"ask {n} " + "y" * 300)]}, thread())
        first, second = (trusted.get_tuple(thread()) for _ in range(2))
        assert first is not None
        assert second is not None
        one, two = (each.checkpoint["channel_values"]["messages"] for each in (first, second))
        assert one == said["messages"]
        assert one is not two
        assert all(a is b for a, b in zip(one, two, strict=True))
        one.clear()
        two.append("not in the store")
        again = theirs.get_state(thread()).values["messages"]
        assert again == said["messages"] == mine.get_state(thread()).values["messages"]
        assert mine.invoke({"messages": [HumanMessage("on")]}, thread())["messages"][:-2] == again
        assert other.store.verify(restore=True, imports=["rekindle.adapters.langgraph"])


def test_channels_whose_versions_moved_are_looked_at_whatever_is_said_to_be_new(saver: RekindleSaver) -> None:
    def put(parent: Any, name: str, version: int, log: list[str], new: dict[str, int]) -> Any:
        values = {"log": log, "big": ["b" * 2000]}
        checkpoint: Any = {**empty_checkpoint(), "id": name, "channel_values": values}
        return saver.put(parent, {**checkpoint, "channel_versions": {"log": version, "big": 1}}, {}, new)

    root = put(thread(checkpoint_ns=""), "1", 1, ["x" * 2000], {"log": 1, "big": 1})
    child = put(root, "2", 2, ["y" * 2000], {})
    found = saver.get_tuple(child)
    assert found is not None
    assert found.checkpoint["channel_values"]["log"] == ["y" * 2000]


def test_writes_that_came_before_their_checkpoint_outlive_a_delete_that_did_not_know_it(
    saver: RekindleSaver, store: rekindle.Store
) -> None:
    chain("a").compile(checkpointer=saver).invoke({"log": ["hello"]}, thread())
    saver.put_writes(thread(checkpoint_id="later", checkpoint_ns=""), [("log", ["early" * 50])], "task")
    saver.delete_thread("t")
    saver.put(thread(checkpoint_ns=""), {**empty_checkpoint(), "id": "later"}, {}, {})
    found = saver.get_tuple(thread())
    assert found is not None
    assert found.pending_writes == [("task", "log", ["early" * 50])]
    saver.put_writes(thread(checkpoint_id="never", checkpoint_ns=""), [("log", ["secret" * 50])], "task")
    saver.delete_thread("t")
    store.collect()
    assert store.verify().entries == 0, "of a thread that is gone nothing is left"
