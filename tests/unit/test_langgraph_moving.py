"""A database of LangGraph's own SqliteSaver comes over whole, the same, and no further than it is understood."""

import datetime
import json
import operator
import random
import sqlite3
import sys
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

pytest.importorskip("langgraph.checkpoint.sqlite")

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.base import WRITES_IDX_MAP, BaseCheckpointSaver, CheckpointTuple, empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, Send, interrupt

import rekindle
from rekindle.adapters.langgraph.moving import Moved, bytes_of, move, path_of
from rekindle.adapters.langgraph.moving.order import Write, calls, in_order, sorted_writes
from rekindle.errors import ConflictError, CorruptDataError, InvalidInputError, RekindleError, UnavailableError

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX system")
SAFE = JsonPlusSerializer(allowed_msgpack_modules=None)


class Chat(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    notes: Annotated[list[Any], operator.add]


@dataclass
class Order:
    customer: str
    price: float


class Stranger:
    """Of a class that nobody registers; their serializer would import whatever module is named."""


def chat(saver: BaseCheckpointSaver[Any]) -> Any:
    """A graph with two branches at once, a subgraph that has a namespace of its own, and an interrupt."""

    def ask(state: Chat) -> Any:
        notes = [{"at": datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC), "id": uuid.UUID(int=7), "n": float("nan")}]
        return {"messages": [AIMessage("what for?")], "notes": notes}

    def tool(state: Any) -> Any:
        return {"notes": [("tool", {1, 2, 3}, b"\0bytes", state.get("n"))]}

    def approve(state: Chat) -> Any:
        return {"messages": [HumanMessage(str(interrupt({"really": True})))]}

    inner = StateGraph(Chat)
    inner.add_node("approve", approve)
    inner.add_edge(START, "approve")
    graph = StateGraph(Chat)
    graph.add_node("ask", ask)
    graph.add_node("tool", tool)
    graph.add_node("inner", inner.compile())
    graph.add_edge(START, "ask")
    graph.add_conditional_edges("ask", lambda state: [Send("tool", {"n": 1}), Send("tool", {"n": 2})])
    graph.add_edge("tool", "inner")
    graph.add_edge("inner", END)
    return graph.compile(checkpointer=saver)


def config(thread: str, id_: str | None = None, namespace: str = "") -> Any:
    place = {"thread_id": thread, "checkpoint_ns": namespace}
    return {"configurable": place if id_ is None else {**place, "checkpoint_id": id_}}


@contextmanager
def saver_of(path: Path, serde: Any = None) -> Iterator[SqliteSaver]:
    with closing(sqlite3.connect(path, check_same_thread=False)) as db:
        yield SqliteSaver(db, serde=serde or SAFE)


def talk(path: Path, threads: int = 2) -> None:
    with saver_of(path) as saver:
        graph = chat(saver)
        for n in range(threads):
            at = {"configurable": {"thread_id": f"t{n}"}}
            graph.invoke({"messages": [HumanMessage("hello")], "notes": []}, at)
            if n % 2:  # the others wait at the interrupt
                graph.invoke(Command(resume="yes"), at)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "chat.sqlite"
    talk(path)
    return path


def everything(saver: BaseCheckpointSaver[Any]) -> dict[tuple[str, str, str], CheckpointTuple]:
    found = {}
    for one in saver.list(None):
        place = one.config["configurable"]
        found[place["thread_id"], place["checkpoint_ns"], place["checkpoint_id"]] = one
    return found


def told(one: CheckpointTuple) -> Any:
    """All that a checkpoint says, so that equal means the same; NaN included."""
    values = one.checkpoint["channel_values"]
    rest = {k: v for k, v in one.checkpoint.items() if k != "channel_values"}
    return repr([sorted(rest.items()), sorted(values.items()), sorted(one.metadata.items()),
                 one.parent_config, [tuple(w) for w in one.pending_writes or []]])  # fmt: skip


def put(saver: BaseCheckpointSaver[Any], thread: str, id_: str, value: Any, parent: str | None = None) -> None:
    made = {**empty_checkpoint(), "id": id_, "channel_values": {"x": value}, "channel_versions": {"x": f"v{id_}"}}
    saver.put(config(thread, parent), made, {"source": "loop", "step": 1}, {"x": f"v{id_}"})  # type: ignore[arg-type]


