"""Pending writes: what tasks have written on a checkpoint, as entries of the journal.

A write is known by its task and its index. The first one stays, but a call that writes to special channels alone takes
the place of what was there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from uuid import UUID

from langgraph.checkpoint.base import WRITES_IDX_MAP, PendingWrite, writes_sort_key

from ...errors import NotFoundError
from ...state.values import codec
from ...storage.base import Key
from ...storage.record import Head
from ...store.engine import Engine
from ...store.journal import Entry, entries, values
from ...store.ranges import Ranges
from ...store.saving.drafts import Draft, no_entry, short

WRITES, INPUT = "writes", "input"
_ERROR = "__error__"
_PULL = "~__pregel_pull, "
"""How the path of nearly every task begins."""
_SMALL = 64
"""Bytes of a packed value that stands in the entry's head: it needs no place of its own."""


def draft_writes(checkpoint: str, writes: Iterable[tuple[str, Any]], task_id: str, task_path: str) -> Draft:
    told: list[Any] = []
    large: list[Any] = []
    for channel, value in writes:
        if channel == _ERROR and isinstance(value, BaseException):
            value = repr(value)
        if _is_small(value):
            told.append([channel, value])
        else:
            told.append(channel)
            large.append(value)
    about: dict[str, Any] = {"task": short(task_id), "writes": told}
    if task_path.startswith(_PULL):
        about["pull"] = task_path.removeprefix(_PULL)
    elif task_path:
        about["path"] = task_path
    return Draft(WRITES, checkpoint, about, large)


def draft_input(checkpoint: str, value: Any) -> Draft:
    return Draft(INPUT, checkpoint, {}, [value])


def _is_small(value: Any) -> bool:
    if type(value) in (str, bytes) and len(value) > _SMALL:
        return False
    return value is None or (type(value) in (bool, int, float, str, bytes) and len(codec.pack(value)) <= _SMALL)


class Journal:
    """A thread's entries by the checkpoint they belong to, read once. Of a checkpoint that was there when this was made
    all entries are, whatever is deleted meanwhile; NotFoundError where a collect took it out."""

    def __init__(self, engine: Engine, key: Key, after: int = 0) -> None:
        self._engine = engine
        self._key = key
        self._after = after
        self._view = engine.log.view(key.user)
        self._found: dict[str, list[Entry]] | None = None
        self._gone = Ranges()

    def lacks(self, head: Head) -> bool:
        """Whether the checkpoint had been dropped when this was made."""
        return head.seq in self._view.agent(self._key.agent).dropped

    def of(self, head: Head) -> list[Entry]:
        """A checkpoint's entries in the order they came."""
        if self._found is None:
            self._found = {}
            for entry in entries(self._engine, self._key, after=self._after, view=self._view):
                self._found.setdefault(entry.of, []).insert(0, entry)
            self._gone = self._engine.log.view(self._key.user, fresh=True).agent(self._key.agent).gone
        if head.seq in self._gone:
            raise NotFoundError("no-record", f"checkpoint {head.seq} of agent {self._key.agent!r} was pruned")
        return self._found.get(self._engine.own_name(head) or "", [])

    def input(self, head: Head) -> list[Any]:
        """The input a checkpoint was made for, as the only one of a list; else an empty list."""
        return next((values(self._engine, e) for e in self.of(head) if e.kind == INPUT), [])

    def pending(self, head: Head) -> list[PendingWrite]:
        """The writes pending on a checkpoint, in the order they are applied in."""
        found: dict[tuple[str, int], tuple[str, str, Entry, Any]] = {}
        for entry in self.of(head):
            if entry.kind == WRITES:
                _fold(found, entry)
        held = {entry.seq: values(self._engine, entry) for _, _, entry, at in found.values() if type(at) is int}
        in_order = sorted(found.items(), key=lambda item: writes_sort_key(item[1][0], *item[0]))
        return [
            (task, channel, _value(held[entry.seq], at, entry) if type(at) is int else at[0])
            for (task, _), (_, channel, entry, at) in in_order
        ]


def _value(held: list[Any], at: int, entry: Entry) -> Any:
    if at >= len(held):
        raise no_entry(entry.head)
    return held[at]


def _fold(found: dict[tuple[str, int], tuple[str, str, Entry, Any]], entry: Entry) -> None:
    told = list(_told(entry))
    replaces = all(channel in WRITES_IDX_MAP for channel, _ in told)
    task, path, pull = entry.about.get("task"), entry.about.get("path", ""), entry.about.get("pull")
    if type(pull) is str:
        path = _PULL + pull
    if type(task) not in (str, UUID) or type(path) is not str:
        raise no_entry(entry.head)
    for position, (channel, at) in enumerate(told):
        name = (str(task), WRITES_IDX_MAP.get(channel, position))
        if replaces or name not in found:
            found[name] = (path, channel, entry, at)


def _told(entry: Entry) -> Iterator[tuple[str, Any]]:
    """(channel, where its value is): the number of one of the entry's values, or [the value]."""
    number, told = 0, entry.about.get("writes")
    for write in told if type(told) is list else [None]:
        if type(write) is str:
            yield write, number
            number += 1
        elif type(write) is list and len(write) == 2 and type(write[0]) is str:
            yield write[0], [write[1]]
        else:
            raise no_entry(entry.head)


def delta_writes(pending: Sequence[PendingWrite], channel: str) -> list[PendingWrite]:
    return [write for write in pending if write[1] == channel]
