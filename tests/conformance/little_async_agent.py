"""The same with a dict, awaited, and refused where another process was faster."""

from __future__ import annotations

from typing import Any

import rekindle
from rekindle.testing.program import Job


async def run(job: Job) -> str:
    return await work(job, None)


async def fork(job: Job) -> str:
    return await work(job, job.at_step)


async def work(job: Job, at_step: int | None) -> str:
    state: dict[str, Any] = {"task": job.task, "messages": []}
    async with rekindle.track(state, job.agent_id, store=job.url, strict=True) as agent:

        @agent.step(label="a turn")
        async def turn() -> None:
            seen = [message["content"] for message in state["messages"]]
            state["messages"].append({"content": job.work(len(seen) + 1, state["task"], seen)})

        if at_step is not None:
            (middle,) = [
                c for c in agent.store.list(job.agent_id, branch="main") if len(c.state["messages"]) == at_step
            ]
            await agent.afork(f"try {job.task}", middle)
            state["task"] = job.task
        while len(state["messages"]) < job.steps:
            await turn()
    return str(state["messages"][-1]["content"])
