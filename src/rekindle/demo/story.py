"""The demo itself, chapter by chapter. Everything in it happens: real processes, a real kill, a real store."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import rekindle

from .agent import SHELF
from .screen import Screen

AGENT = "reader"
STORE = ".rekindle/store.db"
KILL_AFTER = 5
PAUSE = 0.3

TRY = """\
import rekindle

with rekindle.open_store("agents.db") as store:
    store.save("me", {"step": 1, "messages": ["hello"]})
    print(store.restore("me"))
"""


def tell(screen: Screen, *, fast: bool) -> int:
    """0 when the agent came back as it was; anything else is a bug of rekindle."""
    with tempfile.TemporaryDirectory(prefix="rekindle-demo-") as name:
        return _Demo(Path(name), screen, fast=fast).run()


class _Demo:
    def __init__(self, folder: Path, screen: Screen, *, fast: bool) -> None:
        self._folder = folder
        self._screen = screen
        self._pause = 0.05 if fast else PAUSE

    def run(self) -> int:
        self._work_and_die()
        self._what_is_left()
        self._go_on()
        self._look_back()
        self._fork()
        self._verify()
        same = self._prove()
        self._end()
        return 0 if same else 1

    # -- chapters ----------------------------------------------------------------------------------------------------

    def _work_and_die(self) -> None:
        screen = self._screen
        screen.title("An agent works, and saves after every step")
        with self._agent(AGENT, pause=self._pause) as process:
            screen.told(f"It is a process of its own, pid {process.pid}. It reads {len(SHELF)} books.")
            for told in _lines(process):
                self._show(told)
                if told.get("saved") == KILL_AFTER:
                    break
            self._show(next(_lines(process)))  # it has begun the next step
            time.sleep(self._pause / 2)
            process.kill()
            process.wait()
            for told in _lines(process):  # what it still said before it died
                self._show(told)
            screen.line()
            screen.line(f"  {screen.paint(f'kill -9 {process.pid}', 'bad')}   in the middle of a step")
            screen.told(f"  It is gone (exit status {process.returncode}), with everything it had in memory.")

    def _what_is_left(self) -> None:
        self._screen.title("What is left")
        self._cli("log", AGENT)

    def _go_on(self) -> None:
        screen = self._screen
        screen.title("A new process goes on where the last one was cut off")
        with self._agent(AGENT, pause=self._pause / 3) as process:
            for told in _lines(process):
                self._show(told)
            _must_end_well(process)

    def _look_back(self) -> None:
        screen = self._screen
        screen.title("Look back")
        screen.told("What did one step change?")
        self._cli("diff", f"{AGENT}@5..@6")

    def _fork(self) -> None:
        screen = self._screen
        screen.title("What if? Fork the past, and change something")
        screen.code(
            f'state = store.restore("{AGENT}@7")',
            'state["style"] = "brief"',
            f'store.save("{AGENT}", state, parent="{AGENT}@7", branch="what-if")',
        )
        with rekindle.open_store(self._folder / STORE) as store:
            state = store.restore(f"{AGENT}@7")
            state["style"] = "brief"
            store.save(AGENT, state, parent=f"{AGENT}@7", branch="what-if", label="the same, but brief")
        with self._agent(AGENT, "--branch", "what-if") as process:
            for _ in _lines(process):
                pass
            _must_end_well(process)
        screen.told("The agent went on from there too, on the branch.")
        self._cli("log", AGENT, "--graph", "--limit", "10")
        screen.told("\nWhich checkpoints changed the style?")
        self._cli("blame", f"{AGENT}@what-if:style")

    def _verify(self) -> None:
        self._screen.title("Is everything there, and as it was written?")
        self._cli("verify")

    def _prove(self) -> bool:
        screen = self._screen
        screen.title("The proof")
        screen.told("The same agent runs once more, and nobody kills it.")
        with self._agent("unkilled") as process:
            for _ in _lines(process):
                pass
            _must_end_well(process)
        with rekindle.open_store(self._folder / STORE) as store:
            killed, unkilled = store.get(f"{AGENT}@main"), store.get("unkilled")
            same = killed.digest == unkilled.digest and store.restore(killed) == store.restore(unkilled)
        for name, checkpoint in ((f"{AGENT}, killed once", killed), ("unkilled", unkilled)):
            screen.line(f"  {name:22}  state digest {screen.paint(checkpoint.digest, 'seq')}")
        if same:
            screen.line(screen.paint("  The two final states are the same, byte for byte.", "good"))
        else:
            screen.line(screen.paint("  They differ. That is a bug: please report it.", "bad"))
        return same

    def _end(self) -> None:
        screen = self._screen
        screen.title("Try it yourself")
        for line in TRY.splitlines():
            screen.line(f"    {line}" if line else "")
        screen.line()
        screen.line(f"    $ {screen.paint('rekindle log --store agents.db', 'command')}")
        screen.line()
        screen.line("docs/quickstart.md goes on from here. The demo's folder is removed.")

    # -- steps -------------------------------------------------------------------------------------------------------

    @contextmanager
    def _agent(self, name: str, *more: str, pause: float = 0.0) -> Iterator[subprocess.Popen[str]]:
        """The agent, as a process of its own; ended at the latest when the block is left."""
        command = [sys.executable, "-m", f"{__package__}.agent", STORE, name, "--pause", str(pause), *more]
        with subprocess.Popen(command, cwd=self._folder, stdout=subprocess.PIPE, text=True) as process:
            try:
                yield process
            finally:
                process.kill()

    def _show(self, told: dict[str, Any]) -> None:
        screen = self._screen
        if "restored" in told:
            seq = told["restored"]
            what = "begins" if seq is None else f"restored {AGENT}@{seq}, {told['left']} books to go"
            screen.line(f"  {what}")
        elif "reading" in told:
            screen.line(screen.paint(f"  reading {told['reading']} ...", "dim"))
        else:
            tick = screen.paint(screen.sign("✓", "+"), "good")
            at = screen.paint(f"{AGENT}@{told['saved']}", "seq")
            screen.line(f"  {tick} read {told['title']:28} saved as {at}")

    def _cli(self, *words: str) -> None:
        self._screen.command(" ".join(["rekindle", *words]))
        done = subprocess.run([sys.executable, "-m", "rekindle", *words], cwd=self._folder, check=False)
        if done.returncode != 0:
            raise SystemExit(f"`rekindle {' '.join(words)}` ended with {done.returncode}")
        self._screen.rest(0.8)


def _lines(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    """What the agent says, as it says it; a line that the kill cut off is not one."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.endswith("\n"):
            yield json.loads(line)


def _must_end_well(process: subprocess.Popen[str]) -> None:
    if process.wait() != 0:
        raise SystemExit(f"the agent's process ended with {process.returncode}")
