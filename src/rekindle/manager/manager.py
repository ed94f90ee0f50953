"""Agents in, agents out."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ..agents import capture, explain, revive
from ..errors import InvalidInputError, NotFoundError
from ..model import Checkpoint, History
from ..store import Store
from .comparison import CheckpointDiff
from .doors import AwaitingDoor, BlockingDoor, Door, awaited, blocking
from .faces import StoreCheckpointStorage
from .handing import Handed
from .keeping import InStore
from .lines import Lines
from .listeners import Listeners
from .storage import CheckpointStorage
from .tree import Tree, trees

if TYPE_CHECKING:
    from ..store.verify import Report
    from ..store.view import Operation

F = TypeVar("F", bound=Callable[..., Any])

_OLDEST_DAYS = 365_000
"""Older than any checkpoint, and a moment that a datetime can tell."""


class CheckpointManager:
    """Saves live agents and brings them back, in a storage of rekindle's own or of yours.

    Every call comes in two: `await manager.save(agent)`, and `manager.save_sync(agent)` for scripts and notebooks,
    which works inside a running event loop too. `changes="trusted"` takes `rekindle.tracked` containers in agents at
    their word about what changed in them; everything else is looked through at every save either way.
    """

    def __init__(self, storage: CheckpointStorage | Store, *, changes: str = "verified") -> None:
        if changes not in ("verified", "trusted"):
            raise InvalidInputError("bad-changes", f"changes={changes!r}", hint="'verified' or 'trusted'")
        if isinstance(storage, Store):
            storage = StoreCheckpointStorage(storage)
        if not isinstance(storage, CheckpointStorage):
            raise InvalidInputError(
                "bad-storage", f"{storage!r} is no checkpoint storage", hint="subclass rekindle.CheckpointStorage"
            )
        self.storage = storage
        self.awaiting = AwaitingDoor()
        self.blocking = BlockingDoor()
        self._changes = changes
        self._keeper: Any = Handed(storage)
        if isinstance(storage, StoreCheckpointStorage):
            self._keeper, self.awaiting = InStore(storage), storage.awaiting
        self._lines = Lines()
        self._listeners = Listeners()

    def on(self, event: str, listener: F | None = None) -> Any:
        """Be told of `checkpoint_saved` (checkpoint) or `checkpoint_restored` (checkpoint, agent).

        As a decorator, or with the listener; a plain function or an async one. One that raises is logged, and neither
        loses the checkpoint nor keeps the others from being told.
        """
        if listener is None:
            return lambda f: self._listeners.add(event, f)
        return self._listeners.add(event, listener)

    async def __aenter__(self) -> CheckpointManager:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __enter__(self) -> CheckpointManager:
        return self

    def __exit__(self, *_: object) -> None:
        self.close_sync()

    def __repr__(self) -> str:
        return f"<CheckpointManager on {self.storage!r}>"

    # -- save and restore --------------------------------------------------------------------------------------------

    async def _save(
        self,
        door: Door,
        agent: Any,
        *,
        metadata: dict[str, Any] | None = None,
        kind: str = "manual",
        label: str | None = None,
    ) -> str:
        """Keep an agent as it is now; durable when it answers the new checkpoint's id.

        Its parent is what this very object last saved or was restored from; what was restored from a checkpoint that is
        no head any more goes on as a branch of its own. An object not met before follows its agent's last on `main`.
        A `pre_operation` checkpoint is kept until `complete_operation`.
        """
        captured = capture(agent)
        key = (captured.user_id, captured.agent_id)
        line = self._lines.of(agent, key)
        try:
            checkpoint, line = await self._keeper.save(
                door, captured, line, self._changes, kind=kind, label=label, metadata=metadata
            )
        except InvalidInputError as e:
            told = explain(agent, captured, e)
            if told is e:
                raise
            raise told from e
        self._lines.put(agent, key, line)
        await self._listeners.tell(door, "checkpoint_saved", checkpoint)
        return str(checkpoint.id)

    async def _restore(self, door: Door, checkpoint_id: str, *, branch: str | None = None) -> Any:
        """A live agent of the same class, as it was, made without running `__init__`.

        With `branch`, its saves go on there: the name of a branch forked at this checkpoint.
        """
        shown, fresh, line = await self._keeper.load(door, checkpoint_id)
        agent = revive(fresh)
        if branch is not None:
            await self._go_on(door, shown, line, branch)
        self._lines.put(agent, (shown.user_id, shown.agent_id), line)
        await self._listeners.tell(door, "checkpoint_restored", shown, agent)
        return agent

    async def _go_on(self, door: Door, shown: Checkpoint, line: Any, branch: str) -> None:
        """The line's saves go to a branch that is there."""
        store = await self._keeper.store(door, "keep branches")
        branches = await door.read(partial(store.for_user(shown.user_id).branches, shown.agent_id))
        if branch not in branches:
            raise NotFoundError(
                "branch-not-found", f"agent {shown.agent_id!r} has no branch {branch!r}",
                hint=f"make it first: fork({shown.id!r}, {branch!r})",
            )  # fmt: skip
        line.branch = branch

    # -- looking back ------------------------------------------------------------------------------------------------

    async def _get(self, door: Door, checkpoint_id: str) -> Checkpoint:
        """The checkpoint; NotFoundError where there is none."""
        found: Checkpoint = await self._keeper.get(door, checkpoint_id)
        return found

    async def _list_by_user(self, door: Door, user_id: str, limit: int | None = 50, offset: int = 0) -> History:
        """A user's checkpoints, newest first; states load when they are asked for. `limit=None`: all."""
        return History(await self._keeper.list_by_user(door, user_id, limit, offset))

    async def _history(self, door: Door, checkpoint_id: str, *, limit: int | None = None) -> History:
        """The checkpoint and its ancestors, newest first."""
        return History(await self._keeper.history(door, checkpoint_id, limit))

    async def _children(self, door: Door, checkpoint_id: str) -> History:
        """The checkpoints saved on this one, oldest first."""
        return History(await self._keeper.children(door, checkpoint_id))

    async def _tree(self, door: Door, agent_id: str, user_id: str = "local") -> list[Tree]:
        """All of an agent's checkpoints by their parents: one tree for each that has none (any more)."""
        return trees(await self._keeper.of_agent(door, user_id, agent_id))

    async def _compare(self, door: Door, id1: str, id2: str) -> CheckpointDiff:
        """What makes the second of the first."""
        old, new, changes = await self._keeper.compare(door, id1, id2)
        return CheckpointDiff(old.id, new.id, old.status, new.status, changes)

    async def _bisect(
        self, door: Door, good: str, bad: str, predicate: Callable[[Any], bool | Awaitable[bool]]
    ) -> Checkpoint:
        """The first checkpoint after `good`, in the history of `bad`, whose agent the predicate holds for.

        The predicate (plain or async) is given agents of its own, O(log n) of them.
        """
        line = await self._keeper.history(door, bad, None)
        at = next((n for n, checkpoint in enumerate(line) if checkpoint.id == good), None)
        if at is None:
            raise NotFoundError(
                "not-an-ancestor", f"{good} is not in the history of {bad}", hint="name two on one line of descent"
            )
        between = list(reversed(line[: at + 1]))
        if await self._holds(door, predicate, good):
            raise InvalidInputError("good-is-bad", f"{good}, named as good, is bad already", hint="name an older one")
        if not await self._holds(door, predicate, bad):
            raise InvalidInputError("bad-is-good", f"{bad}, named as bad, is good", hint="name a bad one")
        low, high = 0, len(between) - 1  # it holds at high, and not at low
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if await self._holds(door, predicate, between[middle].id) else (middle, high)
        found: Checkpoint = between[high]
        return found

    async def _holds(self, door: Door, predicate: Callable[[Any], Any], checkpoint_id: str) -> bool:
        _, fresh, _ = await self._keeper.load(door, checkpoint_id)
        answer = predicate(revive(fresh))
        return bool(await door.run(lambda: answer) if inspect.isawaitable(answer) else answer)

    async def _verify(
        self,
        door: Door,
        *,
        restore: bool = False,
        imports: Sequence[str] = (),
        progress: Callable[[int, int], None] | None = None,
    ) -> Report:
        """Check everything that is stored, of all users: a report, true when nothing is wrong. As `Store.verify`."""
        store = await self._keeper.store(door, "verify what it keeps")
        return await door.read(partial(store.verify, restore, imports, progress))

    # -- names -------------------------------------------------------------------------------------------------------

    async def _fork(self, door: Door, checkpoint_id: str, branch: str) -> Checkpoint:
        """A new branch that begins at a checkpoint; nothing is copied. Go on there: `restore(id, branch=branch)`."""
        store = await self._keeper.store(door, "fork")
        head = await door.read(partial(store.head, checkpoint_id))
        return await door.read(partial(store.for_user(head.key.user).fork, checkpoint_id, branch))

    async def _branches(self, door: Door, agent_id: str, user_id: str = "local") -> dict[str, Checkpoint]:
        """Every branch of an agent, and its head."""
        store = await self._keeper.store(door, "keep branches")
        return await door.read(partial(store.for_user(user_id).branches, agent_id))

    async def _tag(self, door: Door, checkpoint_id: str, name: str, *, move: bool = False) -> Checkpoint:
        """A unique name for a checkpoint, which no cap, cleanup or policy takes away. Undoable."""
        store = await self._keeper.store(door, "tag")
        head = await door.read(partial(store.head, checkpoint_id))
        return await door.read(partial(store.for_user(head.key.user).tag, checkpoint_id, name, move=move))

    async def _untag(self, door: Door, agent_id: str, name: str, user_id: str = "local") -> None:
        store = await self._keeper.store(door, "tag")
        await door.read(partial(store.for_user(user_id).untag, agent_id, name))

    async def _label(self, door: Door, checkpoint_id: str, text: str | None) -> Checkpoint:
        """Free text beside a checkpoint; None takes it off. Undoable."""
        store = await self._keeper.store(door, "change a label")
        head = await door.read(partial(store.head, checkpoint_id))
        return await door.read(partial(store.for_user(head.key.user).label, checkpoint_id, text))

    async def _complete_operation(self, door: Door, checkpoint_id: str) -> None:
        """What a `pre_operation` checkpoint was made before has ended: it may go like any other now. Undoable."""
        store = await self._keeper.store(door, "keep operations open")
        await door.read(lambda: store.close_operation(store.head(checkpoint_id)))

    # -- dropping ----------------------------------------------------------------------------------------------------

    async def _clear_user_history(self, door: Door, user_id: str) -> int:
        """Drop every checkpoint of a user, heads and tags too: how many went. Undoable."""
        count: int = await self._keeper.clear_user(door, user_id)
        return count

    async def _cleanup_old_checkpoints(self, door: Door, max_age_days: float = 30) -> int:
        """Drop what is older, of all users: how many went. Heads, tags and open operations stay. Undoable."""
        if not max_age_days >= 0:  # nan is neither
            raise InvalidInputError("bad-age", f"max_age_days must be 0 or more, not {max_age_days}")
        count: int = await self._keeper.cleanup(door, min(max_age_days, _OLDEST_DAYS))
        return count

    async def _delete(self, door: Door, agent_id: str, user_id: str = "local") -> int:
        """Drop an agent whole: how many went. Late saves to it are refused. Undoable."""
        store = await self._keeper.store(door, "delete an agent")
        return await door.read(partial(store.for_user(user_id).delete, agent_id))

    async def _delete_checkpoint(self, door: Door, checkpoint_id: str) -> bool:
        """Drop one checkpoint; a branch that ended there ends at the one before. Undoable."""
        gone: bool = await self._keeper.delete(door, checkpoint_id)
        return gone

    async def _undo(self, door: Door, user_id: str | None = None) -> Operation:
        """Turn round the last operation that can be: of a user, or of all."""
        store = await self._keeper.store(door, "undo")
        return await door.read(partial(store.undo, user_id))

    async def _close(self, door: Door) -> None:
        """Close the storage. What was begun is committed first."""
        await self._keeper.close(door)

    save, save_sync = awaited(_save), blocking(_save)
    restore, restore_sync = awaited(_restore), blocking(_restore)
    get, get_sync = awaited(_get), blocking(_get)
    list_by_user, list_by_user_sync = awaited(_list_by_user), blocking(_list_by_user)
    history, history_sync = awaited(_history), blocking(_history)
    children, children_sync = awaited(_children), blocking(_children)
    tree, tree_sync = awaited(_tree), blocking(_tree)
    compare, compare_sync = awaited(_compare), blocking(_compare)
    bisect, bisect_sync = awaited(_bisect), blocking(_bisect)
    verify, verify_sync = awaited(_verify), blocking(_verify)
    fork, fork_sync = awaited(_fork), blocking(_fork)
    branches, branches_sync = awaited(_branches), blocking(_branches)
    tag, tag_sync = awaited(_tag), blocking(_tag)
    untag, untag_sync = awaited(_untag), blocking(_untag)
    label, label_sync = awaited(_label), blocking(_label)
    complete_operation, complete_operation_sync = awaited(_complete_operation), blocking(_complete_operation)
    clear_user_history, clear_user_history_sync = awaited(_clear_user_history), blocking(_clear_user_history)
    cleanup_old_checkpoints = awaited(_cleanup_old_checkpoints)
    cleanup_old_checkpoints_sync = blocking(_cleanup_old_checkpoints)
    delete, delete_sync = awaited(_delete), blocking(_delete)
    delete_checkpoint, delete_checkpoint_sync = awaited(_delete_checkpoint), blocking(_delete_checkpoint)
    undo, undo_sync = awaited(_undo), blocking(_undo)
    close, close_sync = awaited(_close), blocking(_close)
