"""The little agent with one thing wrong: which, says the environment. The kit has to find each."""

from __future__ import annotations

import os
from typing import Any

import rekindle
from rekindle.testing.program import Job

WRONG = os.environ.get("WRONG", "")


def run(job: Job) -> Any:
    if WRONG == "raises":
        raise ZeroDivisionError("a bug of the program")
    if WRONG == "dies":
        os._exit(3)
    return work(job)


def fork(job: Job) -> Any:
    if WRONG == "fork begins anew":
        return work(job, agent_id=job.task)
    answer = work(job, f"@{job.at_step}")
    if WRONG == "fork clears" and job.task == "a third":
        with rekindle.open_store(job.url) as store:
            store.prune("keep-last=1")
    return answer


def work(job: Job, ref: str | None = None, agent_id: str | None = None) -> Any:
    state: dict[str, Any] = {"task": job.task, "notes": []}
    with rekindle.track(
        state, agent_id or job.agent_id, store=job.url, resume=WRONG != "never resumes", strict=True
    ) as agent:
        if ref is not None:
            agent.fork(job.task, ref)
            state["task"] = "always this" if WRONG == "fork keeps the input" else job.task
        while len(state["notes"]) < job.steps:
            done = len(state["notes"])
            note = job.work(done + 1, state["task"], *state["notes"])
            state["notes"].append(note.encode() if WRONG == "bytes" else note)
            if WRONG == "every second" and done % 2 == 0 and done + 1 < job.steps:
                continue
            try:
                agent.save()
            except rekindle.ConflictError:
                if WRONG != "hides conflicts":
                    raise
        return list(state["notes"])
