"""The whole of a storage, whoever's it is: for faces that are asked for an id and not told the user.

A `Store` is for one user; this handle is not, and nothing takes it by accident: it has a name of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

from ..errors import ConflictError, InvalidInputError, NotFoundError
from ..model import MAIN, Checkpoint, parse_id
from ..retention import Policy
from ..state.diff.change import Change
from ..storage.base import Key, has_checkpoints
from ..storage.record import Head
from . import retain
from .answers import agent_more, agent_state
from .compare import diff
from .saving.save import ROOT, Line, Request, Saved
from .saving.ways import Way
from .store import Store
from .view import Operation

if TYPE_CHECKING:
    from .verify import Report

GIVEN = "given"
"""In a head's `more`: what a caller's own Checkpoint said of its place, [seq, branch, size, digest, parent, time]."""


class Unscoped:
    """All users of the storage that `store` is on."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._engine = store._engine

    def users(self) -> list[str]:
        """Everybody who has agents here, in the order they first came."""
        return list(dict.fromkeys(key.user for key in self._keys()))

    def _keys(self) -> Sequence[Key]:
        found = self._engine.storage.keys()
        return [key for key in found if has_checkpoints(key.agent)]

    def for_user(self, user: str) -> Store:
        return self._store if user == self._store.user else self._store.for_user(user)

    def now(self) -> float:
        """By the store's clock, seconds since 1970."""
        return self._engine.now() / 1000

    def close(self) -> None:
        self._store.close()

    # -- looking -----------------------------------------------------------------------------------------------------

    def find(self, checkpoint_id: str) -> Head | None:
        """The record of an id, ours or a caller's own; None where nobody has it, or it was pruned."""
        if not isinstance(checkpoint_id, str):
            raise InvalidInputError("bad-id", f"a checkpoint's id is a text, not {checkpoint_id!r}")
        parsed = parse_id(checkpoint_id)
        keys = self._keys()
        alike = {key.user for key in keys if parsed and self._engine.tag(key.agent) == parsed[1]}
        for user in dict.fromkeys(key.user for key in keys):
            if user not in alike and self._engine.storage.find_alias(user, checkpoint_id):
                alike.add(user)
        heads = [head for user in alike if (head := self.for_user(user)._refs.by_id(checkpoint_id)) is not None]
        if len(heads) > 1:
            users = ", ".join(sorted(repr(head.key.user) for head in heads))
            raise InvalidInputError(
                "ambiguous", f"users {users} each have a checkpoint {checkpoint_id!r}", hint="open the store of one"
            )
        return heads[0] if heads else None

    def head(self, checkpoint_id: str) -> Head:
        found = self.find(checkpoint_id)
        if found is None:
            raise NotFoundError(
                "checkpoint-not-found", f"there is no checkpoint {checkpoint_id!r}", hint="list those of its user"
            )
        return found

    def checkpoint(self, head: Head) -> Checkpoint:
        """As it was saved; its state loads when it is asked for."""
        made = self.for_user(head.key.user)._checkpoint(head)
        if (given := head.more.get(GIVEN)) is not None:
            seq, branch, size, digest, parent, time = given
            stamp = datetime.fromisoformat(time)
            made.__dict__.update(
                seq=seq, branch=branch, size=size, digest=digest, parent_checkpoint_id=parent, timestamp=stamp
            )
        return made

    def state(self, head: Head) -> Any:
        """A new value each time, of the types it was."""
        return self._engine.state(head)

    def list(self, user: str, limit: int | None, offset: int) -> Sequence[Checkpoint]:
        """A user's checkpoints, newest first."""
        for name, number in (("limit", limit), ("offset", offset)):
            if number is not None and number < 0:
                raise InvalidInputError(f"bad-{name}", f"{name} must be 0 or more, not {number}")
        heads = self.for_user(user)._listing.heads()
        return [self.checkpoint(head) for head in islice(heads, offset, None if limit is None else offset + limit)]

    def history(self, head: Head, limit: int | None) -> Sequence[Checkpoint]:
        """The checkpoint and its ancestors, newest first."""
        return [self.checkpoint(each) for each in islice(self.for_user(head.key.user)._refs.history(head), limit)]

    def children(self, head: Head) -> Sequence[Checkpoint]:
        """The checkpoints saved on this one, oldest first."""
        found = self.for_user(head.key.user).children(self.checkpoint(head))
        return [self.checkpoint(self.head(child.id)) for child in found]

    def of_agent(self, user: str, agent_id: str) -> Sequence[Checkpoint]:
        """All of an agent's, newest first."""
        return [self.checkpoint(head) for head in self.for_user(user)._listing.heads(agent_id)]

    def diff(self, old: Head, new: Head) -> tuple[Change, ...]:
        return diff(self._engine, old, new)

    # -- saving ------------------------------------------------------------------------------------------------------

    def request(
        self, user: str, agent_id: str, state: dict[str, Any], *, agent_type: str, version: int,
        attributes: Sequence[str] | None, kind: str, label: str | None, metadata: dict[str, Any] | None, changes: str,
        line: Line | None = None, alias: str | None = None, time: int | None = None,
    ) -> Request:  # fmt: skip
        """A save of an agent. A pre_operation checkpoint is kept until `close_operation`."""
        more = agent_more(version, attributes)
        if kind == "pre_operation":
            more[retain.OPEN] = True
        return self.for_user(user)._request(
            agent_id, state, None, None, kind, label, metadata, alias, strict=False, changes=changes,
            agent_type=agent_type, status=state["status"], more=more, line=line, time=time,
        )  # fmt: skip

    def request_given(self, checkpoint: Checkpoint) -> Request:
        """A save of a checkpoint a caller made, under the id it has. Its parent is looked up among its agent's."""
        c, stamp = checkpoint, checkpoint.timestamp
        if stamp.utcoffset() is None:
            raise InvalidInputError("time-without-zone", f"the timestamp of checkpoint {c.id} says no zone: {stamp}")
        made = self.request(
            c.user_id, c.agent_id, agent_state(c), agent_type=c.agent_type, version=c.agent_version,
            attributes=c.agent_attributes, kind=c.kind, label=c.label, metadata=c.metadata, changes="verified",
            alias=c.id, time=int(stamp.timestamp() * 1000),
        )  # fmt: skip
        given = [c.seq, c.branch, c.size, c.digest, c.parent_checkpoint_id, stamp.isoformat()]
        refs = self.for_user(c.user_id)._refs
        parent = refs.by_id(c.parent_checkpoint_id) if c.parent_checkpoint_id else None
        return replace(
            made,
            parent=parent.seq if parent is not None and parent.key.agent == c.agent_id else ROOT,
            branch=None if c.branch == MAIN else c.branch,
            more={**(made.more or {}), GIVEN: given},
        )

    async def save_by(self, way: Way, request: Request) -> Saved:
        return await self.for_user(request.key.user)._save_by(way, request)

    def must_be_same(self, checkpoint: Checkpoint, saved: Saved) -> None:
        """A checkpoint is immutable: what is saved under its id again has to be the same."""
        if self.checkpoint(saved.head) != checkpoint:
            raise ConflictError(
                "id-taken", f"there is another checkpoint {checkpoint.id!r}", hint="give this one an id of its own"
            )

    # -- dropping ----------------------------------------------------------------------------------------------------

    def count(self, users: Sequence[str]) -> int:
        return sum(retain.live_count(self._engine, user) for user in users)

    def evict(self, users: Sequence[str], spare: int) -> int:
        """Drop the oldest of these users' checkpoints until `spare` are left; heads, tags and open operations stay."""
        return retain.evict(self._engine, users, spare)

    def delete(self, head: Head) -> bool:
        return retain.delete_checkpoint(self._engine, head)

    def close_operation(self, head: Head) -> None:
        retain.close_operation(self._engine, head)

    def cleanup(self, before: datetime) -> int:
        """Drop what is older, of all users; heads, tags and open operations stay. How many went."""
        age = max(datetime.fromtimestamp(self.now(), UTC) - before, timedelta(milliseconds=1))
        return sum(len(self.for_user(user).prune(Policy(max_age=age)).drop) for user in self.users())

    def undo(self, user: str | None) -> Operation:
        """Turn round the last operation of a user; None: the last of all."""
        if user is None:
            logs = ((name, self.for_user(name).operations()) for name in self.users())
            last = max(((op.time, op.seq, name) for name, log in logs for op in log if op.stands), default=None)
            user = self._store.user if last is None else last[2]
        return self.for_user(user).undo()

    def verify(self, restore: bool, imports: Sequence[str], progress: Callable[[int, int], None] | None) -> Report:
        """One report over all users."""
        from .verify import Report

        whole = Report(restored=0 if restore else None)
        for user in self.users():
            one = self.for_user(user).verify(restore=restore, imports=imports, progress=progress)
            for name in ("agents", "checkpoints", "entries", "operations", "parts", "bytes"):
                setattr(whole, name, getattr(whole, name) + getattr(one, name))
            if one.restored is not None:
                whole.restored = (whole.restored or 0) + one.restored
            whole.problems += one.problems
        return whole
