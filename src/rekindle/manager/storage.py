"""A storage of whole checkpoints, as users write one: three methods are enough."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import datetime

from ..errors import UnsupportedError
from ..model import Checkpoint


class CheckpointStorage(ABC):
    """Where a manager's checkpoints live. What it cannot do beyond the three it says by an UnsupportedError.

    A checkpoint that is handed over belongs to the storage; the manager never changes one it has got back.
    """

    @abstractmethod
    async def save(self, checkpoint: Checkpoint) -> str:
        """Keep it, durably when this answers; answer its id."""

    @abstractmethod
    async def load(self, checkpoint_id: str) -> Checkpoint | None:
        """The checkpoint, equal to what was saved; None when there is none."""

    @abstractmethod
    async def list_by_user(self, user_id: str, limit: int = 50, offset: int = 0) -> list[Checkpoint]:
        """A user's checkpoints, newest first."""

    async def delete(self, checkpoint_id: str) -> bool:
        """Drop one checkpoint; False when there is none."""
        raise self._cannot("delete checkpoints", "delete")

    async def children(self, checkpoint_id: str) -> list[Checkpoint]:
        """The checkpoints saved on this one, oldest first."""
        raise self._cannot("say which checkpoints follow one", "children")

    async def clear_user(self, user_id: str) -> int:
        """Drop everything of a user: how many went. Needs `delete`."""
        gone = 0
        while found := await self.list_by_user(user_id, 100, 0):
            went = [await self.delete(checkpoint.id) for checkpoint in found]
            gone += sum(went)
            if not any(went):
                break
        return gone

    async def cleanup(self, before: datetime) -> int:
        """Drop what is older than that moment, but not the newest of an agent: how many went."""
        raise self._cannot("drop old checkpoints", "cleanup")

    async def close(self) -> None:  # noqa: B027  most have nothing to close
        """Nothing is called after it."""

    def _cannot(self, what: str, method: str) -> UnsupportedError:
        name = type(self).__name__
        return UnsupportedError(
            "storage-cannot", f"the storage {name} cannot {what}",
            hint=f"give {name} a method {method}(), or use a storage of rekindle's own",
        )  # fmt: skip
