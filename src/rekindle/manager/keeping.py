"""How a manager keeps agents in a storage of rekindle's own: in the store under it, sharing what checkpoints share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from ..agents import Captured, entry_of
from ..model import Checkpoint
from ..state.diff.change import Change
from ..store.answers import AGENT_FIELDS
from ..store.saving.save import Line
from ..store.unscoped import Unscoped
from .doors import Door
from .faces import StoreCheckpointStorage


class InStore:
    """Every call may be made from several tasks and threads at once."""

    def __init__(self, face: StoreCheckpointStorage) -> None:
        self._face = face
        self.everything: Unscoped = face.everything

    async def save(
        self, door: Door, captured: Captured, line: Line | None, changes: str, *, kind: str, label: str | None,
        metadata: dict[str, Any] | None,
    ) -> tuple[Checkpoint, Line]:  # fmt: skip
        """The checkpoint, and what the object's next save follows."""
        request = self.everything.request(
            captured.user_id, captured.agent_id, {name: getattr(captured, name) for name in AGENT_FIELDS},
            agent_type=captured.agent_type, version=captured.agent_version, attributes=captured.agent_attributes,
            kind=kind, label=label, metadata=metadata, changes=changes, line=line,
        )  # fmt: skip
        saved = await self.everything.save_by(door, request)
        await self._face.has_saved(door, saved)
        return self.everything.checkpoint(saved.head), line or Line(saved.head.seq, saved.head.branch)

    async def load(self, door: Door, checkpoint_id: str) -> tuple[Checkpoint, Checkpoint, Line]:
        """The checkpoint twice: to show, and with values of its own to make an agent of; and what a save follows."""

        def read() -> tuple[Checkpoint, Checkpoint, Line]:
            self._face.settle()
            head = self.everything.head(checkpoint_id)
            shown = self.everything.checkpoint(head)
            entry_of(shown)
            fresh = replace(shown, **self.everything.state(head))
            return shown, fresh, Line(head.seq, head.branch)

        return await door.read(read)

    async def get(self, door: Door, checkpoint_id: str) -> Checkpoint:
        return await door.read(lambda: self.everything.checkpoint(self.everything.head(checkpoint_id)))

    async def list_by_user(self, door: Door, user_id: str, limit: int | None, offset: int) -> Sequence[Checkpoint]:
        return await door.read(partial(self._face.listed, user_id, limit, offset))

    async def of_agent(self, door: Door, user_id: str, agent_id: str) -> Sequence[Checkpoint]:
        return await door.read(partial(self.everything.of_agent, user_id, agent_id))

    async def history(self, door: Door, checkpoint_id: str, limit: int | None) -> Sequence[Checkpoint]:
        return await door.read(lambda: self.everything.history(self.everything.head(checkpoint_id), limit))

    async def children(self, door: Door, checkpoint_id: str) -> Sequence[Checkpoint]:
        return await door.read(lambda: self.everything.children(self.everything.head(checkpoint_id)))

    async def compare(self, door: Door, old: str, new: str) -> tuple[Checkpoint, Checkpoint, tuple[Change, ...]]:
        def read() -> tuple[Checkpoint, Checkpoint, tuple[Change, ...]]:
            heads = self.everything.head(old), self.everything.head(new)
            return *map(self.everything.checkpoint, heads), self.everything.diff(*heads)  # type: ignore[return-value]

        return await door.read(read)

    async def clear_user(self, door: Door, user_id: str) -> int:
        return await door.read(self.everything.for_user(user_id).clear)

    async def cleanup(self, door: Door, days: float) -> int:
        now = datetime.fromtimestamp(self.everything.now(), UTC)
        return await door.read(partial(self.everything.cleanup, now - timedelta(days=days)))

    async def delete(self, door: Door, checkpoint_id: str) -> bool:
        return await door.read(lambda: self.everything.delete(self.everything.head(checkpoint_id)))

    async def store(self, door: Door, what: str) -> Unscoped:
        """For what only a store can do."""
        return self.everything

    async def close(self, door: Door) -> None:
        await door.read(self._face.close_now)
