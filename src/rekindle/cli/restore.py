"""`restore`: a state back, as JSON or as it is, on stdout or in a file."""

from __future__ import annotations

import sys
from typing import Any

import click

from ..quoting import read_quoted
from . import words
from .files import check_free, whole_file
from .session import Session, ref_argument, verb


@verb(
    "restore",
    examples=(
        "rekindle restore planner@42",
        "rekindle restore planner@-1 --output state.json",
        "rekindle restore planner:notes --format plain > notes.md",
    ),
)
@ref_argument(metavar="REF[:PATH]", required=False)
@click.option("--output", "-o", type=click.Path(dir_okay=False), help="Write a file, whole or not at all.")
@click.option("--force", is_flag=True, help="Where there is such a file, take its place.")
@click.option(
    "--format", "form", type=click.Choice(["json", "plain"]), default="json", show_default=True,
    help="json: nothing is lost, what JSON has no word for is tagged. plain: a text or bytes as they are, "
    "anything else as JSON without tags.",
)  # fmt: skip
def cmd_restore(session: Session, ref: str | None, output: str | None, force: bool, form: str) -> None:
    """A state, or the value at a place in it, as JSON.

    Without REF: the newest of the only agent. Nothing in the store changes. In a program, store.restore(REF)
    gives the value itself.
    """
    if output is not None:
        check_free(output, replace=force)
    if session.out.json and output is None:
        form = "json"
    parsed = session.parsed(ref)
    data = _written(session.value(parsed), form)
    if output is None:
        _show(session, data, form)
        return
    with whole_file(output, replace=force) as file:
        file.write(data)
    checkpoint = session.store.get(parsed)
    if session.out.json:
        made = {
            "checkpoint": words.facts(checkpoint),
            "path": parsed.path or "",
            "file": output,
            "bytes": len(data),
        }
        session.out.data(made)
        return
    session.out.note(f"wrote {words.ref(checkpoint)} to {output} ({words.size(len(data))})")


def _written(value: Any, form: str) -> bytes:
    from ..state.shown.plain import to_plain

    if form == "plain":
        if isinstance(value, str):
            return value.encode("utf-8", "surrogatepass")
        if isinstance(value, (bytes, bytearray)):
            return bytes(value)
        return (words.as_json(untagged(to_plain(value))) + "\n").encode()
    return (words.as_json(to_plain(value)) + "\n").encode()


def untagged(data: Any) -> Any:
    """Tagged JSON as plain as it can be: `{"$tuple": [1, 2]}` is `[1, 2]`. Types are lost."""
    if isinstance(data, list):
        return [untagged(item) for item in data]
    if not isinstance(data, dict):
        return data
    tag = next((key for key in data if key.startswith("$")), None)
    if tag is None:
        return {key: untagged(item) for key, item in data.items()}
    if tag == "$dict":
        return {key: untagged(item) for key, item in data[tag].items()}
    if tag == "$str":
        return read_quoted(data[tag], 0)[0]
    return untagged(data["data"] if tag == "$type" else data[tag])


def _show(session: Session, data: bytes, form: str) -> None:
    """To a terminal nothing goes that it would obey; to a pipe or a file, every byte."""
    if form == "json" or not session.out.terminal:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return
    for line in words.lines_of(data.decode("utf-8", "replace")):
        session.out.line(line)
