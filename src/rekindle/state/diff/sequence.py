"""Which element of a new list is which of the old one.

Elements that are strictly the same are the anchors, in a short list together with those much alike. What is
left between anchors is paired by identity (an `id`), then by likeness; the same element elsewhere is a move.
The work is bounded: a search that would grow with the square of the difference stops, and a rougher answer,
as correct, takes its place.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field

Pairs = list[tuple[int, int]]
Keys = Sequence[Hashable]

_MYERS_DEPTH = 400
_MYERS_WORK = 20  # steps an element
_PAIRED_BY_LIKENESS = 2_500
_STRONG = 0.3


@dataclass(slots=True)
class Alignment:
    """`kept`: (old index, new index) of elements that stay in order, rising on both sides. `moved`: the
    others that are on both sides. An old index in neither was removed, a new index in neither was added."""

    kept: Pairs = field(default_factory=list)
    moved: Pairs = field(default_factory=list)

    def gaps(self, old_size: int, new_size: int) -> Iterator[tuple[list[int], list[int]]]:
        """The old and new indices between kept pairs that are in no pair yet; only gaps with both."""
        gone = {i for i, _ in self.moved}
        come = {j for _, j in self.moved}
        last_i = last_j = -1
        for i, j in [*self.kept, (old_size, new_size)]:
            if i > last_i + 1 and j > last_j + 1:
                left = [at for at in range(last_i + 1, i) if at not in gone]
                right = [at for at in range(last_j + 1, j) if at not in come]
                if left and right:
                    yield left, right
            last_i, last_j = i, j


def align(
    old: Keys,
    new: Keys,
    *,
    heavy: Callable[[int], bool],
    identities: tuple[Keys, Keys],
    likeness: Callable[[int, int], float],
    sketches: tuple[Callable[[int], Hashable], Callable[[int], Hashable]],
) -> Alignment:
    """Pairs the elements of two lists given by their keys.

    `heavy(i)`: old element i is worth following when it moves though others are the same. `identities`: a
    key for each element that has one, None for the others; elements of two identities are never paired.
    `likeness(i, j)` of 0 to 1; what is 0 is not paired. `sketches`: a rough key of an old and of a new
    element (None for none), used where a gap is too large to compare each with each.
    """
    small = len(old) * len(new) <= _PAIRED_BY_LIKENESS
    found = Alignment(_most_alike(_weights(old, new, likeness)) if small else common(old, new))
    _find_moves(found, old, new, heavy)
    _fill_gaps(found, len(old), len(new), lambda left, right: _by_identity(identities, left, right))
    _find_moves(found, identities[0], identities[1], lambda i: False)
    _fill_gaps(found, len(old), len(new), lambda left, right: _by_likeness(left, right, likeness, sketches))
    return found


def _weights(old: Keys, new: Keys, likeness: Callable[[int, int], float]) -> list[list[float]]:
    """What it is worth to keep i as j: most for the same; for a changed one, where neither has its like."""
    olds, news = set(old), set(new)
    return [
        [
            1.0 if key == other else 0.0 if key in news or other in olds else _if_strong(likeness(i, j))
            for j, other in enumerate(new)
        ]
        for i, key in enumerate(old)
    ]


def _if_strong(likeness: float) -> float:
    return 0.9 * likeness if likeness >= _STRONG else 0.0


def common(old: Keys, new: Keys) -> Pairs:
    """A long common subsequence of two sequences of keys: the longest where the difference is small."""
    start, old_end, new_end = 0, len(old), len(new)
    while start < old_end and start < new_end and old[start] == new[start]:
        start += 1
    while old_end > start and new_end > start and old[old_end - 1] == new[new_end - 1]:
        old_end -= 1
        new_end -= 1
    inner = _common_inner(old[start:old_end], new[start:new_end])
    pairs = [(i, i) for i in range(start)]
    pairs += [(start + i, start + j) for i, j in inner]
    pairs += zip(range(old_end, len(old)), range(new_end, len(new)), strict=True)
    return pairs


def _common_inner(old: Keys, new: Keys) -> Pairs:
    if not old or not new:
        return []
    found = _myers(old, new)
    if found is not None:
        return found
    anchors = rising(_once_in_both(old, new)) or _patience(old, new)
    pairs: Pairs = []
    last_i = last_j = 0
    for i, j in [*anchors, (len(old), len(new))]:
        left, right = old[last_i:i], new[last_j:j]
        inner = _myers(left, right) if left and right else []
        pairs += [(last_i + a, last_j + b) for a, b in (_patience(left, right) if inner is None else inner)]
        if i < len(old):
            pairs.append((i, j))
        last_i, last_j = i + 1, j + 1
    return pairs


def _myers(old: Keys, new: Keys) -> Pairs | None:
    """The longest common subsequence by Myers' greedy search; None when that would take too much work."""
    n, m = len(old), len(new)
    work = _MYERS_WORK * (n + m) + 10_000
    if abs(n - m) > _MYERS_DEPTH:
        return None
    reach = {1: 0}
    trace = []
    for depth in range(_MYERS_DEPTH + 1):
        trace.append(dict(reach))
        if work < 0:
            break
        for diagonal in range(-depth, depth + 1, 2):
            down = diagonal == -depth or (diagonal != depth and reach[diagonal - 1] < reach[diagonal + 1])
            x = reach[diagonal + 1] if down else reach[diagonal - 1] + 1
            y = x - diagonal
            start = x
            while x < n and y < m and old[x] == new[y]:
                x, y = x + 1, y + 1
            work -= x - start + 1
            reach[diagonal] = x
            if x >= n and y >= m:
                return _walk_back(trace, n, m)
    return None


