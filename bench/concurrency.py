"""Many savers in one process, and many processes on one file."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench import report
from bench.measure import Dose, folder, p50
from bench.peers import ours
from bench.processes import save_together
from bench.report import Figure
from bench.worker import save_until

_GROUP = 64
_SYNCED = "durable: WAL, synchronous=FULL"


def run(dose: Dose, scratch: Path) -> Iterator[Figure]:
    with folder(scratch, "savers") as place:
        yield from _savers(dose, place)
    with folder(scratch, "processes") as place:
        yield from _processes(dose, place)


def _savers(dose: Dose, place: Path) -> Iterator[Figure]:
    """Rates in saves a second; the contestants take turns, a store each."""
    names = ("one", "threads", "tasks", "bare")
    for name in names:
        (place / name).mkdir()
    contestants: dict[str, Callable[[int], float]] = {
        "one": lambda n: threads_rate(place / "one", 1, dose.seconds, n),
        "threads": lambda n: threads_rate(place / "threads", dose.savers, dose.seconds, n),
        "tasks": lambda n: asyncio.run(tasks_rate(place / "tasks", dose.savers, dose.seconds, n)),
        "bare": lambda n: bare_rate(place / "bare", dose.seconds, n),
    }
    rates: dict[str, list[float]] = {name: [] for name in names}
    for n in range(dose.rounds):
        for name, rate in contestants.items():
            rates[name].append(rate(n))
    one, bare = p50(rates["one"]), p50(rates["bare"])
    for name in ("threads", "tasks"):
        many = p50(rates[name])
        state = f"1 KB of random bytes, new each save; an agent a saver; p50 of {dose.rounds} x {dose.seconds} s"
        for other, said, reach, target in (
            (one, f"one saver {one:,.0f} saves/s", 5, ">= 5 x"),
            (bare, f"bare executemany + commit in groups of {_GROUP}: {bare:,.0f} rows/s", 1 / 3, ">= 1/3"),
        ):
            yield Figure(
                f"{dose.savers} savers in one process ({name})",
                state,
                _SYNCED,
                f"{many:,.0f} saves/s",
                said,
                report.times(many / other),
                target,
                many >= reach * other,
            )


def threads_rate(place: Path, count: int, seconds: float, round_: int) -> float:
    store = ours.open_store(place)
    stop = threading.Event()
    saved: list[int] = []

    def saver(agent: str) -> None:
        new = random.Random(f"{agent} {round_}")
        saved.append(len(save_until(stop, lambda n: store.save(agent, _state(n, new)))))

    threads = [threading.Thread(target=saver, args=(f"agent-{n}",)) for n in range(count)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    stop.set()
    for thread in threads:
        thread.join()
    taken = time.perf_counter() - start
    store.close()
    if len(saved) < count:
        raise RuntimeError("a saver failed: its traceback is above")
    return sum(saved) / taken


async def tasks_rate(place: Path, count: int, seconds: float, round_: int) -> float:
    store = ours.open_async_store(place)
    end = time.perf_counter() + seconds

    async def saver(agent: str) -> int:
        new = random.Random(f"{agent} {round_}")
        n = 0
        while time.perf_counter() < end:
            await store.save(agent, _state(n, new))
            n += 1
        return n

    start = time.perf_counter()
    saved = await asyncio.gather(*(saver(f"agent-{n}") for n in range(count)))
    taken = time.perf_counter() - start
    await store.close()
    return sum(saved) / taken


def bare_rate(place: Path, seconds: float, round_: int) -> float:
    db = sqlite3.connect(place / "bare.db", isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY, agent TEXT, state BLOB)")
    new = random.Random(f"bare {round_}")
    start = time.perf_counter()
    written = 0
    while time.perf_counter() < start + seconds:
        rows = [(f"agent-{n}", new.randbytes(1000)) for n in range(_GROUP)]
        db.execute("BEGIN IMMEDIATE")
        db.executemany("INSERT INTO rows (agent, state) VALUES (?, ?)", rows)
        db.execute("COMMIT")
        written += _GROUP
    taken = time.perf_counter() - start
    db.close()
    return written / taken


def _state(step: int, new: random.Random) -> dict[str, Any]:
    return {"step": step, "content": new.randbytes(1000)}


def _processes(dose: Dose, place: Path) -> Iterator[Figure]:
    totals: list[float] = []
    singles: list[float] = []
    unfair: list[float] = []
    longest = 0.0
    for _ in range(dose.rounds):
        singles.append(save_together(place, ["single"], dose.seconds)[0]["saves"])
        found = save_together(place, [f"process-{n}" for n in range(4)], dose.seconds)
        counts = [one["saves"] for one in found]
        mean = sum(counts) / 4
        totals.append(sum(counts))
        unfair.append(max(abs(count - mean) / mean for count in counts))
        longest = max(longest, *(one["longest"] for one in found))
    state = f"1 KB of random bytes, new each save; an agent a process; {dose.rounds} x {dose.seconds} s"
    total, single = p50(totals), p50(singles)
    what = "4 processes on one file"
    yield Figure(
        f"{what}: farthest from the mean", state, _SYNCED, f"{p50(unfair):.0%}", "their mean", "-", "<= 20 %",
        p50(unfair) <= 0.2,
    )  # fmt: skip
    yield Figure(
        f"{what}: together", state, _SYNCED, f"{total / dose.seconds:,.0f} saves/s",
        f"one process {single / dose.seconds:,.0f} saves/s", report.times(total / single), ">= 0.8 x",
        total >= 0.8 * single,
    )  # fmt: skip
    yield Figure(
        f"{what}: longest wait of all rounds", state, _SYNCED, report.duration(longest), "-", "-", "< 250 ms",
        longest < 0.25,
    )  # fmt: skip
