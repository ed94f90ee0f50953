"""The machinery under a store: records opened and checked, states read, slots fetched by place.

One engine a storage, shared by all users' handles on it. Nothing here decides; it reads, checks and appends.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..errors import CorruptDataError, NotFoundError
from ..forks import renew, waited_for
from ..model import agent_tag
from ..state.tree.against import bases_of, by_itself
from ..state.tree.binding import BoundReader, bind
from ..state.tree.memory import Memory
from ..state.tree.nodes import Child, Hasher, Node, Place, check, derive_key, node_from
from ..state.tree.read import Fetch, Reader
from ..state.tree.slots import expand, parse, slot_in, slots_of
from ..storage.base import Key, Storage, has_checkpoints, is_journal, journal_of
from ..storage.record import Head, open_head
from .lost import described, lost, part_lost
from .oplog import OperationLog
from .ranges import Ranges
from .saving.commit import Committer
from .saving.tips import Tip
from .spans import in_journal, span_of

_TIPS = 256
_TAGS, _USERS = 4096, 64
_TIP_BYTES, _FEW_TIPS = 4 << 20, 32
_READ_BYTES, _ITEM_BYTES = 8 << 20, 512

Clock = Callable[[], float]


class Engine:
    def __init__(self, storage: Storage, *, clock: Clock = time.time) -> None:
        self.storage = storage
        self.clock = clock
        self.committer = Committer(storage.append)
        self.log = OperationLog(storage, lambda append: self.committer.commit(append), self.now)
        self._hashers: dict[str, Hasher] = {}
        self._tips: OrderedDict[Key, Tip] = OrderedDict()
        self._lock = waited_for(threading.Lock())
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
                if has_checkpoints(key.agent):
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
                tip.forget()

    # -- records -----------------------------------------------------------------------------------------------------

    def newest(self, key: Key) -> Head | None:
        found = self.storage.heads(key, limit=1)
        self.log.saw(key, found[0].seq if found else 0)
        return open_head(key, *found[0]) if found else None

    def head(self, key: Key, seq: int) -> Head:
        """A record's head; NotFoundError where it was collected or never was, CorruptDataError where it is lost."""
        data = self.storage.head(key, seq)
        if data is not None:
            return open_head(key, seq, data)
        newest = self.newest(key)
        if newest is None or seq > newest.seq or seq in self.log.view(key.user, fresh=True).agent(key.agent).gone:
            raise NotFoundError("no-record", f"agent {key.agent!r} has no checkpoint {seq}")
        raise lost(key, seq)

    def heads(self, key: Key, *, before: int | None = None, batch: int = 256) -> Iterator[Head]:
        """Every record newest first, read as it goes. A gap that nobody made is an error, not a shorter answer.

        With `before`, there has to have been a record just before that.
        """
        expected = None if before is None else before - 1
        gone = self.log.view(key.user).agent(key.agent).gone
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
            missing = gap - self.log.view(key.user, fresh=True).agent(key.agent).gone
            if missing:
                raise lost(key, missing.pairs[-1][1])

    def own_seq(self, key: Key, name: str) -> int:
        """The seq of the agent's checkpoint that a caller calls so; 0 where it has none. Another agent may have one of
        that name too: the second is called `name@tag`."""
        for alias in (name, self.own_alias(key, name)):
            found = self.storage.find_alias(key.user, alias)
            if found is not None and found[0] == key.agent:
                return found[1]
        return 0

    def own_alias(self, key: Key, name: str) -> str:
        return f"{name}@{self.tag(key.agent)}"

    def own_name(self, head: Head) -> str | None:
        """What a caller calls a checkpoint, where it brought an id."""
        return head.alias and head.alias.removesuffix("@" + self.tag(head.key.agent))

    # -- states ------------------------------------------------------------------------------------------------------

    def root(self, head: Head) -> Node:
        """The description of a record's state, checked against its digest."""
        hasher = self.hasher(head.key.user)
        node = node_from(head.root, hasher)
        if hasher.root(node) != head.digest:
            raise CorruptDataError("hash-mismatch", f"the state of {described(head.key, head.seq)} is damaged")
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
                if seq in self.log.view(key.user, fresh=True).agent(key.agent).gone:
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
                e.code, f"{described(head.key, head.seq, 'checkpoint')}: {e.message}",
                hint="run `rekindle verify`: it lists what is damaged and what is whole",
            ) from e  # fmt: skip

    def _state(self, head: Head, opaque: bool) -> Any:
        key, name = head.key, (head.key, head.seq, head.digest)
        root = self._recent.get(name) or self.root(head)
        value = Reader(self.fetch(key), self.hasher(key.user), opaque=opaque, memory=self._recent).value(root)
        self._recent.put(name, root, _ITEM_BYTES * len(root.items or ()))
        return value

    def bound(self, head: Head) -> Any:
        """The state of that record, of the objects this process saved or restored it with; None where it has none. For
        callers who promise that nobody changes these in place."""
        tip = self.tip(head.key)
        with tip.lock:
            tree = tip.trees.get(head.seq)
            if tree is None or type(tree.source) is not dict or self.hasher(head.key.user).root(tree) != head.digest:
                return None
            return BoundReader(self.fetch(head.key), self.hasher(head.key.user), memory=self._recent).value(tree)

    def bind(self, head: Head, value: Any) -> None:
        """`value` was just restored from that record: a save by identity on it need not encode it once first."""
        tip = self.tip(head.key)
        with tip.lock:
            tree = tip.trees.get(head.seq)
            if tree is None:
                tree, reader = self.root(head), self.reader(head.key)
                for child in [each for each in reader.items(tree) if isinstance(each, Child)]:
                    reader.items(child.node)
                tip.keep_tree(head.seq, tree)
            bind(tree, value)

    def fetch(self, key: Key) -> Fetch:
        """Slots by place for states of one agent."""

        def fetch(places: Sequence[Place]) -> list[list[bytes]]:
            bodies = self._bodies(key, places)
            own = bodies.get(key.agent, {})
            out = []
            for place in places:
                first, n, slot = place
                try:
                    if type(first) is int and first >= 0:
                        out.append(slots_of([own[seq] for seq in range(first, first + n)], slot))
                    elif in_journal(place):
                        journal = bodies.get(journal_of(key.agent), {})
                        found = [slot_in(journal.get(seq), slot) for seq in range(-first, n - first)]
                        out.append(self._by_themselves(Key(key.user, journal_of(key.agent)), found))
                    elif type(first) is str:
                        out.append(self._by_themselves(Key(key.user, first), slots_of([bodies[first][n]], slot)))
                    else:
                        out.append([self.storage.packs.read(first, n, slot)])
                except KeyError as e:
                    raise part_lost(Key(key.user, first) if type(first) is str else key, int(e.args[0])) from e
            return out

        if not is_journal(key.agent):
            return fetch
        return lambda places: [self._by_themselves(key, found) for found in fetch(places)]

    def _by_themselves(self, key: Key, found: list[bytes]) -> list[bytes]:
        """Slots of a journal, those that were written against others put together with them."""
        return [self._by_itself(key, slot, bases) if (bases := bases_of(slot)) else slot for slot in found]

    def _by_itself(self, key: Key, slot: bytes, bases: Sequence[tuple[int, int]]) -> bytes:
        bodies = dict(self.storage.bodies(key, [(seq, seq) for seq, _ in bases]))
        return by_itself(slot, [slot_in(bodies.get(seq), number) for seq, number in bases])

    def shared_place(self, key: Key, digest: bytes) -> Place | None:
        """Where some state of this user has a large run of that digest, as a state of this agent names it."""
        found = self.storage.find_shared(key.user, digest)
        if found is None:
            return None
        agent, seq, slot = found
        place: Place = (agent, seq, slot)
        if agent == key.agent:
            place = (seq, 1, slot)
        elif agent == journal_of(key.agent):
            place = (-seq, 1, slot)
        # where the index is damaged, writing it again is right
        return place if self.lies_at(key, place, digest) else None

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
        for place in places:
            if (span := span_of(key.agent, place)) is not None:
                wanted.setdefault(span[0], []).append(span[1:])
        return {
            agent: dict(self.storage.bodies(Key(key.user, agent), Ranges(spans).pairs))
            for agent, spans in wanted.items()
        }

    def close(self) -> None:
        self.storage.close()


def _tag_of(agent: str) -> str:
    return agent_tag(check(agent.encode()))
