"""A graph with everything in it (chat, parallel sends, tools, a subgraph, interrupts), which dies where it is told to.

What it does and what it is promised goes into a log, a line each: "ran TASK NODE" as a node begins, "wrote NS ID TASK"
and "put NS ID" when the saver has answered, "at PLACE" at every place where it could be killed.
"""

from __future__ import annotations

import asyncio
import operator
import os
import re
import signal
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import WRITES_IDX_MAP
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, Send, interrupt
from typing_extensions import TypedDict

import rekindle
from rekindle.adapters.langgraph import RekindleSaver
from rekindle.storage.base import Append, Outcome, is_journal

TURNS = 2
THREAD: Any = {"configurable": {"thread_id": "t"}}
Durability = Literal["sync", "async", "exit"]
Node = Callable[[Any], dict[str, Any]]


@rekindle.register(name="tests/killed/Draft")
@dataclass
class Draft:
    text: str
    price: tuple[int, str]


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    found: Annotated[list[Any], operator.add]
    draft: Draft
    turns: int


# -- the log, and where to die ---------------------------------------------------------------------------------------


class Log:
    """Lines that outlive their process, and death at the n-th time that a place is reached."""

    def __init__(self, path: str, place: str, n: int) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._die = (place, n)
        self._reached: Counter[str] = Counter()
        self._lock = threading.Lock()

    def tell(self, *words: object) -> None:
        os.write(self._file, (" ".join(map(str, words)) + "\n").encode())

    def at(self, place: str) -> None:
        with self._lock:
            self._reached[place] += 1
            self.tell("at", place)
            if self._die == (place, self._reached[place]):
                os.kill(os.getpid(), signal.SIGKILL)


class Watched(RekindleSaver):
    """The saver, with a place to die at before, inside and after each put."""

    log: Log

    def watch(self, log: Log) -> Watched:
        self.log = log
        committer = self.store._engine.committer
        write = committer._write

        def append(batch: Sequence[Append]) -> list[Outcome]:
            kinds = {"writes" if is_journal(a.records[-1].key.agent) else "put" for a in batch}
            for kind in sorted(kinds):
                log.at(f"{kind}: before the commit")
            done = write(batch)
            for kind in sorted(kinds):
                log.at(f"{kind}: after the commit")
            return done

        committer._write = append  # type: ignore[method-assign]
        return self

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        self.log.at("put: begins")
        return self._was_put(super().put(config, checkpoint, metadata, new_versions))

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        self.log.at("put: begins")
        return self._was_put(await super().aput(config, checkpoint, metadata, new_versions))

    def _was_put(self, config: Any) -> Any:
        told = config["configurable"]
        self.log.tell("put", told["checkpoint_ns"] or "-", told["checkpoint_id"])
        self.log.at("put: answered")
        return config

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        self.log.at("writes: begin")
        super().put_writes(config, writes, task_id, task_path)
        self._were_put(config, writes, task_id)

    async def aput_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        self.log.at("writes: begin")
        await super().aput_writes(config, writes, task_id, task_path)
        self._were_put(config, writes, task_id)

    def _were_put(self, config: Any, writes: Any, task_id: str) -> None:
        told = config["configurable"]
        if any(channel not in WRITES_IDX_MAP for channel, _ in writes):
            self.log.tell("wrote", told.get("checkpoint_ns") or "-", told["checkpoint_id"], task_id)
        self.log.at("writes: answered")


# -- the graph -------------------------------------------------------------------------------------------------------


def told(log: Log, name: str, work: Node) -> Any:
    """A node that says in the log that it ran, and for which of its inputs."""

    def node(state: Any, config: RunnableConfig) -> dict[str, Any]:
        which = f"{name}/{state.get('turns', state.get('turn', 0))}/{state.get('n', 0)}"
        log.tell("ran", config["configurable"]["__pregel_task_id"], which)
        log.at("node: begins")
        done = work(state)
        log.at("node: ends")
        return done

    return node


def _turn(state: Any) -> int:
    return int(state.get("turns", 0))


def chat(state: State) -> dict[str, Any]:
    turn = _turn(state)
    calls = [{"name": "look", "args": {"n": n}, "id": f"call-{turn}-{n}", "type": "tool_call"} for n in range(3)]
    return {"messages": [AIMessage(f"answer {turn} " * 20, id=f"ai-{turn}", tool_calls=calls)]}


def send(state: State) -> list[Send]:
    return [Send("tool", {"turn": _turn(state), "n": call["args"]["n"]}) for call in state["messages"][-1].tool_calls]


def tool(call: Any) -> dict[str, Any]:
    turn, n = call["turn"], call["n"]
    message = ToolMessage(f"result {n} " * 30, tool_call_id=f"call-{turn}-{n}", id=f"tool-{turn}-{n}")
    return {"messages": [message], "found": [(turn, n)]}


def approve(state: State) -> dict[str, Any]:
    return {"found": [interrupt({"approve": _turn(state)})]}


def outline(state: State) -> dict[str, Any]:
    return {"draft": Draft(f"outline {_turn(state)}", (1, "EUR"))}


