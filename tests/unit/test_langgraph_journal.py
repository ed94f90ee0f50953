"""What a checkpoint shares with its thread's journal: named in one line, read in any order, there for as long as it is
named."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import rekindle
from rekindle.adapters.langgraph import RekindleSaver
from rekindle.adapters.langgraph.writes import draft_writes
from rekindle.storage.base import Append, Key, Outcome
from rekindle.store.saving import tips
from rekindle.store.saving.commit import Committer
from rekindle.store.saving.parked import Parked

PAGE = "a page of nothing much, over and over. " * 40


@pytest.fixture
def store(tmp_path: Path) -> Iterator[rekindle.Store]:
    with rekindle.open_store(tmp_path / "chat.db") as opened:
        yield opened


@pytest.fixture
def saver(store: rekindle.Store) -> RekindleSaver:
    return RekindleSaver(store)


def message(n: int) -> str:
    return f"message {n}: " + "".join(f"{n * k:x}" for k in range(1, 600))


def ident(n: int) -> str:
    return f"00000000-0000-0000-0000-{n:012}"


def config(checkpoint: str | None = None, thread: str = "t") -> Any:
    told = {"thread_id": thread, "checkpoint_ns": ""}
    return {"configurable": told if checkpoint is None else {**told, "checkpoint_id": checkpoint}}


def put(saver: RekindleSaver, n: int, parent: int | None, run: str = "", **values: Any) -> Any:
    checkpoint: Any = {
        "v": 4, "id": ident(n), "ts": "2026-01-01T00:00:00+00:00", "channel_values": {"page": PAGE, **values},
        "channel_versions": {}, "versions_seen": {},
    }  # fmt: skip
    return saver.put(config(ident(parent) if parent else None), checkpoint, {"run_id": run}, dict.fromkeys(values, 1))


def writes(saver: RekindleSaver, n: int, *values: Any, task: str = "task") -> None:
    saver.put_writes(config(ident(n)), [("messages", value) for value in values], task)


def values(saver: RekindleSaver, n: int) -> dict[str, Any]:
    found = saver.get_tuple(config(ident(n)))
    assert found is not None
    return found.checkpoint["channel_values"]


def pending(saver: RekindleSaver, n: int, thread: str = "t") -> list[Any]:
    found = saver.get_tuple(config(ident(n), thread))
    assert found is not None
    return [value for _, _, value in found.pending_writes or ()]


@pytest.mark.parametrize("count", range(3, 9))
def test_what_the_journal_has_and_what_follows_it_are_not_taken_for_one_line(saver: RekindleSaver, count: int) -> None:
    """After records 2 to 4 of the journal comes a record of the thread, which is no neighbour of these."""
    texts = [message(n) for n in range(count)]
    put(saver, 1, None, messages=[])
    for n, text in enumerate(texts):
        writes(saver, 1, [text], task=str(n))
    put(saver, 2, 1, messages=texts)
    put(saver, 3, 2, messages=[*texts, "a few words"])
    with rekindle.open_store(saver.store.url) as other:
        assert values(RekindleSaver(other), 3)["messages"] == [*texts, "a few words"]


def test_the_same_messages_in_other_lists_and_orders_are_carried_over(saver: RekindleSaver) -> None:
    texts = [message(n) for n in range(6)]
    put(saver, 1, None)
    for n, text in enumerate(texts):
        writes(saver, 1, [text], task=str(n))
    put(saver, 2, 1, messages=texts)
    put(saver, 3, 2, messages=texts[::-1], last=texts[5:], some=texts[1:5])
    file = io.BytesIO()
    saver.store.export("t", file)
    file.seek(0)
    with rekindle.open_store("memory://") as other:
        other.import_(file)
        there = RekindleSaver(other)
        for n in (2, 3):
            assert dict(values(there, n)) == dict(values(saver, n))
        assert other.verify()


def test_writes_that_came_before_their_checkpoint_are_found_whoever_puts_it(saver: RekindleSaver) -> None:
    put(saver, 1, None)
    writes(saver, 2, [message(1)])
    with rekindle.open_store(saver.store.url) as other:
        put(RekindleSaver(other), 2, 1)
        assert pending(RekindleSaver(other), 2) == [[message(1)]]
    assert pending(saver, 2) == [[message(1)]]


def test_writes_that_came_before_a_fork_are_found_too(saver: RekindleSaver) -> None:
    for n in (1, 2, 3):
        put(saver, n, n - 1 or None)
    writes(saver, 9, ["early"])
    with rekindle.open_store(saver.store.url) as other:
        there = RekindleSaver(other)
        put(there, 4, 3)
        put(there, 9, 1)
        assert pending(there, 9) == [["early"]]


def test_early_writes_on_very_many_checkpoints_are_all_found(
    saver: RekindleSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tips, "_EARLY", 3)
    put(saver, 1, None)
    for n in range(2, 12):
        writes(saver, n, [n])
    for n in range(2, 12):
        put(saver, n, 1)
    assert [pending(saver, n) for n in range(2, 12)] == [[[n]] for n in range(2, 12)]


def test_a_process_does_not_read_a_whole_journal_to_put(saver: RekindleSaver) -> None:
    """What others may have written early lies behind what the newest checkpoint begins with."""
    for n in range(1, 40):
        put(saver, n, n - 1 or None)
        writes(saver, n, [n])
    with rekindle.open_store(saver.store.url) as other:
        put(RekindleSaver(other), 40, 39)
        head = other._engine.newest(Key("local", "t"))
        assert head is not None
        assert head.more[tips.JOURNAL_FROM] > 39


def just_before(store: rekindle.Store, act: Callable[[], None]) -> None:
    """Do that between the next decision of a store and its commit."""
    append, todo = store._engine.storage.append, [act]

    def late(batch: Sequence[Append]) -> list[Outcome]:
        if todo:
            todo.pop()()
        return append(batch)

    store._engine.committer = Committer(late)


def test_what_came_while_a_checkpoint_was_dropped_keeps_what_it_was_written_against(saver: RekindleSaver) -> None:
    """No operation stops a write that is under way: its entry stays, when those of its checkpoint are collected."""
    store = saver.store
    with rekindle.open_store(store.url) as other:
        late = RekindleSaver(other)
        put(late, 1, None, run="gone", messages=["a"])
        writes(late, 1, [message(1)], task="first")

        def meanwhile() -> None:
            writes(late, 1, [message(1) + " again"], task="second")
            put(late, 2, 1, messages=["a", message(1) + " again"])

        just_before(store, meanwhile)
        saver.delete_for_runs(["gone"])
        for _ in range(2):
            store.collect()
            report = store.verify()
            assert report, report.problems
    assert values(saver, 2)["messages"] == ["a", message(1) + " again"]


def test_a_dict_of_very_many_entries_and_a_list_is_written(saver: RekindleSaver) -> None:
    put(saver, 1, None)
    large: dict[str, Any] = {f"key number {n}": f"some text {n}" for n in range(70_000)}
    writes(saver, 1, {**large, "list": [1]})
    assert pending(saver, 1) == [{**large, "list": [1]}]


def test_a_value_that_contains_itself_is_refused(saver: RekindleSaver) -> None:
    put(saver, 1, None)
    around: list[Any] = []
    around.append(around)
    with pytest.raises(rekindle.InvalidInputError) as refused:
        writes(saver, 1, around)
    assert refused.value.code == "too-deep"
    assert pending(saver, 1) == []


def test_what_went_into_a_pack_was_written_against_nothing(saver: RekindleSaver) -> None:
    """Writes of more than a record takes say again, a little otherwise, what was written on the same checkpoint."""
    put(saver, 1, None)
    writes(saver, 1, [message(n) for n in range(4)], task="first")
    again = [message(0) + " again", *(message(n) for n in (1, 2, 3))]
    rng = random.Random(1)
    writes(saver, 1, [rng.randbytes(3_000) for _ in range(100)], again, task="second")
    put(saver, 2, 1, messages=again)
    with rekindle.open_store(saver.store.url) as other:
        assert values(RekindleSaver(other), 2)["messages"] == again


def test_writes_are_not_refused_by_what_another_process_has_undone(saver: RekindleSaver) -> None:
    put(saver, 1, None, run="gone")
    put(saver, 2, 1)
    saver.delete_for_runs(["gone"])
    with rekindle.open_store(saver.store.url) as other:
        other.undo()
    writes(saver, 1, ["late"])
    assert pending(saver, 1) == [["late"]]


def test_a_put_beside_a_collect_goes_on_from_what_is_there(saver: RekindleSaver) -> None:
    """It remembers neither what the newest record said nor that it was taken out."""
    with rekindle.open_store(saver.store.url) as other:
        there = RekindleSaver(other)
        put(saver, 1, None, messages=[message(1)])
        put(there, 2, 1, messages=[message(2)])
        other._engine.forget()
        saver.delete_thread("t")
        saver.store.collect()
        with pytest.raises(rekindle.NotFoundError) as late:
            put(there, 3, 2)
        assert late.value.code == "parent-gone"
        put(there, 4, None, messages=[message(3)])
        assert values(there, 4)["messages"] == [message(3)]


def test_a_checkpoint_that_is_deleted_while_it_is_read_has_its_input(saver: RekindleSaver) -> None:
    put(saver, 1, None, __start__=[message(1)])
    writes(saver, 1, [message(2)])
    listed = next(saver.list(config()))
    saver.delete_thread("t")
    assert listed.checkpoint["channel_values"]["__start__"] == [message(1)]
    assert [value for _, _, value in listed.pending_writes or ()] == [[message(2)]]


def test_a_put_on_what_another_process_has_collected_is_told_that_it_is_gone(saver: RekindleSaver) -> None:
    for n in (1, 2, 3):
        put(saver, n, n - 1 or None)
    with rekindle.open_store(saver.store.url) as other:
        RekindleSaver(other).delete_thread("t")
        other.collect()
    with pytest.raises(rekindle.NotFoundError) as late:
        put(saver, 4, 2)
    assert late.value.code == "parent-gone"


def test_writes_that_waited_for_a_save_are_not_refused_by_what_another_process_has_undone(saver: RekindleSaver) -> None:
    put(saver, 1, None, run="gone")
    put(saver, 2, 1)
    saver.delete_for_runs(["gone"])
    with rekindle.open_store(saver.store.url) as other:
        other.undo()
    engine, key = saver.store._engine, Key("local", "t")
    waiting = Parked([draft_writes(ident(1), [("messages", ["late"])], "task", "")])
    engine.tip(key).parked.append(waiting)
    put(saver, 3, 2)
    if not waiting.future.result(0):
        writes(saver, 1, ["late"])
    assert pending(saver, 1) == [["late"]]


def test_large_writes_that_waited_and_cannot_be_kept_leave_nothing(saver: RekindleSaver, tmp_path: Path) -> None:
    put(saver, 1, None)
    rng = random.Random(1)
    large = [rng.randbytes(3_000) for _ in range(200)]
    waiting = Parked([draft_writes(ident(1), [("messages", large), ("messages", object())], "task", "")])
    saver.store._engine.tip(Key("local", "t")).parked.append(waiting)
    put(saver, 2, 1, messages=["small"])
    assert waiting.future.result(0) is False
    assert list(tmp_path.glob("chat.db-packs/*")) == []
    assert pending(saver, 1) == []


def test_what_was_collected_while_others_are_read_takes_nothing_from_them(saver: RekindleSaver) -> None:
    """Its entries are emptied, not taken out, where another checkpoint names what is in them."""
    put(saver, 1, None, run="gone", messages=[message(1)])
    writes(saver, 1, [message(2), message(3)])
    put(saver, 2, 1, messages=[message(n) for n in (1, 2, 3)])
    writes(saver, 2, [message(4)])
    listed = list(saver.list(config()))
    saver.delete_for_runs(["gone"])
    saver.store.collect()
    assert [value for _, _, value in listed[0].pending_writes or ()] == [[message(4)]]
    with pytest.raises(rekindle.NotFoundError):
        list(listed[1].pending_writes or ())
