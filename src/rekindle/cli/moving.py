"""Agents into a file and out of one."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, BinaryIO, cast

import click

from ..errors import InvalidInputError, NotFoundError, UnavailableError, UnsupportedError
from . import words
from .files import whole_file
from .progress import progress
from .session import Session, ref_argument, verb

Report = Callable[[int, int], None] | None


@verb(
    "export",
    examples=(
        "rekindle export planner planner.rekindle",
        "rekindle export planner@experiment branch.rekindle --branch-only",
        "rekindle export planner - | ssh elsewhere rekindle import -",
    ),
)
@ref_argument(metavar="AGENT|REF")
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True))
@click.option("--branch-only", is_flag=True, help="Only the history of that checkpoint.")
@click.option("--force", is_flag=True, help="Where there is such a file, take its place.")
def cmd_export(session: Session, ref: str, file: str, branch_only: bool, force: bool) -> None:
    """Write an agent with its branches and tags as one portable file; `-` writes it to stdout.

    The file is there whole, or not at all.
    """
    parsed = session.parsed(ref)
    if file == "-":
        if sys.stdout.isatty():
            raise InvalidInputError("terminal", "an export is not for a terminal", hint="name a file, or pipe it on")
        try:
            with progress("exporting") as report:
                count = session.store.export(parsed, _counted(sys.stdout.buffer, report), branch_only=branch_only)
        except UnavailableError as e:
            if isinstance(e.__cause__, BrokenPipeError):  # whoever read has gone, and hears of nothing
                raise e.__cause__ from e
            raise
        session.out.note(f"exported {words.count(count, 'checkpoint')}")
        return
    with progress("exporting") as report, whole_file(file, replace=force) as target:
        count = session.store.export(parsed, _counted(target, report), branch_only=branch_only)
    taken = os.path.getsize(file)
    if session.out.json:
        session.out.data({"file": file, "checkpoints": count, "bytes": taken})
        return
    session.out.line(f"exported {words.count(count, 'checkpoint')} to {file} ", (f"({words.size(taken)})", "dim"))
    session.out.note("", f"elsewhere, `rekindle import {file}` brings it in")


@verb(
    "import",
    examples=(
        "rekindle import planner.rekindle",
        "rekindle import planner.rekindle --agent planner-copy",
        "rekindle import chat.sqlite --from langgraph --import myapp.state",
    ),
)
@click.argument("source", type=click.Path(allow_dash=True))
@click.option(
    "--from", "origin", metavar="KIND", default="rekindle", show_default=True,
    help="What SOURCE is: rekindle, or langgraph (the database of its SqliteSaver).",
)  # fmt: skip
@click.option("--agent", metavar="NAME", help="Bring it in as this agent (from langgraph: the only thread).")
@click.option(
    "--import", "imports", metavar="MODULE", multiple=True,
    help="From langgraph: a module of yours that registers your types; may be given again.",
)  # fmt: skip
def cmd_import(session: Session, source: str, origin: str, agent: str | None, imports: tuple[str, ...]) -> None:
    """Bring in what `rekindle export` wrote, verified first. What is there already is not written twice.

    What comes from an export can be undone; `-` reads it from stdin.

    From langgraph every thread comes over with its whole history, and each checkpoint is compared with what
    langgraph reads. The database is not changed. Run it again to go on, or for what is new.
    """
    if origin == "langgraph":
        from .langgraph import bring_over

        bring_over(session, source, agent=agent, imports=imports)
        return
    if origin != "rekindle":
        raise UnsupportedError(
            "no-such-import",
            f"this version cannot import from {origin!r}",
            hint="it imports rekindle's own exports, and from langgraph",
        )
    if imports:
        raise InvalidInputError("usage", "--import goes with --from langgraph", hint="an export needs no types")
    with _source(source) as file, progress("importing") as report:
        store = session.open(create=True)
        found = store.import_(_counted(file, report), agent_id=agent)
    operation = session.last_operation("import")
    if session.out.json:
        made = {"checkpoints": [words.facts(c) for c in found], "operation": operation if found else None}
        session.out.data(made)
        return
    if not found:
        session.out.line("nothing new: all of it is here already")
        return
    agents = words.joined(dict.fromkeys(words.name(c.agent_id) for c in found))
    session.out.line(f"imported {words.count(len(found), 'checkpoint')} of {agents}")
    if operation is not None:
        session.out.note(
            "",
            f"`rekindle log {words.name(found[0].agent_id)}` shows them",
            f"`rekindle undo {operation}` takes them out again",
        )


@contextmanager
def _source(source: str) -> Iterator[BinaryIO]:
    if source == "-":
        yield sys.stdin.buffer
        return
    try:
        file = open(source, "rb")  # noqa: SIM115 - closed below
    except FileNotFoundError as e:
        raise NotFoundError("no-file", f"there is no file {source}") from e
    except IsADirectoryError as e:
        raise InvalidInputError("is-folder", f"{source} is a folder", hint="name a file that `export` wrote") from e
    with file:
        yield file


def _counted(file: IO[bytes], report: Report) -> BinaryIO:
    return cast(BinaryIO, file if report is None else _Counted(file, report))


class _Counted:
    """A file that tells how many bytes went through it. How many will is not known: some are read twice."""

    def __init__(self, file: IO[bytes], report: Callable[[int, int], None]) -> None:
        self._file = file
        self._report = report
        self._done = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, data: bytes) -> int:
        self._tell(len(data))
        return self._file.write(data)

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._tell(len(data))
        return data

    def _tell(self, count: int) -> None:
        self._done += count
        self._report(self._done, 0)
