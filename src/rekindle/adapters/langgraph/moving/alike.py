"""Whether a checkpoint came back as it was: by type and content, strictly.

Only the order of names may differ, where their own savers do not keep it either.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langgraph.checkpoint.base import WRITES_IDX_MAP, CheckpointTuple

from ....state.values.canon import same
from .order import Write

Pending = Sequence[tuple[str, str, Any]]
"""Task, channel and value, in the order that savers answer them in."""


def difference(expected: CheckpointTuple, found: CheckpointTuple) -> str | None:
    """What is not the same, pending writes aside; None where all is."""
    old, new = _parts(expected), _parts(found)
    for part in {**old, **new}:
        a, b = old.get(part, {}), new.get(part, {})
        name = next((name for name in {**a, **b} if name not in a or name not in b or not same(a[name], b[name])), None)
        if name is not None:
            return f"{part}[{name!r}]"
    return None if _id(expected.parent_config) == _id(found.parent_config) else "its parent"


def same_writes(expected: Pending, found: Pending) -> bool:
    return same([tuple(write) for write in expected], [tuple(write) for write in found])


def lacking(found: Pending, writes: Sequence[Write]) -> list[Write]:
    """The writes of tasks that are not all there. A special one that is there, whatever it says now, is not lacking."""
    there = _by_task(found)
    missing: list[Write] = []
    for task in dict.fromkeys(write.task_id for write in writes):
        known = [item for item in there[task] if item[0] not in WRITES_IDX_MAP]
        regular = [w for w in writes if w.task_id == task and w.channel not in WRITES_IDX_MAP]
        if not same([(w.channel, w.value) for w in regular], known[: len(regular)]):
            missing += regular
    special = {(task, channel) for task, channel, _ in found if channel in WRITES_IDX_MAP}
    return missing + [w for w in writes if w.channel in WRITES_IDX_MAP and (w.task_id, w.channel) not in special]


def beside(found: Pending, missing: Sequence[Write]) -> Iterator[Write]:
    """The special writes that are there already, of tasks whose others are missing: they hold a position among them."""
    paths = {w.task_id: w.task_path for w in missing if w.idx >= 0}
    for task, channel, value in found:
        if task in paths and channel in WRITES_IDX_MAP:
            yield Write(task, paths[task], WRITES_IDX_MAP[channel], channel, value)


def _parts(one: CheckpointTuple) -> dict[str, dict[str, Any]]:
    rest: dict[str, Any] = dict(one.checkpoint)
    parts = {name: dict(rest.pop(name, None) or {}) for name in ("channel_values", "channel_versions")}
    seen: Mapping[str, Any] = rest.pop("versions_seen", None) or {}
    parts["versions_seen"] = {node: dict(sorted(versions.items())) for node, versions in seen.items()}
    return {**parts, "checkpoint": rest, "metadata": dict(one.metadata)}


def _by_task(found: Pending) -> dict[str, list[tuple[str, Any]]]:
    made: dict[str, list[tuple[str, Any]]] = defaultdict(list)
    for task, channel, value in found:
        made[task].append((channel, value))
    return made


def _id(config: Any) -> str | None:
    return None if config is None else config["configurable"].get("checkpoint_id")
