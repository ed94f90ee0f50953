"""The machinery under a store: records opened and checked, views of operation logs, slots fetched by place.

One engine a storage, shared by all users' handles on it. Nothing here decides; it reads, checks and appends.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ..errors import CorruptDataError, NotFoundError, UnavailableError
from ..forks import renew, waited_for
from ..model import agent_tag
from ..state.tree.memory import Memory
from ..state.tree.nodes import Hasher, Node, Place, check, derive_key, node_from
from ..state.tree.read import Fetch, Reader
from ..state.tree.slots import expand, parse, slots_of
from ..state.values import codec
from ..storage.base import OPERATIONS, Append, Key, Outcome, Record, Storage
from ..storage.record import OPERATION, Head, open_head, seal
from .logged import operation_from, view_from
from .lost import lost, part_lost
from .ranges import Ranges
from .saving.commit import Committer
from .saving.tips import Tip
from .view import Edit, Operation, View, advance, destroyed, to_state

SNAPSHOT_EVERY = 64
_TIPS = 256
_TRIES = 100
_TAGS, _USERS = 4096, 64
_TIP_BYTES, _FEW_TIPS = 4 << 20, 32
_READ_BYTES, _ITEM_BYTES = 8 << 20, 512

Clock = Callable[[], float]


class Engine:
    def __init__(self, storage: Storage, *, clock: Clock = time.time) -> None:
        self.storage = storage
        self.clock = clock
        self.committer = Committer(storage.append)
        self._hashers: dict[str, Hasher] = {}
        self._views: dict[str, View] = {}
        self._tips: OrderedDict[Key, Tip] = OrderedDict()
        self._lock = waited_for(threading.Lock())
        self._deciding = threading.local()
        self._tags: dict[str, str] = {}
        self._tagged: dict[str, dict[str, list[str]]] = {}
        self._recent = Memory(_READ_BYTES)
        renew(self)

    def after_fork(self) -> None:
        """In a child nobody is saving, whatever the threads of the parent were about to."""
        self.committer = Committer(self.storage.append)
        self._tips = OrderedDict()

    def now(self) -> int:
        return int(self.clock() * 1000)

    def hasher(self, user: str) -> Hasher:
        hasher = self._hashers.get(user)
        if hasher is None:
            hasher = self._hashers[user] = Hasher(derive_key(self.storage.secret, user))
        return hasher

    def tag(self, agent: str) -> str:
        tag = self._tags.get(agent)
        if tag is None:
            if len(self._tags) > _TAGS:
                self._tags.clear()
            tag = self._tags[agent] = _tag_of(agent)
        return tag

    def tagged(self, user: str, tag: str, *, fresh: bool = False) -> list[str]:
        """The agents whose ids carry that tag, as of the last look; looked up again with `fresh`."""
        held = self._tagged.get(user)
        if held is None or fresh:
            if len(self._tagged) > _USERS:
                self._tagged.clear()
            held = {}
            for key in self.storage.keys(user):
                if key.agent != OPERATIONS:
                    held.setdefault(_tag_of(key.agent), []).append(key.agent)
            self._tagged[user] = held
        return held.get(tag, [])

    @property
    def tip_bytes(self) -> int:
        """Bytes of a state that a tip may remember: much for a few agents, nothing for many."""
        return _TIP_BYTES if len(self._tips) <= _FEW_TIPS else 0

    def tip(self, key: Key) -> Tip:
        """What this process remembers of where an agent's timeline ends; the least used are forgotten."""
        with self._lock:
            tip = self._tips.get(key)
            if tip is None:
                tip = self._tips[key] = Tip()
                while len(self._tips) > _TIPS and self._forget_one():
                    pass
            else:
                self._tips.move_to_end(key)
            return tip

    def _forget_one(self) -> bool:
        for key, tip in self._tips.items():
            if not tip.lock.locked():
                del self._tips[key]
                return True
        return False

    def forget(self, key: Key | None = None) -> None:
        """Drop what is remembered of an agent (of all): the storage is asked again."""
        with self._lock:
            for tip in [self._tips[key]] if key in self._tips and key is not None else self._tips.values():
                tip.known = False
                tip.trees.clear()

    # -- records -----------------------------------------------------------------------------------------------------

    def newest(self, key: Key) -> Head | None:
        found = self.storage.heads(key, limit=1)
        seen = getattr(self._deciding, "seen", None)
        if seen is not None:
            seen.setdefault(key.agent, found[0].seq if found else 0)
        return open_head(key, *found[0]) if found else None

    def head(self, key: Key, seq: int) -> Head:
        """A record's head; NotFoundError where it was collected or never was, CorruptDataError where it is lost."""
        data = self.storage.head(key, seq)
        if data is not None:
            return open_head(key, seq, data)
        newest = self.newest(key)
        if newest is None or seq > newest.seq or seq in self.view(key.user, fresh=True).agent(key.agent).gone:
            raise NotFoundError("no-record", f"agent {key.agent!r} has no checkpoint {seq}")
        raise lost(key, seq)

    def heads(self, key: Key, *, before: int | None = None, batch: int = 256) -> Iterator[Head]:
        """Every record newest first, read as it goes. A gap that nobody made is an error, not a shorter answer.

        With `before`, there has to have been a record just before that.
        """
        expected = None if before is None else before - 1
        gone = self.view(key.user).agent(key.agent).gone
        while True:
            found = self.storage.heads(key, before=before, limit=batch)
            for seq, data in found:
                if expected is not None:
                    self._explain_gap(key, seq, expected, gone)
                yield open_head(key, seq, data)
                expected = seq - 1
            if len(found) < batch:
                break
            before, batch = found[-1].seq, min(batch * 2, 4096)
        if expected:
            self._explain_gap(key, 0, expected, gone)

    def _explain_gap(self, key: Key, seq: int, expected: int, gone: Any) -> None:
        if seq == expected:
            return
        gap = Ranges([(seq + 1, expected)])
        if gap - gone:
            missing = gap - self.view(key.user, fresh=True).agent(key.agent).gone
            if missing:
                raise lost(key, missing.pairs[-1][1])

    # -- states ------------------------------------------------------------------------------------------------------

    def root(self, head: Head) -> Node:
        """The description of a record's state, checked against its digest."""
        hasher = self.hasher(head.key.user)
        node = node_from(head.root, hasher)
        if hasher.root(node) != head.digest:
            raise CorruptDataError("hash-mismatch", f"the state of record {head.seq} of {head.key.agent!r} is damaged")
        return node

    def reader(self, key: Key, *, opaque: bool = False) -> Reader:
        return Reader(self.fetch(key), self.hasher(key.user), opaque=opaque)

    @contextmanager
    def reading(self, *heads: Head) -> Iterator[None]:
        """Reading states of these. What a collect has taken out since their heads were read is not damage:
        NotFoundError."""
        try:
            yield
        except CorruptDataError as e:
            for head in heads:
                key, seq = head.key, head.seq
                if seq in self.view(key.user, fresh=True).agent(key.agent).gone:
                    raise NotFoundError("no-record", f"checkpoint {seq} of agent {key.agent!r} was pruned") from e
            raise

    def state(self, head: Head, *, opaque: bool = False) -> Any:
        try:
            with self.reading(head):
                return self._state(head, opaque)
        except CorruptDataError as e:
            if "record" in e.message:
                raise
            raise CorruptDataError(
                e.code, f"checkpoint {head.seq} of agent {head.key.agent!r}: {e.message}",
                hint="run `rekindle verify`: it lists what is damaged and what is whole",
            ) from e  # fmt: skip

    def _state(self, head: Head, opaque: bool) -> Any:
        key, name = head.key, (head.key, head.seq, head.digest)
        root = self._recent.get(name) or self.root(head)
        value = Reader(self.fetch(key), self.hasher(key.user), opaque=opaque, memory=self._recent).value(root)
        self._recent.put(name, root, _ITEM_BYTES * len(root.items or ()))
        return value

    def fetch(self, key: Key) -> Fetch:
        """Slots by place for states of one agent."""

        def fetch(places: Sequence[Place]) -> list[list[bytes]]:
            bodies = self._bodies(key, places)
            own = bodies.get(key.agent, {})
            out = []
            for first, n, slot in places:
                try:
                    if type(first) is int:
                        out.append(slots_of([own[seq] for seq in range(first, first + n)], slot))
                    elif type(first) is str:
                        out.append(slots_of([bodies[first][n]], slot))
                    else:
                        out.append([self.storage.packs.read(first, n, slot)])
                except KeyError as e:
                    raise part_lost(first if type(first) is str else key.agent, int(e.args[0])) from e
            return out

        return fetch

    def lies_at(self, key: Key, place: Place, digest: bytes) -> bool:
        """Whether a whole run of that digest lies at a place."""
        try:
            slot = parse(self.fetch(key)([place])[0][0])
            return self.hasher(key.user).content(expand([(slot.compression, slot.payload)])) == digest
        except CorruptDataError:
            return False

    def _bodies(self, key: Key, places: Sequence[Place]) -> dict[str, dict[int, bytes]]:
        """The bodies that places lie in, by agent and seq."""
        wanted: dict[str, list[tuple[int, int]]] = {}
        for first, n, _ in places:
            if type(first) is int:
                wanted.setdefault(key.agent, []).append((first, first + n - 1))
            elif type(first) is str:
                wanted.setdefault(first, []).append((n, n))
        return {
            agent: dict(self.storage.bodies(Key(key.user, agent), Ranges(spans).pairs))
            for agent, spans in wanted.items()
        }

    # -- the operation log -------------------------------------------------------------------------------------------

    def knows(self, user: str) -> bool:
        """Whether `view` answers without reading."""
        return user in self._views

    def view(self, user: str, *, fresh: bool = False) -> View:
        """The user's operation log, folded. With `fresh`, what other processes have added is in it."""
        held = self._views.get(user)
        if held is not None and not fresh:
            return held
        newest = self.storage.newest_operation(user)
        if held is None or held.seq != newest:
            held = self._views[user] = self._load_view(user, held, newest)
        return held

    def _load_view(self, user: str, held: View | None, newest: int) -> View:
        key = Key(user, OPERATIONS)
        known = held.seq if held is not None else 0
        view = held or View()
        later: list[Operation] = []
        for head in self.heads_after(key, known):
            told = operation_of(head)
            later.append(told)
            snapshot = codec.unpack(head.metadata).get("snapshot")
            if snapshot is not None:
                view = view_from(snapshot, head.seq)
                later.pop()
                break
        for operation in reversed(later):
            view = advance(view, operation)
        if view.seq < newest:  # beyond it: somebody has added one meanwhile
            raise lost(key, newest)
        return view

    def heads_after(self, key: Key, known: int) -> Iterator[Head]:
        """Newest first, down to the record after `known`; none may be missing."""
        before, expected = None, None
        while True:
            found = self.storage.heads(key, before=before, limit=SNAPSHOT_EVERY)
            for seq, data in found:
                if seq <= known:
                    return
                if expected is not None and seq != expected:
                    raise lost(key, expected)
                yield open_head(key, seq, data)
                before, expected = seq, seq - 1
            if len(found) < SNAPSHOT_EVERY:
                if expected is not None and expected > known:
                    raise lost(key, expected)
                return

    def operations(self, user: str) -> list[Operation]:
        """The whole log, oldest first, each told whether it was undone, and whether it still can be."""
        view = self.view(user, fresh=True)
        past = [operation_of(head) for head in self.heads_after(Key(user, OPERATIONS), 0)][::-1]
        undone = {op.undoes: op.seq for op in past if op.undoes}
        return [replace(op, undone_by=undone.get(op.seq, 0), collected=bool(destroyed(view, op.edits))) for op in past]

    def operate(
        self, user: str, verb: str, summary: str, decide: Callable[[View], Iterable[Edit] | None], *, undoes: int = 0
    ) -> Operation | None:
        """Append one operation, decided on the newest view; None where `decide` finds nothing to do."""
        for _ in range(_TRIES):
            view = self.view(user, fresh=True)
            edits, seen = self._decide(decide, view)
            if edits is None:
                return None
            record, operation = self._operation_record(user, view, verb, summary, edits, undoes, seen)
            if self.committer.commit(Append((record,), view.seq)) is Outcome.CREATED:
                self._views[user] = advance(view, operation)
                return operation
        raise UnavailableError("contended", "other processes keep changing this store", hint="try again")

    def _decide(
        self, decide: Callable[[View], Iterable[Edit] | None], view: View
    ) -> tuple[tuple[Edit, ...] | None, dict[str, int]]:
        """What it decides, and the newest record of each agent it looked at. No operation stops a save that is under
        way: so it is written down which one it did not know."""
        seen: dict[str, int] = {}
        self._deciding.seen = seen
        try:
            edits = decide(view)
            return None if edits is None else tuple(edits), seen
        finally:
            self._deciding.seen = None

    def operate_with(
        self, user: str, view: View, records: Sequence[Record], verb: str, summary: str, edits: Iterable[Edit]
    ) -> bool:
        """Append records and an operation about them together; False, and nothing done, where somebody was faster."""
        seen = {record.key.agent: record.seq for record in records}
        record, operation = self._operation_record(user, view, verb, summary, tuple(edits), 0, seen)
        if self.committer.commit(Append((*records, record), view.seq)) is not Outcome.CREATED:
            return False
        self._views[user] = advance(view, operation)
        return True

    def _operation_record(
        self,
        user: str,
        view: View,
        verb: str,
        summary: str,
        edits: tuple[Edit, ...],
        undoes: int,
        seen: Mapping[str, int],
    ) -> tuple[Record, Operation]:
        key, seq, now = Key(user, OPERATIONS), view.seq + 1, self.now()
        seen = {agent: seen[agent] for agent in {e[1] for e in edits if e[0] == "branch"} if agent in seen}
        operation = Operation(seq, now, verb, summary, edits, undoes, seen=seen)
        told: dict[str, Any] = {"verb": verb, "summary": summary, "edits": [list(e) for e in edits], "undoes": undoes}
        if seen:
            told["seen"] = seen
        if seq % SNAPSHOT_EVERY == 0:
            told["snapshot"] = to_state(advance(view, operation))
        parent_link = b"" if seq == 1 else self.head(key, seq - 1).link
        head = Head(
            key, seq, seq - 1, OPERATION, now, 0, "", parent_link, b"", None, None, "", "", codec.pack(told), None, {},
            guard=0,
        )  # fmt: skip
        data, _ = seal(head, b"")
        return Record(key, seq, data, b""), operation

    def close(self) -> None:
        self.storage.close()


def operation_of(head: Head) -> Operation:
    return operation_from(head.seq, head.time, codec.unpack(head.metadata))


def _tag_of(agent: str) -> str:
    return agent_tag(check(agent.encode()))
