"""Giving space back, and what savers notice of it."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench import payloads, report
from bench.measure import Dose, folder, folder_bytes, p50, sync, timed
from bench.payloads import MB
from bench.peers import ours
from bench.processes import Saver
from bench.report import Figure
from bench.worker import save_until

_AGENTS = 4
_PART = MB // 4  # of new data a save


@dataclass(frozen=True)
class Round:
    collect: float
    copy: float
    vacuum: float
    before: int
    after: int
    thread_wait: float
    process_wait: float


def run(dose: Dose, scratch: Path) -> Iterator[Figure]:
    rounds = [_round(dose, scratch) for _ in range(min(3, dose.rounds))]
    collect, copy = p50([r.collect for r in rounds]), p50([r.copy for r in rounds])
    vacuum = p50([r.vacuum for r in rounds])
    last = rounds[-1]
    state = (
        f"store of {report.size(last.before)} of random bytes, {_AGENTS} agents pruned to half;"
        f" {report.size(last.after)} left; p50 of {len(rounds)}"
    )
    durability = "durable: WAL, synchronous=FULL"
    yield Figure(
        "collect",
        state,
        durability,
        report.duration(collect),
        f"copying the live bytes, synced: {report.duration(copy)}"
        f" (SQLite's own DELETE of the same rows and VACUUM, all others locked out: {report.duration(vacuum)})",
        report.times(collect / copy),
        "<= 2 x",
        collect <= 2 * copy,
    )
    for where, longest in (
        ("another thread", max(r.thread_wait for r in rounds)),
        ("another process", max(r.process_wait for r in rounds)),
    ):
        yield Figure(
            f"longest wait of a saver in {where} meanwhile",
            state,
            durability,
            report.duration(longest),
            "-",
            "-",
            "< 100 ms",
            longest < 0.1,
        )


def _round(dose: Dose, scratch: Path) -> Round:
    with folder(scratch, "collect") as place:
        _fill(place, dose.collect_mb * MB)
        quiet = _collected(place)
    with folder(scratch, "collect") as place:
        _fill(place, dose.collect_mb * MB)
        thread_wait, process_wait = _waits(place)
    return Round(*quiet, thread_wait, process_wait)


def _fill(place: Path, size: int) -> None:
    """Pruned: half of every agent's checkpoints, and of the bytes, since a save replaces the whole state."""
    new = random.Random(payloads.SEED)
    saves = size // (_AGENTS * _PART)
    store = ours.open_store(place)
    for _ in range(saves):
        for agent in range(_AGENTS):
            store.save(f"agent-{agent}", {"parts": [new.randbytes(payloads.KB) for _ in range(_PART // payloads.KB)]})
    ours.prune_to_last(store, saves // 2)
    store.close()


def _collected(place: Path) -> tuple[float, float, float, int, int]:
    """With nobody else there: collect, a plain copy of what it left, and what SQLite itself would do."""
    before = folder_bytes(place)
    database, rest = ours.database(place), place.parent / "uncollected"
    shutil.copy(database, rest)
    store = ours.open_store(place)
    collect = timed(store.collect)
    store.close()
    after = folder_bytes(place)
    copies = [timed(partial(_copy, place, place.parent / "copy")) for _ in range(3)]
    vacuum = timed(partial(_vacuum, rest, database))
    rest.unlink()
    return collect, p50(copies), vacuum, before, after


def _vacuum(path: Path, collected: Path) -> None:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA synchronous = FULL")
    db.execute("ATTACH ? AS collected", (str(collected),))
    db.execute("DELETE FROM records WHERE key NOT IN (SELECT key FROM collected.records)")
    db.execute("DETACH collected")
    db.execute("VACUUM")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    db.close()


def _copy(place: Path, to: Path) -> None:
    with to.open("wb") as out:
        for path in sorted(place.rglob("*")):
            if path.is_file():
                with path.open("rb") as source:
                    while block := source.read(MB):
                        out.write(block)
        out.flush()
        sync(out.fileno())
    os.unlink(to)


def _waits(place: Path) -> tuple[float, float]:
    """The longest save beside a collect, in a thread of the same store and in another process."""
    process = Saver(place, "process")
    process.wait_ready()
    store = ours.open_store(place)
    stop = threading.Event()
    waits: list[float] = []
    new = random.Random(1)

    def save(n: int) -> Any:
        return store.save("thread", {"step": n, "content": new.randbytes(1000)})

    thread = threading.Thread(target=lambda: waits.extend(save_until(stop, save)))
    save(-1)
    process.tell()
    thread.start()
    store.collect()
    stop.set()
    process.tell()
    thread.join()
    store.close()
    longest: float = process.answer()["longest"]
    return max(waits), longest
