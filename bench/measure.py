"""How a figure is taken: interleaved, repeated, medians; and what the disk holds afterwards."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType


@dataclass(frozen=True)
class Dose:
    """How much of everything one run does."""

    turns: int = 1000
    document: int = 1024 * 1024
    conversations: int = 60
    dict_steps: int = 1000
    messages: int = 1000
    many_messages: int = 100_000
    saves: int = 100
    heavy_saves: int = 20
    checkpoints: int = 100_000
    blamed: int = 10_000
    savers: int = 64
    seconds: float = 2.0
    rounds: int = 5
    collect_mb: int = 128
    state_mb: int = 100
    starts: int = 15


FULL = Dose()
QUICK = Dose(
    turns=20,
    document=64 * 1024,
    conversations=2,
    dict_steps=20,
    messages=40,
    many_messages=400,
    saves=5,
    heavy_saves=3,
    checkpoints=100,
    blamed=100,
    savers=8,
    seconds=0.1,
    rounds=1,
    collect_mb=2,
    state_mb=2,
    starts=1,
)


class Floor:
    """The least a durable save can cost: append some bytes to a file and wait for the disk."""

    def __init__(self, path: Path, size: int) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        self._data = random.Random(1).randbytes(size)

    def __call__(self) -> None:
        os.write(self._file, self._data)
        sync(self._file)

    def __enter__(self) -> Floor:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.close(self._file)


def sync(file: int) -> None:
    """What makes an append durable on this platform; on macOS a plain fsync stops at the drive's cache."""
    if sys.platform == "darwin":
        import fcntl

        fcntl.fcntl(file, fcntl.F_FULLFSYNC)
    elif hasattr(os, "fdatasync"):
        os.fdatasync(file)
    else:
        os.fsync(file)


def timed(act: Callable[[], object]) -> float:
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def interleaved(acts: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Seconds each act took, `rounds` times, in a new order every round: noise is for all."""
    order = list(acts)
    shuffle = random.Random(2).shuffle
    taken: dict[str, list[float]] = {name: [] for name in acts}
    for _ in range(rounds):
        shuffle(order)
        for name in order:
            taken[name].append(timed(acts[name]))
    return taken


def p50(values: list[float]) -> float:
    return statistics.median(values)


def folder_bytes(folder: Path) -> int:
    """All files of a closed store, by their length."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@contextlib.contextmanager
def folder(scratch: Path, name: str) -> Iterator[Path]:
    """A new empty folder, gone afterwards (runs write GBs)."""
    path = scratch / name
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    try:
        yield path
    finally:
        shutil.rmtree(path)
