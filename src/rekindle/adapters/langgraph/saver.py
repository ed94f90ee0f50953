"""LangGraph's checkpoint saver on a store of ours."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)

from ...errors import InvalidInputError
from ...store import AsyncStore, Store, open_store
from ...store.saving.awaiting import Awaiting
from ...store.saving.ways import BLOCKING, finish
from .places import Place, configurable, place_of
from .putting import Putting
from .reading import Reading, Thread
from .threads import Threads

T = TypeVar("T")
_BATCH = 32


class RekindleSaver(BaseCheckpointSaver[Any]):
    """`graph.compile(checkpointer=RekindleSaver(store))`. One for sync and async calls alike.

    A thread is an agent of the store: `rekindle log THREAD`, diff, blame, fork and verify work on it. What was put is
    durable when `put` answers. `changes="trusted"`: what was put or handed out is never changed in place, so a put
    costs what is new, and a get hands the same objects out again. `two_writers="refuse"`: of two runs on one thread the
    second gets ConflictError; by default both are kept, the second as a branch, and it is logged.
    """

    def __init__(self, store: Store | AsyncStore, *, changes: str = "verified", two_writers: str = "branch") -> None:
        super().__init__()
        if changes not in ("verified", "trusted"):
            raise InvalidInputError("bad-changes", f"changes={changes!r}", hint="'verified' or 'trusted'")
        if two_writers not in ("branch", "refuse"):
            raise InvalidInputError("bad-two-writers", f"two_writers={two_writers!r}", hint="'branch' or 'refuse'")
        self.store = store.store if isinstance(store, AsyncStore) else store
        self._way = Awaiting()
        self._putting = Putting(self.store, trusted=changes == "trusted", refuses=two_writers == "refuse")
        self._reading = Reading(self.store, trusted=changes == "trusted")
        self._threads = Threads(self.store, self._reading)

    @classmethod
    def from_conn_string(cls, url: str | os.PathLike[str], **options: Any) -> Opening:
        """Opens the store at a path or URL, and closes it at the end: for `with` and for `async with`."""
        return Opening(cls, url, options)

    def close(self) -> None:
        """Closes the store, when what was begun is committed. Harmless a second time."""
        self._way.close()
        self.store.close()

    # -- put ---------------------------------------------------------------------------------------------------------

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Keep a checkpoint; durable when it answers. Of its values, those in `new_versions` are looked at."""
        done = finish(self._putting.put(BLOCKING, config, checkpoint, metadata, new_versions))
        return cast(RunnableConfig, done)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        done = await self._putting.put(self._way, config, checkpoint, metadata, new_versions)
        return cast(RunnableConfig, done)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Keep what a task wrote on a checkpoint; durable when it answers."""
        finish(self._putting.put_writes(BLOCKING, config, writes, task_id, task_path))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await self._putting.put_writes(self._way, config, writes, task_id, task_path)

    # -- get ---------------------------------------------------------------------------------------------------------

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint a config names, or the thread's newest; None where it is not there."""
        place = place_of(config)
        found = self._reading.get(place, configurable(config)["thread_id"])
        if found is not None:
            self._putting.knows(place, found.checkpoint["id"], found.checkpoint["channel_versions"])
        if place.checkpoint is not None:
            self._putting.chose(place)
        else:
            self._putting.took_newest(place if found is None else place_of(found.config))
        return found

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await asyncio.to_thread(self.get_tuple, config)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002  as in LangGraph
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints, newest first. `channel_values` and `pending_writes` of each are read when they are looked at."""
        found = self._reading.list(config, filter, configurable(before).get("checkpoint_id"), limit)
        is_replay = before is not None and limit == 1 and bool(configurable(config).get("checkpoint_ns"))
        return self._replayed(place_of(config or {}), found) if is_replay else found

    def _replayed(self, place: Place, found: Iterator[CheckpointTuple]) -> Iterator[CheckpointTuple]:
        """Where a graph is replayed, its subgraphs go on from what is listed before that, or begin anew: as forks."""
        first = next(found, None)
        self._putting.chose(place if first is None else place_of(first.config))
        if first is not None:
            yield first

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002  as in LangGraph
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        found = self.list(config, filter=filter, before=before, limit=limit)
        while batch := await asyncio.to_thread(lambda: [*islice(found, _BATCH)]):
            for each in batch:
                yield each

    def threads(self, *, limit: int | None = None) -> Iterator[Thread]:
        """The threads there are, the one put to last first. No state is read."""
        return islice(self._reading.threads(), limit)

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return self._reading.delta_history(place_of(config), channels)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return await asyncio.to_thread(self._reading.delta_history, place_of(config), channels)

    # -- threads -----------------------------------------------------------------------------------------------------

    def delete_thread(self, thread_id: str) -> None:
        """Drop a thread whole: undoable until `store.collect()`, which frees its space. A late put is refused."""
        self._threads.delete([str(thread_id)])

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Drop what these runs have put, in all threads."""
        self._threads.delete_for_runs(run_ids)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """The whole history, pending writes and all, as a thread of its own."""
        self._threads.copy(str(source_thread_id), str(target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """`keep_latest`: the newest checkpoint of each namespace stays, and what a delta channel in it is made of;
        `delete`: none does. Tagged checkpoints stay, and branches' heads do not."""
        self._threads.prune([str(thread) for thread in thread_ids], strategy)

    async def adelete_thread(self, thread_id: str) -> None:
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await asyncio.to_thread(lambda: self.prune(thread_ids, strategy=strategy))

    # -- versions and types ------------------------------------------------------------------------------------------

    def get_next_version(self, current: Any, channel: None) -> Any:
        """Whole numbers; a thread that came from a saver which counts in texts goes on in these."""
        if not isinstance(current, str):
            return 1 if current is None else current + 1
        return f"{int(current.split('.')[0]) + 1:032}.{random.random():016}"

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> RekindleSaver:
        """Itself: what may be loaded is what the program has registered, whatever a list says."""
        return self


class Opening:
    """A store that is opened for a saver, and closed when the block ends."""

    def __init__(self, cls: Callable[..., RekindleSaver], url: str | os.PathLike[str], options: dict[str, Any]) -> None:
        self._cls = cls
        self._url = "memory://" if os.fspath(url) == ":memory:" else url  # as LangGraph's savers call it
        self._options = options

    def __enter__(self) -> RekindleSaver:
        self._saver = self._cls(open_store(self._url), **self._options)
        return self._saver

    def __exit__(self, *_: object) -> None:
        self._saver.close()

    async def __aenter__(self) -> RekindleSaver:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self._saver.close)
