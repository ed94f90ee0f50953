"""A little agent on `rekindle.track`, in the ways an agent's state may be held: what test_track_adapter.py runs."""

from __future__ import annotations

import rekindle
from rekindle.testing.program import Job


class Agent:
    """A hand-written loop: its state says what is done, and it goes on from there."""

    def __init__(self, job: Job) -> None:
        self.task = job.task
        self.notes: list[str] = []
        self.job = job

    def think(self) -> None:
        self.notes.append(self.job.work(len(self.notes) + 1, self.task, *self.notes))


def run(job: Job) -> list[str]:
    agent = Agent(job)
    with rekindle.track(agent, job.agent_id, store=job.url, exclude=("job",)) as tracker:
        return go_on(agent, tracker)


def go_on(agent: Agent, tracker: rekindle.Tracker[Agent]) -> list[str]:
    think = tracker.step(agent.think)
    while len(agent.notes) < agent.job.steps:
        think()
    return agent.notes


def fork(job: Job) -> list[str]:
    agent = Agent(job)
    with rekindle.track(agent, job.agent_id, store=job.url, exclude=("job",)) as tracker:
        tracker.fork(job.task, f"@{job.at_step}")
        agent.task = job.task
        return go_on(agent, tracker)
