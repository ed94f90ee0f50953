"""Which agent a thread's checkpoints are, and which thread an agent is.

A thread is the agent of its own name. A namespace in it (a subgraph's) is one more agent, `thread|namespace`; what
would make that ambiguous in a thread's name is written as %25 and %7C.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import InvalidInputError

BAR = "|"


@dataclass(frozen=True, slots=True)
class Place:
    """What a config names: a thread, a namespace in it ("" the graph's own), perhaps a checkpoint."""

    thread: str
    ns: str
    checkpoint: str | None = None

    @property
    def agent(self) -> str:
        return agent_of(self.thread, self.ns)


def agent_of(thread: str, ns: str = "") -> str:
    name = thread.replace("%", "%25").replace(BAR, "%7C")
    return f"{name}{BAR}{ns}" if ns else name


def thread_of(agent: str) -> tuple[str, str]:
    """(thread, namespace)."""
    name, _, ns = agent.partition(BAR)
    return name.replace("%7C", BAR).replace("%25", "%"), ns


def place_of(config: Mapping[str, Any]) -> Place:
    """InvalidInputError where it names no thread."""
    told = configurable(config)
    thread = told.get("thread_id")
    if thread is None:
        raise InvalidInputError(
            "no-thread", "the config names no thread",
            hint='pass {"configurable": {"thread_id": "..."}} with the call',
        )  # fmt: skip
    return Place(str(thread), str(told.get("checkpoint_ns") or ""), told.get("checkpoint_id") or None)


def configurable(config: Mapping[str, Any] | None) -> Mapping[str, Any]:
    return (config or {}).get("configurable") or {}


def config_of(place: Place, checkpoint: str, thread: Any = None) -> dict[str, Any]:
    """The config of a checkpoint; `thread` as the caller wrote it, which may be a number."""
    return {
        "configurable": {
            "thread_id": place.thread if thread is None else thread,
            "checkpoint_ns": place.ns,
            "checkpoint_id": checkpoint,
        }
    }
