"""Programs that look into subgraphs, go back in time and on: each does on a RekindleSaver what it does on LangGraph's own."""

import operator
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, Interrupt, Send, StateUpdate, interrupt

from rekindle.adapters.langgraph import RekindleSaver

THREAD: Any = {"configurable": {"thread_id": "t"}}
IN_TURN: Any = {**THREAD, "max_concurrency": 1}
LONG = " and so on" * 60
"""So that states are no longer so small that each is written whole."""
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{32}\b")
Told = list[Any]
Program = Callable[[Any], Told]


class Log(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


class State(Log, total=False):
    name: str


def says(name: str) -> Callable[[State], State]:
    return lambda state: {"log": [f"{name} {len(state.get('log', []))}" + LONG]}


def asks(name: str) -> Callable[[State], State]:
    return lambda state: {"log": [f"{name} {interrupt(f'{name}?')}"]}


def row(*nodes: tuple[str, Any], output: Any = State) -> Any:
    graph: Any = StateGraph(State, output_schema=output)
    for name, node in nodes:
        graph.add_node(name, node)
    for (before, _), (after, _) in zip((("__start__", None), *nodes), nodes, strict=False):
        graph.add_edge(before, after)
    return graph


# -- what is compared ------------------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """A value without the ids that are different in every run (a ToolMessage may get its after it was written down);
    tuples as lists, which theirs makes of them."""
    if isinstance(value, dict):
        return {key: plain(value[key]) for key in sorted(value)}
    if isinstance(value, (list, tuple)):
        told = [plain(item) for item in value]
        return sorted(told) if value and all(isinstance(item, Interrupt) for item in value) else told
    return UUID.sub("ID", value if isinstance(value, str) else repr(value)).replace("id='ID', ", "")


def shown(state: Any) -> Told:
    """A snapshot without ids and times."""
    metadata = state.metadata or {}
    return [
        plain(state.values),
        plain(state.next),
        [metadata.get("source"), metadata.get("step"), sorted(plain(list(metadata.get("parents", {}))))],
        plain((state.config or {}).get("configurable", {}).get("checkpoint_ns", "")),
        state.parent_config is not None,
        sorted((_task(each) for each in state.tasks), key=repr),
        sorted(plain([each.value for each in state.interrupts]), key=repr),
    ]


def _task(each: Any) -> Told:
    inner = each.state
    if isinstance(inner, dict):
        inner = plain(inner["configurable"]["checkpoint_ns"])
    elif inner is not None:
        inner = shown(inner)
    return [
        each.name,
        plain(each.path),
        each.error,
        sorted(plain([i.value for i in each.interrupts]), key=repr),
        inner,
        plain(each.result),
    ]


def everything(graph: Any, saver: Any) -> Told:
    """All that a thread holds: every checkpoint of every namespace, as a snapshot."""
    told: Told = [shown(graph.get_state(THREAD)), shown(graph.get_state(THREAD, subgraphs=True))]
    for state in graph.get_state_history(THREAD):
        told += [shown(state), shown(graph.get_state(state.config, subgraphs=True))]
    namespaces = {each.config["configurable"]["checkpoint_ns"] for each in saver.list(THREAD)}
    return [*told, *sorted(([plain(ns), *_inside(graph, saver, ns)] for ns in namespaces), key=repr)]


def _inside(graph: Any, saver: Any, ns: str) -> Told:
    config = {"configurable": {"thread_id": "t", "checkpoint_ns": ns}}
    told: Told = []
    for each in saver.list(config):
        pending = sorted((plain(write[1:]) for write in each.pending_writes or ()), key=repr)
        told.append([each.metadata["step"], plain(each.checkpoint["channel_values"].copy()), pending])
    return [*told, *(shown(state) for state in (graph.get_state_history(config) if ns else ()))]


@pytest.fixture(params=[("branch", "verified"), ("refuse", "trusted")], ids="-".join)
def saver(request: pytest.FixtureRequest, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[RekindleSaver]:
    """One that refuses second writers too: going back is none, and is not told of as one."""
    two_writers, changes = request.param
    url = tmp_path / "chat.db"
    with RekindleSaver.from_conn_string(url, two_writers=two_writers, changes=changes) as opened:
        yield opened
    assert [record.getMessage() for record in caplog.get_records("call") if record.name.startswith("rekindle")] == []


def same(program: Program, saver: RekindleSaver) -> Told:
    theirs, ours = plain(program(InMemorySaver())), plain(program(saver))
    for number, (their, our) in enumerate(zip(theirs, ours, strict=False)):
        assert our == their, f"it differs in {number} of {len(theirs)}"
    assert len(ours) == len(theirs)
    assert saver.store.verify().problems == []
    return ours


# -- subgraphs -------------------------------------------------------------------------------------------------------

KEEPS = {"plain": None, "of its own": True}


@pytest.mark.parametrize("keeps", KEEPS)
def test_an_interrupt_inside_a_subgraph(keeps: str, saver: RekindleSaver) -> None:
    def program(saver: Any) -> Told:
        inner = row(("one", says("one")), ("ask", asks("ask")), ("two", says("two")))
        outer = row(("first", says("first")), ("sub", inner.compile(checkpointer=KEEPS[keeps])), ("last", says("last")))
        graph = outer.compile(checkpointer=saver)
        told: Told = [graph.invoke({"log": ["hello"]}, THREAD), *everything(graph, saver)]
        asked = graph.get_state(THREAD, subgraphs=True).tasks[0].state
        forked = graph.update_state(asked.config, {"log": ["by hand"]})
        told += [sorted(forked["configurable"]), *everything(graph, saver)]
        told += [graph.invoke(Command(resume="yes"), THREAD), *everything(graph, saver)]
        return [*told, graph.invoke({"log": ["again"]}, THREAD), *everything(graph, saver)]

    assert len(same(program, saver)) > 40


@pytest.mark.parametrize("keeps", KEEPS)
def test_going_back_to_every_checkpoint_of_the_graph_and_of_the_subgraph(keeps: str, saver: RekindleSaver) -> None:
    def program(saver: Any) -> Told:
        inner = row(("one", says("one")), ("ask", asks("ask")), ("two", says("two")))
        outer = row(("first", says("first")), ("sub", inner.compile(checkpointer=KEEPS[keeps])), ("last", says("last")))
        graph = outer.compile(checkpointer=saver)
        graph.invoke({"log": ["hello"]}, THREAD)
        within = list(graph.get_state_history(graph.get_state(THREAD).tasks[0].state))
        told: Told = [graph.invoke(Command(resume="yes"), THREAD)]
        for state in [*list(graph.get_state_history(THREAD)), *within]:
            told += [shown(state), graph.invoke(None, state.config), shown(graph.get_state(THREAD, subgraphs=True))]
            told += [graph.invoke(Command(resume="again"), THREAD) if graph.get_state(THREAD).interrupts else None]
        for state in list(graph.get_state_history(THREAD))[:4]:
            forked = graph.update_state(state.config, {"log": ["by hand"]})
            told += [graph.invoke(None, forked), shown(graph.get_state(THREAD))]
        return [*told, *everything(graph, saver)]

    same(program, saver)


@pytest.mark.parametrize("inner_keeps", KEEPS)
@pytest.mark.parametrize("outer_keeps", KEEPS)
def test_two_deep(outer_keeps: str, inner_keeps: str, saver: RekindleSaver) -> None:
    def program(saver: Any) -> Told:
        deep = row(("d1", says("d1")), ("ask", asks("deep")), ("d2", says("d2")))
        middle = row(("m1", says("m1")), ("deep", deep.compile(checkpointer=KEEPS[inner_keeps])), ("m2", says("m2")))
        outer = row(("o1", says("o1")), ("middle", middle.compile(checkpointer=KEEPS[outer_keeps])), ("o2", says("o2")))
        graph = outer.compile(checkpointer=saver)
        told: Told = [graph.invoke({"log": ["hello"]}, THREAD), *everything(graph, saver)]
        asked = graph.get_state(THREAD, subgraphs=True).tasks[0].state.tasks[0].state
        told += [asked.values, asked.next]
        graph.update_state(asked.config, {"log": ["by hand, in the deep"]})
        told += [shown(graph.get_state(THREAD, subgraphs=True))]
        told += [graph.invoke(Command(resume="yes"), THREAD), *everything(graph, saver)]
        return [*told, graph.invoke({"log": ["again"]}, THREAD), *everything(graph, saver)]

    assert len(same(program, saver)) > 40


def test_subgraphs_side_by_side_that_both_ask(saver: RekindleSaver) -> None:
    def program(saver: Any) -> Told:
        ask = ("ask", lambda state: {"log": [interrupt(state["name"])]})
        inner = row(("one", says("one")), ask, output=Log)
        graph: Any = StateGraph(State)
        graph.add_node("plan", says("plan"))
        graph.add_node("sub", inner.compile())
        graph.add_edge(START, "plan")
        graph.add_conditional_edges("plan", lambda state: [Send("sub", {"name": n}) for n in "abc"], ["sub"])
        graph = graph.compile(checkpointer=saver)
        told: Told = [graph.invoke({"log": []}, IN_TURN)["log"], *everything(graph, saver)]
        first, *_, last = graph.get_state(THREAD).interrupts
        told += [
            graph.invoke(Command(resume={first.id: "yes", last.id: "no"}), IN_TURN)["log"],
            *everything(graph, saver),
        ]
        return [*told, graph.invoke(Command(resume="perhaps"), IN_TURN)["log"], *everything(graph, saver)]

    assert len(same(program, saver)) > 30


def test_a_subgraph_that_keeps_its_past_over_several_runs(saver: RekindleSaver) -> None:
    def program(saver: Any) -> Told:
        graph = row(("sub", row(("one", says("one"))).compile(checkpointer=True))).compile(checkpointer=saver)
        told: Told = [graph.invoke({"log": [f"{turn}"]}, THREAD) for turn in range(3)]
        past = list(graph.get_state_history(THREAD))[3]
        told += [graph.invoke({"log": ["aside"]}, past.config), *everything(graph, saver)]
        return [*told, graph.invoke({"log": ["on"]}, THREAD), *everything(graph, saver)]

    same(program, saver)


# -- by hand ---------------------------------------------------------------------------------------------------------


def test_updates_by_hand_of_every_kind(saver: RekindleSaver) -> None:
    def program(saver: Any) -> Told:
        graph = row(("a", says("a")), ("b", says("b")), ("c", says("c"))).compile(
            checkpointer=saver, interrupt_before=["b", "c"]
        )
        told: Told = [
            graph.update_state(THREAD, {"log": ["first of all"]}, as_node="a") and shown(graph.get_state(THREAD))
        ]
        told += [graph.invoke(None, THREAD), shown(graph.get_state(THREAD))]
        graph.update_state(THREAD, {"log": ["as b"]}, as_node="b")
        graph.update_state(THREAD, None)
        told += [shown(graph.get_state(THREAD))]
        past = list(graph.get_state_history(THREAD))[2]
        graph.update_state(past.config, None, as_node="__copy__")
        told += [shown(graph.get_state(THREAD))]
        updates = [StateUpdate({"log": [f"bulk {n}"]}, as_node="a") for n in range(2)]
        graph.bulk_update_state(THREAD, [updates[:1], updates[1:]])
        told += [*everything(graph, saver)]
        graph.update_state(THREAD, None, as_node=END)
        return [*told, graph.invoke({"log": ["anew"]}, THREAD), *everything(graph, saver)]

    same(program, saver)


@pytest.mark.parametrize("lines", [1, 40])
def test_a_copy_holds_what_it_copies(lines: int, saver: RekindleSaver) -> None:
    """LangGraph puts it on the parent of what it copies, and names no version as new."""

    def program(saver: Any) -> Told:
        def work(state: State) -> State:
            return {"log": [f"line {len(state['log'])}"] * lines, "name": f"{len(state['log'])}" + LONG}

        graph = row(("a", work), ("b", work), ("c", work)).compile(checkpointer=saver)
        graph.invoke({"log": ["hello"]}, THREAD)
        told: Told = []
        for state in list(graph.get_state_history(THREAD))[:-1]:
            copied = graph.update_state(state.config, None, as_node="__copy__")
            assert graph.get_state(copied).values == state.values
            told.append(shown(graph.get_state(copied)))
        return [*told, *everything(graph, saver)]

    same(program, saver)


def test_going_back_with_an_input_and_listing_what_was_before(saver: RekindleSaver) -> None:
    def program(saver: Any) -> Told:
        graph = row(("a", says("a")), ("b", says("b"))).compile(checkpointer=saver)
        for turn in range(3):
            graph.invoke({"log": [f"turn {turn}"]}, THREAD)
        past = list(graph.get_state_history(THREAD))
        told: Told = [graph.invoke({"log": ["other"]}, past[5].config)]
        for state in past[::3]:
            told += [[shown(each) for each in graph.get_state_history(THREAD, before=state.config, limit=4)]]
        told += [[shown(each) for each in graph.get_state_history(THREAD, filter={"source": "input"})]]
        told += [[shown(each) for each in graph.get_state_history(past[2].config)]]
        return [*told, *everything(graph, saver)]

    same(program, saver)


# -- the functional API, and agents ----------------------------------------------------------------------------------


def test_the_functional_api(saver: RekindleSaver) -> None:
    def program(saver: Any) -> Told:
        ran: list[int] = []

        @task
        def double(n: int) -> int:
            ran.append(n)
            return 2 * n

        @entrypoint(checkpointer=saver)
        def flow(numbers: list[int], *, previous: Any = None) -> Any:
            doubled = [future.result() for future in [double(n) for n in numbers]]
            answer = interrupt({"doubled": doubled})
            return entrypoint.final(value=[*doubled, answer], save=[*(previous or []), *doubled])

        told: Told = []
        for turn in range(2):
            told += [flow.invoke([turn, 5], THREAD), *everything(flow, saver)]
            told += [flow.invoke(Command(resume="yes"), THREAD), sorted(ran), *everything(flow, saver)]
        for state in list(flow.get_state_history(THREAD)):
            told += [flow.invoke(None, state.config), sorted(ran)]
        return [*told, *everything(flow, saver)]

    same(program, saver)


class Scripted(BaseChatModel):
    """A model that calls a tool, and answers when it has the result."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        number = len(messages)
        calls = [{"name": "weather", "args": {"city": city}, "id": f"{number}-{city}"} for city in ("Lisbon", "Porto")]
        last = messages[-1]
        message = (
            AIMessage("", id=f"ai-{number}", tool_calls=calls)
            if last.type == "human"
            else AIMessage(f"It is {last.content}.", id=f"ai-{number}")
        )
        return ChatResult(generations=[ChatGeneration(message=message)])


@tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}" if interrupt(f"may I ask about {city}?") == "yes" else "unknown"


