"""Resident memory of this process, from /proc (Linux)."""

from __future__ import annotations

from pathlib import Path

SUPPORTED = Path("/proc/self/clear_refs").exists()


def resident() -> int:
    return _status("VmRSS")


def reset_peak() -> None:
    """Begin a new peak: `ru_maxrss` can't be reset, and would remember the building of the state."""
    Path("/proc/self/clear_refs").write_text("5")


def peak_since_reset() -> int:
    return _status("VmHWM")


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(f"/proc/self/status has no {name}")