def ask(state: State) -> dict[str, Any]:
    return {"messages": [HumanMessage(interrupt("which price?"), id=f"price-{_turn(state)}")]}


def write(state: State) -> dict[str, Any]:
    return {"draft": Draft(state["draft"].text + ", written", (_turn(state), "EUR")), "messages": []}


def end_turn(state: State) -> dict[str, Any]:
    return {"turns": _turn(state) + 1}


def built(saver: Watched) -> Any:
    log = saver.log
    inner: Any = StateGraph(State)
    for node in (outline, ask, write):
        inner.add_node(node.__name__, told(log, node.__name__, node))
    inner.add_edge(START, "outline")
    inner.add_edge("outline", "ask")
    inner.add_edge("ask", "write")
    graph: Any = StateGraph(State)
    for node in (chat, tool, approve, end_turn):
        graph.add_node(node.__name__, told(log, node.__name__, node))
    graph.add_node("report", only_draft(inner.compile()))
    graph.add_edge(START, "chat")
    graph.add_conditional_edges("chat", send, ["tool"])
    graph.add_edge("tool", "approve")
    graph.add_edge("approve", "report")
    graph.add_edge("report", "end_turn")
    graph.add_edge("end_turn", END)
    return graph.compile(checkpointer=saver)


def only_draft(inner: Any) -> Any:
    """A node that calls a subgraph: what is not a reducer's comes back from it."""

    def report(state: State, config: RunnableConfig) -> dict[str, Any]:
        done = inner.invoke({name: state[name] for name in ("messages", "turns") if name in state}, config)
        return {"draft": done["draft"], "messages": done["messages"][-1:]}

    return report


# -- a process -------------------------------------------------------------------------------------------------------


def run(url: str, log_path: str, durability: Durability, tasks: bool, place: str = "", n: int = 0) -> None:
    """Begin, or go on where it stands, until all turns are done. The same program, whatever happened before."""
    with rekindle.open_store(url) as store:
        saver = Watched(store).watch(Log(log_path, place, n))
        graph = built(saver)
        if tasks:
            asyncio.run(_go_on_in_tasks(graph, durability))
        else:
            _go_on(graph, durability)
        saver.close()


def _next(now: Any) -> Any:
    """What the graph is called with next; "done" where all turns are. `next` does not tell: it leaves out tasks whose
    writes are there already, though the checkpoint that takes them in is not."""
    turns = now.values.get("turns", 0)
    if not now.tasks:
        return "done" if turns == TURNS else {"messages": [HumanMessage(f"question {turns}", id=f"human-{turns}")]}
    return Command(resume=f"yes {turns}") if now.interrupts else None


def _go_on(graph: Any, durability: Durability) -> None:
    while (given := _next(graph.get_state(THREAD))) != "done":
        graph.invoke(given, THREAD, durability=durability)


async def _go_on_in_tasks(graph: Any, durability: Durability) -> None:
    while (given := _next(await graph.aget_state(THREAD))) != "done":
        await graph.ainvoke(given, THREAD, durability=durability)


def look(url: str, log_path: str) -> dict[str, Any]:
    """What is in the store, in a process that only looks: the thread's state, its steps, what is missing or wrong."""
    with rekindle.open_store(url) as store:
        saver = Watched(store).watch(Log(os.devnull, "", 0))
        graph = built(saver)
        state = graph.get_state(THREAD)
        found = list(saver.list(THREAD))
        for checkpoint in store.list(limit=None):
            store.restore(checkpoint)
        report = store.verify()
        return {
            "values": _shown(state.values),
            "past": ["[]", *(_shown(past.values) for past in graph.get_state_history(THREAD))],
            "turns": state.values.get("turns", 0),
            "next": list(state.next),
            "steps": sorted(_step(each) for each in found),
            "branches": sorted({name for agent in store.agents() for name in store.branches(agent)}),
            "problems": [*map(str, report.problems), *_lost(saver, log_path)],
        }


def _shown(values: dict[str, Any]) -> str:
    return repr(sorted(values.items()))


def _step(each: Any) -> list[Any]:
    ns = re.sub(":[0-9a-f-]{36}", "", each.config["configurable"]["checkpoint_ns"])
    return [ns, each.metadata["step"], each.metadata["source"]]


def _lost(saver: RekindleSaver, log_path: str) -> list[str]:
    """What the log says was promised and the store has not."""
    lost = []
    for line in lines(log_path):
        if line[0] in ("put", "wrote"):
            at = {"thread_id": "t", "checkpoint_ns": line[1].strip("-"), "checkpoint_id": line[2]}
            found = saver.get_tuple({"configurable": at})
            if line[0] == "put" and found is None:
                lost.append(f"the checkpoint {line[1:]} was put and is not there")
            if line[0] == "wrote" and found and line[3] not in {write[0] for write in found.pending_writes or ()}:
                lost.append(f"the writes {line[1:]} were put and are not there")
    return lost


def lines(log_path: str) -> list[list[str]]:
    if not os.path.exists(log_path):
        return []
    with open(log_path) as file:
        return [line.split(maxsplit=1 if line.startswith("at ") else -1) for line in file if line.endswith("\n")]
