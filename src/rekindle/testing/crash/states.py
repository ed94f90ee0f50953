"""Every disk that a power cut could leave behind, or a seeded sample where there are too many."""

from __future__ import annotations

import math
import random
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice

from rekindle.testing.crash.disk import SimDisk
from rekindle.testing.crash.ledger import WHOLE, Landing, Ledger, Pending, sectors
from rekindle.testing.crash.log import DataOp, Image, Mark, Op, Recording, Write, describe

TORN = 4
"""So many of the last writes are torn one by one."""

_Choice = tuple[Landing, bool, bool]
"""What landed; whether a file grew over junk, not zeros; whether it was drawn at random."""


@dataclass(frozen=True)
class CrashState:
    """What one power cut leaves. `marks` are the labels marked before it: what had been promised by then."""

    position: int
    """The power went after this many operations."""
    marks: tuple[Hashable, ...]
    image: Image
    digest: bytes
    """Equal for equal images."""
    landing: Landing
    """Which of the operations not yet synced reached the disk: `ledger.WHOLE` or a mask of sectors."""
    pending: tuple[tuple[int, Op], ...] = field(repr=False)
    """The operations not yet synced, by their number in the recording."""

    def disk(self) -> SimDisk:
        """A fresh disk that holds the image, as after the power came back."""
        return SimDisk(self.image)

    def __str__(self) -> str:
        lines = [f"power cut after operation {self.position}; marked: {self.marks[-1:] or 'nothing'}"]
        for number, op in self.pending:
            how = self.landing.get(number, 0)
            fate = "landed" if how == WHOLE else f"torn {how:#b}" if how else "lost"
            lines.append(f"  {fate}: {number}: {describe(op)}")
        return "\n".join(lines)


def crash_states(
    recording: Recording,
    *,
    seed: int = 0,
    exhaustive: int = 6,
    per_point: int = 64,
    patience: int = 24,
    limit: int | None = None,
    fsync_keeps_name: bool = False,
) -> Iterator[CrashState]:
    """The states a power cut at each point of the recording can leave, each image once between two marks.

    At a point with up to `exhaustive` pending operations every subset of them is taken; with more, none, all,
    and in an order the seed decides prefixes, one alone, all but one, one file alone. Then the last writes
    torn, then random choices until `patience` of them in a row show nothing new. `per_point` bounds the new
    states of a point, `limit` those of all, spread over all points. An image found again after a further mark
    comes again: more is promised.

    With `fsync_keeps_name` the sync of a file makes its new names durable, as on ext4; POSIX does not say so.
    """
    rng = random.Random(seed)
    ledger = Ledger(recording.base, fsync_keeps_name=fsync_keeps_name)
    marks: tuple[Hashable, ...] = ()
    seen: set[bytes] = set()
    made, points = 0, len(recording.ops) + 1
    for position in range(points):
        if position:
            op = recording.ops[position - 1]
            ledger.feed(position - 1, op)
            if isinstance(op, Mark):
                marks += (op.label,)
                seen.clear()
        allowed = per_point
        if limit is not None:
            allowed = min(per_point, math.ceil((limit - made) / (points - position)))
        pending = ledger.pending()
        told = tuple((p.number, p.op) for p in pending)
        fresh = _fresh(ledger, pending, seen, rng, exhaustive=exhaustive, patience=patience)
        for landing, image, digest in islice(fresh, allowed):
            made += 1
            yield CrashState(position, marks, image, digest, landing, told)


def _fresh(
    ledger: Ledger,
    pending: list[Pending],
    seen: set[bytes],
    rng: random.Random,
    *,
    exhaustive: int,
    patience: int,
) -> Iterator[tuple[Landing, Image, bytes]]:
    fruitless = 0
    chosen = _subsets(pending, rng) if len(pending) <= exhaustive else _suspects(pending, rng)
    for landing, junk, at_random in chain(chosen, _torn(pending, rng), _random(pending, rng)):
        image, digest = ledger.image(landing, junk=junk)
        if digest not in seen:
            seen.add(digest)
            fruitless = 0
            yield landing, image, digest
        elif at_random:
            fruitless += 1
            if fruitless == patience:
                return


def _subsets(pending: list[Pending], rng: random.Random) -> Iterator[_Choice]:
    every = (1 << len(pending)) - 1
    between = list(range(1, every))
    rng.shuffle(between)
    for bits in dict.fromkeys((0, every, *between)):
        yield {p.number: WHOLE for n, p in enumerate(pending) if bits >> n & 1}, False, False


def _suspects(pending: list[Pending], rng: random.Random) -> Iterator[_Choice]:
    """The landings that find most faults, when there are too many to take all."""
    numbers = [p.number for p in pending]
    choices = [numbers[:k] for k in range(1, len(numbers))]
    choices += [[n] for n in numbers]
    choices += [[n for n in numbers if n != but] for but in numbers]
    for inode in {p.op.inode for p in pending if isinstance(p.op, DataOp)}:
        one = {p.number for p in pending if isinstance(p.op, DataOp) and p.op.inode == inode}
        choices += [sorted(one), [n for n in numbers if n not in one]]
    rng.shuffle(choices)
    for choice in ([], numbers, *choices):
        yield dict.fromkeys(choice, WHOLE), False, False


def _torn(pending: list[Pending], rng: random.Random) -> Iterator[_Choice]:
    """One of the last writes landed in part, and of the rest everything or nothing."""
    every = {p.number: WHOLE for p in pending}
    choices: list[_Choice] = []
    writes = [(p.number, p.op) for p in pending if isinstance(p.op, Write)]
    for number, write in writes[-TORN:]:
        count = sectors(write)
        for mask in (1 << count, *((1 << k) - 1 for k in range(1, count))):
            for rest in every, {}:
                choices += [({**rest, number: mask}, junk, False) for junk in (False, True)]
    rng.shuffle(choices)
    yield from choices


def _random(pending: list[Pending], rng: random.Random) -> Iterator[_Choice]:
    while pending:
        likely = rng.choice((0.15, 0.5, 0.85))
        landing = {}
        for p in pending:
            if isinstance(p.op, Write) and rng.random() < 0.25:
                landing[p.number] = rng.getrandbits(sectors(p.op) + 1)
            elif rng.random() < likely:
                landing[p.number] = WHOLE
        yield landing, rng.random() < 0.3, True
