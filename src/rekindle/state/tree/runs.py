"""Runs being written: whole, appended to, or edited in place, whichever stores least."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from . import cut, slots
from .against import MOST, against_slot
from .looks import Look, look
from .nodes import DIGEST, Child, Hasher, Kind, Place, Run
from .out import Laid, Slots, Stretches
from .read import Reader

MOST_SPLICES = 64
"""A run edited more often is written anew: reading it stays cheap."""
_LEAST_MEAN = 16
_KEPT = 128
"""Bytes of new elements that are worth a record of the journal."""
_SMALL = 512

Closes = Callable[[bytes, int, int], bool]


class RunWriter:
    def __init__(self, hasher: Hasher, reader: Reader, out: Slots, memory: int) -> None:
        self._memory = memory
        self._hasher = hasher
        self._reader = reader
        self._out = out

    def looks_same(self, run: Run, elements: Sequence[Any]) -> bool:
        """Whether a list's elements look as they did when they were found to be the run's. False says nothing."""
        if not isinstance(run.packed, Look):
            return False
        if not run.packed.fits(elements):
            run.packed = None
            return False
        self._memory -= run.packed.size
        return True

    def same(self, run: Run, packed: bytes, header: int = 0, elements: Sequence[Any] = ()) -> bool:
        """Whether a run's elements, packed behind a header of so many bytes, are what they were."""
        if len(packed) != run.size + header:
            return False
        if isinstance(run.packed, bytes):
            self._memory -= run.size
            return packed == run.packed
        if self._hasher.content(memoryview(packed)[header:]) != run.digest:
            return False
        seen = look(elements) if elements else None
        size = run.size if seen is None else seen.size
        if self._memory >= size:
            self._memory -= size
            run.packed = packed if seen is None else seen
        return True

    def fresh(
        self,
        content: bytes,
        lengths: list[int] | None,
        count: int,
        *,
        closed: bool,
        elements: list[bytes] | None = None,
    ) -> Run:
        """A run written whole, or found where this user already has it."""
        digest = self._hasher.content(content)
        if lengths is not None and len(content) < _LEAST_MEAN * len(lengths):
            lengths = None
        run = Run(digest, count, len(content), [], closed)
        self._keep(run, content, lengths)
        if (place := self._out.find(digest)) is not None:
            run.places = [place]
            return run
        large = len(content) >= cut.BIG and closed
        if large and (place := self._out.share(digest)) is not None:
            run.places = [place]
            return run
        slot = None
        if not closed and self._out.compress and len(content) > _SMALL and not self._out.journal:
            stream = slots.Stream()  # dear to make: not for the few bytes of a map's last entries
            slot = slots.stream_slot(content, lengths, stream, first=True)
            run.stream = stream if slot is not None else False
        against = against_slot(content, lengths, self._out.bases()) if self._out.compress else None
        run.places = [self._out.put(against or slot or slots.plain_slot(content, lengths, compress=self._out.compress))]
        if large:
            self._out.shared.append((digest, run.places[0]))
        if self._out.journal:
            self._out.laid.append(Laid(digest, elements or [content], run.places[0], alone=against is None))
        return run

    def _keep(self, run: Run, content: bytes, lengths: list[int] | None) -> None:
        """Remember the bytes of a run that is likely to change: one that grows, or has been edited before."""
        if not run.closed or run.spliced:
            run.raw, run.lengths = content, lengths

    def rest(
        self,
        elements: Iterable[bytes | Child],
        before: list[Run | Child],
        old: Sequence[Run | Child],
        closes: Closes,
        *,
        of_list: bool = False,
    ) -> list[Run | Child]:
        """Items for elements that follow `before`; what `old` items are no longer placed may be used again.

        A run at the end of `before` that is still open is taken off it and continued. New elements `of_list` may be put
        into a journal.
        """
        last = before[-1] if before else None
        tail = last if isinstance(last, Run) and not last.closed else None
        if tail is not None:
            before.pop()
        groups = _groups(iter(elements), closes, tail)
        if tail is not None:
            first = next(groups, None)
            if first is None:
                return [tail]
            if isinstance(first, Child):
                return [tail, first, *self._placed(groups, old, of_list=of_list)]
            added, closed = first
            longer = self.appended(tail, added, closed=closed, of_list=of_list)
            return [longer, *self._placed(groups, old, of_list=of_list)]
        return list(self._placed(groups, old, of_list=of_list))

    def _made(self, group: Child | tuple[list[bytes], bool], *, of_list: bool) -> Run | Child:
        if isinstance(group, Child):
            return group
        elements, closed = group
        content = b"".join(elements)
        keeps = of_list and self._out.keep is not None and _KEPT <= len(content) < cut.BIG
        found: Stretches | None = [(elements, None)] if keeps else self._out.split(elements)
        if found is None or (len(found) == 1 and found[0][1] is not None):
            lengths = [len(e) for e in elements]
            return self.fresh(content, lengths, len(elements), closed=closed, elements=elements)
        run = Run(self._hasher.content(content), len(elements), len(content), self._laid([], found), closed)
        self._keep(run, content, [len(e) for e in elements])
        return run

    def _laid(self, places: list[Place], found: Stretches) -> list[Place]:
        """Places with those of more elements; what the journal does not have is written."""
        for elements, place in found:
            if place is None and self._out.keep is not None:
                place = self._out.keep(elements)
            if place is None:
                lengths = [len(e) for e in elements]
                slot = slots.plain_slot(b"".join(elements), lengths, compress=self._out.compress)
                places = with_place(places, self._out.put(slot))
            elif self._out.pieces is not None and not self._out.journal:
                places = self._out.pieces.joined(places, place)
            else:
                places = [*places, place]
        return places

    def _placed(
        self, groups: Iterator[Child | tuple[list[bytes], bool]], old: Sequence[Run | Child], *, of_list: bool
    ) -> Iterator[Run | Child]:
        """Groups as items: an old run that is the same, else an edit of an old run that has gone, else a new one."""
        if not old:
            for group in groups:
                yield self._made(group, of_list=of_list)
            return
        found = list(groups)
        runs = {run.digest: run for run in old if isinstance(run, Run)}
        digests = {
            id(group): self._hasher.content(b"".join(group[0])) for group in found if not isinstance(group, Child)
        }
        gone = iter([run for run in runs.values() if run.digest not in set(digests.values())])
        for group in found:
            if isinstance(group, Child):
                yield group
            elif (run := runs.get(digests[id(group)])) is not None:
                yield run
            elif (candidate := next(gone, None)) is not None:
                yield self.edited(candidate, group[0], closed=group[1])
            else:
                yield self._made(group, of_list=of_list)

    def edited(self, old: Run, elements: list[bytes], *, closed: bool) -> Run:
        """A run whose elements were `old`'s: only what differs is written, while that is much less than all."""
        content = b"".join(elements)
        lengths = [len(e) for e in elements]
        held = self._reader.elements(old) if len(content) > _SMALL else None
        if held is None or _pieces(old) >= MOST_SPLICES:
            return self.fresh(content, lengths, len(elements), closed=closed)
        splices, added = _difference(held, elements)
        if sum(map(len, added)) + 16 * len(splices) > len(content) // 2:
            return self.fresh(content, lengths, len(elements), closed=closed)
        data = b"".join(added)
        slot = slots.splice_slot(data, [len(e) for e in added], splices, compress=self._out.compress)
        return self._spliced(old, slot, content, lengths, len(elements), closed)

    def appended(self, old: Run, added: list[bytes], *, closed: bool, of_list: bool) -> Run:
        """An open run with more elements at its end."""
        data = b"".join(added)
        more = [len(e) for e in added]
        raw, known = self._known(old)
        lengths = None if known is None else [*known, *more]
        slot, stream = None, old.stream
        old.stream = None  # another branch may go on from the same run: a stream is continued once
        keeps = of_list and self._out.keep is not None and _KEPT <= len(data) <= MOST
        found: Stretches | None = [(added, None)] if keeps else self._out.split(added)
        if found is not None:
            return self._longer(old, raw, data, lengths, self._laid(old.places, found), len(added), closed, None)
        if self._out.compress and stream is not False:
            first = stream is None
            stream = stream or slots.Stream()
            slot = slots.stream_slot(data, more if lengths is not None else None, stream, first=first)
            stream = stream if slot is not None else False
        if slot is None:  # this run does not compress
            slot = slots.plain_slot(data, more if lengths is not None else None, compress=False)
        places = with_place(old.places, self._out.put(slot))
        return self._longer(old, raw, data, lengths, places, len(added), closed, stream)

    def _longer(
        self, old: Run, raw: bytes, data: bytes, lengths: list[int] | None, places: list[Place], added: int,
        closed: bool, stream: Any,
    ) -> Run:  # fmt: skip
        hashed = self._hasher.longer(old.hashed, raw, data)
        run = Run(hashed.digest(DIGEST), old.count + added, old.size + len(data), places, closed, old.spliced)
        self._keep(run, raw + data, lengths)
        if not closed:
            run.stream, run.hashed = stream, hashed
        return run

    def _known(self, run: Run) -> tuple[bytes, list[int] | None]:
        """A run's bytes, and its elements' lengths where they were kept."""
        if run.raw is not None:
            return run.raw, run.lengths
        elements = self._reader.elements(run)
        if elements is None:
            return self._reader.contents([run], Kind.LIST)[0], None
        return b"".join(elements), [len(e) for e in elements]

    def _spliced(
        self, old: Run, slot: bytes, content: bytes, lengths: list[int] | None, count: int, closed: bool
    ) -> Run:
        places = with_place(old.places, self._out.put(slot))
        run = Run(self._hasher.content(content), count, len(content), places, closed, spliced=True)
        self._keep(run, content, lengths)
        return run

    # -- long texts: bytes cut at lines, compared from both ends ---------------------------------------------------

    def text(self, data: bytes, old: Sequence[Run]) -> Iterator[Run]:
        start = front = 0
        while front < len(old) and self.same(old[front], data[start : start + old[front].size]):
            start += old[front].size
            front += 1
        end, back = len(data), len(old)
        while (
            back > front
            and end - old[back - 1].size >= start
            and self.same(old[back - 1], data[end - old[back - 1].size : end])
        ):
            back -= 1
            end -= old[back].size
        yield from old[:front]
        yield from self._text_middle(data[start:end], old[front:back], last=back == len(old), empty=not data)
        yield from old[back:]

    def _text_middle(self, middle: bytes, old: Sequence[Run], *, last: bool, empty: bool) -> Iterator[Run]:
        if not middle and not empty:
            return
        if len(old) == 1 and len(middle) <= 2 * cut.RUN_BYTES:
            yield self._text_edit(old[0], middle)
            return
        known = {run.digest: run for run in old}
        for piece in cut.chunks(middle):
            yield known.get(self._hasher.content(piece)) or self.fresh(piece, None, 1, closed=True)

    def _text_edit(self, old: Run, content: bytes) -> Run:
        held = old.raw if old.raw is not None else self._reader.contents([old], Kind.BYTES)[0]
        front, back = cut.common_ends(held, content)
        added = content[front : len(content) - back]
        if len(added) > len(content) // 2 or _pieces(old) >= MOST_SPLICES:
            return self.fresh(content, None, 1, closed=True)
        splices = [(front, len(held) - front - back, len(added))]
        slot = slots.splice_slot(added, None, splices, compress=self._out.compress)
        return self._spliced(old, slot, content, None, 1, True)


