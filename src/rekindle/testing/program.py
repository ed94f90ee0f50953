"""The other side of AdapterConformance: a process that runs an agent, and is killed when it says where it is.

    python -m rekindle.testing.program PROGRAM ORDER

PROGRAM is a module's name or the path of a file; ORDER says what to run, as JSON, or is the number of a socket on which
orders come. What a process tells goes to its stdout, one JSON object a line; what the program prints goes to stderr.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import importlib.util
import inspect
import json
import os
import socket
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..errors import ConflictError

ANSWERED, STOPPED, REFUSED, FAILED, NO_FORK = "answered", "stopped", "refused", "failed", "no-fork"
BEGIN, INSIDE, END = "begin", "inside", "end"
"""Where a process can be stopped: before the work of a step, after it, after the whole run."""


@dataclass(frozen=True)
class Job:
    """What a program is to run: an agent of so many steps, each of which does its work with `work`."""

    url: str
    """Of the store to keep the agent in."""
    agent_id: str
    steps: int
    task: str
    """The agent's input; in a fork, the other input."""
    at_step: int = 0
    """In a fork: after which step it begins."""
    who: str = ""
    effects: str = ""
    """A file to note in which steps were done. Without one a job is a plain run, to try a program with."""
    stop: tuple[str, int] | None = None
    _tell: Callable[..., None] = field(default=lambda **told: None, repr=False, compare=False)

    def work(self, step: int, *seen: Any) -> str:
        """The work of step `step` (1 to `steps`): what a model or a tool would answer. Call it in the step, with what
        the step has seen: the task, and the answers before it. The same gives the same; anything else, another.
        """
        self._be(BEGIN, step)
        if self.effects:
            with open(self.effects, "ab", buffering=0) as file:
                file.write(f"{step}\n".encode())
        self._be(INSIDE, step)
        digest = hashlib.blake2b(repr((step, seen)).encode(), digest_size=6).hexdigest()
        return f"step {step}{self.who} {digest}"

    def _be(self, moment: str, step: int) -> None:
        if self.stop == (moment, step):
            self._tell(what=STOPPED, moment=moment, step=step)
            if not sys.stdin.readline():  # here the kill comes, or the word to go on
                os._exit(1)  # whoever asked is gone


def load(program: str) -> Any:
    """The module of that name, or of that file."""
    if not program.endswith(".py"):
        return importlib.import_module(program)
    folder, name = os.path.split(os.path.abspath(program))
    sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(name.removesuffix(".py"), program)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def carry_out(module: Any, verb: str, job: Job, tell: Callable[..., None]) -> None:
    """Run it, and tell what came of it."""
    function = getattr(module, verb, None)
    if function is None:
        tell(what=NO_FORK)
        return
    try:
        answer = function(job)
        if inspect.iscoroutine(answer):
            answer = asyncio.run(answer)
    except Exception as e:  # noqa: BLE001  it is told, whatever it is
        tell(what=REFUSED if _is_conflict(e) else FAILED, error=traceback.format_exc())
        return
    job._be(END, 0)
    tell(what=ANSWERED, answer=repr(answer))


def _is_conflict(error: BaseException | None) -> bool:
    """Whether it is, or comes of, a ConflictError: a framework may wrap what its storage raises."""
    if error is None or isinstance(error, ConflictError):
        return error is not None
    grouped = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    return _is_conflict(error.__cause__ or error.__context__) or any(map(_is_conflict, grouped))


def obey(module: Any, order: str) -> None:
    """Carry out one order, in this process, and tell on its stdout."""
    pipe = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def tell(**told: Any) -> None:
        print(json.dumps(told), file=pipe, flush=True)

    asked = json.loads(order)
    verb, stop = asked.pop("verb"), asked.pop("stop")
    carry_out(module, verb, Job(**asked, stop=tuple(stop) if stop else None, _tell=tell), tell)


def obey_in_forks(module: Any, line: socket.socket) -> None:
    """Carry out each order in a process forked from this one, which has imported the program and done nothing else.

    With an order come its stdin, stdout and stderr; back goes the pid. It stays the fork's for as long as this lives.
    """
    for needed in ("rekindle.adapters.track", "rekindle.storage.sqlite", "rekindle.storage.files"):
        importlib.import_module(needed)  # what every one of them would load when it uses it
    while True:
        order, files, _, _ = socket.recv_fds(line, 1 << 16, 3)
        if not order:
            return
        pid = os.fork()
        if pid == 0:
            line.close()
            for number, file in enumerate(files):
                os.dup2(file, number)
                os.close(file)
            sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  as long as the process
            try:
                obey(module, order.decode())
            finally:
                sys.stdout.flush()
                os._exit(0)
        for file in files:
            os.close(file)
        line.sendall(pid.to_bytes(8))


def main(program: str, order: str) -> None:
    module = load(program)
    if order.isdigit():
        obey_in_forks(module, socket.socket(fileno=int(order)))
    else:
        obey(module, order)


if __name__ == "__main__":
    main(*sys.argv[1:])
