"""One bit of a closed store is another: every answer is the right one or CorruptDataError, and verify sees it.

By default one bit of every other byte of a SQLite store (`REKINDLE_SEED` says which), and of every 50th byte of a files
store, whose documents are each under one checksum; in torture every bit of both. By default 64 neighbours are flipped
together first: where that changes no answer and no finding of verify, nobody reads those bytes, and they count as
harmless.
"""

import os
import random
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.faults.small_store import USERS, Ids, build, checkpoints, questions

from rekindle import CorruptDataError, Store, open_store

TORTURE = os.environ.get("REKINDLE_TORTURE") == "1"
SEED = int(os.environ.get("REKINDLE_SEED", "20261118"))
TOGETHER = 64
EVERY = {"sqlite": 1, "file": 50}
"""Of so many bytes one is flipped by default."""
LONGEST = 10
"""Seconds after which an answer is a hang."""

Flip = tuple[Path, int, int]
"""A file, a byte of it, the bits of that to turn."""


@dataclass
class Whole:
    """A store as it was written, and every right answer."""

    url: str
    files: dict[Path, bytes]
    ids: Ids
    answers: dict[str, Any]
    counts: Counter[str] = field(default_factory=Counter)


def whole(url: str, folder: Path) -> Whole:
    build(url)
    with open_store(url, create=False) as store:
        ids = checkpoints(store)
        answers = {name: ask() for name, ask in questions(store, ids).items()}
        assert not found_by_verify(store)
    files = {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    return Whole(url, files, ids, answers)


def found_by_verify(store: Store) -> list[Any]:
    return [problem for user in USERS for problem in store.for_user(user).verify().problems]


# -- one damaged store ------------------------------------------------------------------------------------------------


@contextmanager
def flipped(store: Whole, flips: list[Flip]) -> Iterator[None]:
    touched = {path for path, _, _ in flips}
    for path in touched:
        data = bytearray(store.files[path])
        for where, at, bits in flips:
            if where == path:
                data[at] ^= bits
        path.write_bytes(data)
    try:
        yield
    finally:
        for path in touched:
            path.write_bytes(store.files[path])
        for path in Path(store.url.split("://")[1][1:]).parent.glob("*-wal"):
            path.unlink()


@contextmanager
def no_hang(what: str) -> Iterator[None]:
    def ring(*_: object) -> None:
        raise AssertionError(f"{what}: no answer for {LONGEST} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, LONGEST)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def damage(store: Whole, flips: list[Flip]) -> tuple[str, list[str], set[str]]:
    """(harmless | seen | refused, what is wrong with that, the questions that got no answer)."""
    with flipped(store, flips), no_hang(str(flips[:1])):
        try:
            opened = open_store(store.url, create=False)
        except CorruptDataError:
            return "refused", [], set(store.answers)
        except Exception as e:
            return "refused", [f"opening: {e!r}"], set(store.answers)
        with opened:
            return looked_at(store, opened)


def looked_at(store: Whole, opened: Store) -> tuple[str, list[str], set[str]]:
    wrong, silent = [], set()
    for name, ask in questions(opened, store.ids).items():
        try:
            answer = ask()
        except CorruptDataError:
            silent.add(name)
        except Exception as e:
            wrong.append(f"{name}: {e!r}"[:300])
        else:
            if answer != store.answers[name]:
                wrong.append(f"{name}: {answer!r} for {store.answers[name]!r}"[:300])
    try:
        found = found_by_verify(opened)
    except Exception as e:
        return "seen", [*wrong, f"verify: {e!r}"], silent
    if silent and not found:
        wrong.append(f"verify finds nothing, and there is no answer to {sorted(silent)[:3]}")
    return ("seen" if found else "harmless"), wrong, silent


# -- all of them -----------------------------------------------------------------------------------------------------


def sweep(store: Whole, every: int) -> list[str]:
    """Every byte of every file; answers what went wrong, and counts the rest."""
    bad: list[str] = []
    rng = random.Random(SEED)
    for path, data in store.files.items():
        if TORTURE:
            singles = [(path, at, 1 << bit) for at in range(len(data)) for bit in range(8)]
        elif every == 1:
            some = range(rng.randrange(2), len(data), 2)
            singles = list(worth_a_look(store, [(path, at, 1 << rng.randrange(8)) for at in some]))
        else:
            some = range(rng.randrange(min(every, len(data) or 1)), len(data), every)
            singles = [(path, at, 1 << rng.randrange(8)) for at in some]
        for flip in singles:
            outcome, wrong, _ = damage(store, [flip])
            store.counts[outcome] += 1
            bad += [f"{path.name} byte {flip[1]} bit {flip[2]:#x}: {each}" for each in wrong]
    return bad


def worth_a_look(store: Whole, flips: list[Flip]) -> Iterator[Flip]:
    """The flips of neighbourhoods in which anything is read."""
    for at in range(0, len(flips), TOGETHER):
        near = flips[at : at + TOGETHER]
        outcome, wrong, _ = damage(store, near)
        if outcome == "harmless" and not wrong:
            store.counts["harmless"] += len(near)
        else:
            yield from near


@pytest.mark.parametrize("scheme", ["sqlite", "file"])
def test_a_flipped_bit_is_seen_or_changes_nothing(scheme: str, tmp_path: Path) -> None:
    store = whole(f"{scheme}:///{tmp_path}/store", tmp_path)
    bad = sweep(store, EVERY[scheme])
    print(f"REKINDLE_SEED={SEED}", dict(store.counts), "of", sum(map(len, store.files.values())), "bytes")
    assert not bad, f"{len(bad)} wrong answers:\n" + "\n".join(bad[:40])
    assert store.counts["seen"] > 300


def test_what_is_whole_stays_readable(tmp_path: Path) -> None:
    """Damage in one agent's records takes nothing from the others that do not share with it."""
    for scheme in ("sqlite", "file"):
        store = whole(f"{scheme}:///{tmp_path}/{scheme}", tmp_path)
        hit = False
        for path, data in store.files.items():
            for at in occurrences(data, b"told alone"):
                _, wrong, silent = damage(store, [(path, at, 4)])
                assert not wrong
                lost = {name for name in silent if "restore" in name}
                assert lost <= {"local/c: restore 1"}, "more than the damaged checkpoint cannot be restored"
                hit = hit or bool(lost)  # SQLite may have an older copy, which nobody reads
        assert hit


def occurrences(data: bytes, text: bytes) -> Iterator[int]:
    at = data.find(text)
    while at >= 0:
        yield at
        at = data.find(text, at + 1)
