"""Values -> nodes: find what is new since the parent checkpoint and write that, and no more.

Every run of the parent is encoded again and compared by hash, so every mutation is seen (`verified`); a tracked
container says itself what changed, and the rest of it is taken on trust where the caller chose so (`trusted`). What is
the very object it was may be taken on trust too (`identity`), and what the caller says has not changed (`changed`).
"""

from __future__ import annotations

import weakref
from collections.abc import Container, Iterator, Sequence
from itertools import islice
from typing import Any

from ..tracked import TrackedDict, TrackedList, now
from ..values import codec
from ..values.registry import entry_for
from . import cut
from .fold import fold
from .identity import Clean, Elements, elements_of, list_changes, map_changes
from .kinds import ANY_KEYS, FAMILY, kind_of, plain_keys, room_left
from .nodes import Child, Hasher, Kind, Node, Run
from .out import Slots
from .read import Reader
from .runs import RunWriter

ROOT_LEAF = 1280
"""A root up to this size is written whole each time it changes: cheaper than finding out where."""

_DEEPEST = 80
"""So many large containers may lie in each other: their description has to be packed, whole, into one head."""

Element = bytes | Child


class Writer:
    """Writes one state into `slots`, against the tree of its parent where there is one.

    Up to `memory` bytes of runs found unchanged are remembered: next time they are compared, not hashed.
    `changed`: of a state that is a dict, the only keys whose values can differ from the parent's state. `identity`: in
    plain lists and dicts, the objects of the parent's state are taken for unchanged.
    """

    def __init__(
        self, hasher: Hasher, reader: Reader, slots: Slots, *, trusted: bool = False, memory: int = 0,
        changed: frozenset[str] | None = None, identity: bool = False,
    ) -> None:  # fmt: skip
        self._hasher = hasher
        self._reader = reader
        self._slots = slots
        self._runs = RunWriter(hasher, reader, slots, memory)
        self._trusted = trusted
        self._changed = changed
        self._identity = identity
        self._tracks = True
        self._depth = 0

    def root(self, value: Any, prior: Node | None) -> Node:
        """The state's node. InvalidInputError: it is nested too deep, or contains itself."""
        try:
            return self._root(value, prior)
        except RecursionError as e:
            raise codec.too_deep("") from e

    def _root(self, value: Any, prior: Node | None) -> Node:
        if prior is not None and prior.kind != Kind.LEAF:
            # what is tracked as a whole is written in another way inside: nothing of that can be taken over
            plain = prior.kind in (Kind.MAP, Kind.PAIRS)
            node = self._again(value, prior, self._changed if plain else None)
            if node is not None:
                return node
        if room_left(value, ROOT_LEAF) < 0:
            node = self._fresh(value)
            if node is not None:
                return node
        return self._leaf(codec.pack(value), prior if prior is not None and prior.kind == Kind.LEAF else None)

    def _leaf(self, data: bytes, prior: Node | None) -> Node:
        if prior is not None and prior.top[0].digest == self._hasher.content(data):
            return prior
        return self._node(Kind.LEAF, [self._runs.fresh(data, None, 1, closed=True)], None)

    def _node(
        self, kind: Kind, items: list[Run | Child], prior: Node | None, about: list[Any] | None = None, same: int = 0
    ) -> Node:
        """The node of these items, the first `same` of which are the prior's; the prior itself where all are."""
        if prior is not None and prior.items is not None:
            old = prior.items
            while same < len(items) and same < len(old) and items[same] is old[same]:
                same += 1
            if same == len(items) == len(old) and kind == prior.kind:
                return prior
        grows = kind not in (Kind.STR, Kind.BYTES)
        top, levels = fold(items, prior.levels if prior else [], same, self._hasher, self._slots.put_items, grows=grows)
        node = Node(kind, top, items, about, levels)
        self._hasher.seal(node)
        return node

    def _element(self, value: Any, prior: Node | None, key: bytes = b"") -> Element:
        """An element as bytes, or as a child where it is large."""
        node = None
        if prior is not None:
            node = self._again(value, prior)
        if node is None and room_left(value, cut.BIG) < 0:
            node = self._fresh(value)
        if node is None:
            data = codec.pack(value, tracks=self._tracks)
            if len(data) <= cut.BIG:
                return key + data
            node = self._leaf(data, prior if prior is not None and prior.kind == Kind.LEAF else None)
        return Child(key, node)

    def _again(self, value: Any, prior: Node, changed: Container[Any] | None = None) -> Node | None:
        """The value against what it was; None where it is another kind of thing now."""
        kind = kind_of(value, self._tracks)
        if kind is None or FAMILY.get(kind, kind) != FAMILY.get(prior.kind, prior.kind):
            return None
        if kind == Kind.OBJECT:
            entry = entry_for(type(value))
            if entry is None or prior.about != [entry.name, entry.version]:
                return None
        return self._write(value, kind, prior, changed)

    def _fresh(self, value: Any) -> Node | None:
        kind = kind_of(value, self._tracks)
        return None if kind is None else self._write(value, kind, None)

    def _write(self, value: Any, kind: Kind, prior: Node | None, changed: Container[Any] | None = None) -> Node:
        if self._depth >= _DEEPEST:
            raise codec.too_deep("")
        self._depth += 1
        node = self._written(value, kind, prior, changed)
        self._depth -= 1
        return node

    def _written(self, value: Any, kind: Kind, prior: Node | None, changed: Container[Any] | None) -> Node:
        if prior is not None:
            self._reader.items(prior)
        if kind in (Kind.STR, Kind.BYTES):
            return self._text(value, kind, prior)
        if kind == Kind.OBJECT:
            return self._object(value, prior)
        if type(value) in (TrackedList, TrackedDict):
            return self._tracked(value, kind, prior)
        if kind == Kind.TUPLE:
            return self._tuple(value, prior)
        if self._identity:
            return self._by_identity(value, kind, prior, changed)
        return self._map(value, prior, changed, kind) if kind == Kind.MAP else self._list(value, kind, prior, 0, None)

    def _tuple(self, value: tuple[Any, ...], prior: Node | None) -> Node:
        # what stands around it tracks lists and dicts, not what is in a tuple: there each says so itself
        around = self._tracks, self._identity
        self._tracks, self._identity = True, False
        node = self._list(value, Kind.TUPLE, prior, 0, None)
        self._tracks, self._identity = around
        return node

    def _object(self, value: Any, prior: Node | None) -> Node:
        entry = entry_for(type(value))
        assert entry is not None
        held = prior.items[0] if prior is not None and prior.items else None
        around = self._tracks, self._identity
        self._tracks, self._identity = True, False
        element = self._element(entry.dump(value), held.node if isinstance(held, Child) else None)
        self._tracks, self._identity = around
        if isinstance(element, bytes):
            element = Child(b"", self._leaf(element, None))
        if isinstance(held, Child) and element.node is held.node:
            element = held
        return self._node(Kind.OBJECT, [element], prior, [entry.name, entry.version])

    # -- long texts ----------------------------------------------------------------------------------------------

    def _text(self, value: Any, kind: Kind, prior: Node | None) -> Node:
        if prior is not None and prior.source is value:
            return prior
        data = value.encode("utf-8", "surrogatepass") if kind == Kind.STR else value
        old = [r for r in prior.items or [] if isinstance(r, Run)] if prior is not None else []
        node = self._node(kind, list(self._runs.text(data, old)), prior)
        node.source = value  # immutable: the same object next time is the same text
        return node

    # -- tracked containers --------------------------------------------------------------------------------------

    def _tracked(self, value: Any, kind: Kind, prior: Node | None) -> Node:
        stamp = now()
        around = self._tracks, self._identity
        self._tracks, self._identity = False, False
        known = prior is not None and self._trusted and type(prior.source) is weakref.ref and prior.source() is value
        try:
            if type(value) is TrackedList:
                node = self._tracked_list(value, kind, prior if known and not value.has_untrusted else None, prior)
            else:
                node = self._tracked_map(value, kind, prior if known else None, prior)
        finally:
            self._tracks, self._identity = around
        node.source, node.stamp = weakref.ref(value), stamp
        return node

    def _tracked_list(self, value: Any, kind: Kind, known: Node | None, prior: Node | None) -> Node:
        if known is None:
            return self._list(value, kind, prior, 0, None)
        changes = value.changes(known.stamp)
        edited, low = changes.replaced | changes.inside, changes.low
        start = min(low, *edited) if edited else low

        def clean(at: int, count: int) -> bool:
            return at + count <= low and not any(at <= i < at + count for i in edited)

        return self._list(value, kind, known, start, clean)

    def _tracked_map(self, value: Any, kind: Kind, known: Node | None, prior: Node | None) -> Node:
        if known is None:
            return self._map(value, prior, None, kind)
        changes = value.changes(known.stamp)
        if changes.all or value.has_untrusted:
            return self._map(value, known, None, kind)
        changed = changes.replaced | changes.inside
        return self._map(value, known, changed, kind) if changed or changes.removed else known

    # -- by identity -------------------------------------------------------------------------------------------------

    def _by_identity(
        self, value: list[Any] | dict[Any, Any], kind: Kind, prior: Node | None, changed: Container[Any] | None
    ) -> Node:
        """A plain list or dict, of which the objects it held last time are taken for unchanged."""
        source = prior.source if prior is not None else None
        held: Any = value.copy()  # what is written and what is remembered are the same, whatever another thread does
        if kind == Kind.LIST:
            before = source if type(source) is Elements else None
            start, clean = list_changes(held, before) if before is not None else (0, None)
            node = self._list(held, kind, prior, start, clean)
            node.source = elements_of(held, node, before, start)
        else:
            differing, clean = map_changes(held, source) if type(source) is dict else (None, None)
            if changed is not None and differing is not None:
                differing = frozenset(key for key in held if key in changed and key in differing)
            node = self._map(held, prior, changed if differing is None else differing, kind, clean)
            node.source = held
        return node

    # -- lists and maps ------------------------------------------------------------------------------------------

    def _list(self, value: Sequence[Any], kind: Kind, prior: Node | None, start: int, clean: Clean | None) -> Node:
        """`start`: elements before it are known to be the same. `clean(at, count)`: so are these."""
        old = (prior.items or []) if prior is not None else []
        total = prior.count if prior is not None else 0
        k, at = _seek(old, total, start)
        same, items, n = k - 1, old[:k], len(value)
        while k < len(old) and at + old[k].count <= n:
            item = old[k]
            if not (clean is not None and clean(at, item.count)):
                again = self._again_in_list(value, at, item, n == total, old[k + 1 : k + 2])
                if again is None:
                    break
                item = again
            items.append(item)
            at += item.count
            k += 1
        rest = self._list_elements(value, at, [x for x in old[k:] if isinstance(x, Child)])
        items += self._runs.rest(rest, items, old[k:], cut.closes_list, of_list=True)
        return self._node(kind, items, prior, same=max(0, same))

    def _again_in_list(
        self, value: Sequence[Any], at: int, item: Run | Child, aligned: bool, follows: Sequence[Run | Child]
    ) -> Run | Child | None:
        """The item at its place in the new list; None where the list has shifted (or it is no run any more)."""
        if isinstance(item, Child):
            element = self._element(value[at], item.node)
            if isinstance(element, bytes):
                return None
            return item if element.node is item.node else element
        if self._same_part(value, at, item):
            return item
        if not (aligned or not follows or self._same_part(value, at + item.count, follows[0])):
            return None
        elements = [self._element(x, None) for x in value[at : at + item.count]]
        if any(isinstance(e, Child) for e in elements):
            return None
        return self._runs.edited(item, elements, closed=item.closed)  # type: ignore[arg-type]

    def _same_part(self, value: Sequence[Any], at: int, item: Run | Child) -> bool:
        if isinstance(item, Child) or at + item.count > len(value):
            return False
        elements = list(value[at : at + item.count])
        if self._runs.looks_same(item, elements):
            return True
        data = codec.pack(elements, tracks=self._tracks)
        return self._runs.same(item, data, codec.header_size(item.count), elements)

    def _list_elements(self, value: Sequence[Any], at: int, children: list[Child]) -> Iterator[Element]:
        """Encoded elements from there on; large ones against the old large ones in order."""
        priors = iter(children)
        for i in range(at, len(value)):
            x = value[i]
            prior = None
            if children and room_left(x, cut.BIG) < 0:
                held = next(priors, None)
                prior = held.node if held is not None else None
            yield self._element(x, prior)

    def _map(
        self, value: dict[Any, Any], prior: Node | None, changed: Container[Any] | None, kind: Kind,
        clean: Clean | None = None,
    ) -> Node:  # fmt: skip
        """`changed`: the only keys whose values can differ, where that is known. `clean(at, count)`: entries that are
        the same, keys and all."""
        old = list(prior.items or []) if prior is not None else []
        if not plain_keys(value):
            kind = Kind.PAIRS if kind == Kind.MAP else Kind.TRACKED_PAIRS
        if prior is not None and (kind in ANY_KEYS) != (prior.kind in ANY_KEYS):
            prior, old = None, []
        total, n, k, at = sum(item.count for item in old), len(value), 0, 0
        items: list[Run | Child] = []
        apart = {item.key for item in old if isinstance(item, Child)} if changed is not None else set()
        entries = iter(value.items())
        held: list[tuple[Any, Any]] = []
        while k < len(old) and at + old[k].count <= n:
            item = old[k]
            held = list(islice(entries, item.count))
            again: Run | Child | None = item
            if clean is None or not clean(at, item.count):
                if apart and isinstance(item, Run) and any(codec.pack(key) in apart for key, _ in held):
                    break  # the entries have shifted: a large one, which need not be encoded, stands where it did not
                again = self._again_in_map(held, item, kind, changed, aligned=n == total or k == len(old) - 1)
            if again is None:
                break
            items.append(again)
            at, held, k = at + item.count, [], k + 1
        children = {x.key: x for x in old[k:] if isinstance(x, Child)}
        rest = (self._entry(key, x, children, changed) for part in (held, entries) for key, x in part)
        items += self._runs.rest(rest, items, old[k:], cut.closes_entry)
        return self._node(kind, items, prior)

    def _entry(self, key: Any, value: Any, children: dict[bytes, Child], changed: Container[Any] | None) -> Element:
        packed = codec.pack(key)
        held = children.get(packed)
        if held is None:
            return self._element(value, None, packed)
        return held if changed is not None and key not in changed else self._element(value, held.node, packed)

    def _again_in_map(
        self,
        part: list[tuple[Any, Any]],
        item: Run | Child,
        kind: Kind,
        changed: Container[Any] | None,
        *,
        aligned: bool,
    ) -> Run | Child | None:
        if isinstance(item, Child):
            key, x = part[0]
            packed = codec.pack(key)
            if packed != item.key:
                return None
            if changed is not None and key not in changed:
                return item
            element = self._element(x, item.node, packed)
            if isinstance(element, bytes):
                return None
            return item if element.node is item.node else element
        if kind in ANY_KEYS:
            data = codec.pack([x for pair in part for x in pair], tracks=self._tracks)
            header = codec.header_size(2 * len(part))
        else:
            data = codec.pack(dict(part), tracks=self._tracks)
            header = codec.header_size(len(part))
        if self._runs.same(item, data, header):
            return item
        if not aligned:
            return None
        elements = [self._entry(key, x, {}, None) for key, x in part]
        if any(isinstance(e, Child) for e in elements):
            return None
        return self._runs.edited(item, elements, closed=item.closed)  # type: ignore[arg-type]


def _seek(items: Sequence[Run | Child], total: int, start: int) -> tuple[int, int]:
    """(k, at): the item that holds element `start` (or the one that still grows), and its first element's index."""
    k, at = len(items), total
    while k > 0 and (at > start):
        k -= 1
        at -= items[k].count
    return k, at
