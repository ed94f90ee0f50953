"""Entries of a journal in the making: records that are appended with a checkpoint, or by themselves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from ...errors import CorruptDataError
from ...state.tree import slots
from ...state.tree.against import MOST, Base, against_slot
from ...state.tree.apart import ApartWriter
from ...state.tree.nodes import Kind, Node, Place, Run
from ...state.tree.out import Laid, Slots
from ...state.tree.pieces import in_agent
from ...state.tree.slots import pack_body
from ...state.values import codec
from ...storage.base import Key, Record, agent_of, journal_of
from ...storage.record import EMPTIED, Head, seal, short_id
from ..engine import Engine
from .filling import Filling
from .tips import Tip

OF = "of"
"""In the metadata of an entry: the id of the checkpoint it belongs to."""


def short(name: str) -> UUID | str:
    """A name that is the text of a UUID as a UUID, which takes less room; `str` gives it back."""
    stored = short_id(name)
    return UUID(bytes=stored) if isinstance(stored, bytes) else name


def about_of(head: Head) -> tuple[str, dict[str, Any]]:
    """Of an entry: the checkpoint it belongs to, and what else is known about it."""
    about = codec.unpack(head.metadata)
    of = about.pop(OF, None) if type(about) is dict else None
    if type(of) not in (str, UUID):
        raise no_entry(head)
    return str(of), about


def no_entry(head: Head) -> CorruptDataError:
    agent = agent_of(head.key.agent)
    return CorruptDataError("bad-record", f"record {head.seq} in the journal of agent {agent!r} is no entry of it")


@dataclass(frozen=True, slots=True)
class Draft:
    """An entry to be appended: why (`kind`), to which checkpoint it belongs (an id of the caller's own, which may
    come later), what is known about it, and the values it keeps."""

    kind: str
    of: str
    about: dict[str, Any] = field(default_factory=dict)
    values: list[Any] = field(default_factory=list)
    time: int | None = None
    """Not now but then, in milliseconds."""


KEPT = "kept"
"""The kind of an entry that a checkpoint's own new elements were put into: nobody had written them down before."""


class _Made(NamedTuple):
    """A record that is about to be: what it is of, and which of its slots hold something."""

    draft: Draft
    seq: int
    used: frozenset[int]
    laid: list[Laid]


@dataclass(slots=True)
class _Kept:
    of: str
    filling: Filling
    runs: list[Run] = field(default_factory=list)
    laid: list[Laid] = field(default_factory=list)


