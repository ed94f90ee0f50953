"""Comparing: what changed, who changed it, where a text is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

import click

from ..errors import InvalidInputError, NotFoundError
from ..model import Checkpoint
from ..quoting import escape
from ..refs import Ref, parse_range
from ..state.diff.states import Change, page, render, summary, to_json
from ..state.shown import path as state_path
from ..state.shown.preview import plain, preview
from . import words
from .output import Cell, Column, Span
from .session import Session, ref_argument, verb

Match = tuple[Checkpoint, str, str]

_PAGE = 50
_WIDTH = 100
_AROUND = 40


@verb(
    "diff",
    examples=(
        "rekindle diff planner@3..@5",
        "rekindle diff planner@main planner@experiment --stat",
        "rekindle diff planner@5                       # what that one changed",
        "rekindle diff planner@3:messages..@5:messages",
    ),
)
@ref_argument("a", metavar="A..B | A B")
@ref_argument("b", metavar="", required=False)
@click.option("--page", "number", metavar="N", type=click.IntRange(min=1), default=1, help="Which page of the changes.")
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=1),
    default=_PAGE,
    show_default=True,
    help="Changes on a page.",
)
@click.option("--stat", is_flag=True, help="Only how many changes there are, and where.")
@click.option("--full", is_flag=True, help="All changes on one page; in JSON, values in their whole length.")
def cmd_diff(session: Session, a: str, b: str | None, number: int, limit: int, stat: bool, full: bool) -> None:
    """What makes B's state of A's, by path: what came, went, moved and changed, inside long texts too.

    With one checkpoint: what changed in it since its parent.
    """
    old, new, at = _two(session, a, b)
    changes = _changes(session, old, new, at)
    told, found = (
        summary(changes),
        page(changes, max(len(changes), 1) if full else limit, (number - 1) * limit),
    )
    if number > 1 and not found.items:
        last = -(-len(changes) // limit)
        raise NotFoundError("no-page", f"there is no page {number}", hint=f"the last is {max(last, 1)}")
    out = session.out
    if out.json:
        made = {
            "a": words.facts(old), "b": words.facts(new), "total": told.total, "counts": dict(told.counts),
            "touched": list(told.touched), "page": number,
            "pages": 1 if full else -(-len(changes) // limit),
        }  # fmt: skip
        out.data(made if stat else {**made, "changes": [to_json(change, full=full) for change in found.items]})
        return
    out.line((words.ref(old), "seq"), (" -> ", "dim"), (words.ref(new), "seq"), f"  {told}")
    if stat:
        return
    if found.items:
        click.echo(render(found.items, color=out.color), color=out.color)
    if found.next_offset is not None:
        left = found.total - found.next_offset
        out.note(f"{left:,} more", f"--page {number + 1} goes on, --full shows all")


Two = tuple[Checkpoint, Checkpoint, tuple[str | None, str | None]]


def _two(session: Session, a: str, b: str | None) -> Two:
    """The two checkpoints, and the paths that were asked for."""
    asked = parse_range(a)
    if b is not None:
        if asked.b is not None:
            raise InvalidInputError("usage", "three checkpoints are named", hint="A..B, or A and B")
        asked = parse_range(f"{a}..{b}")
    first = _named(session, asked.a)
    if asked.b is None:
        new = session.store.get(first)
        parents = session.store.history(new, limit=2)[1:]
        if not parents:
            raise NotFoundError(
                "no-parent", f"{words.ref(new)} is the first of its line: there is nothing before it",
                hint="name two checkpoints: A..B",
            )  # fmt: skip
        return parents[0], new, (first.path, first.path)
    second = _named(session, asked.b)
    return session.store.get(first), session.store.get(second), (first.path, second.path)


def _named(session: Session, ref: Ref) -> Ref:
    return ref if ref.name is not None else Ref(session.the_agent(), ref.at, ref.path)


def _changes(
    session: Session, old: Checkpoint, new: Checkpoint, at: tuple[str | None, str | None]
) -> tuple[Change, ...]:
    if not any(at):
        return session.store.diff(old, new)
    from ..state.diff.states import diff

    was, now = (state_path.parse(text or "") for text in at)
    before = state_path.get(session.store.restore(old, opaque=True), was)
    after = state_path.get(session.store.restore(new, opaque=True), now)
    return diff(before, after, base=now)


@verb(
    "blame",
    examples=("rekindle blame planner:status", "rekindle blame planner@42:messages[-1].content --limit 5"),
)
@ref_argument(metavar="REF:PATH")
@click.option("--limit", "-n", metavar="N", type=click.IntRange(min=1), default=20, show_default=True, help="How many.")
@click.option("--all", "everything", is_flag=True, help="All of them.")
def cmd_blame(session: Session, ref: str, limit: int, everything: bool) -> None:
    """The checkpoints in a history that changed the value at a place, newest first."""
    parsed = session.parsed(ref)
    if not parsed.path:
        raise InvalidInputError(
            "no-path", "blame asks about a place in the state, and none is named",
            hint=f"write {Ref(parsed.name, parsed.at)}:PATH, for example :status or :messages[-1].content",
        )  # fmt: skip
    found = session.store.blame(parsed, parsed.path)
    shown = found if everything else found[:limit]
    values = [_value_at(session, c, parsed.path) for c in shown]
    if session.out.json:
        made = [{**words.facts(c), **_told_value(value)} for c, value in zip(shown, values, strict=True)]
        session.out.data({"path": parsed.path, "checkpoints": made, "total": len(found)})
        return
    columns = [
        Column("CHECKPOINT"),
        Column("SAVED"),
        Column("KIND"),
        Column("VALUE SINCE THEN", flexible=True),
    ]
    rows: list[list[Cell]] = [
        [(words.ref(c), "seq"), words.when(c.timestamp), c.kind, _shown_value(value)]
        for c, value in zip(shown, values, strict=True)
    ]
    session.out.table(columns, rows)
    if len(found) > len(shown):
        session.out.note(f"{len(found) - len(shown):,} more", "--limit N or --all")


_NOTHING: Any = object()


def _value_at(session: Session, checkpoint: Checkpoint, path: str) -> Any:
    """What lies there; a checkpoint that took the value away has none."""
    try:
        return state_path.get(session.store.restore(checkpoint, opaque=True), state_path.parse(path))
    except NotFoundError:
        return _NOTHING


def _shown_value(value: Any) -> Span:
    return ("(nothing there)", "dim") if value is _NOTHING else (preview(value, _WIDTH), "")


def _told_value(value: Any) -> dict[str, Any]:
    return {"present": False} if value is _NOTHING else {"present": True, "value": plain(value)}


@verb(
    "grep",
    examples=(
        "rekindle grep 'rate limit'",
        "rekindle grep -i 'traceback|error' planner@main",
        "rekindle grep refund --limit 5 --json",
    ),
)
@click.argument("pattern")
@ref_argument(required=False)
@click.option("--ignore-case", "-i", is_flag=True, help="Capital and small letters are alike.")
@click.option("--limit", "-n", metavar="N", type=click.IntRange(min=1), default=50, show_default=True, help="How many.")
@click.option("--all", "everything", is_flag=True, help="All of them.")
def cmd_grep(session: Session, pattern: str, ref: str | None, ignore_case: bool, limit: int, everything: bool) -> None:
    """Texts in states that match a regular expression: each where it first came, newest first.

    Exits with 0 whether anything matches or not; the count is on stderr, and in `--json`.
    """
    wanted = f"(?i:{pattern})" if ignore_case else pattern
    try:
        compiled = re.compile(wanted)
    except re.error as e:
        raise InvalidInputError("bad-pattern", f"{escape(pattern)!r} is not a regular expression: {e}") from e
    asked = None if ref is None else session.parsed(ref)
    most = None if everything else limit
    found = session.store.grep(wanted, asked, limit=None if most is None else most + 1)
    shown = list(islice(_told(session, found, compiled), most))
    more = next(found, None) is not None
    out = session.out
    if out.json:
        out.data({"matches": shown, "more": more})
    elif more:
        out.note("there are more matches", "--limit N or --all")
    elif not shown:
        out.note(f"nothing matches {escape(pattern)!r}")


def _told(session: Session, found: Iterator[Match], pattern: re.Pattern[str]) -> Iterator[dict[str, Any]]:
    """Every match as JSON; people see each as it is found: the search may take its time."""
    for checkpoint, at, text in found:
        where = words.ref(checkpoint)
        if not session.out.json:
            session.out.line((where, "seq"), (":", "dim"), (escape(at), "key"), "  ", _around(pattern, text))
        yield {"ref": where, "id": checkpoint.id, "path": at, "text": plain(text, full=True)}


def _around(pattern: re.Pattern[str], text: str) -> list[Span]:
    """The match and a few words on each side of it."""
    match = pattern.search(text)
    if match is None:
        return [(escape(text[: 2 * _AROUND]), "")]
    start, end = max(0, match.start() - _AROUND), min(len(text), match.end() + _AROUND)
    before = ("..." if start else "") + escape(text[start : match.start()])
    after = escape(text[match.end() : end]) + ("..." if end < len(text) else "")
    return [(before, ""), (escape(match[0][: 2 * _AROUND]), "bad"), (after, "")]
