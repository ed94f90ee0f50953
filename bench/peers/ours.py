"""rekindle, and the only module of the bench that calls it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import rekindle
from bench.measure import folder_bytes
from bench.payloads import State

FASTEST = "relaxed"  # what histories are built with that are only read afterwards


class Ours:
    """The default settings: SQLite, durable, every change seen (`verified`)."""

    name = "rekindle"
    durability = "durable: WAL, synchronous=FULL"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.store = open_store(folder)

    def save(self, thread: str, state: State) -> None:
        self.store.save(thread, state)

    def restore_latest(self, thread: str) -> State:
        return restore_latest(self.store, thread)

    def close(self) -> None:
        self.store.close()

    def bytes_held(self) -> int:
        return folder_bytes(self._folder)


def database(folder: Path) -> Path:
    """The SQLite file of the store there."""
    return folder / "store.db"


def open_store(folder: Path, *, durability: str = "durable") -> Any:
    return rekindle.open_store(f"sqlite:///{database(folder)}", durability=durability)


def open_async_store(folder: Path) -> Any:
    return rekindle.AsyncStore(open_store(folder))


def tracked(state: State) -> State:
    """The same state in containers that know what changed in them."""
    found: State = rekindle.tracked(state)
    return found


def save_trusted(store: Any, agent: str, state: State) -> None:
    """A save that takes tracked containers at their word."""
    store.save(agent, state, changes="trusted")


def restore_latest(store: Any, agent: str) -> State:
    found: State = store.restore(latest(store, agent))
    return found


def latest(store: Any, agent: str) -> str:
    """The id of the agent's newest checkpoint."""
    found: str = store.list(agent, limit=1)[0].id
    return found


def blame(store: Any, agent: str, path: str) -> int:
    """How many checkpoints changed `path`."""
    return len(list(store.blame(latest(store, agent), path)))


def prune_to_last(store: Any, count: int) -> None:
    store.prune(rekindle.Policy(keep_last=count))
