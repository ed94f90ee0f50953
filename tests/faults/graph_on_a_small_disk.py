"""A graph on a real small disk that fills up under it.

Run by test_langgraph_faults.py in a mount namespace of its own, whose end takes the mount with it:
unshare --mount python -m tests.faults.graph_on_a_small_disk FOLDER URL DURABILITY WAY
"""

from __future__ import annotations

import asyncio
import operator
import random
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from tests.crash.small_disk import CANNOT, run

import rekindle
from rekindle.adapters.langgraph import RekindleSaver

STEPS = 60
THREAD: Any = {"configurable": {"thread_id": "t"}, "recursion_limit": STEPS + 5}


class State(TypedDict):
    log: Annotated[list[bytes], operator.add]


def page(number: int) -> bytes:
    return random.Random(number).randbytes(20_000)


def looping(saver: RekindleSaver) -> Any:
    """A graph whose state grows to more than the disk holds, beside what lies on it."""
    graph: Any = StateGraph(State)
    graph.add_node("work", lambda state: {"log": [page(len(state["log"]))]})
    graph.add_edge(START, "work")
    graph.add_conditional_edges("work", lambda state: "work" if len(state["log"]) < STEPS else END, ["work", END])
    return graph.compile(checkpointer=saver)


def call(graph: Any, given: Any, durability: Any, way: str) -> Any:
    if way == "tasks":
        return asyncio.run(graph.ainvoke(given, THREAD, durability=durability))
    return graph.invoke(given, THREAD, durability=durability)


def main(folder: str, url: str, durability: str, way: str) -> None:
    try:
        run("mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", folder)
    except subprocess.SubprocessError as e:
        print(e, getattr(e, "stderr", ""))
        sys.exit(CANNOT)
    ballast = Path(folder) / "ballast"
    ballast.write_bytes(bytes(7_200_000))
    with rekindle.open_store(url) as store:
        graph = looping(RekindleSaver(store))
        for given in ({"log": []}, None, None):
            try:
                call(graph, given, durability, way)
            except rekindle.UnavailableError as e:
                assert (e.code, bool(e.hint)) == ("disk-full", True), e
            else:
                raise AssertionError("the disk holds it all")
        kept = graph.get_state(THREAD).values["log"]
        assert 2 < len(kept) < STEPS
        assert kept == [page(n) for n in range(len(kept))]
        assert store.verify().problems == []
        ballast.unlink()
        done = call(graph, None, durability, way)
        assert done["log"] == [page(n) for n in range(STEPS)]
        assert store.verify().problems == []
        assert list(store.branches("t")) == ["main"]
    with rekindle.open_store(url) as store:
        assert looping(RekindleSaver(store)).get_state(THREAD).values["log"] == done["log"]


if __name__ == "__main__":
    main(*sys.argv[1:])
