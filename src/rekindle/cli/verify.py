"""`verify`: is everything there, and is it what was written?"""

from __future__ import annotations

import click

from ..errors import InvalidInputError
from ..quoting import escape
from . import exits, words
from .output import Cell, Column
from .progress import progress
from .session import Session, verb


@verb("verify", examples=("rekindle verify", "rekindle verify --restore --import myapp.agents"))
@click.option("--restore", is_flag=True, help="Also rebuild every state in a fresh process.")
@click.option(
    "--import", "imports", metavar="MODULE", multiple=True,
    help="With --restore: a module of yours that registers your types; may be given again.",
)  # fmt: skip
def cmd_verify(session: Session, restore: bool, imports: tuple[str, ...]) -> int:
    """Check every record, hash, reference and chain. Nothing is changed.

    Exit codes: 0 all is well; 13 something is damaged; 3 all is whole, but some states would not come back
    (a type that is not registered: see --import).
    """
    if imports and not restore:
        raise InvalidInputError("usage", "--import goes with --restore", hint="without it no state is rebuilt")
    with progress("verifying") as bar:
        report = session.store.verify(restore=restore, imports=imports, progress=bar)
    out = session.out
    damaged = [p for p in report.problems if p.code != "not-restored"]
    code = exits.CORRUPT if damaged else exits.PARTIAL if report.problems else exits.OK
    if out.json:
        out.data(report.to_dict())
        return code
    if report.problems:
        columns = [Column("WHERE"), Column("WHAT"), Column("", flexible=True)]
        rows: list[list[Cell]] = [
            [(escape(p.where), "seq"), (p.code, "bad"), escape(p.message.partition("\n")[0])] for p in report.problems
        ]
        out.table(columns, rows)
        out.line("")
    entries = f" and {report.entries:,} journal {'entry' if report.entries == 1 else 'entries'}"
    restored = "state" if report.entries else "checkpoint"
    checked = (
        f"{words.count(report.checkpoints, 'checkpoint')}{entries if report.entries else ''} of "
        f"{words.count(report.agents, 'agent')}, "
        f"{words.count(report.operations, 'operation')}, {words.count(report.parts, 'part')}, "
        f"{words.size(report.bytes)}"
    )
    out.line(f"checked {checked}")
    if report.restored is not None:
        out.line(f"restored {words.count(report.restored, restored)}")
    if code == exits.OK:
        out.line(("all of it is what was written", "good"))
    elif code == exits.CORRUPT:
        out.line((f"{words.count(len(report.problems), 'problem')} found", "bad"))
        out.note(
            "",
            "what is not named above is whole: `rekindle export` takes it out",
        )
    else:
        out.line((f"whole, but {words.count(len(report.problems), restored)} would not come back here", "warn"))
        module = "a module of yours that registers the types (LangGraph's: rekindle.adapters.langgraph)"
        out.note("", f"`--import MODULE` names {module}")
    return code
