"""One RekindleSaver for many at once: tasks, threads, cancelled ones, loops that close, a forked process."""

from __future__ import annotations

import asyncio
import contextlib
import operator
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.runnables import RunnableLambda
from langgraph.graph import START, StateGraph
from tests.faults.forking import Forking

import rekindle
from rekindle.adapters.langgraph import RekindleSaver

TORTURE = os.environ.get("REKINDLE_TORTURE") == "1"
MANY = 500 if TORTURE else 50
PATIENCE = 60
"""Seconds after which something hangs."""
NODES = ("a", "b", "c")


class State(TypedDict):
    log: Annotated[list[Any], operator.add]


def thread(name: object) -> Any:
    return {"configurable": {"thread_id": str(name)}}


def chain(saver: RekindleSaver, meanwhile: Any = None) -> Any:
    """A graph of three nodes; in the second one something else may happen."""

    def said(node: str, state: State) -> dict[str, Any]:
        return {"log": [f"{state['log'][0]} {node} " + "x" * 300]}

    graph: Any = StateGraph(State)
    for node in NODES:

        async def in_tasks(state: State, node: str = node) -> dict[str, Any]:
            if node == "b" and meanwhile is not None:
                await meanwhile(state)
            return said(node, state)

        graph.add_node(node, RunnableLambda(partial(said, node), afunc=in_tasks))
    for before, after in zip((START, *NODES), NODES, strict=False):
        graph.add_edge(before, after)
    return graph.compile(checkpointer=saver)