class Drafts:
    """Records of one agent's journal, in order; the agent's turn is taken. Nothing of them is remembered before they
    are there (`created`)."""

    def __init__(self, engine: Engine, key: Key, tip: Tip) -> None:
        self._engine = engine
        self._agent, self._key = key, Key(key.user, journal_of(key.agent))
        self._tip = tip
        self._made: list[_Made] = []
        self._fillings: list[Filling] = []
        self._kept: _Kept | None = None

    def settle(self) -> None:
        """Know where the journal ends, and what is in it of checkpoints that are not there yet."""
        tip, engine = self._tip, self._engine
        if tip.journal is not None:
            return
        found: list[Head] = []
        for head in engine.heads(self._key, batch=4):
            if found and head.seq < tip.begins:
                break
            found.append(head)
        first: dict[str, int] = {}
        for head in reversed(found):
            if EMPTIED not in head.more and head.seq >= tip.begins:
                first.setdefault(about_of(head)[0], head.seq)
        for of, seq in first.items():
            if not engine.own_seq(self._agent, of):
                tip.note_early(of, seq)
        tip.journal = found[0].seq if found else 0

    def keep(self, elements: list[bytes], of: str) -> Place:
        """Put elements of a state into a record of their own, as what was written on the checkpoint `of`; before any
        other record. Answers their place, as the state names it."""
        self.settle()
        assert self._tip.journal is not None
        if self._kept is None:
            self._kept = _Kept(of, Filling(self._engine.storage.packs, self._tip.journal + 1))
            self._fillings.append(self._kept.filling)
        lengths, content, compress = [len(e) for e in elements], b"".join(elements), self._engine.storage.compresses
        full = self._kept.filling.is_full
        against = against_slot(content, lengths, self._tip.pieces.bases(of)) if compress and not full else None
        place = self._kept.filling.put(against or slots.plain_slot(content, lengths, compress=compress))
        digest = self._engine.hasher(self._key.user).content(content)
        self._kept.runs.append(Run(digest, len(elements), len(content), [place], closed=True))
        self._kept.laid.append(Laid(digest, elements, place, alone=against is None))
        return in_agent(place)

    def kept(self, guard: int) -> list[Record]:
        """The record of what was kept, where something was: before those of entries."""
        kept = self._kept
        if kept is None:
            return []
        root = Node(Kind.LIST, list(kept.runs), None)
        self._engine.hasher(self._key.user).seal(root)
        return [self._sealed(Draft(KEPT, kept.of), root, kept.filling, guard, reaches=False, laid=kept.laid)]

    def record(self, draft: Draft, guard: int) -> Record:
        """The next record; large values are in a pack, sealed."""
        self.settle()
        engine = self._engine
        filling = Filling(engine.storage.packs, self._next())
        self._fillings.append(filling)
        filling.put(b"")  # the first slot is for what is kept, so that a list's elements stand in one line
        bases = self._bases(draft.of)  # for nothing in a pack: nobody looks there for what it needs
        out = Slots(
            filling.put,
            self._share,
            compress=engine.storage.compresses,
            pieces=self._tip.pieces,
            journal=True,
            bases=lambda: () if filling.is_full else bases,
        )
        out.here = {each.digest: each.place for made in self._made for each in made.laid}
        self._reached = False
        writer = ApartWriter(engine.hasher(self._key.user), engine.reader(self._key), out)
        node = writer.values(draft.values)
        shared = tuple((digest, place[2]) for digest, place in out.shared if type(place[0]) is int)
        reaches = out.named or self._reached
        return self._sealed(draft, node, filling, guard, reaches=reaches, laid=out.laid, shared=shared)

    def _sealed(
        self, draft: Draft, node: Node, filling: Filling, guard: int, *, reaches: bool, laid: list[Laid],
        shared: tuple[tuple[bytes, int], ...] = (),
    ) -> Record:  # fmt: skip
        filling.seal()
        engine, seq, body = self._engine, self._next(), pack_body(filling.slots)
        reaches = reaches or filling.packed or not all(each.alone for each in laid)
        head = Head(
            self._key, seq, 0, draft.kind, engine.now() if draft.time is None else draft.time, node.size, "", b"",
            engine.hasher(self._key.user).root(node), node.stored(), None, "", "",
            codec.pack({OF: short(draft.of), **draft.about}), None, {}, guard, reaches=reaches,
        )  # fmt: skip
        data, _ = seal(head, body, compress=engine.storage.compresses)
        used = frozenset(n for n, slot in enumerate(filling.slots) if slot)
        self._made.append(_Made(draft, seq, used, laid))
        return Record(self._key, seq, data, body, None, shared)

    def _bases(self, of: str) -> list[Base]:
        """What was written on that checkpoint, in this very unit too."""
        known = list(self._tip.pieces.bases(of))
        room = MOST - sum(len(content) for _, _, content in known)
        for laid in [each for made in self._made if made.draft.of == of for each in made.laid]:
            content = b"".join(laid.elements)
            if laid.alone and type(laid.place[0]) is int and len(content) <= room:
                known.append((laid.place[0], laid.place[2], content))
                room -= len(content)
        return known

    def _next(self) -> int:
        """The seq of the next record."""
        assert self._tip.journal is not None
        return self._tip.journal + len(self._made) + 1

    def _share(self, digest: bytes) -> Place | None:
        place = self._engine.shared_place(self._key, digest)
        self._reached = self._reached or place is not None
        return place

    @property
    def made(self) -> int:
        return len(self._made)

    def back_to(self, made: int) -> None:
        """Only so many records were made, all that was kept among them: what came after will not be appended."""
        del self._made[made:]
        for filling in self._fillings[made:]:
            filling.abort()
        del self._fillings[made:]

    def created(self) -> None:
        """They are there: what they hold can be named from now on."""
        pieces = self._tip.pieces
        for draft, seq, used, laid in self._made:
            self._tip.journal = seq
            self._tip.note_early(draft.of, seq)
            pieces.appended(seq, used)
            for each in laid:
                pieces.add(each.digest, each.elements, each.place)
                if each.alone and type(each.place[0]) is int:
                    pieces.keep_base(draft.of, (seq, each.place[2], b"".join(each.elements)))

    def take_back(self) -> None:
        for filling in self._fillings:
            filling.abort()
