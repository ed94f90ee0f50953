"""Sets of seqs as ranges: what was pruned is mostly long stretches."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator


class Ranges:
    """An immutable set of positive whole numbers, kept as (first, last) pairs in order, never touching."""

    __slots__ = ("_firsts", "pairs")

    def __init__(self, pairs: Iterable[tuple[int, int]] = ()) -> None:
        merged: list[tuple[int, int]] = []
        for first, last in sorted((int(a), int(b)) for a, b in pairs):
            if merged and first <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(merged[-1][1], last))
            else:
                merged.append((first, last))
        self.pairs = tuple(merged)
        self._firsts = [first for first, _ in merged]

    @classmethod
    def of(cls, seqs: Iterable[int]) -> Ranges:
        return cls((seq, seq) for seq in seqs)

    def __contains__(self, seq: int) -> bool:
        at = bisect_right(self._firsts, seq) - 1
        return at >= 0 and seq <= self.pairs[at][1]

    def __iter__(self) -> Iterator[int]:
        return (seq for first, last in self.pairs for seq in range(first, last + 1))

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.pairs)

    def __bool__(self) -> bool:
        return bool(self.pairs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ranges) and self.pairs == other.pairs

    def __hash__(self) -> int:
        return hash(self.pairs)

    def __repr__(self) -> str:
        return f"Ranges({list(self.pairs)})"

    def __or__(self, other: Ranges) -> Ranges:
        return Ranges((*self.pairs, *other.pairs)) if other.pairs else self

    def __sub__(self, other: Ranges) -> Ranges:
        left: list[tuple[int, int]] = []
        for first, last in self.pairs:
            for a, b in other.pairs:
                if b < first or a > last:
                    continue
                if a > first:
                    left.append((first, a - 1))
                first = b + 1
            if first <= last:
                left.append((first, last))
        return Ranges(left)

    def __and__(self, other: Ranges) -> Ranges:
        return self - (self - other)
