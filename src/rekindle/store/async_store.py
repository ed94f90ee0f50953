"""The store for programs that await: the same calls, and none of them keeps the event loop waiting for the storage."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial, wraps
from itertools import islice
from typing import Any, Concatenate, ParamSpec, TypeVar

from ..model import Checkpoint
from .opening import open_store
from .resolve import AnyRef
from .saving.awaiting import Awaiting
from .store import Store

P = ParamSpec("P")
T = TypeVar("T")

_GREP_BATCH = 16


def _awaited(
    call: Callable[Concatenate[Store, P], T],
) -> Callable[Concatenate[AsyncStore, P], Coroutine[Any, Any, T]]:
    """The same call, in a worker thread."""

    @wraps(call)
    async def awaited(self: AsyncStore, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(call, self.store, *args, **kwargs)

    return awaited


class AsyncStore:
    """`AsyncStore(store)`, or `async with AsyncStore.open(url) as store`. May be used beside the Store it stands on.

    A state is encoded in the thread of the event loop, so that no other task can change it meanwhile; the commit and
    all reading happen in other threads. Saves that come while one commits are committed together. A save whose task is
    cancelled is whole or not there.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._way = Awaiting()

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str | os.PathLike[str] | None = None, **options: Any) -> AsyncIterator[AsyncStore]:
        """Open (or make) a store as `rekindle.open_store` does, and close it at the end."""
        async with cls(await asyncio.to_thread(partial(open_store, url, **options))) as store:
            yield store

    @property
    def url(self) -> str:
        return self.store.url

    @property
    def user(self) -> str:
        return self.store.user

    def for_user(self, user: str) -> AsyncStore:
        """The same store for another user: nothing is shared between them but the file."""
        other = AsyncStore(self.store.for_user(user))
        other._way = self._way
        return other

    async def __aenter__(self) -> AsyncStore:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """What was begun is committed first. Harmless a second time."""
        await asyncio.to_thread(self._way.close)
        await asyncio.to_thread(self.store.close)

    def __repr__(self) -> str:
        return f"<AsyncStore {self.url} of {self.user!r}>"

    async def save(
        self,
        agent_id: str,
        state: Any,
        *,
        parent: AnyRef | None = None,
        branch: str | None = None,
        kind: str = "manual",
        label: str | None = None,
        metadata: dict[str, Any] | None = None,
        id: str | None = None,  # noqa: A002  as everywhere
        strict: bool = False,
        changes: str = "verified",
    ) -> Checkpoint:
        """As `Store.save`: durable when it answers."""
        store = self.store
        request = partial(
            store._request, agent_id, state, parent, branch, kind, label, metadata, id, strict=strict, changes=changes
        )
        # a parent has to be looked up
        made = request() if parent is None else await asyncio.to_thread(request)
        return store._answer(await store._save_by(self._way, made))

    async def grep(
        self, pattern: str, ref: AnyRef | None = None, *, limit: int | None = None
    ) -> AsyncIterator[tuple[Checkpoint, str, str]]:
        """As `Store.grep`, an async iterator."""
        found = self.store.grep(pattern, ref, limit=limit)
        while batch := await asyncio.to_thread(lambda: list(islice(found, _GREP_BATCH))):
            for one in batch:
                yield one

    restore = _awaited(Store.restore)
    get = _awaited(Store.get)
    agents = _awaited(Store.agents)
    list = _awaited(Store.list)
    history = _awaited(Store.history)
    children = _awaited(Store.children)
    branches = _awaited(Store.branches)
    tags = _awaited(Store.tags)
    fork = _awaited(Store.fork)
    delete_branch = _awaited(Store.delete_branch)
    tag = _awaited(Store.tag)
    untag = _awaited(Store.untag)
    label = _awaited(Store.label)
    diff = _awaited(Store.diff)
    blame = _awaited(Store.blame)
    bisect = _awaited(Store.bisect)
    prune = _awaited(Store.prune)
    set_policy = _awaited(Store.set_policy)
    policy = _awaited(Store.policy)
    delete = _awaited(Store.delete)
    clear = _awaited(Store.clear)
    collect = _awaited(Store.collect)
    verify = _awaited(Store.verify)
    undo = _awaited(Store.undo)
    operations = _awaited(Store.operations)
    size = _awaited(Store.size)
    export = _awaited(Store.export)
    import_ = _awaited(Store.import_)
