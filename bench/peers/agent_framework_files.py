"""Microsoft Agent Framework's FileCheckpointStorage, as its documentation sets it up."""

from __future__ import annotations

import asyncio
from pathlib import Path

from agent_framework import FileCheckpointStorage, WorkflowCheckpoint

from bench.measure import folder_bytes
from bench.payloads import State


class AgentFrameworkFiles:
    """Its own `get_latest` decodes every file of the folder; here the newest is loaded by its id."""

    name = "Agent Framework FileCheckpointStorage"
    durability = "none: it never syncs, and has no setting for it"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._storage = FileCheckpointStorage(folder)
        self._loop = asyncio.new_event_loop()
        self._latest: dict[str, str] = {}

    def save(self, thread: str, state: State) -> None:
        checkpoint = WorkflowCheckpoint(
            workflow_name=thread,
            graph_signature_hash="bench",
            previous_checkpoint_id=self._latest.get(thread),
            state=state,
        )
        self._latest[thread] = self._loop.run_until_complete(self._storage.save(checkpoint))

    def restore_latest(self, thread: str) -> State:
        return self._loop.run_until_complete(self._storage.load(self._latest[thread])).state

    def close(self) -> None:
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def bytes_held(self) -> int:
        return folder_bytes(self._folder)
