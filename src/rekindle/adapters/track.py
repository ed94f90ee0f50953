"""Any agent in three lines: an object or a dict whose state is saved, and put back into it.

agent = rekindle.track(state, "planner", store="agents.db")  # goes on from the last checkpoint, if there is one
state["plan"] = think(state)
agent.save("planned")
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import weakref
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Generic, Self, TypeVar, overload

from ..errors import ConflictError, InvalidInputError, NotFoundError, RekindleError
from ..model import MAIN, Checkpoint, check_name
from ..refs import Ref, parse_ref, quote_agent
from ..store import AsyncStore, Store, open_store
from ..store.resolve import AnyRef
from ..store.saving.awaiting import Awaiting
from ..store.saving.save import Line
from ..store.saving.ways import BLOCKING, Way, finish
from .holding import Holding, holding, unsavable
from .steps import as_step

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

_log = logging.getLogger("rekindle.track")
Where = str | os.PathLike[str] | Store | AsyncStore | None


def track(
    obj: T,
    agent_id: str | None = None,
    *,
    store: Where = None,
    branch: str | None = None,
    resume: bool = True,
    save: Callable[[T], Any] | None = None,
    restore: Callable[[T, Any], object] | None = None,
    exclude: Collection[str] = (),
    strict: bool = False,
    changes: str = "verified",
) -> Tracker[T]:
    """Save the state of a live object, and put saved states back into it. (`tracked` is another thing: containers.)

    Where the agent has checkpoints, the last one (of `branch`) is put into `obj`, unless `resume` is False; else
    nothing is saved yet. `agent_id` may be left out where the object has one of its own. `store` is a URL or path,
    which is then closed with the tracker, or an open Store or AsyncStore, which is not.

    The state is the dict or list itself, or the object's attributes without those in `exclude`, which keep what they
    hold when a state is put back. `save` and `restore` override that, and so do `to_state()` and `from_state()` of
    the class. The class need not be registered; the values in it follow the rules of all states.

    With `strict`, a save whose branch somebody else has moved on is a ConflictError and keeps nothing; without, it
    begins a branch of its own, which `branch` and `branched_from` then tell.
    """
    how = holding(obj, save=save, restore=restore, exclude=exclude)
    name = check_name(_own_id(obj) if agent_id is None else agent_id, "the agent_id of what is tracked")
    tracker = Tracker(obj, name, how, store, branch=branch, strict=strict, changes=changes)
    try:
        tracker._begin(resume=resume)
    except BaseException:
        tracker.close()
        raise
    return tracker


def _own_id(obj: Any) -> Any:
    found = obj.get("agent_id") if isinstance(obj, dict) else getattr(obj, "agent_id", None)
    if found is None:
        raise InvalidInputError(
            "bad-name", f"this {type(obj).__qualname__} has no agent_id of its own", hint='track(obj, "planner")'
        )
    return found


class Tracker(Generic[T]):
    """What `rekindle.track` answers. Each call comes in two: `save` blocks, `asave` awaits.

    A save follows what this tracker last saved or put back. One tracker may be used by several threads and tasks; its
    object is theirs to guard.
    """

    def __init__(
        self, obj: T, agent_id: str, how: Holding, store: Where, *, branch: str | None, strict: bool, changes: str
    ) -> None:
        self.object = obj
        self.agent_id = agent_id
        self.resumed = False
        """Whether the object began with the state of a checkpoint."""
        self.checkpoint: Checkpoint | None = None
        """The one last saved or put back; None before the first."""
        self.branched_from: str | None = None
        """The branch of the last save that somebody else had moved on: it began `branch` then."""
        self._how = how
        self._wanted = branch
        self._strict = strict
        self._changes = changes
        self._line: Line | None = None
        self._first = False
        self._behind = False
        self._turn = 0
        self._lock = threading.Lock()
        given = store.store if isinstance(store, AsyncStore) else store
        self.store: Store = given if isinstance(given, Store) else open_store(given)
        self._own_store = None if given is self.store else weakref.finalize(self, self.store.close)
        self._own_way = None if isinstance(store, AsyncStore) else Awaiting()
        self._way: Way = store._way if isinstance(store, AsyncStore) else self._own_way  # type: ignore[assignment]

    @property
    def branch(self) -> str:
        """Where the next save goes, if nobody else moves it on before."""
        return self._line.branch if self._line is not None else self._wanted or MAIN

    def __repr__(self) -> str:
        at = "nothing saved" if self.checkpoint is None else f"at {quote_agent(self.agent_id)}@{self.checkpoint.seq}"
        return f"<Tracker of {self.agent_id!r}, {at} on {self.branch}, in {self.store.url}>"

    def _begin(self, *, resume: bool) -> None:
        heads = self._heads()
        if self._wanted is not None and self._wanted not in heads and self._wanted != MAIN:
            raise NotFoundError(
                "branch-not-found", f"agent {self.agent_id!r} has no branch {self._wanted!r}",
                hint=f"make it: track(obj, {self.agent_id!r}).fork({self._wanted!r})",
            )  # fmt: skip
        if not heads:
            self._first = True
            if self._how.named and (error := unsavable(self.object, self._how.take())) is not None:
                raise error  # now, and not after the first step
        elif resume:
            branch = self._wanted or (MAIN if MAIN in heads else max(heads, key=lambda name: heads[name]))
            if branch in heads:
                finish(self._restore(BLOCKING, Ref(self.agent_id, branch)))
                self.resumed = True

    def _heads(self) -> dict[str, int]:
        return self.store._refs.branches(self.agent_id)

    # -- save and put back -------------------------------------------------------------------------------------------

    def save(
        self, label: str | None = None, *, kind: str = "manual", metadata: dict[str, Any] | None = None
    ) -> Checkpoint:
        """Keep the object as it is now; durable when it returns."""
        return finish(self._save(BLOCKING, label, kind, metadata))

    async def asave(
        self, label: str | None = None, *, kind: str = "manual", metadata: dict[str, Any] | None = None
    ) -> Checkpoint:
        """As `save`; the event loop does not wait for the storage."""
        return await self._save(self._way, label, kind, metadata)

    def restore(self, ref: AnyRef | None = None) -> Checkpoint:
        """Put a checkpoint's state into the object; without a `ref` that of the last checkpoint, again.

        `@-2`, `@cheaper` and the like are of this agent. Saves go on from there: on the branch it is the head of, else
        on a branch of their own. What raises leaves the object as it was, but for what `restore=` or `from_state()` of
        yours had done by then.
        """
        return finish(self._restore(BLOCKING, ref))

    async def arestore(self, ref: AnyRef | None = None) -> Checkpoint:
        """As `restore`; the event loop does not wait for the storage."""
        return await self._restore(self._way, ref)

    def fork(self, branch: str, ref: AnyRef | None = None) -> Checkpoint:
        """Begin a branch at the last checkpoint, and go on there; the object stays as it is. With a `ref`: at that one,
        whose state is put into the object. Answers the checkpoint it begins at."""
        return finish(self._fork(BLOCKING, branch, ref))

    async def afork(self, branch: str, ref: AnyRef | None = None) -> Checkpoint:
        """As `fork`; the event loop does not wait for the storage."""
        return await self._fork(self._way, branch, ref)

    async def _save(self, way: Way, label: str | None, kind: str, metadata: dict[str, Any] | None) -> Checkpoint:
        state, line, turn = self._how.take(), self._line, self._turn
        if self._strict and self._first and line is None:
            await way.read(self._must_be_first)
        request = self.store._request(
            self.agent_id, state, None, self._wanted if line is None else line.branch, kind, label, metadata, None,
            strict=self._strict, changes=self._changes, line=line,
        )  # fmt: skip
        try:
            saved = await self.store._save_by(way, request)
        except InvalidInputError as e:
            told = unsavable(self.object, state) if self._how.named else None
            if told is None:
                raise
            raise told from e
        checkpoint = self.store._answer(saved)
        with self._lock:
            if turn == self._turn:  # else a state was put back meanwhile, and saves go on from that
                self._follow(checkpoint, saved.branched_from)
        return checkpoint

    def _must_be_first(self) -> None:
        if heads := self._heads():
            raise ConflictError(
                "head-moved",
                f"somebody else has begun agent {self.agent_id!r} meanwhile: it is at {max(heads.values())}",
                hint="restore() puts that state into the object; without strict both are kept",
            )

    def _follow(self, checkpoint: Checkpoint, meant: str | None) -> None:
        if self.checkpoint is None or self.checkpoint.seq < checkpoint.seq or self._line is None:
            self.checkpoint = checkpoint
        if self._line is None:
            self._line = Line(checkpoint.seq, checkpoint.branch)
        elif self._line.seq < checkpoint.seq:  # two first saves at once
            self._line.seq, self._line.branch = checkpoint.seq, checkpoint.branch
        if meant is not None:
            self.branched_from = meant
            if not self._behind:  # going on from the past is a branch, and no surprise
                _log.warning("branched", extra={"agent": self.agent_id, "meant": meant, "branch": checkpoint.branch})
        self._behind = False

    async def _restore(self, way: Way, ref: AnyRef | None) -> Checkpoint:
        checkpoint, state, (branch, behind) = await way.read(partial(self._read, ref))
        self._how.put(state)
        self._go_on(checkpoint, branch, behind=behind)
        return checkpoint

    async def _fork(self, way: Way, branch: str, ref: AnyRef | None) -> Checkpoint:
        if ref is None:
            if self.checkpoint is None:
                raise InvalidInputError(
                    "nothing-saved", f"a branch of {self.agent_id!r} begins at a checkpoint, and there is none yet",
                    hint="save first, or name a checkpoint",
                )  # fmt: skip
            checkpoint = await way.read(partial(self.store.fork, self.checkpoint, branch))
        else:
            checkpoint, state, _ = await way.read(partial(self._read, ref))
            await way.read(partial(self.store.fork, checkpoint, branch))
            self._how.put(state)
        self._go_on(checkpoint, branch, behind=False)
        return checkpoint

    def _read(self, ref: AnyRef | None) -> tuple[Checkpoint, Any, tuple[str, bool]]:
        """A checkpoint of this agent, its state, and the branch to go on on; and whether that has moved on since."""
        wanted = self._meant(ref)
        checkpoint = self.store.get(wanted)
        if checkpoint.agent_id != self.agent_id:
            raise InvalidInputError(
                "foreign-parent", f"{checkpoint.id} is a checkpoint of agent {checkpoint.agent_id!r}, "
                f"and {self.agent_id!r} is tracked", hint="read its state with store.restore()",
            )  # fmt: skip
        if checkpoint.agent_type:
            raise InvalidInputError(
                "state-does-not-fit", f"{checkpoint.id} holds an agent of type {checkpoint.agent_type!r}, saved by a "
                "CheckpointManager", hint="restore it with one; or track under another agent id",
            )  # fmt: skip
        return checkpoint, self.store.restore(checkpoint), self._branch_at(checkpoint, wanted)

    def _branch_at(self, checkpoint: Checkpoint, wanted: AnyRef) -> tuple[str, bool]:
        heads = [name for name, seq in self._heads().items() if seq == checkpoint.seq]
        named = wanted.at if isinstance(wanted, Ref) else None
        branch = next((name for name in (named, self.branch, checkpoint.branch, *heads) if name in heads), None)
        return (checkpoint.branch, True) if branch is None else (str(branch), False)

    def _meant(self, ref: AnyRef | None) -> AnyRef:
        if ref is None:
            return self.checkpoint or Ref(self.agent_id, self.branch)
        if not isinstance(ref, str):
            return ref
        if ref.startswith("@"):
            return replace(parse_ref(ref), name=self.agent_id)
        with suppress(RekindleError):  # an id may be any text
            parsed = parse_ref(ref)
            if parsed.name == self.agent_id and parsed.at is not None:
                return parsed
        return ref

    def _go_on(self, checkpoint: Checkpoint, branch: str, *, behind: bool) -> None:
        with self._lock:
            self._turn += 1
            self.checkpoint, self._line = checkpoint, Line(checkpoint.seq, branch)
            self._behind, self.branched_from = behind, None

    # -- steps, and the end ------------------------------------------------------------------------------------------

    @overload
    def step(self, function: F) -> F: ...
    @overload
    def step(
        self, *, label: str | None = ..., kind: str = ..., metadata: dict[str, Any] | None = ...,
        arguments: Collection[str] = ...,
    ) -> Callable[[F], F]: ...  # fmt: skip
    def step(
        self,
        function: Callable[..., Any] | None = None,
        *,
        label: str | None = None,
        kind: str = "step",
        metadata: dict[str, Any] | None = None,
        arguments: Collection[str] = (),
    ) -> Any:
        """A function, plain or async, after each call of which the object is saved: a decorator, bare or with options.

        The label is the function's name; `arguments` names those of its arguments that go into the metadata. Where it
        raises nothing is saved and the error passes through; what it changed by then is still in the object
        (`restore()` takes it back).
        """
        make = partial(as_step, self, label=label, kind=kind, metadata=metadata, arguments=arguments)
        return make if function is None else make(function)

    def close(self) -> None:
        """What was begun is committed first. Closes the store if `track` opened it. Harmless a second time."""
        if self._own_way is not None:
            self._own_way.close()
        if self._own_store is not None:
            self._own_store()

    async def aclose(self) -> None:
        """As `close`."""
        await asyncio.to_thread(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
