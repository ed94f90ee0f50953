"""How long it takes until rekindle is there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from bench import report
from bench.measure import Dose, interleaved, p50
from bench.report import Figure

_CLI = "import sys; from rekindle.cli import main; sys.argv = ['rekindle', '--help']; main()"


def run(dose: Dose, scratch: Path) -> Iterator[Figure]:
    acts = {
        "pass": _python("pass"),
        "import rekindle": _python("import rekindle"),
        "rekindle --help": _help(),
    }
    interleaved(acts, 1)  # bytecode is compiled and the files are in memory from here on
    taken = {name: p50(seconds) for name, seconds in interleaved(acts, dose.starts).items()}
    for name, reach in (("import rekindle", 2.5), ("rekindle --help", 5.0)):
        yield Figure(
            name,
            f"wall time of a process, p50 of {dose.starts}",
            "-",
            report.duration(taken[name]),
            f"`python -c pass` {report.duration(taken['pass'])}",
            report.times(taken[name] / taken["pass"]),
            f"<= {reach} x",
            taken[name] <= reach * taken["pass"],
        )


def _help() -> Callable[[], object]:
    """The installed command where there is one beside this interpreter, else what it would run."""
    command = Path(sys.executable).parent / "rekindle"
    return _process([str(command), "--help"]) if command.exists() else _python(_CLI)


def _python(code: str) -> Callable[[], object]:
    return _process([sys.executable, "-c", code])


def _process(command: list[str]) -> Callable[[], object]:
    return lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
