"""Peak resident memory of a save and of a restore, each in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench import report, resident
from bench.measure import Dose, folder
from bench.payloads import MB
from bench.processes import ask
from bench.report import Figure


def run(dose: Dose, scratch: Path) -> Iterator[Figure]:
    for shape in ("messages", "blobs"):
        parts = "messages of 1 KB" if shape == "messages" else "blobs of 1 MB"
        state = f"{dose.state_mb} MB of random bytes in {parts}"
        if not resident.SUPPORTED:
            yield Figure("peak resident memory", state, "-", "not measured: no /proc here", "-", "-", "-", None)
            continue
        with folder(scratch, "memory") as place:
            yield from _figures(shape, state, dose.state_mb * MB, place)


def _figures(shape: str, state: str, size: int, place: Path) -> Iterator[Figure]:
    save = ask("memory-of-save", place, shape, str(size))
    restore = ask("memory-of-restore", place, shape, str(size))
    own = save["own"]
    for what, peak, reach in (
        ("peak memory of a save above the state's own", save["above"], 0.5),
        ("peak memory of a restore, the state included", restore["peak"], 1.5),
    ):
        yield Figure(
            what,
            state,
            "durable",
            report.size(peak),
            f"the state's own {report.size(own)}",
            report.times(peak / own),
            f"<= {reach} x",
            peak <= reach * own,
        )
