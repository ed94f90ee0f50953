"""Nodes -> values: fetch what a state names, check every run against its hash, decode.

Whole runs are decoded in one call each, so a restore costs little more than decoding the plain bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...errors import CorruptDataError
from ..tracked import tracked
from ..values import codec
from ..values.registry import Opaque, build
from . import slots
from .memory import NOTHING, Memory
from .nodes import Child, Hasher, Index, Item, Kind, Node, Place, Run, check_item, item_from
from .quiet import quiet_gc

Fetch = Callable[[Sequence[Place]], list[list[bytes]]]
"""Places -> for each the slots that lie there. A place nobody holds any more is CorruptDataError."""

_BATCH = 4 << 20


class Reader:
    """Reads states of one agent. `opaque`: values of unregistered types come as `Opaque` instead of an error.

    What `memory` holds is not read again.
    """

    def __init__(self, fetch: Fetch, hasher: Hasher, *, opaque: bool = False, memory: Memory = NOTHING) -> None:
        self.fetch = fetch
        self._hasher = hasher
        self._opaque = opaque
        self._memory = memory

    def value(self, node: Node) -> Any:
        with quiet_gc():
            return self._value(node)

    def _value(self, node: Node) -> Any:
        kind = node.kind
        items = self.items(node)
        if kind == Kind.LEAF:
            return self._unpack(self.contents([_only_run(items)], kind)[0])
        if kind in (Kind.STR, Kind.BYTES):
            data = b"".join(self.contents([r for r in items if isinstance(r, Run)], kind))
            return _text(data) if kind == Kind.STR else data
        if kind == Kind.OBJECT:
            data = self._value(_only_child(items).node)
            name, version = node.about or ["", 0]
            return Opaque(name, version, data) if self._opaque else build(name, version, data)
        if kind in (Kind.MAP, Kind.PAIRS, Kind.TRACKED_MAP, Kind.TRACKED_PAIRS):
            held = self._map(node, items)
            return tracked(held) if kind in (Kind.TRACKED_MAP, Kind.TRACKED_PAIRS) else held
        elements = self._list(items)
        return elements if kind == Kind.LIST else tuple(elements) if kind == Kind.TUPLE else tracked(elements)

    def _list(self, items: Sequence[Item]) -> list[Any]:
        out: list[Any] = []
        for batch in _batches(items):
            if isinstance(batch, Child):
                out.append(self._value(batch.node))
                continue
            for run, part in zip(batch, self.contents(batch, Kind.LIST), strict=True):
                out += self._unpack(codec.array_header(run.count) + part)
        return out

    def _map(self, node: Node, items: Sequence[Item]) -> dict[Any, Any]:
        out: dict[Any, Any] = {}
        pairs = node.kind in (Kind.PAIRS, Kind.TRACKED_PAIRS)
        for batch in _batches(items):
            if isinstance(batch, Child):
                out[self._unpack(batch.key)] = self._value(batch.node)
                continue
            parts = self.contents(batch, node.kind)
            count = sum(run.count for run in batch)
            if pairs:
                flat = self._unpack(b"".join((codec.array_header(2 * count), *parts)))
                out.update(zip(flat[::2], flat[1::2], strict=True))
            else:
                out.update(self._unpack(b"".join((codec.map_header(count), *parts))))
        return out

    def _unpack(self, data: bytes) -> Any:
        return codec.unpack(data, opaque=self._opaque)

    def items(self, node: Node) -> Sequence[Run | Child]:
        """A node's runs and children in order; indexes are read once and kept."""
        if node.items is None:
            todo: list[Item] = list(node.top)
            levels: dict[int, list[Index]] = {}
            while any(isinstance(item, Index) for item in todo):
                todo = self._open(todo, levels)
            node.items = todo  # type: ignore[assignment]
            node.levels = [levels[level] for level in sorted(levels)]
        return node.items  # type: ignore[return-value]

    def _open(self, todo: list[Item], levels: dict[int, list[Index]]) -> list[Item]:
        """The same items with the highest level of indexes replaced by what they hold: one fetch a level."""
        top = max(item.level for item in todo if isinstance(item, Index))
        wanted = [item for item in todo if isinstance(item, Index) and item.level == top]
        levels[top] = wanted
        fetched = self.fetch([index.place for index in wanted])
        end = 0
        for index, found in zip(wanted, fetched, strict=True):
            index.items = self.index_items(index, found)
            index.end = end = end + len(index.items)
        return [x for item in todo for x in (item.items if isinstance(item, Index) and item.level == top else [item])]

    def index_items(self, index: Index, found: Sequence[bytes]) -> list[Item]:
        slot = slots.parse(b"".join(found))
        stored = codec.unpack(slots.expand([(slot.compression, slot.payload)]))
        try:
            for item in stored:
                check_item(item)
            items = [item_from(item, self._hasher) for item in stored]
        except (TypeError, ValueError, IndexError, RecursionError) as e:
            raise CorruptDataError("bad-index", f"an index of a state is not one: {e}") from e
        if self._hasher.items(items) != index.digest:
            raise CorruptDataError("hash-mismatch", "an index of a state is not what was written")
        return items

    def contents(self, runs: Sequence[Run], kind: Kind) -> list[bytes]:
        """The bytes of runs, each checked against its hash when it was read."""
        known = [self._memory.get(run.digest) for run in runs]
        wanted = [run for run, content in zip(runs, known, strict=True) if content is None]
        fetched = iter(self.fetch([place for run in wanted for place in run.places]) if wanted else ())
        return [
            self._checked(run, fetched, kind) if content is None else content
            for run, content in zip(runs, known, strict=True)
        ]

    def _checked(self, run: Run, fetched: Iterator[list[bytes]], kind: Kind) -> bytes:
        """The content of a run whose slots come next."""
        found = [slot for _ in run.places for slot in next(fetched)]
        content = self._spliced(run, found, kind) if run.spliced else _joined(found, run.size)
        if len(content) != run.size or self._hasher.content(content) != run.digest:
            raise CorruptDataError("hash-mismatch", "a part of a state is not what was written")
        self._memory.put(run.digest, content, len(content))
        return content

    def _spliced(self, run: Run, found: Sequence[bytes], kind: Kind) -> bytes:
        if kind in (Kind.STR, Kind.BYTES):
            return _splice_bytes(found)
        return b"".join(splice_elements(found)[0])

    def elements(self, run: Run) -> list[bytes] | None:
        """A run's elements as they are encoded; None where their lengths were not kept."""
        if run.raw is not None and run.lengths is not None:
            return split(run.raw, run.lengths)
        fetched = self.fetch(run.places)
        elements, known = splice_elements([slot for part in fetched for slot in part])
        if self._hasher.content(b"".join(elements)) != run.digest:
            raise CorruptDataError("hash-mismatch", "a part of a state is not what was written")
        return elements if known else None


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as e:
        raise CorruptDataError("bad-encoding", f"a text of a state is not one: {e}") from e