def change(path: Path, query: str, *values: Any) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(query, values)


# -- what comes over --------------------------------------------------------------------------------------------------


def test_every_thread_namespace_checkpoint_and_write_comes_over_as_their_own_code_reads_it(database: Path) -> None:
    saver = InMemorySaver(serde=SAFE)
    moved = move(database, saver)
    with saver_of(database) as theirs:
        expected = everything(theirs)
    got = everything(saver)
    assert got.keys() == expected.keys()
    assert {namespace for _, namespace, _ in got} != {""}
    for place, one in expected.items():
        assert told(got[place]) == told(one)
    assert (moved.threads, moved.checkpoints, moved.known) == (2, len(expected), 0)
    assert moved.writes == sum(len(one.pending_writes or []) for one in expected.values()) > 0


def test_a_thread_that_waits_goes_on_where_it_was(database: Path) -> None:
    saver = InMemorySaver(serde=SAFE)
    move(database, saver)
    graph = chat(saver)
    at = {"configurable": {"thread_id": "t0"}}
    assert graph.get_state(at).next == ("inner",)
    ended = graph.invoke(Command(resume="go on"), at)
    assert ended["messages"][-1].content == "go on"
    assert [m.content for m in ended["messages"][:2]] == ["hello", "what for?"]


def test_moving_again_brings_only_what_is_new(database: Path) -> None:
    saver = InMemorySaver(serde=SAFE)
    first = move(database, saver)
    before = {place: told(one) for place, one in everything(saver).items()}
    assert move(database, saver) == Moved(2, 0, first.checkpoints, 0, 0, 0)
    assert {place: told(one) for place, one in everything(saver).items()} == before
    with saver_of(database) as theirs:
        chat(theirs).invoke(Command(resume="yes"), {"configurable": {"thread_id": "t0"}})
    again = move(database, saver)
    assert again.known == first.checkpoints
    assert again.checkpoints > 0
    with saver_of(database) as theirs:
        assert {p: told(o) for p, o in everything(theirs).items()} == {p: told(o) for p, o in everything(saver).items()}


class Killed(InMemorySaver):
    """Goes away after so many calls, as a process that is killed."""

    left = 0

    def put(self, *args: Any) -> Any:
        self._count()
        return super().put(*args)

    def put_writes(self, *args: Any) -> None:
        self._count()
        super().put_writes(*args)

    def _count(self) -> None:
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1


def test_a_move_that_was_killed_anywhere_is_gone_on_with(database: Path) -> None:
    whole = InMemorySaver(serde=SAFE)
    total = move(database, whole)
    expected = {place: told(one) for place, one in everything(whole).items()}
    for calls_before in range(total.checkpoints + total.writes):
        saver = Killed(serde=SAFE)
        saver.left = calls_before
        try:
            move(database, saver)
        except KeyboardInterrupt:
            saver.left = 1 << 30
            rest = move(database, saver)
            assert rest.checkpoints + rest.known == total.checkpoints
        assert {place: told(one) for place, one in everything(saver).items()} == expected


def test_a_thread_that_went_on_here_is_not_set_back(database: Path) -> None:
    saver = InMemorySaver(serde=SAFE)
    first = move(database, saver)
    chat(saver).invoke(Command(resume="here"), {"configurable": {"thread_id": "t0"}})
    after = {place: told(one) for place, one in everything(saver).items()}
    assert move(database, saver) == Moved(2, 0, first.checkpoints, 0, 0, 0)
    assert {place: told(one) for place, one in everything(saver).items()} == after


def test_progress_goes_to_the_end(database: Path) -> None:
    steps: list[tuple[int, int]] = []
    moved = move(database, InMemorySaver(serde=SAFE), progress=lambda done, total: steps.append((done, total)))
    assert steps == [(n, moved.checkpoints) for n in range(1, moved.checkpoints + 1)]


def test_a_single_thread_may_get_another_name(tmp_path: Path) -> None:
    talk(tmp_path / "one.sqlite", threads=1)
    saver = InMemorySaver(serde=SAFE)
    move(tmp_path / "one.sqlite", saver, thread="planner")
    assert {thread for thread, _, _ in everything(saver)} == {"planner"}
    talk(tmp_path / "two.sqlite", threads=2)
    with pytest.raises(InvalidInputError, match="holds 2 threads") as refused:
        move(tmp_path / "two.sqlite", saver, thread="planner")
    assert refused.value.code == "several-threads"


