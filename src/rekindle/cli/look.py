"""Looking: which agents there are, and what a checkpoint holds."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from ..model import Checkpoint
from ..quoting import escape
from ..refs import quote_agent
from ..state.shown.path import Path, render, step_of
from ..state.shown.preview import plain, preview
from . import words
from .output import Cell, Column, Output, Span
from .session import Session, ref_argument, verb

_LINES = 200
_PREVIEW = 60


@verb("agents", examples=("rekindle agents", "rekindle agents --json"))
def cmd_agents(session: Session) -> None:
    """Every agent, with its newest checkpoint and its branches."""
    store = session.store
    found = [(name, store.list(name, limit=1), store.branches(name)) for name in store.agents()]
    if session.out.json:
        made = [
            {
                "agent_id": name,
                "newest": words.facts(newest[0]) if newest else None,
                "branches": list(branches),
            }
            for name, newest, branches in found
        ]
        session.out.data({"agents": made})
        return
    if not found:
        session.out.note("no agents yet", 'save a first checkpoint: store.save("my-agent", state)')
        return
    columns = [Column("AGENT", flexible=True), Column("NEWEST", right=True), Column("SAVED"), Column("KIND")]
    columns += [Column("SIZE", right=True), Column("BRANCHES", flexible=True)]
    session.out.table(columns, [_agent_row(name, newest, list(branches)) for name, newest, branches in found])


def _agent_row(name: str, newest: list[Checkpoint], branches: list[str]) -> list[Any]:
    others = words.joined(map(quote_agent, branches))
    if not newest:
        return [(quote_agent(name), "title"), "", "", "", "", (others, "branch")]
    c = newest[0]
    return [
        (quote_agent(name), "title"), (f"@{c.seq}", "seq"), words.when(c.timestamp), c.kind,
        words.size(c.size), (others, "branch"),
    ]  # fmt: skip


@verb(
    "show",
    examples=(
        "rekindle show planner",
        "rekindle show planner@42:messages[-1].content",
        "rekindle show planner@-2 --full --json",
    ),
)
@ref_argument(metavar="REF[:PATH]", required=False)
@click.option("--full", is_flag=True, help="Nothing is cut: all of the state, texts in their whole length.")
def cmd_show(session: Session, ref: str | None, full: bool) -> None:
    """A checkpoint and what its state holds; with a path, the value at that place.

    Without REF: the newest of the only agent. Values of types that are not registered here are shown as the
    data they were saved as.
    """
    parsed = session.parsed(ref)
    checkpoint = session.store.get(parsed)
    value = session.value(parsed)
    out = session.out
    if out.json:
        made = {"checkpoint": words.facts(checkpoint), "names": names_of(session, checkpoint)}
        out.data(
            {
                **made,
                "path": parsed.path or "",
                "type": words.kind_of(value),
                "value": plain(value, full=full),
            }
        )
        return
    if parsed.path:
        out.line((words.ref(checkpoint), "seq"), f":{escape(parsed.path)}  ", (words.kind_of(value), "dim"))
        show_value(out, value, full=full)
        return
    _show_facts(session, checkpoint)
    out.line("")
    out.line(("state", "title"), f"  {words.kind_of(value)}")
    if full or not words.parts(value):
        show_value(out, value, full=full)
    else:
        _show_parts(out, value)


def names_of(session: Session, checkpoint: Checkpoint) -> dict[str, list[str]]:
    agent = checkpoint.agent_id
    heads = [name for name, c in session.store.branches(agent).items() if c.seq == checkpoint.seq]
    tags = [name for name, c in session.store.tags(agent).items() if c.seq == checkpoint.seq]
    return {"heads": heads, "tags": tags}


def decoration(heads: list[str], tags: list[str]) -> list[Span]:
    """`(main, tag: v1)`, or nothing."""
    named = [[(quote_agent(name), "branch")] for name in heads]
    named += [[("tag: ", "tag"), (quote_agent(name), "tag")] for name in tags]
    if not named:
        return []
    inner: list[Span] = [span for i, each in enumerate(named) for span in ([(", ", "dim")] if i else []) + each]
    return [("(", "dim"), *inner, (")", "dim")]


def _show_facts(session: Session, c: Checkpoint) -> None:
    out, names = session.out, names_of(session, c)
    head: list[Span] = [(words.ref(c), "seq"), ("  ", ""), (escape(c.id), "dim"), ("  ", "")]
    out.line([*head, *decoration(names["heads"], names["tags"])])
    now = datetime.now(UTC)
    rows: list[tuple[str, str]] = [
        ("saved", f"{words.when(c.timestamp)}  ({words.ago(c.timestamp, now)})"),
        ("kind", c.kind),
        ("branch", quote_agent(c.branch)),
        ("parent", escape(c.parent_checkpoint_id or "none: the first of its line")),
        ("size", f"{words.size(c.size)}  (of the state; {c.digest[:16]})"),
    ]
    told = [("label", c.label), ("type", c.agent_type), ("status", c.status)]
    rows += [(name, escape(str(text))) for name, text in told if text]
    rows += [("metadata", preview(c.metadata, 100))] if c.metadata else []
    out.table([Column(""), Column("", flexible=True)], [[(name, "key"), text] for name, text in rows], indent=2)


def _show_parts(out: Output, value: Any) -> None:
    rows: list[list[Cell]] = []
    inside = words.parts(value)
    for key, held in list(inside.items())[:_LINES]:
        step: Path = (key,) if isinstance(value, (list, tuple)) else (step_of(key),)
        rows.append([(words.brief(render(step)), "key"), (words.kind_of(held), "dim"), preview(held, _PREVIEW)])
    out.table([Column(""), Column(""), Column("", flexible=True)], rows, indent=2)
    if len(inside) > _LINES:
        out.note(f"{len(inside) - _LINES:,} more", "--full shows them all")


def show_value(out: Output, value: Any, *, full: bool) -> None:
    """A text as its lines, anything else as JSON; long ones are cut unless `full`."""
    text = isinstance(value, str)
    lines = words.lines_of(value) if text else words.as_json(plain(value, full=full)).split("\n")
    for line in lines if full else lines[:_LINES]:
        out.line(f"  {line}")
    if not full and (len(lines) > _LINES or (not text and any('"$cut"' in x for x in lines))):
        out.note("some of it is not shown", "--full shows all of it; or name a place in it: REF:path")
