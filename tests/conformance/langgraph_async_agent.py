"""The same graph, awaited, with `changes="trusted"`."""

from __future__ import annotations

from tests.conformance.langgraph_agent import compiled

from rekindle.adapters.langgraph import RekindleSaver
from rekindle.testing.adapter import Job


async def run(job: Job) -> list[str]:
    async with RekindleSaver.from_conn_string(job.url, changes="trusted") as saver:
        graph, config = compiled(job, saver), {"configurable": {"thread_id": job.agent_id}}
        begun = (await graph.aget_state(config)).created_at is not None
        given = None if begun else {"task": job.task, "notes": []}
        answer: list[str] = (await graph.ainvoke(given, config, durability="sync"))["notes"]
        return answer


async def fork(job: Job) -> list[str]:
    async with RekindleSaver.from_conn_string(job.url, changes="trusted") as saver:
        graph, config = compiled(job, saver), {"configurable": {"thread_id": job.agent_id}}
        history = [each async for each in graph.aget_state_history(config)]
        middle = next(each for each in history if len(each.values.get("notes", ())) == job.at_step)
        other = await graph.aupdate_state(middle.config, {"task": job.task})
        answer: list[str] = (await graph.ainvoke(None, other, durability="sync"))["notes"]
        return answer
