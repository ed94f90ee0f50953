"""Checkpoints on their way in: what a portable file holds, under the keys and at the places of this store."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from ...errors import CorruptDataError
from ...state.tree import cut, slots
from ...state.tree.nodes import Child, Hasher, Index, Item, Kind, Node, Place, Run
from ...state.tree.out import Slots
from ...state.tree.read import Reader, splice, split
from ...state.tree.recall import LISTS, MAPS
from ...state.tree.runs import with_place
from ...state.tree.slots import Splice
from ...state.values import codec
from ...storage.base import Key
from ..engine import Engine
from ..saving.filling import Filling
from .catalog import Catalog
from .file import damaged
from .outgoing import INDEX, PIECE

_TEXTS = frozenset({Kind.STR, Kind.BYTES})
_CONTENTS = 32
_STREAMS = 8
_SMALL = 512
_NOTHING = codec.pack(None)


class Incoming:
    """Writes the checkpoints of a catalog for one agent. What `known` has been told, or was written, is named again.

    What was taken in since `keep` was called last is forgotten by `forget`.
    """

    def __init__(self, engine: Engine, key: Key, catalog: Catalog) -> None:
        self._engine = engine
        self._key = key
        self._catalog = catalog
        self._hasher: Hasher = engine.hasher(key.user)
        self._reader = Reader(engine.fetch(key), self._hasher, opaque=True)
        self._compress = engine.storage.compresses
        self._runs: dict[int, Run] = {}
        self._indexes: dict[int, Index] = {}
        self._new: list[tuple[dict[int, Any], int]] = []
        self._contents: OrderedDict[tuple[int, bool], list[bytes]] = OrderedDict()
        self._streams: OrderedDict[int, Any] = OrderedDict()

    def keep(self) -> None:
        self._new.clear()

    def forget(self) -> None:
        for held, number in self._new:
            held.pop(number, None)
        self._new.clear()
        self._streams.clear()

    # -- a checkpoint that is here already -----------------------------------------------------------------

    def known(self, stored: list[Any], node: Node) -> bool:
        """Whether a tree of the file is of the same state as one here; if so its parts are not written again."""
        kind, about, items = stored
        return (kind, about) == (node.kind, node.about) and self._same_items(kind, items, node.top)

    def _same_items(self, kind: Kind, items: list[Any], held: Sequence[Item]) -> bool:
        return len(items) == len(held) and all(self._same_item(kind, *pair) for pair in zip(items, held, strict=True))

    def _same_item(self, kind: Kind, item: list[Any], held: Item) -> bool:
        if isinstance(held, Child):
            return len(item) == 2 and item[0] == held.key and self.known(item[1], held.node)
        if isinstance(held, Index):
            return len(item) == 1 and self._same_index(kind, item[0], held)
        if len(item) != 4 or tuple(item[1:3]) != (held.count, held.size):
            return False
        known = self._runs.get(item[0])
        if known is not None:
            return known.digest == held.digest
        if self._hasher.content(b"".join(self._content(kind, item[0]))) != held.digest:
            return False
        self._add(self._runs, item[0], held)
        return True

    def _same_index(self, kind: Kind, number: int, held: Index) -> bool:
        known = self._indexes.get(number)
        if known is not None:
            return known.digest == held.digest
        items = self._catalog.entry(INDEX, number)[2]
        found = self._reader.index_items(held, self._reader.fetch([held.place])[0])
        if not self._same_items(kind, items, found):
            return False
        held.items = found
        self._add(self._indexes, number, held)
        return True

    def _add(self, held: dict[int, Any], number: int, value: Any) -> None:
        held[number] = value
        self._new.append((held, number))

    # -- one that is new -----------------------------------------------------------------------------------

    def write(self, stored: list[Any], seq: int) -> Written:
        """The state of a tree of the file as record `seq` is to hold it."""
        written = Written(Filling(self._engine.storage.packs, seq))
        try:
            written.node = self._node(stored, written)
            written.filling.seal()
        except RecursionError as e:
            written.filling.abort()
            raise damaged("a state in it is nested without end") from e
        except BaseException:
            written.filling.abort()
            raise
        return written

    def _node(self, stored: list[Any], out: Written) -> Node:
        kind, about, items = stored
        node = Node(Kind(kind), [self._item(kind, item, out) for item in items], None, about)
        if not any(isinstance(item, Index) for item in node.top):
            node.items = list(node.top)  # type: ignore[arg-type]
        self._hasher.seal(node)
        return node

    def _item(self, kind: Kind, item: list[Any], out: Written) -> Item:
        if len(item) == 2:
            if kind in MAPS:
                _check_elements(Kind.PAIRS, item[0] + _NOTHING, 1)
            return Child(item[0], self._node(item[1], out))
        if len(item) == 1:
            return self._index(kind, item[0], out)
        last, count, size, flags = item
        out.names.add((PIECE, last))
        run = self._runs.get(last)
        if run is None:
            run = self._run(kind, last, count, size, out, growing=not flags & 1)
        elif (count, size) != (run.count, run.size):
            raise damaged("a part of a state in it is of two lengths")
        else:
            out.reused.add((PIECE, last))
        return Run(run.digest, count, size, run.places, bool(flags & 1), run.spliced)

    def _index(self, kind: Kind, number: int, out: Written) -> Index:
        index = self._indexes.get(number)
        out.names.add((INDEX, number))
        if index is not None:
            out.reused.add((INDEX, number))
        else:
            _, level, items = self._catalog.entry(INDEX, number)
            if any(len(item) == 1 and item[0] >= number for item in items):
                raise damaged("a part of a state in it holds itself")
            found = [self._item(kind, item, out) for item in items]
            place = Slots(out.filling.put, _not_shared, compress=self._compress).put_items(found)
            count, size = sum(item.count for item in found), sum(item.size for item in found)
            index = Index(self._hasher.items(found), level, count, size, place, found)
            self._add(self._indexes, number, index)
        return index

    def _run(self, kind: Kind, last: int, count: int, size: int, out: Written, *, growing: bool) -> Run:
        """A run whose last piece is not here: the pieces after those that are, as slots of this record."""
        content = b"".join(self._content(kind, last))
        if len(content) != size:
            raise damaged("a part of a state in it is not as long as it says")
        _check_elements(kind, content, count)
        digest = self._hasher.content(content)
        missing = []
        at = last
        while at >= 0 and at not in self._runs:
            missing.append((at, self._piece(at)))
            at = missing[-1][1][0]
        places = []
        if at >= 0:
            places = list(self._runs[at].places)
            out.reused.add((PIECE, at))
        for number, (before, splices, lengths, data) in reversed(missing):
            growing = growing or before >= 0
            slot = self._slot(number, before, splices, lengths, data, growing=growing)
            places = with_place(places, out.filling.put(slot))
        spliced = (at >= 0 and self._runs[at].spliced) or any(piece[1] is not None for _, piece in missing)
        run = Run(digest, count, size, places, spliced=spliced)
        if not growing and size >= cut.BIG:
            out.share(digest, places[0])
        self._add(self._runs, last, run)
        return run

    def _slot(
        self,
        number: int,
        before: int,
        splices: list[Splice] | None,
        lengths: list[int] | None,
        data: bytes,
        *,
        growing: bool,
    ) -> bytes:
        if splices is not None:
            return slots.splice_slot(data, lengths, splices, compress=self._compress)
        stream = self._streams.pop(before, None)
        if self._compress and growing and stream is not False and (stream or len(data) > _SMALL):
            first = stream is None
            stream = stream or slots.Stream()
            slot = slots.stream_slot(data, lengths, stream, first=first)
            self._streams[number] = stream if slot is not None else False
            while len(self._streams) > _STREAMS:
                self._streams.popitem(last=False)
            if slot is not None:
                return slot
        return slots.plain_slot(data, lengths, compress=self._compress)

    # -- what the file holds -------------------------------------------------------------------------------

    def _piece(self, number: int) -> tuple[int, list[Splice] | None, list[int] | None, bytes]:
        _, before, flat, lengths, data = self._catalog.entry(PIECE, number)
        if before >= number:
            raise damaged("a part of a state in it is not one")
        splices = None
        if flat is not None:
            splices = [(flat[i], flat[i + 1], flat[i + 2]) for i in range(0, len(flat), 3)]
        return before, splices, lengths, data

    def _content(self, kind: Kind, last: int) -> list[bytes]:
        """The elements that all pieces up to this one come to; of a text the bytes, in one or more parts."""
        text = kind in _TEXTS
        chain = []
        at = last
        while at >= 0 and (at, text) not in self._contents:
            chain.append((at, self._piece(at)))
            at = chain[-1][1][0]
        content = self._contents[at, text] if at >= 0 else []
        for number, (_, splices, lengths, data) in reversed(chain):
            if splices is None:
                content = [*content, *([data] if text or lengths is None else split(data, lengths))]
            elif text:
                content = splice(b"".join(content), data, splices)
            else:
                content = [e for part in splice(content, split(data, lengths or []), splices) for e in part]
            at = number
        self._contents[last, text] = content
        self._contents.move_to_end((last, text))
        while len(self._contents) > _CONTENTS:
            self._contents.popitem(last=False)
        return content


class Written:
    """A record being made of what the file holds."""

    def __init__(self, filling: Filling) -> None:
        self.filling = filling
        self.node: Node
        self.shared: list[tuple[bytes, int]] = []
        self.names: set[tuple[str, int]] = set()
        """The runs and indexes of the file that it names, and of these, in `reused`, those written before."""
        self.reused: set[tuple[str, int]] = set()

    def share(self, digest: bytes, place: Place) -> None:
        if type(place[0]) is int:
            self.shared.append((digest, place[2]))


def _check_elements(kind: Kind, content: bytes, count: int) -> None:
    """Refuse what no restore could read: better now than then."""
    try:
        if kind in LISTS:
            codec.unpack(codec.array_header(count) + content, opaque=True)
        elif kind in (Kind.PAIRS, Kind.TRACKED_PAIRS):
            flat = codec.unpack(codec.array_header(2 * count) + content, opaque=True)
            dict.fromkeys(flat[::2])
        elif kind in MAPS:
            codec.unpack(codec.map_header(count) + content, opaque=True)
        elif kind == Kind.LEAF:
            codec.unpack(content, opaque=True)
    except (CorruptDataError, TypeError) as e:  # TypeError: a key that cannot be one
        raise damaged(f"a value in it is not one: {e}") from e


def _not_shared(digest: bytes) -> Place | None:
    return None
