"""A process that has imported LangGraph, and forks one for each job: a fresh process without two seconds of imports.

python -m tests.faults.forking, with a job a line: {"call": "module:function", "args": [...]}; a line of answer each.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import traceback
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import rekindle

ROOT = Path(__file__).parents[2]
TIMEOUT = 60


def environment() -> dict[str, str]:
    """Of a process that runs a module of the tests."""
    path = os.pathsep.join((str(ROOT), str(Path(rekindle.__file__).parents[1])))
    return {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


class Ended(NamedTuple):
    """How a process ended: its exit status (-9: killed), what the call answered, and what it said."""

    status: int
    answer: Any
    said: str


class Forking:
    """Runs calls in processes of their own, each forked from one that has opened no store."""

    def __init__(self, folder: Path) -> None:
        self._said = folder / "said.txt"
        self._answer = folder / "answer.json"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.forking", str(self._said), str(self._answer)],
            env=environment(), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, call: str, *args: Any) -> Ended:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"call": call, "args": args}) + "\n")
        self._process.stdin.flush()
        status = int(self._process.stdout.readline())
        answer = json.loads(self._answer.read_text()) if status == 0 else None
        return Ended(status, answer, self._said.read_text())

    def answer(self, call: str, *args: Any) -> Any:
        """What the call answers, in a process that ends as it should."""
        ended = self.run(call, *args)
        assert ended.status == 0, ended.said
        return ended.answer

    def __enter__(self) -> Forking:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate(timeout=TIMEOUT)


def main(said: Path, answer: Path) -> None:
    import_module("langgraph.graph")
    import_module("rekindle.adapters.langgraph")
    for line in sys.stdin:
        job = json.loads(line)
        said.write_text("")
        child = os.fork()
        if child == 0:
            _do(job, said, answer)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(status, flush=True)


def _do(job: dict[str, Any], said: Path, answer: Path) -> None:
    signal.alarm(TIMEOUT)  # a job that hangs ends as killed by another signal
    to = os.open(said, os.O_WRONLY | os.O_APPEND)
    os.dup2(to, 1)
    os.dup2(to, 2)
    status = 1
    try:
        module, _, name = job["call"].partition(":")
        answer.write_text(json.dumps(getattr(import_module(module), name)(*job["args"])))
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
