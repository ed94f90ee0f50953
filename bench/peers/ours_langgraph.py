"""rekindle as LangGraph's checkpointer."""

from __future__ import annotations

from pathlib import Path

from bench.measure import folder_bytes
from bench.peers import ours
from rekindle.adapters.langgraph import RekindleSaver


class Verified:
    """The default settings."""

    name = "rekindle RekindleSaver"
    durability = ours.Ours.durability
    delta = False
    changes = "verified"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._store = ours.open_store(folder)
        self.saver = RekindleSaver(self._store, changes=self.changes)

    def bytes_now(self) -> int:
        return folder_bytes(self._folder)

    def collect(self) -> None:
        self._store.collect()

    def close(self) -> None:
        self.saver.close()

    def bytes_held(self) -> int:
        return folder_bytes(self._folder)


class Trusted(Verified):
    """Takes the graph at its word that it changes no value in place."""

    name = "rekindle RekindleSaver, trusted"
    changes = "trusted"