def test_a_fork_keeps_its_parent_and_only_what_changed_is_called_new(tmp_path: Path) -> None:
    path = tmp_path / "forks.sqlite"
    with saver_of(path) as theirs:
        for id_, parent, value in (("1", None, "a"), ("9", "1", "b"), ("3", "9", "c"), ("4", "1", "d")):  # 9 before 3
            put(theirs, "t", id_, value, parent)

    class Seen(InMemorySaver):
        def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
            order.append((checkpoint["id"], config["configurable"].get("checkpoint_id"), new_versions))
            return super().put(config, checkpoint, metadata, new_versions)

    order: list[Any] = []
    move(path, Seen(serde=SAFE))
    assert [(id_, parent) for id_, parent, _ in order] == [("1", None), ("4", "1"), ("9", "1"), ("3", "9")]
    change(path, "DELETE FROM checkpoints")
    with saver_of(path) as theirs:
        base = {**empty_checkpoint(), "channel_values": {"a": 1, "b": 1}}
        for id_, parent, b in (("1", None, "1"), ("2", "1", "2")):
            made: Any = {**base, "id": id_, "channel_versions": {"a": "1", "b": b}}
            theirs.put(config("u", parent), made, {}, {})
    order.clear()
    move(path, Seen(serde=SAFE))
    assert [new for _, _, new in order] == [{"a": "1", "b": "1"}, {"b": "2"}]


def test_what_was_pruned_there_is_said(tmp_path: Path) -> None:
    path = tmp_path / "pruned.sqlite"
    saver = InMemorySaver(serde=SAFE)
    with saver_of(path) as theirs:
        put(theirs, "t", "1", "a")
        put(theirs, "t", "2", "b", "1")
        theirs.put_writes(config("t", "1"), [("x", 1)], "task")
        theirs.put_writes(config("t", "2"), [("x", 2)], "task")
    change(path, "DELETE FROM checkpoints WHERE checkpoint_id = '1'")
    assert move(path, saver) == Moved(threads=1, checkpoints=1, writes=1, cut=1, orphans=1)
    found = saver.get_tuple(config("t"))
    assert found is not None
    assert found.parent_config is None


def test_a_parent_that_came_over_before_it_was_pruned_there_stays_the_parent(tmp_path: Path) -> None:
    path = tmp_path / "pruned.sqlite"
    saver = InMemorySaver(serde=SAFE)
    with saver_of(path) as theirs:
        put(theirs, "t", "1", "a")
        move(path, saver)
        put(theirs, "t", "2", "b", "1")
    change(path, "DELETE FROM checkpoints WHERE checkpoint_id = '1'")
    assert move(path, saver).cut == 0
    found = saver.get_tuple(config("t"))
    assert found is not None
    assert found.parent_config == config("t", "1")


# -- writes -----------------------------------------------------------------------------------------------------------


def test_special_writes_land_where_they_were_and_the_others_keep_their_index(tmp_path: Path) -> None:
    path, saver = tmp_path / "writes.sqlite", InMemorySaver(serde=SAFE)
    with saver_of(path) as theirs:
        put(theirs, "t", "1", "a")
        at = config("t", "1")
        theirs.put_writes(at, [("__resume__", ["r"]), ("a", 1), ("__interrupt__", "i"), ("b", 2)], "task-b", "~p, 1")
        theirs.put_writes(at, [("c", 3)], "task-a", "~p, 2")
        theirs.put_writes(at, [("__error__", "broken")], "task-c", "")
    move(path, saver)
    with saver_of(path) as theirs:
        expected, got = theirs.get_tuple(at), saver.get_tuple(at)
    assert expected is not None
    assert got is not None
    assert got.pending_writes == expected.pending_writes
    indexes = {(task, channel): key[1] for key, (task, channel, _, _) in saver.writes["t", "", "1"].items()}
    with closing(sqlite3.connect(path)) as db:
        assert indexes == {(task, c): idx for task, c, idx in db.execute("SELECT task_id, channel, idx FROM writes")}
    assert indexes["task-b", "a"] == 1
    assert indexes["task-b", "__resume__"] == WRITES_IDX_MAP["__resume__"]


