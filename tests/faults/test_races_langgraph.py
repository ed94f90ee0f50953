"""Runs on the same threads in several processes and threads, beside deletes, undos and collects: what was acknowledged
and not deleted is there, with its input and its writes, in the order they came."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.faults.test_races import SECONDS, pytestmark, together, url

from rekindle import ConflictError, NotFoundError, RekindleError, Store, open_store
from rekindle.adapters.langgraph import RekindleSaver

__all__ = ["pytestmark", "url"]
THREADS = ("a", "b")
GONE = ("parent-gone", "checkpoint-deleted")


@dataclass
class Kept:
    """A checkpoint that was acknowledged, and the tasks whose writes were."""

    thread: str
    id: str
    values: dict[str, Any]
    writes: list[tuple[str, Any]]
    tasks: list[str] = field(default_factory=list)


def config(thread: str, checkpoint: str | None = None) -> Any:
    told = {"thread_id": thread, "checkpoint_ns": ""}
    return {"configurable": told if checkpoint is None else {**told, "checkpoint_id": checkpoint}}


def message(n: int) -> dict[str, Any]:
    return {"content": "".join(f"{n * k + 7:x} " for k in range(200)), "id": None}


def run(saver: RekindleSaver, thread: str, who: str, rng: random.Random, kept: list[Kept]) -> None:
    """Checkpoint upon checkpoint, as a graph makes them; begun anew where its parent was deleted."""
    parent, messages, end = None, [], time.monotonic() + SECONDS
    while time.monotonic() < end:
        text = message(rng.randrange(50))
        values: dict[str, Any] = {"messages": list(messages), "page": "y" * 1500}
        if rng.random() < 0.4:
            values["__start__"] = {"messages": [text]}
        one = Kept(thread, f"{time.time_ns():020x}-{who}", values, [("messages", [text]), ("n", who)])
        checkpoint: Any = {"v": 4, "id": one.id, "ts": "", "channel_values": values, "channel_versions": {}}
        try:
            if parent is not None and rng.random() < 0.2:  # a root begins anew where what was early is deleted
                saver.put_writes(config(thread, one.id), one.writes, "early")
                one.tasks.append("early")
            run_id: Any = {"run_id": f"r{rng.randrange(30)}"}
            saver.put(config(thread, parent), checkpoint, run_id, dict.fromkeys(values, 1))
            kept.append(one)
            for task in ("first", "second")[: rng.randrange(3)]:
                saver.put_writes(config(thread, one.id), one.writes, task)
                one.tasks.append(task)
            parent, messages = one.id, [*messages, {**text, "id": one.id}][-40:]
        except RekindleError as e:
            assert e.code in GONE, e
            parent, messages = None, []


def take_away(saver: RekindleSaver, rng: random.Random) -> None:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        time.sleep(rng.random() / 5)
        act = rng.choice(
            [
                lambda: saver.delete_thread(rng.choice(THREADS)),
                lambda: saver.delete_for_runs([f"r{rng.randrange(30)}"]),
                lambda: saver.prune([rng.choice(THREADS)]),
                saver.store.undo, saver.store.undo, saver.store.collect, saver.store.collect,
            ]
        )  # fmt: skip
        try:
            act()
        except (ConflictError, NotFoundError):
            pass  # nothing to undo, or it is gone


def look(saver: RekindleSaver, rng: random.Random, kept: list[Kept]) -> None:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        for one in rng.sample(kept[:], min(4, len(kept))):
            compare(saver, one)


def compare(saver: RekindleSaver, one: Kept) -> bool:
    """Whether it is there: then whole, with the writes that were acknowledged before."""
    tasks = set(one.tasks)
    found = saver.get_tuple(config(one.thread, one.id))
    if found is None:
        return False
    assert dict(found.checkpoint["channel_values"]) == one.values
    pending = found.pending_writes or []
    for task in tasks:
        assert [(channel, value) for by, channel, value in pending if by == task] == one.writes
    return True


def several_runs(url: str, seed: int) -> list[Kept]:
    kept: list[Kept] = []
    failed: list[BaseException] = []

    def guarded(act: Callable[..., None], *args: Any) -> None:
        try:
            act(*args)
        except BaseException as e:
            failed.append(e)

    with open_store(url) as store:
        saver = RekindleSaver(store)
        jobs: list[tuple[Any, ...]] = [
            (run, saver, THREADS[n % 2], f"{seed}-{n}", random.Random(seed * 10 + n), kept) for n in range(3)
        ]
        jobs += [(take_away, saver, random.Random(seed)), (look, saver, random.Random(seed), kept)]
        running = [threading.Thread(target=guarded, args=job) for job in jobs]
        for each in running:
            each.start()
        for each in running:
            each.join()
    if failed:
        raise failed[0]
    return kept


def sound(store: Store, kept: list[Kept]) -> None:
    report = store.verify()
    assert report, report.problems
    assert sum(compare(RekindleSaver(store), one) for one in kept)


@pytest.mark.parametrize("seed", [1])
def test_runs_beside_deletes_and_collects_lose_nothing_that_was_acknowledged(url: str, seed: int) -> None:
    open_store(url).close()
    kept = [one for found in together((several_runs, (url, seed)), (several_runs, (url, seed + 1))) for one in found]
    with open_store(url) as store:
        saver = RekindleSaver(store)
        one = Kept("a", "last", {"messages": [message(1)]}, [])
        checkpoint: Any = {"v": 4, "id": one.id, "ts": "", "channel_values": one.values, "channel_versions": {}}
        saver.put(config("a"), checkpoint, {}, {"messages": 1})
        sound(store, [*kept, one])
        store.collect()
        sound(store, [*kept, one])
