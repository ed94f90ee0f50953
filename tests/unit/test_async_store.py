"""The store for programs that await: the same answers, and neither a stuck loop nor a lost turn."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest

import rekindle
from rekindle import AsyncStore, ConflictError, Policy, Store, UnavailableError
from rekindle.storage.base import Append, Outcome

URLS: dict[str, Callable[[Path], str]] = {
    "memory": lambda folder: "memory://",
    "sqlite": lambda folder: f"sqlite:///{folder / 'store.db'}",
    "files": lambda folder: f"file://{folder / 'store'}",
}


@pytest.fixture(params=URLS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return URLS[request.param](tmp_path)


def slow(store: Store, seconds: float) -> threading.Event:
    """Commits take that long; the event is set when one has begun."""
    committer = store._engine.committer
    write, begun = committer._write, threading.Event()

    def late(batch: Sequence[Append]) -> list[Outcome]:
        begun.set()
        time.sleep(seconds)
        return write(batch)

    committer._write = late
    return begun


def run(body: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(body, 30))


def test_the_calls_answer_as_the_stores_do(url: str) -> None:
    async def body() -> None:
        async with AsyncStore.open(url, user="ada") as store:
            assert (store.user, store.url) == ("ada", store.store.url)
            first = await store.save("a", {"n": 1}, label="one", metadata={"k": (1,)})
            second = await store.save("a", {"n": 2})
            assert second.parent_checkpoint_id == first.id
            assert await store.restore(second) == {"n": 2}
            assert (await store.get("a@-2")).id == first.id
            assert [c.id for c in await store.list("a")] == [second.id, first.id]
            assert [c.id for c in await store.history(second)] == [second.id, first.id]
            assert [c.id for c in await store.children(first)] == [second.id]
            aside = await store.save("a", {"n": 3}, parent=first)
            assert aside.branch == "main-2"
            assert set(await store.branches("a")) == {"main", "main-2"}
            await store.tag(first, "start")
            needle = await store.save("b", {"text": ["a needle"]})
            assert [(c.id, path) async for c, path, _ in store.grep("need.e")] == [(needle.id, "text[0]")]
            assert len((await store.prune(Policy(keep_last=1))).drop) == 0
            assert await store.clear() == 4
            assert (await store.undo()).verb == "undo"
            assert await store.agents() == ["a", "b"]
            assert await store.for_user("eve").agents() == []

    run(body())


def test_every_call_of_the_store_is_there() -> None:
    calls = {name for name in vars(Store) if not name.startswith("_")}
    assert calls <= {name for name in dir(AsyncStore) if not name.startswith("_")}


def test_many_tasks_save_at_once_and_nothing_is_lost(url: str) -> None:
    async def body() -> None:
        async with AsyncStore.open(url) as store:

            async def saver(agent: str) -> None:
                for n in range(5):
                    await store.save(agent, {"n": n, "agent": agent})

            await asyncio.gather(*(saver(f"agent-{n % 8}") for n in range(24)))
            for n in range(8):
                history = await store.history(f"agent-{n}")
                assert [c.seq for c in history] == list(range(15, 0, -1))
                assert {c.branch for c in history} == {"main"}
            assert await store.verify()

    run(body())


def test_saves_that_come_while_one_commits_are_committed_together(tmp_path: Path) -> None:
    async def body() -> None:
        async with AsyncStore.open(tmp_path / "store.db") as store:
            sizes = []
            committer = store.store._engine.committer
            write = committer._write
            committer._write = lambda batch: (sizes.append(len(batch)), write(batch))[1]
            await asyncio.gather(*(store.save(f"agent-{n}", {"n": n}) for n in range(32)))
            assert sum(sizes) == 32
            assert len(sizes) < 16

    run(body())


def test_the_loop_goes_on_while_a_save_commits(tmp_path: Path) -> None:
    async def body() -> None:
        async with AsyncStore.open(tmp_path / "store.db") as store:
            await store.save("a", {"n": 0})
            slow(store.store, 0.3)
            saving = asyncio.create_task(store.save("a", {"n": 1}))
            longest, last = 0.0, time.perf_counter()
            while not saving.done():
                await asyncio.sleep(0.005)
                longest, last = max(longest, time.perf_counter() - last), time.perf_counter()
            assert longest < 0.2

    run(body())


def test_the_state_is_that_of_the_call_whatever_changes_it_then(tmp_path: Path) -> None:
    async def body() -> None:
        async with AsyncStore.open(tmp_path / "store.db") as store:
            slow(store.store, 0.05)
            await store.save("a", {})
            state = {"items": list(range(2000))}
            saving = asyncio.create_task(store.save("a", state))
            await asyncio.sleep(0.01)
            state["items"].append("later")
            assert await store.restore(await saving) == {"items": list(range(2000))}

    run(body())


@pytest.mark.parametrize("wait", [0.0, 0.02, 0.15])
def test_a_cancelled_save_leaves_the_agent_free_and_the_store_right(url: str, wait: float) -> None:
    async def body() -> None:
        async with AsyncStore.open(url) as store:
            first = await store.save("a", {"n": 0})
            slow(store.store, 0.1)
            saving = asyncio.create_task(store.save("a", {"n": 1}))
            behind = asyncio.create_task(store.save("a", {"n": 2}))
            await asyncio.sleep(wait)
            saving.cancel()
            behind.cancel()
            await asyncio.gather(saving, behind, return_exceptions=True)
            last = await store.save("a", {"n": 3})
            assert await store.restore(last) == {"n": 3}
            history = await store.history(last)
            assert history[-1].id == first.id
            assert [c.seq for c in history] == list(range(last.seq, 0, -1))
            assert await store.verify()

    run(body())


def test_a_save_that_fails_says_so_and_the_next_one_goes_through(url: str) -> None:
    async def body() -> None:
        async with AsyncStore.open(url) as store:
            await store.save("a", {"n": 0})
            committer = store.store._engine.committer
            write = committer._write

            def broken(batch: Sequence[Append]) -> list[Outcome]:
                raise UnavailableError("io-error", "the disk is away")

            committer._write = broken
            with pytest.raises(UnavailableError, match="the disk is away"):
                await store.save("a", {"n": 1})
            with pytest.raises(rekindle.InvalidInputError):
                await store.save("a", {"n": object()})
            committer._write = write
            last = await store.save("a", {"n": 2})
            assert (last.seq, await store.restore(last)) == (2, {"n": 2})

    run(body())


def test_two_savers_on_one_parent_both_keep_what_they_saved(url: str) -> None:
    async def body() -> None:
        async with AsyncStore.open(url) as store:
            first = await store.save("a", {"n": 0})
            saved = await asyncio.gather(*(store.save("a", {"n": n}, parent=first) for n in (1, 2, 3)))
            assert {c.branch for c in saved} == {"main", "main-2", "main-3"}
            assert {c.parent_checkpoint_id for c in saved} == {first.id}
            with pytest.raises(ConflictError):
                await store.save("a", {"n": 4}, parent=first, strict=True)

    run(body())


def test_a_blocking_save_in_the_loops_thread_does_not_wait_for_tasks_of_that_loop(url: str) -> None:
    async def body() -> None:
        async with AsyncStore.open(url) as store:
            await store.save("a", {"n": 0})
            slow(store.store, 0.02)
            tasks = [asyncio.create_task(store.save("a", {"n": n})) for n in range(1, 6)]
            await asyncio.sleep(0.01)
            sync = store.store.save("a", {"n": "sync"})
            await asyncio.gather(*tasks)
            assert sync.seq in range(2, 8)
            assert len(await store.history("a")) == 7

    run(body())


def test_threads_and_tasks_of_several_loops_save_one_agent_side_by_side(url: str) -> None:
    with rekindle.open_store(url) as store:

        def blocking() -> None:
            for n in range(10):
                store.save("a", {"n": n})

        def awaiting() -> None:
            async def body() -> None:
                mine = AsyncStore(store)
                await asyncio.gather(*(mine.save("a", {"n": n}) for n in range(10)))
                mine._way.close()

            run(body())

        threads = [threading.Thread(target=call) for call in (blocking, awaiting, blocking, awaiting)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert [c.seq for c in store.history("a")] == list(range(40, 0, -1))


def test_a_policy_of_the_store_is_kept_after_awaited_saves_too(url: str) -> None:
    async def body() -> None:
        async with AsyncStore.open(url) as store:
            await store.set_policy("keep-last=2", every=5)
            for n in range(10):
                await store.save("a", {"n": n})
            assert len(await store.list("a")) == 2

    run(body())


def test_what_another_process_did_is_seen_by_the_next_save(tmp_path: Path) -> None:
    async def body() -> None:
        async with AsyncStore.open(tmp_path / "store.db") as store:
            await store.save("a", {"n": 1})
            with rekindle.open_store(tmp_path / "store.db") as other:
                other.save("a", {"n": 2})
                other.tag("a@1", "kept")
            last = await store.save("a", {"n": 3})
            assert last.seq == 3
            assert [c.seq for c in await store.history(last)] == [3, 2, 1]

    run(body())


def test_one_store_serves_one_loop_after_the_other(url: str) -> None:
    with rekindle.open_store(url) as store:
        awaiting = AsyncStore(store)
        for n in range(3):
            asyncio.run(awaiting.save("a", {"n": n}))
        assert len(store.history("a")) == 3
        awaiting._way.close()
