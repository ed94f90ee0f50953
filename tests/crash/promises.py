"""What a saver (saver.py) has promised on its pipe, and whether the store keeps it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.crash.saver import KEPT, SCRATCH, state_of

import rekindle
from rekindle.errors import NotFoundError
from rekindle.store import open_store
from rekindle.store.store import Store

PROGRAM = Path(__file__).with_name("saver.py")
Lines = list[list[str]]


def start(
    url: str, seed: int, steps: int = 1_000_000, *, durability: str = "durable", under: Sequence[str] = ()
) -> subprocess.Popen[str]:
    """A saver in a process of its own, perhaps under another program."""
    path = str(Path(rekindle.__file__).parents[1])
    env = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}
    command = [*under, sys.executable, str(PROGRAM), url, str(seed), str(steps), durability]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


def told(run: subprocess.Popen[str], *, timeout: float = 60) -> Lines:
    """What is left in the pipe once the saver has ended. A line cut off by its death promises nothing."""
    out, errors = run.communicate(timeout=timeout)
    assert run.returncode in (0, -9), f"the saver ended with {run.returncode}: {errors[-2_000:]}"
    return lines(out)


def lines(out: str) -> Lines:
    return [line.split() for line in out.splitlines(keepends=True) if line.endswith("\n")]


def broken(url: str, promised: Lines) -> list[str]:
    """What of the promises does not hold: [] when all is there, byte-exact, verify is clean and a save works."""
    with open_store(url) as store:
        problems = [str(problem) for problem in store.verify().problems]
        newest = [line for line in promised if line[:2] == ["saved", SCRATCH]][-1:]
        for line in promised:
            if (line[0] == "saved" and line[1] in KEPT) or line in newest:
                problems += _not_saved(store, line)
            elif line[0] == "forked" and line[1] in KEPT and line[2] not in store.branches(line[1]):
                problems.append(f"the branch {line[2]!r} is gone")
            elif line[0] == "imported" and len(store.list(line[1], limit=None)) < int(line[2]):
                problems.append(f"the import {line[1]!r} is not whole")
        for c in store.list(limit=None):
            if c.state != state_of(c.state["number"]):
                problems.append(f"{c.id} is not what was saved")
        after = store.save("afterwards", state_of(1))
        if store.restore(after.id) != state_of(1):
            problems.append("a save afterwards does not come back")
        return problems


def _not_saved(store: Store, line: list[str]) -> list[str]:
    _, agent, number, id_ = line
    try:
        same = store.restore(id_) == state_of(int(number))
    except NotFoundError:
        return [f"the save {id_} of {agent}, number {number}, is gone"]
    return [] if same else [f"the save {id_} of {agent} is not what was saved"]
