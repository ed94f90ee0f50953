"""The store, for one user: save, restore, fork and look back. Any Python value is a state.

Every call is safe from several threads, and several processes may have the same store open. A save is durable when
it returns. What an open store answers includes what other processes have done by then.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

from ..errors import InvalidInputError, NotFoundError, RekindleError, UnavailableError
from ..model import MAIN, Checkpoint, History, check_kind, check_label, check_name
from ..retention import Plan, Policy
from ..state.values import codec
from ..storage.base import Key
from ..storage.record import Head
from . import answers, names
from .engine import Engine
from .listing import Listing
from .resolve import AnyRef, Resolver
from .saving.save import Request, Saved, Saving, check_metadata
from .saving.ways import BLOCKING, Way, finish
from .view import Edit, Operation

if TYPE_CHECKING:
    from .verify import Report

_log = logging.getLogger("rekindle.store")
_TRIES = 1000
Checkpoints = list[Checkpoint]
Edits = list[Edit]
Operations = list[Operation]


class Store:
    """Checkpoints of one user's agents. Made by `rekindle.open_store`; a context manager."""

    def __init__(self, engine: Engine, user: str) -> None:
        self._engine = engine
        self.user = check_name(user, "a user's id")
        self._refs = Resolver(engine, user)
        self._listing = Listing(engine, self._refs, user)

    @property
    def url(self) -> str:
        return self._engine.storage.url

    def for_user(self, user: str) -> Store:
        """The same store for another user: nothing is shared between them but the file."""
        return Store(self._engine, user)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Harmless a second time. Handles of other users on the same storage are closed with it."""
        self._engine.close()

    def __repr__(self) -> str:
        return f"<Store {self.url} of {self.user!r}>"

    # -- save and restore --------------------------------------------------------------------------------------------

    def save(
        self,
        agent_id: str,
        state: Any,
        *,
        parent: AnyRef | None = None,
        branch: str | None = None,
        kind: str = "manual",
        label: str | None = None,
        metadata: dict[str, Any] | None = None,
        id: str | None = None,
        strict: bool = False,
        changes: str = "verified",
    ) -> Checkpoint:
        """Keep a state; durable when it returns. Without a parent it follows the branch's head (main's).

        With a parent that is not its branch's head any more, the checkpoint becomes a branch of its own, and the
        answer's `branch` says so; with `strict` that is a ConflictError, and nothing is kept. `id` is an id of the
        caller's own; a second save under it keeps nothing and answers the first. `changes="trusted"` takes
        `rekindle.tracked` containers at their word about what changed in them.
        """
        request = self._request(
            agent_id, state, parent, branch, kind, label, metadata, id, strict=strict, changes=changes
        )
        return self._answer(self._save(request))

    def _request(
        self, agent_id: str, state: Any, parent: AnyRef | None, branch: str | None, kind: str, label: str | None,
        metadata: dict[str, Any] | None, id: str | None, *, strict: bool, changes: str, **more: Any,
    ) -> Request:  # fmt: skip
        if changes not in ("verified", "trusted"):
            raise InvalidInputError("bad-changes", f"changes={changes!r}", hint="'verified' or 'trusted'")
        base = None
        if parent is not None:
            head = self._refs.head(parent)
            if head.key.agent != agent_id:
                raise InvalidInputError(
                    "foreign-parent", f"the parent is a checkpoint of agent {head.key.agent!r}, not of {agent_id!r}",
                    hint="save it under that agent, or name a checkpoint of this one",
                )  # fmt: skip
            base = head.seq
        check_metadata({} if metadata is None else metadata)
        return Request(
            Key(self.user, check_name(agent_id, "an agent's id")), state, base,
            None if branch is None else check_name(branch, "a branch"), check_kind(kind), check_label(label),
            codec.pack(metadata) if metadata else b"", None if id is None else check_name(id, "a checkpoint's id"),
            strict, changes == "trusted", **more,
        )  # fmt: skip

    def _save(self, request: Request) -> Saved:
        return finish(self._save_by(BLOCKING, request))

    async def _save_by(self, way: Way, request: Request) -> Saved:
        saving = Saving(self._engine, request)
        try:
            saved = await self._committed(way, saving)
        finally:
            saving.leave()
        if saved is None:
            raise UnavailableError("contended", f"others keep saving agent {request.key.agent!r}", hint="try again")
        if self._engine.log.view(self.user).policy is not None:
            await way.read(lambda: self._keep_policy(saved.head))
        return saved

    async def _committed(self, way: Way, saving: Saving) -> Saved | None:
        for _ in range(_TRIES):
            saved = await way.commit(saving, self._engine.committer)
            if saved is not None:
                return saved
        return None

    def _keep_policy(self, saved: Head) -> None:
        from .retain import keep_policy

        try:
            keep_policy(self._engine, self._refs, self.user, saved)
        except RekindleError:  # what was saved is durable: its caller has to get its answer
            _log.exception("policy_failed", extra={"agent": saved.key.agent, "seq": saved.seq})

    def _answer(self, saved: Saved) -> Checkpoint:
        return self._checkpoint(saved.head)

    def restore(self, ref: AnyRef, *, opaque: bool = False) -> Any:
        """A new value, equal to what was saved and of the same types.

        With `opaque`, values of users' types come as `Opaque` data, registered or not: to look at, not to run.
        """
        return self._engine.state(self._refs.head(ref), opaque=opaque)

    def get(self, ref: AnyRef) -> Checkpoint:
        """The checkpoint, without its state (which loads when asked for)."""
        return self._checkpoint(self._refs.head(ref))

    def _checkpoint(self, head: Head) -> Checkpoint:
        labels = self._engine.log.view(self.user).agent(head.key.agent).labels
        return answers.checkpoint(self._engine, head, labels)

    # -- looking back ------------------------------------------------------------------------------------------------

    def agents(self) -> list[str]:
        """Every agent that has checkpoints, in the order they first came."""
        return self._refs.agents()

    def list(
        self,
        agent_id: str | None = None,
        *,
        branch: str | None = None,
        kind: str | None = None,
        before: AnyRef | None = None,
        limit: int | None = 50,
    ) -> Checkpoints:
        """Checkpoints, newest first, without their states: of one agent or of all; on a branch, its history."""
        _check_limit(limit)
        if kind is not None:
            check_kind(kind)
        return self._listing.list(agent_id, branch=branch, kind=kind, before=before, limit=limit)

    def history(self, ref: AnyRef, *, limit: int | None = None) -> Checkpoints:
        """The checkpoint and its ancestors, newest first."""
        _check_limit(limit)
        return self._listing.history(ref, limit)

    def children(self, ref: AnyRef) -> Checkpoints:
        """The checkpoints saved on this one, oldest first."""
        return self._listing.children(self._refs.head(ref))

    def branches(self, agent_id: str) -> dict[str, Checkpoint]:
        """Every branch and its head."""
        self._must_know(agent_id)
        key = self._refs.key(agent_id)
        heads = sorted(self._refs.branches(agent_id).items(), key=lambda item: (item[0] != MAIN, item[0]))
        return {name: self._checkpoint(self._engine.head(key, seq)) for name, seq in heads}

    def tags(self, agent_id: str) -> dict[str, Checkpoint]:
        self._must_know(agent_id)
        tags = self._engine.log.view(self.user, fresh=True).agent(agent_id).tags
        return {
            name: self._checkpoint(self._engine.head(self._refs.key(agent_id), seq))
            for name, seq in sorted(tags.items())
        }

    def _must_know(self, agent_id: str) -> None:
        if not self._refs.known(agent_id):
            raise NotFoundError(
                "agent-not-found", f"there is no agent {agent_id!r}", hint="list the agents with `rekindle agents`"
            )

    # -- names -------------------------------------------------------------------------------------------------------

    def fork(self, ref: AnyRef, branch: str) -> Checkpoint:
        """A new branch that begins at a checkpoint. No state is copied or read. Answers the checkpoint."""
        head = self._refs.head(ref)
        names.fork(self._engine, self._refs, head, branch)
        return self._checkpoint(head)

    def delete_branch(self, agent_id: str, branch: str) -> None:
        """The name goes; its checkpoints stay until a prune finds them on no branch. Undoable."""
        names.delete_branch(self._engine, self._refs, self.user, agent_id, branch)

    def tag(self, ref: AnyRef, name: str, *, move: bool = False) -> Checkpoint:
        """A unique name for a checkpoint, which no retention takes away. Undoable."""
        head = self._refs.head(ref)
        names.tag(self._engine, self._refs, head, name, move=move)
        return self._checkpoint(head)

    def untag(self, agent_id: str, name: str) -> None:
        """The tag goes; its checkpoint is as any other then. Undoable."""
        names.untag(self._engine, self.user, agent_id, name)

    def label(self, ref: AnyRef, text: str | None) -> Checkpoint:
        """Free text beside a checkpoint; None takes it off. Undoable."""
        head = self._refs.head(ref)
        names.label(self._engine, head, check_label(text))
        return self._checkpoint(head)

    # -- comparing ---------------------------------------------------------------------------------------------------

    def diff(self, a: AnyRef, b: AnyRef) -> answers.Changes:
        """What makes b's state of a's, by path; parts whose hashes are equal are not even read."""
        from .compare import diff

        old, new = self._refs.head(a), self._refs.head(b)
        return answers.Changes.of(diff(self._engine, old, new), old, new)

    def blame(self, ref: AnyRef, path: str) -> Checkpoints:
        """The checkpoints in the history of `ref` that changed the value at a path, newest first."""
        from .compare import blame

        return History(self._checkpoint(head) for head in blame(self._engine, self._refs, self._refs.head(ref), path))

    def bisect(
        self, good: AnyRef, bad: AnyRef, predicate: Callable[[Any], bool], *, opaque: bool = False
    ) -> Checkpoint:
        """The first checkpoint between good and bad whose state the predicate holds for (as for bad's)."""
        from .compare import bisect

        ends = self._refs.head(good), self._refs.head(bad)
        return self._checkpoint(bisect(self._engine, self._refs, *ends, predicate, opaque=opaque))

    def grep(
        self, pattern: str, ref: AnyRef | None = None, *, limit: int | None = None
    ) -> Iterator[tuple[Checkpoint, str, str]]:
        """(checkpoint, path, text) wherever a text new in a checkpoint matches the regular expression, newest first."""
        from .compare import grep

        _check_limit(limit)
        for head, path, text in grep(self._engine, self._refs, pattern, ref, limit):
            yield self._checkpoint(head), path, text

    # -- space -------------------------------------------------------------------------------------------------------

    def prune(self, policy: Policy | str, *, agent_id: str | None = None, dry_run: bool = False) -> Plan:
        """Drop what a policy does not keep. The plan says why for each; heads, tags and open operations stay.

        Undoable until `collect`, which is what frees the space.
        """
        from .retain import prune

        if agent_id is not None:
            self._must_know(agent_id)
        return prune(self._engine, self._refs, self.user, policy, agent_id, dry_run=dry_run)

    def set_policy(self, policy: Policy | str | None, *, every: int = 100) -> None:
        """A policy the store keeps by itself after every so many saves of an agent; None: no more."""
        from .retain import set_policy

        set_policy(self._engine, self.user, policy, every)

    def policy(self) -> tuple[Policy, int] | None:
        """The policy the store keeps by itself, and after how many saves of an agent."""
        from .retain import policy_of

        return policy_of(self._engine.log.view(self.user, fresh=True))

    def delete(self, agent_id: str) -> int:
        """Drop an agent whole: its checkpoints, branches and tags. Late saves to it are refused. Undoable."""
        from .retain import delete_agent

        self._must_know(agent_id)
        return delete_agent(self._engine, self._refs, self.user, agent_id)

    def clear(self, agent_ids: Sequence[str] | None = None) -> int:
        """Drop every checkpoint, heads and tags too; the agents may begin anew. Undoable. How many went."""
        from .retain import clear

        for agent in agent_ids or ():
            self._must_know(agent)
        return clear(self._engine, self._refs, self.user, self.agents() if agent_ids is None else agent_ids)

    def collect(self, *, progress: Callable[[int, int], None] | None = None) -> int:
        """Free the space of what was dropped, for good: bytes freed. What was dropped before cannot be undone then."""
        from .collect import collect

        return collect(self._engine, self.user, progress)

    def verify(
        self,
        *,
        restore: bool = False,
        imports: Sequence[str] = (),
        progress: Callable[[int, int], None] | None = None,
    ) -> Report:
        """Check every record, hash, reference and chain: a report, true when nothing is wrong.

        With `restore`, every state is really rebuilt in a fresh process, which imports the modules named in
        `imports` first (those that register your types); what would not come back is in the report. A store in
        memory is not to be seen from another process: it is done in this one.
        """
        from .verify import verify

        return verify(self._engine, self.user, restore=restore, imports=imports, progress=progress)

    def undo(self, operation: int | None = None) -> Operation:
        """Turn round the last operation that can be (or the given one): prune, delete, tag, fork, import, label."""
        from .undo import undo

        return undo(self._engine, self.user, operation)

    def operations(self) -> Operations:
        """The operation log, oldest first."""
        return self._engine.log.operations(self.user)

    def size(self) -> dict[str, int]:
        """Bytes on disk, by what they are for."""
        return self._engine.storage.size()

    # -- moving ------------------------------------------------------------------------------------------------------

    def export(self, ref: AnyRef, file: str | os.PathLike[str] | BinaryIO, *, branch_only: bool = False) -> int:
        """Write an agent (or, with `branch_only`, the history of one checkpoint) as one portable file; how many."""
        from .portable import export

        return export(self._engine, self._refs, ref, file, branch_only=branch_only)

    def import_(self, file: str | os.PathLike[str] | BinaryIO, *, agent_id: str | None = None) -> Checkpoints:
        """Bring in what `export` wrote, verified first; what is there already is not written twice. Undoable."""
        from .portable import import_

        return [self._checkpoint(head) for head in import_(self._engine, self._refs, file, agent_id)]


def _check_limit(limit: int | None) -> None:
    if limit is not None and limit < 0:
        raise InvalidInputError("bad-limit", f"limit must not be {limit}", hint="0 or more, or None for all")
