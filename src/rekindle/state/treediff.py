"""What changed between two stored states. Parts of equal digest are the same: they are not read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from . import codec
from .change import Change
from .diff import Comparison
from .path import Path, Step, step_of
from .read import Reader
from .tracked import tracked
from .tree import Child, Item, Kind, Node, Run

_LISTS = frozenset({Kind.LIST, Kind.TUPLE, Kind.TRACKED_LIST})
_MAPS = frozenset({Kind.MAP, Kind.TRACKED_MAP})
_TRACKED = frozenset({Kind.TRACKED_LIST, Kind.TRACKED_MAP})
_BLOCK = "block", "of entries that are the same in both"


@dataclass(slots=True)
class _Part:
    """A value not read yet. `tracks`: it is inside a tracked container, and one itself when read."""

    reader: Reader
    node: Node
    tracks: bool = False

    def child(self, item: Child) -> _Part:
        tracks = self.tracks or self.node.kind in _TRACKED
        return _Part(self.reader, item.node, tracks and self.node.kind != Kind.OBJECT)

    def some(self, items: Sequence[Run | Child]) -> Any:
        """The value, had it these of its items only."""
        value = self.reader.part(self.node, items)
        return tracked(value) if self.tracks and type(value) in (list, dict) else value

    def value(self) -> Any:
        return self.some(self.items())

    def items(self, after: int = 0) -> Sequence[Run | Child]:
        """Its runs and children, those of its first so many items left out."""
        if not after:
            return self.reader.items(self.node)
        return self.reader.items(replace(self.node, top=self.node.top[after:], items=None, levels=[]))


def diff_trees(old: tuple[Reader, Node], new: tuple[Reader, Node]) -> tuple[Change, ...]:
    """As `diff` of what the two nodes are read as; readers of one user."""
    run = _TreeComparison()
    return run.made(lambda: run.compare(_Part(*old), _Part(*new), (), ()))


class _TreeComparison(Comparison):
    def __init__(self) -> None:
        super().__init__()
        self._alive: list[Any] = []  # what was read: the canon knows values by their ids

    def compare(self, old: Any, new: Any, was: Path, at: Path) -> None:
        if isinstance(old, _Part) and isinstance(new, _Part):
            self._compare_parts(old, new, was, at)
        else:
            super().compare(self._read(old), self._read(new), was, at)

    def _read(self, value: Any) -> Any:
        return self._keep(value.value()) if isinstance(value, _Part) else value

    def _keep(self, value: Any) -> Any:
        self._alive.append(value)
        return value

    def _compare_parts(self, old: _Part, new: _Part, was: Path, at: Path) -> None:
        a, b = old.node, new.node
        alike = (a.kind, a.about, old.tracks) == (b.kind, b.about, new.tracks)
        if alike and a.digest == b.digest:
            return
        if alike and a.kind in _LISTS:
            self._compare_list_parts(old, new, was, at)
        elif alike and a.kind in _MAPS:
            self._compare_map_parts(old, new, was, at)
        elif alike and a.kind == Kind.OBJECT:
            self._compare_object_parts(old, new, was, at)
        else:
            super().compare(self._read(old), self._read(new), was, at)

    # -- lists -------------------------------------------------------------------------------------------------------

    def _compare_list_parts(self, old: _Part, new: _Part, was: Path, at: Path) -> None:
        tops = old.node.top, new.node.top
        start = _same_start(*tops)
        first = sum(item.count for item in tops[0][:start])
        olds, news = old.items(start), new.items(start)
        start = _same_start(olds, news)
        first += sum(item.count for item in olds[:start])
        end = _same_start(olds[start:][::-1], news[start:][::-1])
        for left, right, offset in _stretches(olds[start : len(olds) - end], news[start : len(news) - end]):
            here, there = (*was, first + offset), (*at, first + offset)
            if _is_one_child(left, right):
                self.compare(old.child(left[0]), new.child(right[0]), here, there)  # type: ignore[arg-type]
            else:
                self.compare_stretch(self._keep(old.some(left)), self._keep(new.some(right)), here, there)

    # -- maps --------------------------------------------------------------------------------------------------------

    def _compare_map_parts(self, old: _Part, new: _Part, was: Path, at: Path) -> None:
        shared = {_name(item) for item in old.items()} & {_name(item) for item in new.items()}
        olds, old_order = self._entries(old, shared)
        news, new_order = self._entries(new, shared)
        among, before = set(new_order), set(old_order)
        kept = [x for x in old_order if x in among]
        if kept + [x for x in new_order if x not in before] != new_order:
            super().compare(self._read(old), self._read(new), was, at)  # in other order: all keys have to be told
            return
        for entries, others in ((olds, news), (news, olds)):
            for step in entries.keys() - others.keys():
                entries[step] = self._read(entries[step])
        self.compare_entries(olds, news, was, at)

    def _entries(self, part: _Part, shared: set[Any]) -> tuple[dict[Step, Any], list[Any]]:
        """Entries by step, of items that are not shared; and the order of all, a shared item as one."""
        entries: dict[Step, Any] = {}
        order: list[Any] = []
        for item in part.items():
            name = _name(item)
            if name in shared:
                order.append((_BLOCK, name))
                continue
            if isinstance(item, Child):
                found = {codec.unpack(item.key): part.child(item)}
            else:
                found = self._keep(part.some([item]))
            steps = {step_of(key): held for key, held in found.items()}
            order += steps
            entries |= steps
        return entries, order

    # -- objects -----------------------------------------------------------------------------------------------------

    def _compare_object_parts(self, old: _Part, new: _Part, was: Path, at: Path) -> None:
        start = len(self.changes)
        inside = [part.child(part.items()[0]) for part in (old, new)]  # type: ignore[arg-type]
        kinds = {part.node.kind for part in inside}
        if len(kinds) == 1 and kinds <= {Kind.LIST, Kind.MAP}:
            self.compare(*inside, was, at)
            if not any(change.op == "replace" and change.path == at for change in self.changes[start:]):
                return
            del self.changes[start:]
        super().compare(self._read(old), self._read(new), was, at)


def _name(item: Item) -> Any:
    """What tells an item of a map from all others: its digest, of a child its key and all it is."""
    if isinstance(item, Child):
        return item.key, item.node.digest_entry()
    return item.digest


def _same_start(a: Sequence[Item], b: Sequence[Item]) -> int:
    """How many items the two begin with that are the same."""
    n = 0
    while n < len(a) and n < len(b) and type(a[n]) is type(b[n]) and _name(a[n]) == _name(b[n]):
        n += 1
    return n


def _stretches(olds: Sequence[Run | Child], news: Sequence[Run | Child]) -> list[tuple[Any, Any, int]]:
    """(items, items, elements before) that differ between items that stayed; one stretch where the list shifted."""
    whole = [(olds, news, 0)] if olds or news else []
    if len(olds) != len(news) or any(a.count != b.count for a, b in zip(olds, news, strict=True)):
        return whole
    same = [_name(a) == _name(b) for a, b in zip(olds, news, strict=True)]
    lost = {_name(a) for a, stayed in zip(olds, same, strict=True) if not stayed}
    if any(_name(b) in lost for b, stayed in zip(news, same, strict=True) if not stayed):
        return whole  # something has moved: that is seen only together
    found = []
    start = offset = 0
    for n in range(len(olds) + 1):
        if n == len(olds) or same[n]:
            if start < n:
                found.append((olds[start:n], news[start:n], offset))
            offset += sum(item.count for item in olds[start : n + 1])
            start = n + 1
    return found


def _is_one_child(left: Sequence[Any], right: Sequence[Any]) -> bool:
    """Whether one large element became another that it shares parts with: the change is inside of it."""
    if len(left) != 1 or len(right) != 1 or not (isinstance(left[0], Child) and isinstance(right[0], Child)):
        return False
    a, b = left[0].node, right[0].node
    return a.kind == b.kind and bool({_name(item) for item in a.top} & {_name(item) for item in b.top})


