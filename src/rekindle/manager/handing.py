"""How a manager keeps agents in a storage of the user's: whole checkpoints are handed over and got back."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from ..agents import Captured, entry_of
from ..errors import InvalidInputError, NotFoundError, UnsupportedError
from ..model import Checkpoint, check_kind, check_label
from ..state.diff.change import Change
from ..state.diff.states import diff
from ..state.values import codec
from ..store.answers import AGENT_FIELDS
from ..store.saving.save import check_metadata
from ..store.unscoped import Unscoped
from .doors import Door
from .storage import CheckpointStorage

_PAGE = 100
_CAPTURED = (
    "agent_id", "user_id", "agent_type", "agent_version", "status", "collected_fields", "required_fields",
    "context_summary", "state", "agent_attributes",
)  # fmt: skip


@dataclass(slots=True)
class Last:
    """What a live object last saved or was restored from."""

    id: str


class Handed:
    """Only the storage's three methods are needed; what more it has is used."""

    def __init__(self, storage: CheckpointStorage) -> None:
        self._storage = storage

    async def save(
        self, door: Door, captured: Captured, line: Last | None, changes: str, *, kind: str, label: str | None,
        metadata: dict[str, Any] | None,
    ) -> tuple[Checkpoint, Last]:  # fmt: skip
        check_metadata(metadata or {})
        # a copy, and made before anything is awaited: the agent goes on living
        fields, told = _copy([{name: getattr(captured, name) for name in _CAPTURED}, metadata or {}])
        made = Checkpoint(
            id=f"chk_{secrets.token_hex(10)}", kind=check_kind(kind), label=check_label(label), metadata=told,
            timestamp=datetime.now(UTC), **fields,
        )  # fmt: skip
        last = line or await self._last_of(door, captured)
        made.parent_checkpoint_id = None if last is None else last.id
        kept = await door.run(partial(self._storage.save, made))
        if not kept or type(kept) is not str:
            raise InvalidInputError(
                "bad-storage", f"{type(self._storage).__name__}.save() answered {kept!r}, not the checkpoint's id"
            )
        if line is not None:
            line.id = kept
        return made if kept == made.id else replace(made, id=kept), line or Last(kept)

    async def _last_of(self, door: Door, captured: Captured) -> Last | None:
        """The newest of an agent whose object has not been met before."""
        async for checkpoint in self._all(door, captured.user_id):
            if checkpoint.agent_id == captured.agent_id:
                return Last(checkpoint.id)
        return None

    async def _all(self, door: Door, user_id: str) -> AsyncIterator[Checkpoint]:
        """Page by page until one brings nothing new: a storage may hand out fewer than it was asked for, or all."""
        at, met = 0, set[str]()
        while True:
            found = await door.run(partial(self._storage.list_by_user, user_id, _PAGE, at))
            fresh = [checkpoint for checkpoint in found if checkpoint.id not in met]
            if not fresh:
                return
            for checkpoint in fresh:
                yield checkpoint
            at += len(found)
            met.update(checkpoint.id for checkpoint in fresh)

    async def load(self, door: Door, checkpoint_id: str) -> tuple[Checkpoint, Checkpoint, Last]:
        shown = await self.get(door, checkpoint_id)
        entry_of(shown)
        fresh = replace(shown, **_copy({name: getattr(shown, name) for name in AGENT_FIELDS}))
        return shown, fresh, Last(shown.id)

    async def get(self, door: Door, checkpoint_id: str) -> Checkpoint:
        found = await self._find(door, checkpoint_id)
        if found is None:
            raise NotFoundError(
                "checkpoint-not-found", f"there is no checkpoint {checkpoint_id!r}", hint="list those of its user"
            )
        return found

    async def _find(self, door: Door, checkpoint_id: str) -> Checkpoint | None:
        return await door.run(partial(self._storage.load, checkpoint_id))

    async def list_by_user(self, door: Door, user_id: str, limit: int | None, offset: int) -> Sequence[Checkpoint]:
        if limit is None:
            return [checkpoint async for checkpoint in self._all(door, user_id)][offset:]
        return await door.run(partial(self._storage.list_by_user, user_id, limit, offset))

    async def of_agent(self, door: Door, user_id: str, agent_id: str) -> Sequence[Checkpoint]:
        return [checkpoint async for checkpoint in self._all(door, user_id) if checkpoint.agent_id == agent_id]

    async def history(self, door: Door, checkpoint_id: str, limit: int | None) -> Sequence[Checkpoint]:
        """By the parents' ids; it ends at the first that is not there any more."""
        found: list[Checkpoint] = []
        at: Checkpoint | None = await self.get(door, checkpoint_id)
        met = set()
        while at is not None and at.id not in met and (limit is None or len(found) < limit):
            found.append(at)
            met.add(at.id)
            at = await self._find(door, at.parent_checkpoint_id) if at.parent_checkpoint_id else None
        return found

    async def children(self, door: Door, checkpoint_id: str) -> Sequence[Checkpoint]:
        return await door.run(partial(self._storage.children, checkpoint_id))

    async def compare(self, door: Door, old: str, new: str) -> tuple[Checkpoint, Checkpoint, tuple[Change, ...]]:
        a, b = await self.get(door, old), await self.get(door, new)
        # as data, like the store compares: a class that has changed since is no difference of the states
        states = [_data({name: getattr(c, name) for name in AGENT_FIELDS}) for c in (a, b)]
        return a, b, diff(*states)

    async def clear_user(self, door: Door, user_id: str) -> int:
        return await door.run(partial(self._storage.clear_user, user_id))

    async def cleanup(self, door: Door, days: float) -> int:
        return await door.run(partial(self._storage.cleanup, datetime.now(UTC) - timedelta(days=days)))

    async def delete(self, door: Door, checkpoint_id: str) -> bool:
        return await door.run(partial(self._storage.delete, checkpoint_id))

    async def store(self, door: Door, what: str) -> Unscoped:
        name = type(self._storage).__name__
        raise UnsupportedError(
            "storage-cannot", f"the storage {name} cannot {what}: it keeps whole checkpoints, and nothing else",
            hint="use a storage of rekindle's own",
        )  # fmt: skip

    async def close(self, door: Door) -> None:
        await door.run(self._storage.close)


def _copy(value: Any) -> Any:
    return codec.unpack(codec.pack(value))


def _data(value: Any) -> Any:
    return codec.unpack(codec.pack(value), opaque=True)