def test_a_write_that_came_later_keeps_its_index_too(tmp_path: Path) -> None:
    path, saver, at = tmp_path / "writes.sqlite", InMemorySaver(serde=SAFE), config("t", "1")
    with saver_of(path) as theirs:
        put(theirs, "t", "1", "a")
        theirs.put_writes(at, [("__resume__", ["r"])], "task")
        move(path, saver)
        saver.put_writes(at, [("__resume__", ["another, here"])], "task")
        theirs.put_writes(at, [("__resume__", ["r"]), ("a", 1)], "task")
    assert move(path, saver).writes == 1
    found = saver.get_tuple(at)
    assert found is not None
    assert found.pending_writes == [("task", "__resume__", ["another, here"]), ("task", "a", 1)]
    assert set(saver.writes["t", "", "1"]) == {("task", WRITES_IDX_MAP["__resume__"]), ("task", 1)}


def test_calls_give_every_write_the_index_it_had() -> None:
    pick = random.Random(7)
    for _ in range(300):
        wanted = {}
        for task in ("a", "b"):
            call = [
                (pick.choice([*WRITES_IDX_MAP, "x", "y", "z"]), pick.randrange(9)) for _ in range(pick.randrange(6))
            ]
            for position, (channel, value) in enumerate(call):
                wanted.setdefault((task, WRITES_IDX_MAP.get(channel, position)), (channel, value))
        writes = [Write(task, "", idx, channel, value) for (task, idx), (channel, value) in wanted.items()]
        landed: dict[tuple[str, int], tuple[str, int]] = {}
        for made in calls(writes):
            for position, (channel, value) in enumerate(made.writes):
                landed.setdefault((made.task_id, WRITES_IDX_MAP.get(channel, position)), (channel, value))
        assert landed == wanted


def test_an_index_beyond_all_bounds_is_not_filled_up_to() -> None:
    writes = [Write("t", "", -3, "__interrupt__", 1), Write("t", "", 1 << 60, "x", 2)]
    assert [call.writes for call in calls(writes)] == [[("x", 2)], [("__interrupt__", 1)]]


def test_checkpoints_that_go_in_circles_all_come_once() -> None:
    nodes = list(in_order([("", "1", "2"), ("", "2", "1"), ("", "3", "2"), ("ns", "0", None)]))
    assert sorted(node.id for node in nodes) == ["0", "1", "2", "3"]
    assert [node.id for node in nodes if node.cut] == ["1"]


def test_writes_are_in_the_order_of_their_savers() -> None:
    writes = [
        Write("b", "1", 0, "x", 0),
        Write("a", "2", 0, "x", 0),
        Write("b", "1", -1, "x", 0),
        Write("z", "", 5, "x", 0),
    ]
    assert [(w.task_path, w.idx) for w in sorted_writes(writes)] == [("", 5), ("1", -1), ("1", 0), ("2", 0)]


# -- types ------------------------------------------------------------------------------------------------------------


def with_value(path: Path, value: Any) -> Path:
    with saver_of(path, JsonPlusSerializer(pickle_fallback=True)) as theirs:
        put(theirs, "thread-7", "1", "fine")
        put(theirs, "thread-7", "2", value, "1")
    return path


def refused(path: Path, saver: BaseCheckpointSaver[Any] | None = None) -> RekindleError:
    saver = saver or InMemorySaver(serde=SAFE)
    with pytest.raises(RekindleError) as error:
        move(path, saver)
    assert saver.get_tuple(config("thread-7", "2")) is None
    return error.value


def test_a_registered_class_comes_over_and_one_that_is_not_is_named(tmp_path: Path) -> None:
    path = with_value(tmp_path / "own.sqlite", {"orders": [Order("ada", 12.5)]})
    allowed = InMemorySaver(serde=JsonPlusSerializer(allowed_msgpack_modules=[Order]))
    error = refused(path, allowed)
    assert (error.code, error.hint) == (
        "type-unregistered", "name the module that registers it with rekindle: --import your.module",
    )  # fmt: skip
    assert f"{Order.__module__}.Order" in error.message
    assert "'thread-7', checkpoint 2" in error.message
    rekindle.register(Order, name="moving-order")
    assert move(path, allowed) == Moved(1, 1, 1)
    found = allowed.get_tuple(config("thread-7"))
    assert found is not None
    assert found.checkpoint["channel_values"] == {"x": {"orders": [Order("ada", 12.5)]}}


