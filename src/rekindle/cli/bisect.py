"""`bisect`: the first checkpoint for which a command fails."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from typing import Any

import click

from ..errors import ConflictError, InvalidInputError, NotFoundError
from . import words
from .session import Session, ref_argument, verb

SKIP = 125
LAST_BAD = 127


@verb(
    "bisect",
    examples=(
        "rekindle bisect planner@1 planner@-1 -- ./check.sh",
        "rekindle bisect @1 @-1 -- sh -c 'jq -e \".cost < 5\" $REKINDLE_STATE'",
    ),
    context_settings={"ignore_unknown_options": True},
)
@ref_argument("good")
@ref_argument("bad")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND...")
def cmd_bisect(session: Session, good: str, bad: str, command: tuple[str, ...]) -> None:
    """Find the first checkpoint between GOOD and BAD for which a command fails.

    The command gets the state as JSON (what `rekindle restore` prints) on stdin and in the file
    $REKINDLE_STATE. It exits with 0 for good, 1 to 124, 126 or 127 for bad. A state it cannot judge (125)
    ends the search, as does a command that is killed. What it prints goes to stderr.
    """
    trial = _Trial(session, command)
    first = session.store.bisect(session.parsed(good), session.parsed(bad), trial.is_bad, opaque=True)
    if session.out.json:
        session.out.data({"first_bad": words.facts(first), "tried": trial.count})
        return
    session.out.line(
        (words.ref(first), "seq"),
        " is the first bad one",
        (f"  ({words.count(trial.count, 'state')} tried)", "dim"),
    )
    session.out.note("", f"`rekindle diff {words.ref(first)}` shows what changed in it")


class _Trial:
    """Runs the command on states and keeps count."""

    def __init__(self, session: Session, command: tuple[str, ...]) -> None:
        self._out = session.out
        self._command = command
        self.count = 0

    def is_bad(self, state: Any) -> bool:
        from ..state.shown.plain import to_plain

        self.count += 1
        status = _run(self._command, words.as_json(to_plain(state)).encode())
        verdict = self._verdict(status)
        self._out.note(f"state {self.count}: {'bad' if verdict else 'good'} (exit status {status})")
        return verdict

    def _verdict(self, status: int) -> bool:
        if status == SKIP:
            raise ConflictError(
                "bisect-skip", "the command says of a state that it cannot be judged (exit status 125)",
                hint="make it answer 0 or 1, or choose GOOD and BAD closer together",
            )  # fmt: skip
        if not 0 <= status <= LAST_BAD:
            what = f"was killed by signal {-status}" if status < 0 else f"ended with exit status {status}"
            raise ConflictError(
                "bisect-aborted", f"the command {what}: that is no judgement", hint="0 is good, 1 to 124 is bad"
            )  # fmt: skip
        return status != 0


def _run(command: tuple[str, ...], state: bytes) -> int:
    """The command's exit status; what it prints goes to our stderr."""
    with tempfile.TemporaryDirectory(prefix="rekindle-bisect-") as folder:
        path = os.path.join(folder, "state.json")
        with open(path, "wb") as file:
            file.write(state)
        with open(path, "rb") as stdin:
            try:
                done = subprocess.run(
                    command,
                    stdin=stdin,
                    stdout=_stderr(),
                    env={**os.environ, "REKINDLE_STATE": path},
                    check=False,
                )
            except FileNotFoundError as e:
                raise NotFoundError("no-command", f"there is no command {command[0]!r}") from e
            except OSError as e:
                raise InvalidInputError("bad-command", f"{command[0]!r} cannot be run: {e.strerror}") from e
    return done.returncode


def _stderr() -> int:
    """Where the command's own words go; a test may have put something that is no file there."""
    try:
        return sys.stderr.fileno()
    except (OSError, ValueError):
        return subprocess.DEVNULL
