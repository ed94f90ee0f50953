"""The storages that come with rekindle, as checkpoint storages: thin faces of the store.

They hand back a checkpoint as it was handed over, whoever's it is. Where a manager keeps agents in one, what a
checkpoint shares with others is stored once, and everything the store can do is there.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections.abc import Sequence
from datetime import datetime
from functools import partial

from ..errors import InvalidInputError, RekindleError
from ..model import Checkpoint
from ..store import Store, open_store
from ..store.saving.save import Saved
from ..store.unscoped import Unscoped
from .doors import AwaitingDoor, Door
from .storage import CheckpointStorage

_log = logging.getLogger("rekindle.manager")


class StoreCheckpointStorage(CheckpointStorage):
    """A face of any open store. Closing it closes the store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.everything = Unscoped(store)
        self.awaiting = AwaitingDoor()

    def _close_at_the_end(self) -> None:
        """For a store nobody else knows of: a program that forgets to close it leaves no connection behind."""
        weakref.finalize(self, self.store.close)

    async def save(self, checkpoint: Checkpoint) -> str:
        """Keep it under its id. The same once more keeps nothing; another under its id is a ConflictError."""
        door = self.awaiting
        request = await door.read(partial(self.everything.request_given, checkpoint))
        saved = await self.everything.save_by(door, request)
        if saved.known:
            await door.read(partial(self.everything.must_be_same, checkpoint, saved))
        else:
            await self.has_saved(door, saved)
        return checkpoint.id

    async def load(self, checkpoint_id: str) -> Checkpoint | None:
        return await self.awaiting.read(partial(self._load, checkpoint_id))

    def _load(self, checkpoint_id: str) -> Checkpoint | None:
        self.settle()
        head = self.everything.find(checkpoint_id)
        if head is None:
            return None
        found = self.everything.checkpoint(head)
        _ = found.state  # read here, in a worker thread, and not when it is asked for in a loop's
        return found

    async def list_by_user(self, user_id: str, limit: int | None = 50, offset: int = 0) -> list[Checkpoint]:
        """Newest first; states load when they are asked for."""
        return list(await self.awaiting.read(partial(self.listed, user_id, limit, offset)))

    def listed(self, user_id: str, limit: int | None, offset: int) -> Sequence[Checkpoint]:
        self.settle()
        return self.everything.list(user_id, limit, offset)

    async def delete(self, checkpoint_id: str) -> bool:
        """Drop one checkpoint; False when there is none. Undoable, as all that drops."""
        return await self.awaiting.read(partial(self._delete, checkpoint_id))

    def _delete(self, checkpoint_id: str) -> bool:
        head = self.everything.find(checkpoint_id)
        return head is not None and self.everything.delete(head)

    async def children(self, checkpoint_id: str) -> list[Checkpoint]:
        def find() -> list[Checkpoint]:
            head = self.everything.head(checkpoint_id)
            return list(self.everything.children(head))

        return await self.awaiting.read(find)

    async def clear_user(self, user_id: str) -> int:
        return await self.awaiting.read(self.everything.for_user(user_id).clear)

    async def cleanup(self, before: datetime) -> int:
        return await self.awaiting.read(partial(self.everything.cleanup, before))

    async def has_saved(self, door: Door, saved: Saved) -> None:
        """After every save, also a manager's."""

    def settle(self) -> None:
        """Before every answer."""

    async def close(self) -> None:
        """What was begun is committed first. Harmless a second time."""
        await self.awaiting.read(self.close_now)

    def close_now(self) -> None:
        self.awaiting.close()
        self.everything.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.store.url}>"


class CappedCheckpointStorage(StoreCheckpointStorage):
    """At most so many checkpoints, the newest; and the heads, the tagged and the open pre_operation ones.

    What is over goes in one operation for several saves, and before anything is answered: a list is never over.
    """

    def __init__(self, store: Store, cap: int, *, per_user: bool) -> None:
        if type(cap) is not int or cap < 1:
            raise InvalidInputError("bad-cap", f"at least 1 checkpoint has to be kept, not {cap!r}")
        super().__init__(store)
        self._cap = cap
        self._slack = max(1, cap // 8)
        self._per_user = per_user
        self._lock = threading.Lock()
        self._counts: dict[str, tuple[int, int]] = {}  # user, or "" for all: (as counted, saved since)

    async def has_saved(self, door: Door, saved: Saved) -> None:
        scope = saved.head.key.user if self._per_user else ""
        with self._lock:
            counted, since = self._counts.get(scope, (self._cap, self._slack - 1))  # unknown: count at once
            self._counts[scope] = (counted, since + 1)
        if counted + since >= self._cap and since + 1 >= self._slack:
            await door.read(partial(self._try_to_settle, scope))

    def settle(self) -> None:
        with self._lock:
            due = [scope for scope, (counted, since) in self._counts.items() if since and counted + since > self._cap]
        for scope in due:
            self._try_to_settle(scope)

    def _try_to_settle(self, scope: str) -> None:
        """What was saved, or is whole, is answered whatever a cap runs into; the next call tries again."""
        try:
            self._settle(scope)
        except RekindleError:
            _log.exception("eviction_failed", extra={"user": scope})
            with self._lock:
                self._counts[scope] = (self._cap, self._slack)

    def _settle(self, scope: str) -> None:
        users = [scope] if self._per_user else self.everything.users()
        with self._lock:
            self._counts[scope] = (self._cap, 0)  # what is saved from here on counts anew
        count = self.everything.count(users)
        if count > self._cap:
            count -= self.everything.evict(users, self._cap)
        with self._lock:
            self._counts[scope] = (count, self._counts[scope][1])


class InMemoryCheckpointStorage(CappedCheckpointStorage):
    """As long as the process; at most `max_checkpoints` of all users together."""

    def __init__(self, max_checkpoints: int = 1000) -> None:
        super().__init__(open_store("memory://"), max_checkpoints, per_user=False)
        self._close_at_the_end()


class SQLiteCheckpointStorage(CappedCheckpointStorage):
    """One file, durable, open to several processes; at most `max_checkpoints_per_user` of each user."""

    def __init__(self, db_path: str | os.PathLike[str] = "checkpoints.db", max_checkpoints_per_user: int = 100) -> None:
        path = os.fspath(db_path)
        url = "memory://" if path == ":memory:" else f"sqlite:///{os.path.abspath(path)}"
        super().__init__(open_store(url), max_checkpoints_per_user, per_user=True)
        self._close_at_the_end()


class FileCheckpointStorage(StoreCheckpointStorage):
    """A folder with a readable JSON file a checkpoint, durable; no cap."""

    def __init__(self, path: str | os.PathLike[str] = "./checkpoints") -> None:
        super().__init__(open_store(f"file://{os.path.abspath(path)}"))
        self._close_at_the_end()
