"""In which order a thread's checkpoints go over, and how its pending writes are handed on. Pure."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.base import writes_sort_key

_MOST_EMPTY = 10_000
"""Positions without a write in one call: more are no work of their savers."""


@dataclass(frozen=True, slots=True)
class Node:
    """One checkpoint of a thread, without what it holds. `cut`: it has a parent, which is not there any more."""

    namespace: str
    id: str
    parent: str | None
    cut: bool = False
    children: int = 0


@dataclass(frozen=True, slots=True)
class Write:
    task_id: str
    task_path: str
    idx: int
    channel: str
    value: Any


@dataclass(frozen=True, slots=True)
class Call:
    """The arguments of one `put_writes`, and which writes it is for."""

    task_id: str
    task_path: str
    writes: list[tuple[str, Any]]


def in_order(rows: Iterable[tuple[str, str, str | None]]) -> Iterator[Node]:
    """A thread's checkpoints (namespace, id, parent), parents before children, as far as that allows by id.

    A checkpoint that is its own ancestor, which no program of theirs writes, goes as if its parent were gone.
    """
    parents = {(namespace, id_): parent or None for namespace, id_, parent in rows}
    children: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    ready: list[tuple[str, str]] = []
    for (namespace, id_), parent in parents.items():
        if parent is not None and (namespace, parent) in parents:
            children[namespace, parent].append((id_, namespace))
        else:
            ready.append((id_, namespace))
    heapq.heapify(ready)
    left = dict(parents)
    while left:
        if not ready:  # what is left goes in circles
            namespace, id_ = min(left, key=lambda key: (key[1], key[0]))
            ready.append((id_, namespace))
        id_, namespace = heapq.heappop(ready)
        if left.pop((namespace, id_), ...) is ...:
            continue
        parent = parents[namespace, id_]
        cut = parent is not None and ((namespace, parent) not in parents or (namespace, parent) in left)
        below = children.pop((namespace, id_), [])
        yield Node(namespace, id_, parent, cut, len(below))
        for child in below:
            heapq.heappush(ready, child)


def sorted_writes(writes: Iterable[Write]) -> list[Write]:
    """In the order their savers hand out pending writes."""
    return sorted(writes, key=lambda w: writes_sort_key(w.task_path, w.task_id, w.idx))


def calls(writes: Iterable[Write]) -> Iterator[Call]:
    """`put_writes` calls after which every write has the index it had.

    The index of a write is its position in its call; but a special one (negative) has an index of its own, and leaves
    its position empty. So positions without a write are those of special ones, and are filled with them.
    """
    tasks: dict[tuple[str, str], list[Write]] = defaultdict(list)
    for write in sorted_writes(writes):
        tasks[write.task_path, write.task_id].append(write)
    for (path, task), found in tasks.items():
        special = [(w.channel, w.value) for w in found if w.idx < 0]
        regular = {w.idx: (w.channel, w.value) for w in found if w.idx >= 0}
        if regular:
            yield Call(task, path, list(_filled(regular, special)))
        if special:
            yield Call(task, path, special)


def _filled(regular: dict[int, tuple[str, Any]], special: list[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    empty = max(regular) + 1 - len(regular)
    if not special or empty > _MOST_EMPTY:
        yield from (regular[idx] for idx in sorted(regular))
        return
    for idx in range(max(regular) + 1):
        yield regular.get(idx, special[0])