def _only_run(items: Sequence[Item]) -> Run:
    if len(items) != 1 or not isinstance(items[0], Run):
        raise CorruptDataError("bad-node", "a value's description names no value")
    return items[0]


def _only_child(items: Sequence[Item]) -> Child:
    if len(items) != 1 or not isinstance(items[0], Child):
        raise CorruptDataError("bad-node", "an object's description names no data")
    return items[0]


def _batches(items: Sequence[Item]) -> Iterator[list[Run] | Child]:
    """Neighbouring runs, a few MB at a time, and children one by one."""
    batch: list[Run] = []
    size = 0
    for item in items:
        if isinstance(item, Child):
            if batch:
                yield batch
                batch, size = [], 0
            yield item
        elif isinstance(item, Run):
            batch.append(item)
            size += item.size
            if size > _BATCH:
                yield batch
                batch, size = [], 0
    if batch:
        yield batch


def _joined(found: Sequence[bytes], limit: int) -> bytes:
    """Slots that only append, as one content. The hot path of a restore: no slot is taken apart further than needed."""
    try:
        payloads = [slot[3 + (slot[1] | slot[2] << 8) :] for slot in found]
        if not any([slot[0] for slot in found]):  # noqa: C419  all of them RAW; a list is faster
            return b"".join(payloads)
        return slots.expand([(slot[0], payload) for slot, payload in zip(found, payloads, strict=True)], limit)
    except IndexError as e:
        raise CorruptDataError("slot-missing", "a part of a state is not where its record says") from e


def _splice_bytes(found: Sequence[bytes]) -> bytes:
    content = b""
    for slot in map(slots.parse, found):
        payload = slots.expand([(slot.compression, slot.payload)])
        if slot.splices is None:
            content += payload
            continue
        content = b"".join(splice(content, payload, slot.splices))
    return content


def splice(old: Any, new: Any, splices: Sequence[slots.Splice]) -> list[Any]:
    """Old with splices made, as pieces in order; starts are positions in old, ascending."""
    out, at, used = [], 0, 0
    for start, removed, added in splices:
        if start < at or removed < 0 or added < 0:  # the same piece again and again is how a few bytes become many
            raise CorruptDataError("bad-slot", "a part's edits are not in order")
        out.append(old[at:start])
        out.append(new[used : used + added])
        at, used = start + removed, used + added
    out.append(old[at:])
    return out


def split(data: bytes, lengths: Sequence[int]) -> list[bytes]:
    out, at = [], 0
    for n in lengths:
        out.append(data[at : at + n])
        at += n
    if at != len(data):
        raise CorruptDataError("bad-slot", "a part's elements are not as long as it is")
    return out


def splice_elements(found: Sequence[bytes], start: Sequence[bytes] = ()) -> tuple[list[bytes], bool]:
    """Elements of a run from its slots in order; False with them as one lump where lengths were not kept.

    `start` are the elements that the slots before these came to, where these are not all.
    """
    elements = list(start)
    known = True
    parsed = [slots.parse(slot) for slot in found]
    i = 0
    while i < len(parsed):
        slot = parsed[i]
        if slot.splices is not None:
            added = split(slots.expand([(slot.compression, slot.payload)]), slot.lengths or [])
            elements = [e for part in splice(elements, added, slot.splices) for e in part]
            i += 1
            continue
        end = i + 1
        while end < len(parsed) and parsed[end].compression == slots.CONTINUED and parsed[end].splices is None:
            end += 1
        group = parsed[i:end]
        data = slots.expand([(s.compression, s.payload) for s in group])
        lengths = [n for s in group for n in s.lengths or []]
        known = known and all(s.lengths is not None for s in group)
        elements += split(data, lengths) if known else [data]
        i = end
    return elements, known
