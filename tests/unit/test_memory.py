"""What was read of late is not read again; what is given out is the caller's own; what is gone is gone."""

import gc
import random
from pathlib import Path
from typing import Any

import pytest

from rekindle import NotFoundError, Store, open_store
from rekindle.state.tree import quiet
from rekindle.state.tree.memory import Memory
from rekindle.state.tree.quiet import quiet_gc
from rekindle.storage.base import Storage


def test_the_least_used_goes_first() -> None:
    memory = Memory(80)
    for n in range(8):
        memory.put(n, f"value {n}", 10)
    assert memory.get(0) == "value 0"
    memory.put(8, "value 8", 10)
    assert memory.get(1) is None
    assert [n for n in range(9) if memory.get(n) is not None] == [0, 2, 3, 4, 5, 6, 7, 8]


def test_a_large_value_drives_out_nobody() -> None:
    memory = Memory(80)
    memory.put("small", 1, 10)
    memory.put("large", 2, 11)
    assert (memory.get("small"), memory.get("large")) == (1, None)


def test_a_value_put_again_counts_once() -> None:
    memory = Memory(80)
    for size in (10, 3, 10, 10):
        memory.put("same", size, size)
    for n in range(7):
        memory.put(n, n, 10)
    assert memory.get("same") == 10


def messages(count: int) -> list[dict[str, Any]]:
    source = random.Random(7)
    return [{"role": "user", "content": source.randbytes(100).hex(), "tags": [n]} for n in range(count)]


def counting(storage: Storage) -> list[int]:
    """A list that grows with every read of bodies."""
    read, calls = storage.bodies, []

    def bodies(*args: Any) -> Any:
        calls.append(1)
        return read(*args)

    storage.bodies = bodies  # type: ignore[method-assign]
    return calls


def test_a_second_restore_reads_nothing_and_gives_a_value_of_its_own(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "s")) as store:
        store.save("a", {"messages": messages(300)})
    with open_store(str(tmp_path / "s")) as store:
        calls = counting(store._engine.storage)
        first = store.restore("a")
        came = len(calls)
        first["messages"][0]["tags"].append("mine")
        first["messages"].clear()
        assert store.restore("a") == {"messages": messages(300)}
        assert came > 0
        assert len(calls) == came


def test_verify_looks_at_the_disk_whatever_was_read_before(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "s")) as store:
        store.save("a", {"messages": messages(300)})
        store.restore("a")
        calls = counting(store._engine.storage)
        assert store.verify()
        assert calls


def test_what_was_pruned_is_not_given_from_memory() -> None:
    store: Store = open_store("memory://")
    first = store.save("a", {"messages": messages(30)})
    store.save("a", {"messages": messages(31)})
    store.restore(first.id)
    store.prune("keep-last=1")
    with pytest.raises(NotFoundError):
        store.restore(first.id)
    store.collect()
    with pytest.raises(NotFoundError):
        store.restore(first.id)


def test_an_id_is_found_without_looking_through_all_agents() -> None:
    store = open_store("memory://")
    ids = [store.save(f"agent-{n}", n).id for n in range(20)]
    store.restore(ids[0])
    storage = store._engine.storage
    keys, calls = storage.keys, []
    storage.keys = lambda user=None: calls.append(1) or keys(user)  # type: ignore[method-assign, func-returns-value]
    assert [store.restore(name) for name in ids] == list(range(20))
    assert not calls
    new = store.save("one more", "new").id
    assert store.restore(new) == "new"


def test_the_collector_is_on_again_afterwards_also_in_a_program_that_keeps_it_off() -> None:
    with quiet_gc():
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with quiet_gc():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_what_the_program_froze_stays_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quiet, "_MANY", 0)
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with quiet_gc():
            pass
        assert gc.get_freeze_count() == frozen
    finally:
        gc.unfreeze()


def test_garbage_in_cycles_goes_however_often_states_are_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settling counts as young what the collector would have looked at: it has to look now and then all the same."""
    monkeypatch.setattr(quiet, "_MANY", 100)
    monkeypatch.setattr(quiet, "_FULL", 10_000)
    alive: list[int] = []

    class Cyclic:
        def __init__(self) -> None:
            self.me = self
            self.state = [[] for _ in range(200)]  # type: ignore[var-annotated]
            alive.append(1)

        def __del__(self) -> None:
            alive.pop()

    for _ in range(500):
        with quiet_gc():
            Cyclic()
    assert len(alive) < 200