def test_nothing_a_row_names_is_imported_or_called(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    named = SAFE.dumps_typed(uuid.UUID(int=1))[1]
    path = with_value(tmp_path / "evil.sqlite", "x")
    row = SAFE.dumps_typed({"id": "2", "channel_values": {"x": uuid.UUID(int=1)}})[1]
    assert named in row
    for module, name in (("this", "s_"), ("os", "_exit"), ("subprocess", "getoutput")):
        evil = _like_a_uuid(module, name)
        change(path, "UPDATE checkpoints SET checkpoint = ? WHERE checkpoint_id = '2'", evil)
        sys.modules.pop("this", None)
        error = refused(path)
        assert (error.code, f"{module}.{name}" in error.message) == ("type-unregistered", True)
        assert "this" not in sys.modules
    assert capsys.readouterr().out == ""


def _like_a_uuid(module: str, name: str) -> bytes:
    """A checkpoint whose value says that it is made by calling `module.name`."""
    import ormsgpack

    inner = ormsgpack.packb((module, name, "echo pwned"))
    return ormsgpack.packb({"id": "2", "channel_values": {"x": [ormsgpack.Ext(0, inner)]}}, default=None)


def test_a_class_nobody_registers_and_one_that_is_gone_are_both_named(tmp_path: Path) -> None:
    path = with_value(tmp_path / "own.sqlite", "x")
    for name in ((Stranger.__module__, "Stranger"), ("gone.for.good", "Class")):
        change(path, "UPDATE checkpoints SET checkpoint = ? WHERE checkpoint_id = '2'", _like_a_uuid(*name))
        assert ".".join(name) in refused(path).message


def test_what_a_safe_class_will_not_take_is_refused_and_not_handed_out_raw(tmp_path: Path) -> None:
    path = with_value(tmp_path / "bad.sqlite", "x")
    change(path, "UPDATE checkpoints SET checkpoint = ? WHERE checkpoint_id = '2'", _like_a_uuid("uuid", "UUID"))
    error = refused(path)
    assert error.code == "type-load-failed"
    assert "uuid.UUID" in error.message


def test_pickled_rows_are_refused_before_anything_of_their_thread_comes_over(tmp_path: Path) -> None:
    path, saver = with_value(tmp_path / "pickled.sqlite", sqlite3.Row), InMemorySaver(serde=SAFE)
    error = refused(path, saver)
    assert error.code == "pickled"
    assert "'thread-7'" in error.message
    assert saver.get_tuple(config("thread-7")) is None


def test_encrypted_rows_and_those_of_other_serializers_are_refused(tmp_path: Path) -> None:
    path = with_value(tmp_path / "encrypted.sqlite", "x")
    for kind, code in (("msgpack+aes", "encrypted"), ("orjson", "unknown-encoding"), (None, "unknown-encoding")):
        change(path, "UPDATE checkpoints SET type = ? WHERE checkpoint_id = '2'", kind)
        assert refused(path).code == code


def test_damaged_rows_are_refused(tmp_path: Path) -> None:
    path = with_value(tmp_path / "damaged.sqlite", "x")
    for column, data in (("checkpoint", b"\xc1"), ("checkpoint", b"\x01"), ("metadata", b"{no"), ("metadata", b"\xc1")):
        other = tmp_path / "one.sqlite"
        other.write_bytes(path.read_bytes())
        change(other, f"UPDATE checkpoints SET {column} = ? WHERE checkpoint_id = '2'", data)
        assert (refused(other).code, "checkpoint 2" in refused(other).message) == ("bad-row", True)


# -- former versions --------------------------------------------------------------------------------------------------


def test_json_rows_of_former_versions_come_over(tmp_path: Path) -> None:
    path, saver = with_value(tmp_path / "old.sqlite", "x"), InMemorySaver(serde=SAFE)
    message = {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "HumanMessage"],
        "kwargs": {"content": "hi"},
    }
    moment = {"lc": 2, "type": "constructor", "id": ["uuid", "UUID"], "args": [str(uuid.UUID(int=5))], "kwargs": {}}
    held = {**empty_checkpoint(), "id": "2", "channel_values": {"x": [message, moment]}, "channel_versions": {"x": 2}}
    change(
        path,
        "UPDATE checkpoints SET type = 'json', checkpoint = ? WHERE checkpoint_id = '2'",
        json.dumps(held).encode(),
    )
    move(path, saver)
    found = saver.get_tuple(config("thread-7", "2"))
    assert found is not None
    assert found.checkpoint["channel_values"]["x"] == [HumanMessage("hi"), uuid.UUID(int=5)]

    for id_ in (["subprocess", "getoutput"], ["gone", "Class"]):
        held["channel_values"] = {"x": {**moment, "id": id_}}
        change(path, "UPDATE checkpoints SET checkpoint = ? WHERE checkpoint_id = '2'", json.dumps(held).encode())
        assert refused(path).code == "type-unregistered"
    for kind in ("secret", "not_implemented"):
        held["channel_values"] = {"x": {**message, "type": kind, "id": ["OPENAI_API_KEY"]}}
        change(path, "UPDATE checkpoints SET checkpoint = ? WHERE checkpoint_id = '2'", json.dumps(held).encode())
        assert refused(path).code == "type-load-failed"


