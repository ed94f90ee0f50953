"""Processes that run an agent's program (`rekindle.testing.program`), in a folder with a store; and are killed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from rekindle.errors import UnavailableError
from rekindle.model import Checkpoint
from rekindle.store import Store, open_store
from rekindle.testing.program import ANSWERED, END, STOPPED

URLS = {"sqlite": "sqlite:///{}/store.db", "files": "file://{}/store"}
AGENT = "agent"
TASK = "a task"
TIMEOUT = 120
"""Seconds after which a process that says nothing is taken for one that never will."""
Point = tuple[str, int]
"""A moment, and the step it is of."""


def _command(program: str, order: str) -> list[str]:
    return [sys.executable, "-m", "rekindle.testing.program", program, order]


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(entry or os.getcwd() for entry in sys.path)}


class Process(Protocol):
    stdin: Any
    stdout: Any

    def kill(self) -> None: ...
    def communicate(self) -> Any: ...


class Forked:
    """A process of a nursery. Its pid is given to no other as long as the nursery lives."""

    def __init__(self, stdin: int, stdout: int) -> None:
        self.pid = 0
        self.stdin = os.fdopen(stdin, "w", encoding="utf-8")
        self.stdout = os.fdopen(stdout, encoding="utf-8")

    def kill(self) -> None:
        if self.pid:  # else the nursery could not import the program, and nothing was forked
            os.kill(self.pid, signal.SIGKILL)

    def communicate(self) -> None:
        """Until its end."""
        if not self.stdout.closed:
            self.stdout.read()
            self.stdout.close()
            self.stdin.close()


class Nursery:
    """A process that has imported a program, and forks others, which need not: for what takes long to import."""

    def __init__(self, program: str) -> None:
        self._line, far = socket.socketpair()
        command = _command(program, str(far.fileno()))
        self._process = subprocess.Popen(command, pass_fds=[far.fileno()], env=_environment())
        far.close()

    def fork(self, order: str, said: int) -> Forked:
        (stdin, to_stdin), (from_stdout, stdout) = os.pipe(), os.pipe()
        forked = Forked(to_stdin, from_stdout)
        with suppress(ConnectionError):
            socket.send_fds(self._line, [order.encode()], [stdin, stdout, said])
            forked.pid = int.from_bytes(self._line.recv(8))
        os.close(stdin)
        os.close(stdout)
        return forked

    def close(self) -> None:
        self._line.close()
        self._process.wait()


class Running:
    """One process that was given an order. Whoever starts it kills it, or waits for its end."""

    def __init__(self, program: str, order: str, said: Path, nursery: Nursery | None) -> None:
        self._said = said
        pipe = subprocess.PIPE
        with said.open("ab") as file:
            self._process: Process = (
                nursery.fork(order, file.fileno())
                if nursery is not None
                else subprocess.Popen(
                    _command(program, order), stdin=pipe, stdout=pipe, stderr=file, text=True, env=_environment()
                )
            )
        self._watchdog = threading.Timer(TIMEOUT, self._process.kill)
        self._watchdog.daemon = True
        self._watchdog.start()

    def tells(self) -> dict[str, Any]:
        """What it says next: that it was stopped, or what came of it."""
        line = self._process.stdout.readline()
        if not line.endswith("\n"):
            raise AssertionError(f"the process ended without a word:\n{self.said()}")
        told: dict[str, Any] = json.loads(line)
        return told

    def must_stop(self, point: Point) -> None:
        told = self.tells()
        where = (told.get("moment"), told.get("step"))
        assert (told["what"], where) == (STOPPED, point), f"it was to be stopped at {point}: {self._shown(told)}"

    def must_answer(self) -> str:
        """Wait for its end."""
        told = self.tells()
        self.kill()
        assert told["what"] == ANSWERED, f"it was to answer: {self._shown(told)}"
        return str(told["answer"])

    def go_on(self) -> None:
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        """SIGKILL. Harmless where it has ended."""
        self._process.kill()
        self._process.communicate()
        self._watchdog.cancel()

    def said(self) -> str:
        return self._said.read_text(encoding="utf-8", errors="replace")[-4000:]

    def _shown(self, told: dict[str, Any]) -> str:
        return f"{told['what']}\n{told.get('error', told)}\n{self.said()}"


@dataclass(frozen=True)
class Bench:
    """A folder with a store in it, and a program that works there."""

    folder: Path
    program: str
    kind: str
    steps: int
    nursery: Nursery | None = None
    running: list[Running] = field(default_factory=list)

    @property
    def url(self) -> str:
        return URLS[self.kind].format(self.folder)

    def start(self, verb: str = "run", *, stop: Point | None = None, task: str = TASK, **order: Any) -> Running:
        """A process of its own, fresh, that stops at that point or goes on to the end."""
        asked = {
            "verb": verb, "url": self.url, "agent_id": AGENT, "steps": self.steps, "task": task, "stop": stop,
            "effects": str(self.folder / "effects.txt"), **order,
        }  # fmt: skip
        self.running.append(Running(self.program, json.dumps(asked), self.folder / "said.txt", self.nursery))
        return self.running[-1]

    def run(self, verb: str = "run", **order: Any) -> str:
        """To the end: the answer."""
        return self.start(verb, **order).must_answer()

    def kill_at(self, point: Point) -> None:
        running = self.start(stop=point)
        running.must_stop(point)
        running.kill()

    def anew(self, folder: Path) -> Bench:
        """The same in another folder, with nothing in it yet."""
        folder.mkdir()
        return replace(self, folder=folder)

    def copy(self, folder: Path) -> Bench:
        """The same in another folder. No process may be at work in it; killed ones are not."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        return replace(self, folder=folder)

    def close(self) -> None:
        """No process of its own or of its copies is left."""
        for running in self.running:
            running.kill()

    # -- what came of it ---------------------------------------------------------------------------------------------

    def effects(self) -> Counter[int]:
        """How often each step was done."""
        file = self.folder / "effects.txt"
        return Counter(map(int, file.read_text().split())) if file.exists() else Counter()

    @contextmanager
    def store(self) -> Iterator[Store]:
        with open_store(self.url, create=False) as store:
            yield store

    def saved_steps(self, who: str = "") -> dict[int, tuple[Checkpoint, str]]:
        """By step: the first checkpoint that has what its work answered, and where in the state."""
        try:
            with self.store() as store:
                found = list(store.grep(rf"\bstep \d+{re.escape(who)} [0-9a-f]{{12}}\b"))
        except UnavailableError as e:
            if e.code != "no-store":
                raise
            return {}
        steps: dict[int, tuple[Checkpoint, str]] = {}
        for checkpoint, path, text in found:  # newest first: the first to have it comes last
            for number in re.findall(rf"\bstep (\d+){re.escape(who)} [0-9a-f]{{12}}\b", text):
                steps[int(number)] = checkpoint, path
        return steps


def points(steps: int) -> list[Point]:
    """Every point a process can be killed at: before and after the work of each step, and at the very end."""
    return [(moment, step) for step in range(1, steps + 1) for moment in ("begin", "inside")] + [(END, 0)]
