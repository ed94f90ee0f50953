"""How a checkpoint and its pending writes are kept: one body for threads and for tasks."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...errors import ConflictError, NotFoundError
from ...state.values import codec
from ...storage.base import Key
from ...store import Store
from ...store.journal import note_by
from ...store.saving.save import ROOT, Request, Saved
from ...store.saving.ways import Way
from .places import Place, config_of, configurable, place_of
from .shape import MORE, START, kind_of, label_of, metadata_of, micros_of, pack_rest
from .writes import draft_input, draft_writes

_log = logging.getLogger("rekindle.langgraph")
_CHOSEN = 4096
_VERSIONS = 1024
FORK = "fork"
"""The source of a checkpoint that goes on from an older one, or copies one."""
_PATIENCE = 0.002
"""Seconds: LangGraph hands over what tasks have written just before the checkpoint that follows, and waits for neither
but the checkpoint. One commit does for both."""
Config = Mapping[str, Any]


class Putting:
    """Keeps checkpoints in a store. `refuses`: a second writer on a thread is refused, not given a branch."""

    def __init__(self, store: Store, *, trusted: bool, refuses: bool) -> None:
        self._store = store
        self._engine = store._engine
        self._trusted = trusted
        self._refuses = refuses
        self._chosen: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._versions: OrderedDict[tuple[str, str], Mapping[str, Any]] = OrderedDict()

    def chose(self, place: Place) -> None:
        """Somebody asked for that checkpoint (for where there was none yet): to go on from it is a fork, and no second
        writer."""
        self._chosen[place.agent, place.checkpoint or ""] = None
        while len(self._chosen) > _CHOSEN:
            self._chosen.popitem(last=False)

    def took_newest(self, place: Place) -> None:
        """Somebody asked for whatever is newest and got this, as a run that begins does: no fork any more."""
        self._chosen.pop((place.agent, place.checkpoint or ""), None)

    def knows(self, place: Place, checkpoint: str, versions: Mapping[str, Any]) -> None:
        """The versions of the channels in a checkpoint that others may be put on."""
        self._versions[place.agent, checkpoint] = dict(versions)  # LangGraph goes on counting in the one it has
        while len(self._versions) > _VERSIONS:
            self._versions.popitem(last=False)

    def _changed(self, place: Place, versions: Mapping[str, Any], new: Mapping[str, Any]) -> frozenset[str] | None:
        """The only channels whose values can differ from the parent's; None where its versions are not known. What is
        said to be new is told against another checkpoint now and then."""
        before = self._versions.get((place.agent, place.checkpoint or ""))
        if before is None:
            return None
        return frozenset((*new, *(name for name, version in versions.items() if before.get(name) != version)))

    async def put(
        self,
        way: Way,
        config: Config,
        checkpoint: Mapping[str, Any],
        metadata: Mapping[str, Any],
        new: Mapping[str, Any],
    ) -> dict[str, Any]:
        place = place_of(config)
        key = Key(self._store.user, place.agent)
        request = await self._request(way, key, place, config, checkpoint, metadata, new)
        saved = await self._save(way, request, checkpoint["id"])
        self.knows(place, checkpoint["id"], checkpoint.get("channel_versions") or {})
        if saved.known:
            await way.read(lambda: self._must_be_same(saved, request))
        elif saved.branched_from is not None and not self._is_fork(place, metadata):
            _log.warning(
                "two writers on thread %r: a run that began at an older checkpoint goes on as branch %r",
                place.thread, saved.head.branch,
            )  # fmt: skip
        return config_of(place, checkpoint["id"], configurable(config)["thread_id"])

    async def put_writes(
        self, way: Way, config: Config, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
    ) -> None:
        place = place_of(config)
        if not writes:
            return
        draft = draft_writes(str(place.checkpoint), writes, task_id, task_path)
        key = Key(self._store.user, place.agent)
        await note_by(way, self._engine, key, [draft], patience=_PATIENCE)

    async def _request(
        self, way: Way, key: Key, place: Place, config: Config, checkpoint: Mapping[str, Any],
        metadata: Mapping[str, Any], new: Mapping[str, Any],
    ) -> Request:  # fmt: skip
        parent = ROOT if place.checkpoint is None else self._known_parent(key, place.checkpoint)
        if parent is None:
            parent = await way.read(lambda: self._parent(key, place))
        if parent == ROOT and place.ns:
            await way.read(lambda: self._check_above(place, metadata))
        values = dict(checkpoint["channel_values"])
        drafts = (draft_input(checkpoint["id"], values.pop(START)),) if START in new and START in values else ()
        told = metadata_of(config, metadata)
        micros = micros_of(checkpoint.get("ts"))
        return Request(
            key, values, parent, None, kind_of(told), label_of(told), codec.pack(told), checkpoint["id"],
            self._refuses and not self._is_fork(place, metadata), False, more={MORE: pack_rest(checkpoint)},
            time=None if micros is None else micros // 1000, drafts=drafts, journaled=True, apart=True,
            changed=self._changed(place, checkpoint.get("channel_versions") or {}, new), identity=self._trusted,
        )  # fmt: skip

    def _is_fork(self, place: Place, metadata: Mapping[str, Any]) -> bool:
        return metadata.get("source") == FORK or (place.agent, place.checkpoint or "") in self._chosen

    def _known_parent(self, key: Key, checkpoint: str) -> int | None:
        """Its seq, where this process has put or loaded it of late: it need not be looked up."""
        marks = list(self._engine.tip(key).marks.items())
        return next((seq for seq, mark in marks[::-1] if mark.alias == checkpoint), None)

    def _parent(self, key: Key, place: Place) -> int:
        assert place.checkpoint is not None
        found = self._store._refs.own(place.agent, place.checkpoint)
        if found is None:
            raise NotFoundError(
                "parent-gone", f"thread {place.thread!r} has no checkpoint {place.checkpoint!r}: it was deleted",
                hint="begin the run again: it loads what the thread has now",
            )  # fmt: skip
        return found.seq

    def _check_above(self, place: Place, metadata: Mapping[str, Any]) -> None:
        """A subgraph begins under checkpoints of the graphs above it. Where these were deleted, it comes too late."""
        for ns, checkpoint in (metadata.get("parents") or {}).items():
            key = Key(self._store.user, Place(place.thread, ns).agent)
            held = self._engine.log.view(key.user, fresh=True).agent(key.agent)
            if held.dropped and self._engine.own_seq(key, checkpoint) in held.dropped:
                raise ConflictError(
                    "checkpoint-deleted", f"the checkpoint {checkpoint!r} of agent {key.agent!r} was deleted",
                    hint="begin anew, or undo",
                )  # fmt: skip

    async def _save(self, way: Way, request: Request, name: str) -> Saved:
        """Under its own id. Another thread may have one of that id already, which it was copied to or from."""
        try:
            return await self._store._save_by(way, request)
        except ConflictError as e:
            if e.code != "id-taken":
                raise
            other = replace(request, alias=self._engine.own_alias(request.key, name))
            return await self._store._save_by(way, other)

    def _must_be_same(self, saved: Saved, request: Request) -> None:
        """A checkpoint is immutable: what is put under its id again has to be the same."""
        head = saved.head
        same = head.metadata == request.metadata and head.more.get(MORE) == (request.more or {})[MORE]
        if not same or codec.pack(self._engine.state(head)) != codec.pack(request.state):
            raise ConflictError(
                "id-taken", f"agent {head.key.agent!r} has another checkpoint {request.alias!r}",
                hint="give this one an id of its own",
            )  # fmt: skip