def _walk_back(trace: list[dict[int, int]], x: int, y: int) -> Pairs:
    pairs: Pairs = []
    for depth in range(len(trace) - 1, -1, -1):
        start_x = start_y = 0
        if depth:
            reach, diagonal = trace[depth], x - y
            down = diagonal == -depth or (diagonal != depth and reach[diagonal - 1] < reach[diagonal + 1])
            before = diagonal + 1 if down else diagonal - 1
            start_x, start_y = reach[before], reach[before] - before
        while x > start_x and y > start_y:
            x, y = x - 1, y - 1
            pairs.append((x, y))
        x, y = start_x, start_y
    pairs.reverse()
    return pairs


def _once_in_both(old: Keys, new: Keys) -> Pairs:
    """The pairs of keys that are there once in each."""
    counts, counts_new = Counter(old), Counter(new)
    places = {key: j for j, key in enumerate(new) if counts_new[key] == 1}
    return [(i, places[key]) for i, key in enumerate(old) if counts[key] == 1 and key in places]


def _patience(old: Keys, new: Keys) -> Pairs:
    """A rising chain of pairs of equal keys, the k-th of a key with the k-th of it; n log n."""
    places: dict[tuple[Hashable, int], int] = {}
    seen: Counter[Hashable] = Counter()
    for j, key in enumerate(new):
        places[key, seen[key]] = j
        seen[key] += 1
    seen.clear()
    matches: Pairs = []
    for i, key in enumerate(old):
        j_or_none = places.get((key, seen[key]))
        seen[key] += 1
        if j_or_none is not None:
            matches.append((i, j_or_none))
    return rising(matches)


def rising(matches: Pairs) -> Pairs:
    """The longest part of `matches` (rising in the first) that rises in the second too."""
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for at, (_, j) in enumerate(matches):
        place = bisect_left(tails, j)
        before.append(ends[place - 1] if place else -1)
        if place == len(tails):
            tails.append(j)
            ends.append(at)
        else:
            tails[place], ends[place] = j, at
    chain: Pairs = []
    at = ends[-1] if ends else -1
    while at >= 0:
        chain.append(matches[at])
        at = before[at]
    chain.reverse()
    return chain


def _find_moves(found: Alignment, old: Keys, new: Keys, heavy: Callable[[int], bool]) -> None:
    """Pairs elements left over on both sides that have the same key (None is no key): those that moved.

    An element the same as others is followed only where it is heavy: a 0 among zeros has not moved.
    """
    taken_old = {i for i, _ in found.kept} | {i for i, _ in found.moved}
    taken_new = {j for _, j in found.kept} | {j for _, j in found.moved}
    places: dict[Hashable, list[int]] = defaultdict(list)
    for j, key in enumerate(new):
        if j not in taken_new and key is not None:
            places[key].append(j)
    if not places:
        return
    counts: dict[Hashable, list[int]] = defaultdict(list)
    for i, key in enumerate(old):
        if i not in taken_old and key in places:
            counts[key].append(i)
    for key, lost in counts.items():
        if (len(lost) == 1 and len(places[key]) == 1) or heavy(lost[0]):
            found.moved += zip(lost, places[key], strict=False)


def _fill_gaps(found: Alignment, n: int, m: int, pairing: Callable[[list[int], list[int]], Pairs]) -> None:
    more = [(left[a], right[b]) for left, right in found.gaps(n, m) for a, b in pairing(left, right)]
    if more:
        found.kept = sorted(found.kept + more)


def _by_identity(identities: tuple[Keys, Keys], left: list[int], right: list[int]) -> Pairs:
    theirs = {identities[1][j]: b for b, j in enumerate(right) if identities[1][j] is not None}
    matches = [(a, theirs[identities[0][i]]) for a, i in enumerate(left) if identities[0][i] in theirs]
    return rising(matches)


def _by_likeness(
    left: list[int],
    right: list[int],
    likeness: Callable[[int, int], float],
    sketches: tuple[Callable[[int], Hashable], Callable[[int], Hashable]],
) -> Pairs:
    if len(left) * len(right) <= _PAIRED_BY_LIKENESS:
        return _most_alike([[likeness(i, j) for j in right] for i in left])
    theirs = [key if (key := sketches[0](i)) is not None else (0, i) for i in left]
    ours = [key if (key := sketches[1](j)) is not None else (1, j) for j in right]
    pairs: Pairs = []
    a = b = 0
    for anchor_a, anchor_b in [*common(theirs, ours), (len(left), len(right))]:
        while a < anchor_a and b < anchor_b:  # between two anchors: by place
            pairs.append((a, b))
            a, b = a + 1, b + 1
        if anchor_a < len(left):
            pairs.append((anchor_a, anchor_b))
        a, b = anchor_a + 1, anchor_b + 1
    return [(a, b) for a, b in pairs if likeness(left[a], right[b]) > 0]


def _most_alike(like: list[list[float]]) -> Pairs:
    """The in-order pairing with the largest sum of likeness."""
    n, m = len(like), len(like[0])
    best = [[0.0] * (m + 1) for _ in range(n + 1)]
    for a in range(n - 1, -1, -1):
        for b in range(m - 1, -1, -1):
            both = best[a + 1][b + 1] + like[a][b] if like[a][b] else 0.0
            best[a][b] = max(both, best[a + 1][b], best[a][b + 1])
    pairs: Pairs = []
    a = b = 0
    while a < n and b < m:
        if like[a][b] and best[a][b] == best[a + 1][b + 1] + like[a][b]:
            pairs.append((a, b))
            a, b = a + 1, b + 1
        elif best[a][b] == best[a + 1][b]:
            a += 1
        else:
            b += 1
    return pairs