def test_databases_without_task_paths_and_with_metadata_of_former_versions_come_over(database: Path) -> None:
    change(database, "ALTER TABLE writes DROP COLUMN task_path")
    saver = InMemorySaver(serde=SAFE)
    first = move(database, saver)
    assert first.writes > 0
    rows = []
    with closing(sqlite3.connect(database)) as db:
        rows = db.execute("SELECT rowid, metadata FROM checkpoints").fetchall()
    for rowid, metadata in rows:
        packed = SAFE.dumps_typed(json.loads(metadata))[1]
        change(database, "UPDATE checkpoints SET metadata = ? WHERE rowid = ?", packed, rowid)
    assert move(database, saver) == Moved(2, 0, first.checkpoints)
    change(database, "UPDATE checkpoints SET metadata = NULL")
    fresh = InMemorySaver(serde=SAFE)
    move(database, fresh)
    assert {json.dumps(one.metadata) for one in fresh.list(None)} == {"{}"}


# -- what a move compares ---------------------------------------------------------------------------------------------


class Forgetful(InMemorySaver):
    """Answers other values than it was given."""

    def get_tuple(self, config: Any) -> CheckpointTuple | None:
        found = super().get_tuple(config)
        return None if found is None else self.spoilt(found)

    def spoilt(self, found: CheckpointTuple) -> CheckpointTuple:
        raise NotImplementedError


def _other_value(found: CheckpointTuple) -> CheckpointTuple:
    return found._replace(checkpoint={**found.checkpoint, "channel_values": {"x": 1.0}})


@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (_other_value, "channel_values['x']"),
        (lambda found: found._replace(metadata={**found.metadata, "step": 2}), "metadata['step']"),
        (lambda found: found._replace(parent_config=config("t", "0")), "its parent"),
        (lambda found: found._replace(pending_writes=[]), "a pending write"),
        (lambda found: found._replace(checkpoint={**found.checkpoint, "ts": "2020"}), "checkpoint['ts']"),
        (lambda found: None, "the checkpoint"),
    ],
)
def test_a_saver_that_answers_other_than_it_was_given_is_found_out(tmp_path: Path, spoil: Any, what: str) -> None:
    path = tmp_path / "one.sqlite"
    with saver_of(path) as theirs:
        put(theirs, "t", "1", 1)
        theirs.put_writes(config("t", "1"), [("x", 1)], "task")

    class Spoilt(Forgetful):
        spoilt = staticmethod(spoil)

    with pytest.raises(CorruptDataError) as error:
        move(path, Spoilt(serde=SAFE))
    assert error.value.code == "came-back-different"
    assert f"checkpoint 1: {what} did not" in error.value.message


def test_another_checkpoint_of_the_same_id_is_not_written_over(tmp_path: Path) -> None:
    path, saver = tmp_path / "one.sqlite", InMemorySaver(serde=SAFE)
    put(saver, "t", "1", "mine")
    with saver_of(path) as theirs:
        put(theirs, "t", "1", "theirs")
    with pytest.raises(ConflictError) as error:
        move(path, saver)
    assert error.value.code == "other-content"
    found = saver.get_tuple(config("t"))
    assert found is not None
    assert found.checkpoint["channel_values"] == {"x": "mine"}


# -- the file ---------------------------------------------------------------------------------------------------------