def test_an_agent_with_tools_that_ask(saver: RekindleSaver) -> None:
    prebuilt = pytest.importorskip("langgraph.prebuilt")

    def program(saver: Any) -> Told:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it is deprecated, and what there is
            graph = prebuilt.create_react_agent(Scripted(), [weather], checkpointer=saver)
        told: Told = []
        for turn in range(2):
            given: Any = {"messages": [{"role": "user", "content": "How is it there?", "id": f"h{turn}"}]}
            graph.invoke(given, IN_TURN)
            told += everything(graph, saver)
            waiting = graph.get_state(THREAD).interrupts
            graph.invoke(Command(resume={each.id: "yes" for each in waiting}), IN_TURN)
            told += everything(graph, saver)
        past = next(state for state in graph.get_state_history(THREAD) if "tools" in state.next)
        told += [sorted(graph.invoke(None, {**IN_TURN, **past.config}))]
        told += [shown(graph.get_state(THREAD))]
        return told

    same(program, saver)


def test_an_agent_as_a_subgraph_of_another(saver: RekindleSaver) -> None:
    prebuilt = pytest.importorskip("langgraph.prebuilt")

    def program(saver: Any) -> Told:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            agent = prebuilt.create_react_agent(Scripted(), [weather], name="agent")
        outer: Any = StateGraph(MessagesState)
        outer.add_node("agent", agent)
        outer.add_edge(START, "agent")
        graph = outer.compile(checkpointer=saver)
        graph.invoke({"messages": [{"role": "user", "content": "How is it there?", "id": "h"}]}, IN_TURN)
        told = everything(graph, saver)
        waiting = graph.get_state(THREAD).interrupts
        graph.invoke(Command(resume={each.id: "no" for each in waiting}), IN_TURN)
        return [*told, *everything(graph, saver)]

    same(program, saver)