def whole(name: object) -> list[str]:
    """The log of a thread of that name that was run once."""
    return [str(name), *(f"{name} {node} " + "x" * 300 for node in NODES)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[rekindle.Store]:
    with rekindle.open_store(tmp_path / "chat.db") as opened:
        yield opened


@pytest.fixture
def saver(store: rekindle.Store) -> Iterator[RekindleSaver]:
    saver = RekindleSaver(store)
    yield saver
    saver.close()


def run(main: Any) -> Any:
    return asyncio.run(asyncio.wait_for(main, PATIENCE))


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_many_threads_at_once_through_one_saver(saver: RekindleSaver, durability: Any) -> None:
    async def main() -> None:
        graph = chain(saver)
        calls = (graph.ainvoke({"log": [str(n)]}, thread(n), durability=durability) for n in range(MANY))
        ended = await asyncio.gather(*calls)
        assert [done["log"] for done in ended] == [whole(n) for n in range(MANY)]
        states = await asyncio.gather(*(graph.aget_state(thread(n)) for n in range(MANY)))
        assert [state.values["log"] for state in states] == [whole(n) for n in range(MANY)]

    run(main())
    assert {each.thread_id for each in saver.threads()} == {str(n) for n in range(MANY)}
    assert saver.store.verify().problems == []


def test_cancelled_tasks_leave_nothing_half_and_go_on_later(saver: RekindleSaver) -> None:
    async def main() -> None:
        for n in range(MANY):
            # cancelled after so many turns of the loop: in a node, in a put, in a read
            task = asyncio.create_task(chain(saver).ainvoke({"log": [str(n)]}, thread(n)))
            for _ in range(n * 3):
                await asyncio.sleep(0)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        for n in range(MANY):
            graph = chain(saver)
            state = await graph.aget_state(thread(n))
            if not state.values or state.tasks:
                await graph.ainvoke(None if state.tasks else {"log": [str(n)]}, thread(n))
            assert (await graph.aget_state(thread(n))).values["log"] == whole(n)

    run(main())
    assert saver.store.verify().problems == []
    assert all(list(saver.store.branches(name)) == ["main"] for name in saver.store.agents())


def test_a_thread_cancelled_in_the_middle_does_not_keep_the_others(saver: RekindleSaver) -> None:
    async def main() -> None:
        reached = [asyncio.Event() for _ in range(MANY)]

        async def stop_some(state: State) -> None:
            n = int(state["log"][0])
            reached[n].set()
            if n % 2:
                await asyncio.Event().wait()  # for ever: until it is cancelled

        graph = chain(saver, stop_some)
        tasks = [asyncio.create_task(graph.ainvoke({"log": [str(n)]}, thread(n))) for n in range(MANY)]
        await asyncio.gather(*(event.wait() for event in reached))
        for task in tasks[1::2]:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert [isinstance(each, asyncio.CancelledError) for each in ended] == [n % 2 == 1 for n in range(MANY)]
        goes_on = chain(saver)
        for n in range(MANY):
            done = ended[n] if n % 2 == 0 else await goes_on.ainvoke(None, thread(n))
            assert done["log"] == whole(n)

    run(main())
    assert saver.store.verify().problems == []


def test_a_loop_that_ends_or_is_closed_leaves_the_saver_to_the_next(saver: RekindleSaver) -> None:
    async def begin(n: int) -> None:
        reached = asyncio.Event()

        async def stay(state: State) -> None:
            reached.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(chain(saver, stay).ainvoke({"log": [str(n)]}, thread(n), durability="sync"))
        await reached.wait()
        assert not task.done()

    for n in range(5):
        asyncio.run(begin(n))  # its end cancels what still runs
    for n in range(5):
        done = run(chain(saver).ainvoke(None, thread(n)))
        assert done["log"] == whole(n)


@pytest.mark.parametrize("writes", [False, True])
def test_a_loop_closed_in_the_middle_of_a_put_leaves_the_saver_to_the_next(saver: RekindleSaver, writes: bool) -> None:
    for turns in range(1, 20):
        base = chain(saver).invoke({"log": [str(turns)]}, thread(turns)) and saver.get_tuple(thread(turns))
        assert base is not None
        later = {**base.checkpoint, "id": base.checkpoint["id"][:-2] + f"{turns:02x}"}
        put = saver.aput_writes(base.config, [("log", ["late"])], "task") if writes else None
        loop = asyncio.new_event_loop()
        loop.set_exception_handler(lambda loop, context: None)  # it says that a task was left alone
        task = loop.create_task(put or saver.aput(base.config, later, base.metadata, {}))  # type: ignore[arg-type]
        for _ in range(turns):
            loop.call_soon(loop.stop)
            loop.run_forever()
        loop.close()
        del task
        found = saver.get_tuple(thread(turns))
        assert found is not None
        assert found.checkpoint["id"] in (base.checkpoint["id"], later["id"])
        assert len(found.pending_writes or ()) <= 1
        assert chain(saver).invoke({"log": ["on"]}, thread(turns))["log"][:4] == whole(turns)
    assert saver.store.verify().problems == []


def test_threads_and_tasks_use_one_saver_at_once(saver: RekindleSaver) -> None:
    graph = chain(saver)

    def in_threads(n: int) -> list[str]:
        return graph.invoke({"log": [str(n)]}, thread(n))["log"]  # type: ignore[no-any-return]

    async def main() -> None:
        with ThreadPoolExecutor(8) as pool:
            loop = asyncio.get_running_loop()
            threads = [loop.run_in_executor(pool, in_threads, n) for n in range(0, MANY, 2)]
            tasks = [graph.ainvoke({"log": [str(n)]}, thread(n)) for n in range(1, MANY, 2)]
            ended = await asyncio.gather(*threads, *tasks)
        logs = [each if isinstance(each, list) else each["log"] for each in ended]
        assert sorted(logs) == sorted(whole(n) for n in range(MANY))
        found = [each async for each in saver.alist(None)]
        assert len(found) == len(list(saver.list(None))) == 5 * MANY

    run(main())
    assert saver.store.verify().problems == []


def test_threads_and_tasks_on_the_same_thread_are_both_kept(saver: RekindleSaver) -> None:
    graph = chain(saver)

    async def main() -> None:
        calls = [asyncio.to_thread(graph.invoke, {"log": [f"thread-{n}"]}, thread("shared")) for n in range(5)]
        await asyncio.gather(*calls, *(graph.ainvoke({"log": [f"task-{n}"]}, thread("shared")) for n in range(5)))

    run(main())
    heads = saver.store.branches("shared").values()
    ends = {line.split()[0] for head in heads for line in head.state["log"]}
    assert ends == {f"{kind}-{n}" for kind in ("thread", "task") for n in range(5)}
    assert len(list(saver.list(thread("shared")))) == 50
    assert saver.store.verify().problems == []


def test_a_saver_stands_on_an_async_store(tmp_path: Path) -> None:
    async def main() -> None:
        async with rekindle.AsyncStore.open(tmp_path / "chat.db") as store:
            saver = RekindleSaver(store)
            ended = await asyncio.gather(*(chain(saver).ainvoke({"log": [str(n)]}, thread(n)) for n in range(5)))
            assert [done["log"] for done in ended] == [whole(n) for n in range(5)]
            assert sorted(await store.agents()) == [str(n) for n in range(5)]
            assert (await store.restore("3"))["log"] == whole(3)

    run(main())


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork on Windows")
@pytest.mark.parametrize("url", ["sqlite:///{}/store.db", "file://{}/store"])
def test_a_forked_process_goes_on_with_an_open_saver(url: str, tmp_path: Path) -> None:
    with Forking(tmp_path) as forking:
        found = forking.answer("tests.faults.forked_saver:run", url.format(tmp_path))
    assert found["status"] == 0
    assert found["problems"] == []
    assert found["seen"] == ["before", "child", "parent"]
    for name in ("child", "parent"):
        assert found["logs"][f"own of {name}"] == [f"{name} {node}" for node in NODES] * 2
