"""What changed between two stored states. Parts of equal digest are the same: they are not read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...errors import CorruptDataError
from ..shown.path import Path, Step, step_of
from ..tracked import tracked
from ..tree.nodes import Child, Item, Kind, Node, Run
from ..tree.recall import LISTS, RecallingReader
from ..values import codec
from .change import Change
from .states import Comparison

_MAPS = frozenset({Kind.MAP, Kind.TRACKED_MAP})
_TRACKED = frozenset({Kind.TRACKED_LIST, Kind.TRACKED_MAP, Kind.TRACKED_PAIRS})

Token = bytes | Child
"""An element or entry: as it is packed, or a node of its own."""


@dataclass(slots=True)
class _Part:
    """A value not read yet. `tracks`: it is inside a tracked container, and becomes one itself when read."""

    reader: RecallingReader
    node: Node
    tracks: bool = False

    def child(self, item: Child) -> _Part:
        tracks = self.tracks or self.node.kind in _TRACKED
        return _Part(self.reader, item.node, tracks and self.node.kind != Kind.OBJECT)

    def items(self, after: int = 0) -> Sequence[Run | Child]:
        """Its runs and children, those of its first so many items left out."""
        if not after:
            return self.reader.items(self.node)
        return self.reader.items(replace(self.node, top=self.node.top[after:], items=None, levels=[]))

    def tokens(self, items: Sequence[Run | Child]) -> list[Token]:
        found: list[Token] = []
        for item in items:
            found += [item] if isinstance(item, Child) else self.reader.packed_elements(item, self.node.kind)
        return found

    def value(self) -> Any:
        return self._tracked(self.reader.value(self.node))

    def elements(self, tokens: Sequence[Token]) -> Any:
        """The list or tuple, had it these elements only."""
        values: list[Any] = []
        for part in _batches(tokens):
            if isinstance(part, Child):
                values.append(self.reader.value(part.node))
            else:
                values += codec.unpack(codec.array_header(len(part)) + b"".join(part), opaque=True)
        return tuple(values) if self.node.kind == Kind.TUPLE else self._tracked(values)

    def entries(self, tokens: Sequence[bytes]) -> Any:
        """The dict, had it these entries only."""
        return self._tracked(codec.unpack(codec.map_header(len(tokens)) + b"".join(tokens), opaque=True))

    def _tracked(self, value: Any) -> Any:
        tracks = (self.tracks or self.node.kind in _TRACKED) and type(value) in (list, dict)
        return tracked(value) if tracks else value


def diff_trees(reader_a: RecallingReader, a: Node, reader_b: RecallingReader, b: Node) -> tuple[Change, ...]:
    """As `diff` of what the two nodes are read as. The readers are of one user; they may be the same."""
    run = _TreeComparison()
    return run.made(lambda: run.compare(_Part(reader_a, a), _Part(reader_b, b), (), ()))


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
        if alike and a.kind in LISTS:
            self._compare_list_parts(old, new, was, at)
        elif alike and a.kind in _MAPS:
            self._compare_map_parts(old, new, was, at)
        elif alike and a.kind == Kind.OBJECT:
            self._compare_object_parts(old, new, was, at)
        else:
            super().compare(self._read(old), self._read(new), was, at)

    # -- lists ---------------------------------------------------------------------------------------------

    def _compare_list_parts(self, old: _Part, new: _Part, was: Path, at: Path) -> None:
        a, b = old.node.top, new.node.top
        start = _same_start(a, b)
        first = sum(item.count for item in a[:start])
        olds, news = old.items(start), new.items(start)
        start = _same_start(olds, news)
        first += sum(item.count for item in olds[:start])
        end = _same_start(olds[start:][::-1], news[start:][::-1])
        olds, news = olds[start : len(olds) - end], news[start : len(news) - end]
        stretches = [(old.tokens(a), new.tokens(b), at_item) for a, b, at_item in _stretches(olds, news)]
        if _moves_between(stretches):
            stretches = [(old.tokens(olds), new.tokens(news), 0)]
        for left, right, at_item in stretches:
            self._compare_tokens(old, new, left, right, first + at_item, was, at)

    def _compare_tokens(
        self, old: _Part, new: _Part, olds: list[Token], news: list[Token], first: int, was: Path, at: Path
    ) -> None:
        start = _same_start(olds, news)
        end = _same_start(olds[start:][::-1], news[start:][::-1])
        olds, news = olds[start : len(olds) - end], news[start : len(news) - end]
        was, at = (*was, first + start), (*at, first + start)
        if len(olds) == len(news) == 1 and _share_parts(olds[0], news[0]):
            self.compare(old.child(olds[0]), new.child(news[0]), was, at)  # type: ignore[arg-type]
        elif olds or news:
            self.compare_stretch(self._keep(old.elements(olds)), self._keep(new.elements(news)), was, at)

    # -- maps ----------------------------------------------------------------------------------------------

    def _compare_map_parts(self, old: _Part, new: _Part, was: Path, at: Path) -> None:
        sides = []
        shared = {_name(item) for item in old.items()} & {_name(item) for item in new.items()}
        for part in (old, new):
            tokens: list[Any] = []
            for item in part.items():
                tokens += [item] if _name(item) in shared else part.tokens([item])
            sides.append((part, tokens))
        shared |= set(map(_name, sides[0][1])) & set(map(_name, sides[1][1]))
        (olds, old_order), (news, new_order) = (self._entries(*side, shared) for side in sides)
        before, after = set(old_order), set(new_order)
        if [x for x in old_order if x in after] + [x for x in new_order if x not in before] != new_order:
            super().compare(self._read(old), self._read(new), was, at)  # all keys have to be told
            return
        for entries, others in ((olds, news), (news, olds)):
            for step in entries.keys() - others.keys():
                entries[step] = self._read(entries[step])
        self.compare_entries(olds, news, was, at)

    def _entries(self, part: _Part, tokens: Sequence[Any], shared: set[Any]) -> tuple[dict[Step, Any], list[Any]]:
        """Entries by step, but those that are shared; and the order of all."""
        own = [token for token in tokens if _name(token) not in shared]
        read = self._keep(part.entries([token for token in own if isinstance(token, bytes)]))
        values = iter(read.items())
        entries: dict[Step, Any] = {}
        order: list[Any] = []
        for token in tokens:
            if _name(token) in shared:
                order.append((_name(token),))
                continue
            if isinstance(token, Child):
                step, value = step_of(codec.unpack(token.key)), part.child(token)
            else:
                pair = next(values, None)
                if pair is None:
                    raise CorruptDataError("bad-node", "a map of a state has a key twice")
                step, value = step_of(pair[0]), pair[1]
            entries[step] = value
            order.append(step)
        return entries, order

    # -- objects -------------------------------------------------------------------------------------------

    def _compare_object_parts(self, old: _Part, new: _Part, was: Path, at: Path) -> None:
        start = len(self.changes)
        a, b = (part.child(part.items()[0]) for part in (old, new))  # type: ignore[arg-type]
        if a.node.kind == b.node.kind and a.node.kind in (Kind.LIST, Kind.MAP):
            self.compare(a, b, was, at)
            if not any(change.op == "replace" and change.path == at for change in self.changes[start:]):
                return
            del self.changes[start:]
        super().compare(self._read(old), self._read(new), was, at)


def _name(item: Item | bytes) -> Any:
    """What tells an item from all others of its kind: a run's digest, a child's key and all it is."""
    if isinstance(item, Child):
        return item.key, item.node.digest_entry()
    return item if isinstance(item, bytes) else (item.digest, type(item))


def _same_start(a: Sequence[Item | bytes], b: Sequence[Item | bytes]) -> int:
    """How many items the two begin with that are the same."""
    n = 0
    while n < len(a) and n < len(b) and (a[n] is b[n] or _name(a[n]) == _name(b[n])):
        n += 1
    return n


def _stretches(
    olds: Sequence[Run | Child], news: Sequence[Run | Child]
) -> list[tuple[Sequence[Run | Child], Sequence[Run | Child], int]]:
    """(items, items, elements before) between items that stayed; one stretch where the list has shifted."""
    if len(olds) != len(news) or any(a.count != b.count for a, b in zip(olds, news, strict=True)):
        return [(olds, news, 0)] if olds or news else []
    same = [_name(a) == _name(b) for a, b in zip(olds, news, strict=True)]
    found = []
    start = offset = 0
    for n in range(len(olds) + 1):
        if n == len(olds) or same[n]:
            if start < n:
                found.append((olds[start:n], news[start:n], offset))
            offset += sum(item.count for item in olds[start : n + 1])
            start = n + 1
    return found


def _moves_between(stretches: Sequence[tuple[list[Token], list[Token], int]]) -> bool:
    """Whether an element went from one stretch and came in another: that is seen only where they are one."""
    lost: set[Any] = set()
    came: set[Any] = set()
    for olds, news, _ in stretches if len(stretches) > 1 else ():
        before, after = set(map(_name, olds)), set(map(_name, news))
        gone, new = before - after, after - before
        if gone & came or new & lost:
            return True
        lost |= gone
        came |= new
    return False


def _share_parts(a: Token, b: Token) -> bool:
    """Whether one large element became another that it shares parts with: the change is inside of it."""
    if isinstance(a, bytes) or isinstance(b, bytes) or a.node.kind != b.node.kind:
        return False
    return bool({_name(item) for item in a.node.top} & {_name(item) for item in b.node.top})


def _batches(tokens: Sequence[Token]) -> list[Any]:
    """Neighbouring packed elements together, nodes one by one."""
    found: list[Any] = []
    for token in tokens:
        if isinstance(token, Child) or not found or isinstance(found[-1], Child):
            found.append(token if isinstance(token, Child) else [token])
        else:
            found[-1].append(token)
    return found
