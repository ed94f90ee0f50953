"""The other process of a figure: `python -m bench.worker WHAT FOLDER ...`, an answer in JSON on stdout.

It prints `ready`, waits for a line on stdin, and begins. A saver goes on until the next line.
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import payloads
from bench.peers import ours
from bench.resident import peak_since_reset, reset_peak, resident


def saver(place: Path, agent: str) -> dict[str, Any]:
    """Saves 1 KB states until told to stop: how many, and how long the longest took."""
    store = ours.open_store(place)
    new = random.Random(agent)
    store.save(agent, {"step": -1, "content": new.randbytes(1000)})
    stop = threading.Event()
    _begin()
    threading.Thread(target=_stop_on_a_line, args=(stop,), daemon=True).start()
    waits = save_until(stop, lambda n: store.save(agent, {"step": n, "content": new.randbytes(1000)}))
    store.close()
    return {"saves": len(waits), "longest": max(waits)}


def save_until(stop: threading.Event, save: Any) -> list[float]:
    waits: list[float] = []
    while not stop.is_set():
        start = time.perf_counter()
        save(len(waits))
        waits.append(time.perf_counter() - start)
    return waits


def memory_of_save(place: Path, shape: str, size: str) -> dict[str, int]:
    """Peak resident memory above the state's own while it is saved, and that of the state."""
    store = ours.open_store(place)
    store.save("warm", {"content": b""})
    before = resident()
    state = large_state(shape, int(size))
    own = resident() - before
    reset_peak()
    start = resident()
    store.save("large", state)
    peak = peak_since_reset() - start
    store.close()
    return {"own": own, "above": peak}


def memory_of_restore(place: Path, shape: str, size: str) -> dict[str, int]:
    """Peak resident memory of a restore in a process that has not seen the state, which is included."""
    store = ours.open_store(place)
    store.restore(ours.latest(store, "warm"))
    reset_peak()
    start = resident()
    state = ours.restore_latest(store, "large")
    peak = peak_since_reset() - start
    store.close()
    if state != large_state(shape, int(size)):
        raise AssertionError("restored something else than was saved")
    return {"peak": peak}


def large_state(shape: str, size: int) -> payloads.State:
    piece = payloads.KB if shape == "messages" else payloads.MB
    pieces = payloads.random_bytes(piece)
    return {"messages": [{"role": "user", "content": next(pieces)} for _ in range(size // piece)]}


def _begin() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


def _stop_on_a_line(stop: threading.Event) -> None:
    sys.stdin.readline()
    stop.set()


_WHAT: dict[str, Callable[..., Any]] = {
    "saver": saver,
    "memory-of-save": memory_of_save,
    "memory-of-restore": memory_of_restore,
}

if __name__ == "__main__":
    print(json.dumps(_WHAT[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])), flush=True)
