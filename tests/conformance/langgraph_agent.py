"""A graph of LangGraph's whose node is one step, for the kit."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph

from rekindle.adapters.langgraph import RekindleSaver
from rekindle.testing.adapter import Job


class State(TypedDict):
    task: str
    notes: Annotated[list[str], operator.add]


def compiled(job: Job, saver: RekindleSaver) -> Any:
    def think(state: State) -> dict[str, Any]:
        return {"notes": [job.work(len(state["notes"]) + 1, state["task"], *state["notes"])]}

    graph: Any = StateGraph(State)
    graph.add_node("think", think)
    graph.add_edge(START, "think")
    graph.add_conditional_edges("think", lambda state: "think" if len(state["notes"]) < job.steps else END)
    return graph.compile(checkpointer=saver)


def run(job: Job) -> list[str]:
    with RekindleSaver.from_conn_string(job.url) as saver:
        graph, config = compiled(job, saver), {"configurable": {"thread_id": job.agent_id}}
        begun = graph.get_state(config).created_at is not None
        given = None if begun else {"task": job.task, "notes": []}
        answer: list[str] = graph.invoke(given, config, durability="sync")["notes"]
        return answer


def fork(job: Job) -> list[str]:
    with RekindleSaver.from_conn_string(job.url) as saver:
        graph, config = compiled(job, saver), {"configurable": {"thread_id": job.agent_id}}
        history = graph.get_state_history(config)
        middle = next(each for each in history if len(each.values.get("notes", ())) == job.at_step)
        other = graph.update_state(middle.config, {"task": job.task})
        answer: list[str] = graph.invoke(None, other, durability="sync")["notes"]
        return answer
