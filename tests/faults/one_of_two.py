"""One of two processes that run the same threads at the same moments: it stops when it has loaded, and goes on when told.

python -m tests.faults.one_of_two URL NAME TWO_WRITERS DURABILITY ROUNDS

A line to stdin for each round lets it go on. What it prints: "loaded ID", "put ID" of each checkpoint that was put, "ended"
or the code of the ConflictError it got.
"""

from __future__ import annotations

import operator
import sys
from typing import Annotated, Any, TypedDict

from langgraph.graph import START, StateGraph

from rekindle import ConflictError, open_store
from rekindle.adapters.langgraph import RekindleSaver

NODES = ("a", "b", "c")


class State(TypedDict):
    log: Annotated[list[Any], operator.add]


def chain(saver: RekindleSaver, name: str) -> Any:
    graph: Any = StateGraph(State)
    for node in NODES:
        graph.add_node(node, lambda state, node=node: {"log": [f"{name} {node}"]})
    for before, after in zip((START, *NODES), NODES, strict=False):
        graph.add_edge(before, after)
    return graph.compile(checkpointer=saver)


def thread_of(number: int) -> Any:
    return {"configurable": {"thread_id": f"thread-{number}"}}


def begins_new(number: int) -> bool:
    """Whether in this round each run brings an input of its own; else both go on at one that was interrupted."""
    return number % 2 == 0


class Waiting(RekindleSaver):
    """Tells what it has loaded and what it has put, and begins only when it is told to."""

    waits = False

    def get_tuple(self, config: Any) -> Any:
        found = super().get_tuple(config)
        if self.waits:
            self.waits = False
            assert found is not None
            print("loaded", found.checkpoint["id"], flush=True)
            sys.stdin.readline()
        return found

    def put(self, *args: Any) -> Any:
        config = super().put(*args)
        print("put", config["configurable"]["checkpoint_id"], flush=True)
        return config


def main(url: str, name: str, two_writers: str, durability: Any, rounds: int) -> None:
    with open_store(url) as store:
        saver = Waiting(store, two_writers=two_writers)
        graph = chain(saver, name)
        for number in range(rounds):
            saver.waits = True
            try:
                given = {"log": [f"{name} begins"]} if begins_new(number) else None
                graph.invoke(given, thread_of(number), durability=durability)
                print("ended", flush=True)
            except ConflictError as e:
                print(e.code, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:5], int(sys.argv[5]))
