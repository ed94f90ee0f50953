"""LangGraph's SqliteSaver and InMemorySaver, called as its loop calls them, with and without DeltaChannel.

Without: every checkpoint holds every channel's value, `put` once a save. With: a channel that grows is left
out of the checkpoint; what a step adds is a write on the checkpoint before (`put_writes`), and every 100
updates (the default) a checkpoint holds the whole value again. DeltaChannel is their best documented setting:
no other of these savers' settings is documented to save time or space.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import Checkpoint, empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.checkpoint.sqlite import SqliteSaver

from bench.measure import folder_bytes
from bench.payloads import State

Saver = SqliteSaver | InMemorySaver


def sqlite_saver(folder: Path) -> SaverPeer:
    return _sqlite_peer(folder, "LangGraph SqliteSaver", delta=False)


def sqlite_saver_delta(folder: Path) -> SaverPeer:
    return _sqlite_peer(folder, "LangGraph SqliteSaver + DeltaChannel", delta=True)


def memory_saver(folder: Path) -> SaverPeer:
    saver = InMemorySaver()
    return SaverPeer("LangGraph InMemorySaver", "none: memory", saver, lambda: _memory_bytes(saver), delta=False)


def memory_saver_delta(folder: Path) -> SaverPeer:
    saver = InMemorySaver()
    name = "LangGraph InMemorySaver + DeltaChannel"
    return SaverPeer(name, "none: memory", saver, lambda: _memory_bytes(saver), delta=True)


def _sqlite_peer(folder: Path, name: str, *, delta: bool) -> SaverPeer:
    db = sqlite3.connect(folder / "checkpoints.sqlite", check_same_thread=False)
    saver = SqliteSaver(db)
    saver.setup()
    db.execute("PRAGMA synchronous = FULL")
    return SaverPeer(name, "WAL, synchronous=FULL", saver, lambda: folder_bytes(folder), delta=delta)


def _memory_bytes(saver: InMemorySaver) -> int:
    checkpoints = (c for spaces in saver.storage.values() for ids in spaces.values() for c in ids.values())
    held = sum(len(checkpoint[1]) + len(metadata[1]) for checkpoint, metadata, _ in checkpoints)
    held += sum(len(blob[1]) for blob in saver.blobs.values())
    return held + sum(len(write[2][1]) for writes in saver.writes.values() for write in writes.values())


@dataclass
class _Thread:
    """What LangGraph's loop knows of a thread between two steps."""

    checkpoint: Checkpoint
    step: int = -1
    updates: dict[str, int] = field(default_factory=dict)  # since the last snapshot, by delta channel
    seen: State = field(default_factory=dict)  # the channels' values one step ago


class SaverPeer:
    def __init__(self, name: str, durability: str, saver: Saver, bytes_held: Callable[[], int], *, delta: bool) -> None:
        self.name = name
        self.durability = durability
        self.saver = saver
        self.bytes_held = bytes_held
        self._delta = delta
        self._threads: dict[str, _Thread] = {}

    def save(self, thread: str, state: State) -> None:
        known = self._threads.get(thread)
        if known is None:
            known = self._threads[thread] = _Thread(empty_checkpoint())
            self.saver.put(_config(thread), known.checkpoint, {"source": "input", "step": -1, "parents": {}}, {})
        changes = {name: _added(known.seen.get(name), value) for name, value in state.items()}
        changes = {name: change for name, change in changes.items() if change is not None}
        if self._delta:
            writes = [(name, change) for name, change in changes.items() if _grows(change)]
            task = str(UUID(int=known.step + 2))
            self.saver.put_writes(_config(thread, known.checkpoint["id"]), writes, task)
        self._put(thread, known, state, list(changes))
        known.seen = {name: value.copy() if _grows(value) else value for name, value in state.items()}

    def _put(self, thread: str, known: _Thread, state: State, moved: list[str]) -> None:
        known.step += 1
        versions = dict(known.checkpoint["channel_versions"])
        for name in moved:
            versions[name] = self.saver.get_next_version(versions.get(name), None)  # type: ignore[arg-type]
        parent = known.checkpoint["id"]
        known.checkpoint = Checkpoint(
            v=4,
            ts=datetime.now(UTC).isoformat(),
            id=str(uuid6(clock_seq=known.step)),
            channel_values=self._values(known, state, moved),
            channel_versions=versions,
            versions_seen={"__input__": {}, "agent": versions},
            updated_channels=sorted(moved),
        )
        metadata: Any = {"source": "loop", "step": known.step, "parents": {}}
        if self._delta:
            metadata["counters_since_delta_snapshot"] = {name: (n, n) for name, n in known.updates.items()}
        self.saver.put(_config(thread, parent), known.checkpoint, metadata, {name: versions[name] for name in moved})

    def _values(self, known: _Thread, state: State, moved: list[str]) -> State:
        if not self._delta:
            return dict(state)
        values: State = {}
        for name, value in state.items():
            if not _grows(value):
                values[name] = value
                continue
            known.updates[name] = known.updates.get(name, 0) + (name in moved)
            if known.updates[name] >= _SNAPSHOT_FREQUENCY:
                values[name] = _DeltaSnapshot(value)
                known.updates[name] = 0
        return values

    def restore_latest(self, thread: str) -> State:
        found = self.saver.get_tuple(_config(thread))
        if found is None:
            raise LookupError(thread)
        values = dict(found.checkpoint["channel_values"])
        names = [name for name in found.checkpoint["channel_versions"] if name not in values]
        history = self.saver.get_delta_channel_history(config=found.config, channels=names)
        for name in names:
            values[name] = _replay(history[name])
        return {name: value.value if isinstance(value, _DeltaSnapshot) else value for name, value in values.items()}

    def close(self) -> None:
        if isinstance(self.saver, SqliteSaver):
            self.saver.conn.close()


_SNAPSHOT_FREQUENCY = DeltaChannel(lambda value, writes: value, list).snapshot_frequency


def _config(thread: str, parent: str | None = None) -> Any:
    config = {"thread_id": thread, "checkpoint_ns": ""}
    return {"configurable": config if parent is None else config | {"checkpoint_id": parent}}


def _grows(value: Any) -> bool:
    return isinstance(value, list | dict)


def _added(before: Any, after: Any) -> Any:
    """What a node would have returned to turn `before` into `after`; None if it is unchanged."""
    if isinstance(after, list):
        return after[len(before or ()) :] or None
    if isinstance(after, dict):
        old = before or {}
        return {name: value for name, value in after.items() if old.get(name) is not value} or None
    return None if before is after else after


def _replay(history: Any) -> Any:
    value = history.get("seed")
    value = value.value if isinstance(value, _DeltaSnapshot) else value
    for _, _, write in history["writes"]:
        value = [*(value or ()), *write] if isinstance(write, list) else {**(value or {}), **write}
    return value
