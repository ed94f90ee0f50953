"""Indexes over a node's items, so that what a save writes of a list of any length is O(log n)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence

from .cut import fold_closes
from .nodes import Child, Hasher, Index, Item, Place, Run

FEW = 3
"""So many items of what grows need no index. The rest has one name: every save of what holds it writes that again."""


def fold(
    items: Sequence[Run | Child],
    old: Sequence[list[Index]],
    same: int,
    hasher: Hasher,
    put: Callable[[Sequence[Item]], Place],
    *,
    grows: bool = True,
) -> tuple[list[Item], list[list[Index]]]:
    """(top, levels) over items of which the first `same` are those that `old` levels were made over.

    An index that stays is reused; a new one is written by `put`. Where the items are of something that `grows` at its
    end, the last one stays outside, so that appending rewrites no index; else one is left in `top`.
    """
    few = FEW if grows else 1
    tops: list[list[Item]] = []
    levels: list[list[Index]] = []
    layer: Sequence[Item] = items
    while len(layer) > few:
        level = len(levels)
        kept, covered = _kept(old[level] if level < len(old) else [], same)
        made, known = kept, len(kept)
        end = len(layer) - grows
        start = at = covered
        while at < end:
            at += 1
            alone = not grows and at == end - 1  # the next one would be: this index takes it in
            if fold_closes(layer[at - 1].digest, at - start) and not alone:
                made.append(_index(layer[start:at], at, level + 1, hasher, put))
                start = at
        if not grows and len(layer) - start > 1:
            made.append(_index(layer[start:], len(layer), level + 1, hasher, put))
            start = len(layer)
        tops.append(list(layer[start:]))
        if not made:
            layer = []
            break
        levels.append(made)
        layer, same = made, known
    tops.append(list(layer))
    return [item for part in reversed(tops) for item in part], levels


def _kept(old: list[Index], same: int) -> tuple[list[Index], int]:
    """The old indexes whose items are all among the first `same`, and how many items these are."""
    kept = bisect_right(old, same, key=_end)
    return old[:kept], old[kept - 1].end if kept else 0


def _end(index: Index) -> int:
    return index.end


def _index(
    items: Sequence[Item], end: int, level: int, hasher: Hasher, put: Callable[[Sequence[Item]], Place]
) -> Index:
    held = list(items)
    count, size = sum([item.count for item in held]), sum([item.size for item in held])
    return Index(hasher.items(held), level, count, size, put(held), held, end)
