"""A program that forks with its saver open, after threads and tasks have used it: parent and child both go on with it."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from tests.faults.one_of_two import chain

import rekindle
from rekindle.adapters.langgraph import RekindleSaver

SHARED, OWN = "shared", "own of {}"


def thread(name: str) -> Any:
    return {"configurable": {"thread_id": name}}


def run(url: str) -> dict[str, Any]:
    with rekindle.open_store(url) as store:
        saver = RekindleSaver(store)
        graph = chain(saver, "before")
        graph.invoke({"log": []}, thread(SHARED))
        asyncio.run(graph.ainvoke({"log": []}, thread(SHARED)))
        child = os.fork()
        if child == 0:
            status = 1
            try:
                _both(saver, "child")
                saver.close()
                status = 0
            finally:
                os._exit(status)
        _both(saver, "parent")
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        graph.invoke({"log": []}, thread(SHARED))
        logs = {
            name: graph.get_state(thread(name)).values["log"] for name in (OWN.format("child"), OWN.format("parent"))
        }
        runs = [{line.split()[0] for line in c.state["log"]} for c in store.branches(SHARED).values()]
        seen = sorted(set().union(*runs))
        problems = [str(problem) for problem in store.verify().problems]
        saver.close()
    return {"status": status, "logs": logs, "seen": seen, "problems": problems}


def _both(saver: RekindleSaver, name: str) -> None:
    """In threads and in tasks, on a thread of its own and on the one both know."""
    graph = chain(saver, name)
    for each in (OWN.format(name), SHARED):
        graph.invoke({"log": []}, thread(each))
        asyncio.run(graph.ainvoke({"log": []}, thread(each)))
