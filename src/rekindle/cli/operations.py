"""The operation log: what was done to names and checkpoints, and turning it round."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from ..errors import InvalidInputError
from ..quoting import escape
from . import words
from .output import Cell, Column, Span
from .session import Session, verb

if TYPE_CHECKING:
    from ..store.view import Operation


@verb("undo", examples=("rekindle undo", "rekindle undo --list", "rekindle undo 7"))
@click.argument("operation", type=click.IntRange(min=1), required=False)
@click.option("--list", "listing", is_flag=True, help="List the operations and what can still be undone.")
def cmd_undo(session: Session, operation: int | None, listing: bool) -> None:
    """Turn round the last operation, or the one with that number: a prune, delete, tag, fork, import, label.

    What was collected since cannot come back. An undo is an operation too.
    """
    if listing and operation is not None:
        raise InvalidInputError("usage", "--list lists all operations, and one is named", hint="leave one of them out")
    if listing:
        _list(session)
        return
    done = session.store.undo(operation)
    if session.out.json:
        session.out.data({"operation": as_dict(done), "undone": done.undoes})
        return
    session.out.line(("undone: ", "good"), f"{done.undoes}  {escape(done.summary)}")


def _list(session: Session) -> None:
    found = session.store.operations()[::-1]
    if session.out.json:
        session.out.data({"operations": [as_dict(each) for each in found]})
        return
    if not found:
        session.out.note("nothing was done yet that could be undone")
        return
    columns = [Column("", right=True), Column("DONE"), Column("WHAT"), Column("", flexible=True), Column("")]
    rows: list[list[Cell]] = [
        [(str(o.seq), "seq"), words.when(_time(o)), o.verb, words.brief(o.summary, 80), _standing(o)] for o in found
    ]
    session.out.table(columns, rows)


def _standing(o: Operation) -> Span:
    if o.undone_by:
        return f"undone by {o.undone_by}", "dim"
    if o.stands and o.collected:
        return "collected", "dim"
    return ("can be undone", "good") if o.undoable else ("", "")


def _time(o: Operation) -> datetime:
    return datetime.fromtimestamp(o.time / 1000, UTC)


def as_dict(o: Operation) -> dict[str, Any]:
    return {
        "operation": o.seq, "timestamp": words.iso(_time(o)), "verb": o.verb, "summary": o.summary,
        "undoes": o.undoes or None, "undone_by": o.undone_by or None, "undoable": o.undoable,
    }  # fmt: skip