def test_the_database_is_not_changed_and_may_be_in_use(database: Path) -> None:
    with saver_of(database) as theirs:
        put(theirs, "live", "1", "in the log")  # and not in the file yet
        whole, log = database.read_bytes(), database.with_name("chat.sqlite-wal").read_bytes()
        assert log
        assert bytes_of(database) == len(whole) + len(log)
        saver = InMemorySaver(serde=SAFE)
        move(database, saver)
        assert saver.get_tuple(config("live")) is not None
        assert (database.read_bytes(), database.with_name("chat.sqlite-wal").read_bytes()) == (whole, log)
        put(theirs, "live", "2", "more", "1")
    assert move(database, saver).checkpoints == 1


def test_a_thread_comes_over_as_it_was_at_one_moment(database: Path) -> None:
    with saver_of(database) as theirs:
        expected = {place: told(one) for place, one in everything(theirs).items() if place[0] == "t0"}

    def meanwhile(done: int, _: int) -> None:
        if done == 1:
            change(database, "DELETE FROM checkpoints WHERE thread_id = 't0'")

    saver = InMemorySaver(serde=SAFE)
    move(database, saver, progress=meanwhile)
    assert {place: told(one) for place, one in everything(saver).items() if place[0] == "t0"} == expected


@POSIX
def test_a_database_beside_which_nothing_can_be_made_is_read_where_that_is_right(database: Path) -> None:
    whole, log = database.read_bytes(), database.with_name("chat.sqlite-wal")
    log.symlink_to("no/such/folder")  # as if the folder could not be written to, also for an administrator
    assert move(database, InMemorySaver(serde=SAFE)).threads == 2
    assert database.read_bytes() == whole
    log.unlink()
    log.mkdir()
    with pytest.raises(UnavailableError) as error:
        move(database, InMemorySaver(serde=SAFE))
    assert error.value.code == "not-readable"
    assert "chat.sqlite-wal" in str(error.value.hint)


def test_what_is_no_such_database_is_said_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a database, " * 100)
    (tmp_path / "empty.db").touch()
    rekindle.open_store(tmp_path / "store.db").close()
    change(tmp_path / "older.db", "CREATE TABLE checkpoints (thread_id, thread_ts, parent_ts, checkpoint, metadata)")
    for name in ("notes.txt", "empty.db", "store.db", "older.db"):
        with pytest.raises(InvalidInputError) as error:
            move(tmp_path / name, InMemorySaver())
        assert error.value.code == "not-langgraph"
    assert "before 0.2" in str(error.value.hint)
    for missing, code in ((tmp_path / "none.db", "no-file"), (tmp_path, "is-folder")):
        with pytest.raises(RekindleError) as other:
            move(missing, InMemorySaver())
        assert other.value.code == code


def test_a_damaged_database_is_said_to_be_damaged(database: Path) -> None:
    whole = bytearray(database.read_bytes())
    whole[8192:] = b"\xa5" * (len(whole) - 8192)
    database.write_bytes(whole)
    with pytest.raises(CorruptDataError) as error:
        move(database, InMemorySaver())
    assert error.value.code == "bad-file"


def test_a_url_names_the_same_file() -> None:
    assert path_of("chat.sqlite") == path_of("sqlite:///chat.sqlite") == Path("chat.sqlite")
    assert path_of("sqlite:////srv/chat.sqlite") == Path("/srv/chat.sqlite")
    with pytest.raises(RekindleError) as error:
        path_of("postgresql://server/db")
    assert error.value.code == "no-such-import"


def test_one_checkpoint_at_a_time_is_in_memory(tmp_path: Path) -> None:
    import tracemalloc

    size, count = 300_000, 30
    with saver_of(tmp_path / "large.sqlite") as theirs:
        for n in range(count):
            put(theirs, "t", f"{n:03}", f"{n}" + "x" * size, f"{n - 1:03}" if n else None)

    class Last(InMemorySaver):
        """Keeps only the newest, so that what is measured is the move."""

        def put(self, *args: Any) -> Any:
            self.storage.clear()
            self.blobs.clear()
            return super().put(*args)

    tracemalloc.start()
    try:
        move(tmp_path / "large.sqlite", Last(serde=SAFE))
        assert tracemalloc.get_traced_memory()[1] < size * count / 2
    finally:
        tracemalloc.stop()