def _groups(
    elements: Iterator[bytes | Child], closes: Closes, tail: Run | None
) -> Iterator[Child | tuple[list[bytes], bool]]:
    """Elements in groups (elements, closed). Continuing an open tail, the first group is what goes on it."""
    group: list[bytes] = []
    count, size = (tail.count, tail.size) if tail is not None else (0, 0)
    for element in elements:
        if isinstance(element, Child):
            if group:
                yield group, True
            yield element
            group, count, size = [], 0, 0
            continue
        group.append(element)
        count += 1
        size += len(element)
        if closes(element, count, size):
            yield group, True
            group, count, size = [], 0, 0
    if group:
        yield group, False


def _pieces(run: Run) -> int:
    return sum(place[1] if isinstance(place[0], int) else 1 for place in run.places)


def with_place(places: list[Place], new: Place) -> list[Place]:
    """Places with one more; a neighbour of the last one only makes it longer."""
    seq, n, slot = places[-1] if places else (None, 0, 0)
    if type(seq) is int and type(new[0]) is int and 0 <= seq == new[0] - n and slot == new[2]:
        return [*places[:-1], (seq, n + 1, slot)]  # one of a journal, -seq, is nobody's neighbour
    return [*places, new]


def _difference(old: list[bytes], new: list[bytes]) -> tuple[list[slots.Splice], list[bytes]]:
    """Splices from old to new, and the elements they add: position by position, or one stretch, whichever is less."""
    stretch = _stretch(old, new)
    if len(old) != len(new):
        return stretch
    splices: list[slots.Splice] = []
    added: list[bytes] = []
    for i, (a, b) in enumerate(zip(old, new, strict=True)):
        if a == b:
            continue
        if splices and splices[-1][0] + splices[-1][1] == i:
            start, removed, n = splices[-1]
            splices[-1] = (start, removed + 1, n + 1)
        else:
            splices.append((i, 1, 1))
        added.append(b)
    return (splices, added) if sum(map(len, added)) <= sum(map(len, stretch[1])) else stretch


def _stretch(old: list[bytes], new: list[bytes]) -> tuple[list[slots.Splice], list[bytes]]:
    limit = min(len(old), len(new))
    front = 0
    while front < limit and old[front] == new[front]:
        front += 1
    back = 0
    while back < limit - front and old[-1 - back] == new[-1 - back]:
        back += 1
    return [(front, len(old) - front - back, len(new) - front - back)], new[front : len(new) - back]
