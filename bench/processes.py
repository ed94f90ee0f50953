"""Workers in other processes, started together and stopped together."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parent.parent


class Saver:
    """A process that saves 1 KB states of `agent` into the store in `place`, from `begin` until `stop`."""

    def __init__(self, place: Path, agent: str) -> None:
        self._process = _worker("saver", place, agent)

    def wait_ready(self) -> None:
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "ready\n":
            raise RuntimeError(f"a worker did not start: exit status {self._process.wait()}")

    def tell(self) -> None:
        """Begin the first time, stop the second."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        return _answer(self._process)


def save_together(place: Path, agents: list[str], seconds: float) -> list[Any]:
    """One process an agent, all saving for `seconds`: the answer of each."""
    savers = [Saver(place, agent) for agent in agents]
    for saver in savers:
        saver.wait_ready()
    for saver in savers:
        saver.tell()
    time.sleep(seconds)
    for saver in savers:
        saver.tell()
    return [saver.answer() for saver in savers]


def ask(what: str, place: Path, *arguments: str) -> Any:
    return _answer(_worker(what, place, *arguments))


def _worker(what: str, place: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bench.worker", what, str(place), *arguments]
    return subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _answer(process: subprocess.Popen[str]) -> Any:
    out, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"a worker failed with exit status {process.returncode}: its traceback is above")
    return json.loads(out)
