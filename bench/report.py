"""What a run found, as Markdown."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_PACKAGES = (
    "rekindle",
    "langgraph",
    "langgraph-checkpoint",
    "langgraph-checkpoint-sqlite",
    "agent-framework-core",
    "msgspec",
    "blake3",
)


@dataclass(frozen=True)
class Figure:
    """One line of the result. `reached` is None where the line only gives context."""

    what: str
    state: str
    durability: str
    ours: str
    against: str
    ratio: str
    target: str
    reached: bool | None


@dataclass(frozen=True)
class PeerCost:
    """What one peer paid for a workload."""

    workload: str
    peer: str
    durability: str
    bytes_held: str
    times_new: str
    save_p50: str
    restore: str


def yes_no(reached: bool | None) -> str:
    return "-" if reached is None else "yes" if reached else "**no**"


def size(count: float) -> str:
    for unit, step in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= step:
            return f"{count / step:.3g} {unit}" if count < 1000 * step else f"{count / step:,.0f} {unit}"
    return f"{count:.0f} B"


def duration(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} us"


def times(ratio: float) -> str:
    return f"{ratio:,.0f} x" if ratio >= 100 else f"{ratio:.3g} x"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def figures_table(figures: Iterable[Figure]) -> str:
    head = ("What", "State and contents", "Durability", "Ours", "Against", "Ratio", "Target", "Reached")
    return table(
        head,
        ((f.what, f.state, f.durability, f.ours, f.against, f.ratio, f.target, yes_no(f.reached)) for f in figures),
    )


def peers_tables(costs: Sequence[PeerCost]) -> str:
    """A table a workload: rekindle first, then its peers."""
    head = ("Who", "Durability", "Bytes held", "x new data", "Save p50 at the end", "Restore latest")
    parts = []
    for workload in dict.fromkeys(cost.workload for cost in costs):
        rows = (
            (c.peer, c.durability, c.bytes_held, c.times_new, c.save_p50, c.restore)
            for c in costs
            if c.workload == workload
        )
        parts += [f"### {workload}", table(head, rows)]
    return "\n\n".join(parts)


def environment() -> str:
    """The machine by cores and memory, and the versions of everything that ran."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    versions = [f"Python {platform.python_version()}", f"SQLite {sqlite3.sqlite_version}"]
    for package in _PACKAGES:
        try:
            versions.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            versions.append(f"{package} not installed")
    return f"{platform.system()}, {os.cpu_count()} cores, {memory:.0f} GB of memory. " + ", ".join(versions) + "."
