"""A node any graph can add, which saves by the clock."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from langchain_core.runnables import RunnableConfig

from ...errors import InvalidInputError
from ...store import AsyncStore, Store
from .places import configurable, place_of

_log = logging.getLogger("rekindle.langgraph")
ROUTINE = "~routine"
"""The namespace that no graph has: under it the node's checkpoints of a thread are kept."""


def checkpoint_node(
    interval: float = 30, *, store: Store | AsyncStore | None = None, clock: Callable[[], float] = time.time
) -> Callable[[Any, RunnableConfig], dict[str, Any]]:
    """A node that keeps the graph's state when `interval` seconds passed since it did so last; at once the first time.

    The state becomes a routine checkpoint of the agent `THREAD|~routine`, durable when the node ends, whatever
    durability the graph runs with. The node answers `last_checkpoint_at` (ISO, UTC) and `checkpoint_count`, for states
    that have these. It never fails the graph: what goes wrong is logged. Without `store` it is the one of the graph's
    RekindleSaver.
    """
    if interval < 0:
        raise InvalidInputError("bad-interval", f"interval={interval!r}", hint="seconds, 0 or more")
    given = store.store if isinstance(store, AsyncStore) else store
    known: dict[str, tuple[str, int]] = {}

    def checkpoint(state: Any, config: RunnableConfig) -> dict[str, Any]:
        try:
            return _save(state, config)
        except Exception:  # noqa: BLE001  whatever it is, the graph goes on
            _log.exception("checkpoint_failed")
            return {}

    def _save(state: Any, config: RunnableConfig) -> dict[str, Any]:
        values = dict(state) if isinstance(state, Mapping) else dict(vars(state))
        thread, now = place_of(config).thread, clock()
        last, count = known.get(thread, (None, 0))
        last, count = values.get("last_checkpoint_at") or last, values.get("checkpoint_count") or count
        if not _is_due(last, now, interval):
            return {}
        where = given or getattr(configurable(config).get("__pregel_checkpointer"), "store", None)
        if not isinstance(where, Store):
            raise InvalidInputError(
                "no-store", "the graph has no RekindleSaver, and the checkpoint node no store",
                hint="compile the graph with a RekindleSaver, or pass checkpoint_node(store=...)",
            )  # fmt: skip
        told = {"last_checkpoint_at": datetime.fromtimestamp(now, UTC).isoformat(), "checkpoint_count": count + 1}
        kept = values | {name: value for name, value in told.items() if name in values}
        agent = place_of({"configurable": {"thread_id": thread, "checkpoint_ns": ROUTINE}}).agent
        where.save(agent, kept, kind="routine", label=f"checkpoint {count + 1}", metadata={"thread_id": thread})
        known[thread] = told["last_checkpoint_at"], count + 1  # type: ignore[assignment]
        return told

    return checkpoint


def _is_due(last: Any, now: float, interval: float) -> bool:
    """A clock that jumped back, or a time that does not read, is no reason to save nothing."""
    try:
        passed = now - datetime.fromisoformat(last).timestamp()
    except (TypeError, ValueError):
        return True
    return passed >= interval or passed < 0
