"""`log`: checkpoints newest first, as a list or drawn with their branches."""

from __future__ import annotations

from collections.abc import Iterator

import click

from ..errors import InvalidInputError
from ..model import KINDS, Checkpoint
from . import words
from .graph import draw
from .look import decoration
from .output import Cell, Column, Span
from .session import Session, ref_argument, verb

_LIMIT = 20


@verb(
    "log",
    examples=(
        "rekindle log",
        "rekindle log planner --graph",
        "rekindle log planner@experiment --limit 100",
        "rekindle log planner --kind manual --json",
    ),
)
@ref_argument(metavar="AGENT|REF", required=False)
@click.option("--graph", is_flag=True, help="Draw how the branches go.")
@click.option(
    "--limit",
    "-n",
    metavar="N",
    type=click.IntRange(min=1),
    default=_LIMIT,
    show_default=True,
    help="How many.",
)
@click.option("--all", "everything", is_flag=True, help="All of them.")
@click.option("--branch", metavar="NAME", help="Only the history of that branch.")
@click.option("--kind", type=click.Choice(KINDS), help="Only checkpoints of that kind.")
def cmd_log(
    session: Session,
    ref: str | None,
    graph: bool,
    limit: int,
    everything: bool,
    branch: str | None,
    kind: str | None,
) -> None:
    """Checkpoints, newest first: of all agents, of one agent on all its branches, or the history of one.

    `log planner` lists every branch; `log planner@main` only what main's head came from.
    """
    if graph and (ref is None or kind is not None):
        ref = ref if ref is not None else session.the_agent()
        if kind is not None:
            raise InvalidInputError("usage", "--graph draws every kind", hint="leave --kind out")
    wanted = None if everything else limit + 1
    found = _found(session, ref, branch, kind, wanted)
    shown = found if everything else found[:limit]
    more = len(found) > len(shown)
    names = _Names(session)
    if session.out.json:
        made = [words.facts(c) | names.of(c) for c in shown]
        session.out.data({"checkpoints": made, "more": more})
        return
    if not shown:
        session.out.note("no checkpoints", "`rekindle agents` lists who has some" if ref or branch or kind else
                         'save a first one: store.save("my-agent", state)')  # fmt: skip
        return
    if graph:
        _draw(session, shown, names)
    else:
        _list(session, shown, names)
    if more:
        session.out.note("", "there are more: --limit N or --all")


def _found(
    session: Session, ref: str | None, branch: str | None, kind: str | None, limit: int | None
) -> list[Checkpoint]:
    store = session.store
    if ref is None:
        return store.list(branch=branch, kind=kind, limit=limit)
    parsed = session.parsed(ref)
    if parsed.at is None and parsed.name in store.agents():
        return store.list(parsed.name, branch=branch, kind=kind, limit=limit)
    if branch is not None:
        raise InvalidInputError("usage", "--branch is for an agent", hint=f"`rekindle log {ref}` is a history already")
    history = store.history(parsed, limit=None if kind else limit)
    return [c for c in history if kind is None or c.kind == kind][:limit]


class _Names:
    """Heads and tags of every agent that is shown, asked for once."""

    def __init__(self, session: Session) -> None:
        self._store = session.store
        self._known: dict[str, dict[int, dict[str, list[str]]]] = {}

    def of(self, c: Checkpoint) -> dict[str, list[str]]:
        if c.agent_id not in self._known:
            self._known[c.agent_id] = self._load(c.agent_id)
        return self._known[c.agent_id].get(c.seq, {"heads": [], "tags": []})

    def _load(self, agent: str) -> dict[int, dict[str, list[str]]]:
        made: dict[int, dict[str, list[str]]] = {}
        for what, named in (("heads", self._store.branches(agent)), ("tags", self._store.tags(agent))):
            for name, checkpoint in named.items():
                made.setdefault(checkpoint.seq, {"heads": [], "tags": []})[what].append(name)
        return made


def _told(c: Checkpoint, names: _Names) -> list[Span]:
    """`(main, tag: v1) label`"""
    named = names.of(c)
    spans = decoration(named["heads"], named["tags"])
    label = words.brief(c.label or "")
    return [*spans, *([(" ", "")] if spans and label else []), (label, "")]


def _list(session: Session, shown: list[Checkpoint], names: _Names) -> None:
    columns = [Column("CHECKPOINT"), Column("SAVED"), Column("KIND"), Column("BRANCH", flexible=True)]
    columns += [Column("SIZE", right=True), Column("", flexible=True)]
    rows: list[list[Cell]] = [
        [
            (words.ref(c), "seq"), words.when(c.timestamp), c.kind, words.name(c.branch), words.size(c.size),
            _told(c, names),
        ]
        for c in shown
    ]  # fmt: skip
    session.out.table(columns, rows)


def _draw(session: Session, shown: list[Checkpoint], names: _Names) -> None:
    by_seq = {c.seq: c for c in shown}
    drawn = draw(_with_parents(session, shown), unicode=session.out.unicode)
    width = max(len(row.lanes) for row in drawn)
    widest = max(len(words.ref(c)) for c in shown)
    for row in drawn:
        if row.seq is None:
            session.out.line((row.lanes, "lane"))
            continue
        c = by_seq[row.seq]
        facts = f"{words.ref(c):{widest}}"
        session.out.line(
            (f"{row.lanes:{width}}  ", "lane"), (facts, "seq"), f"  {words.when(c.timestamp)}  ",
            (f"{c.kind:<7}", "dim"), "  ", _told(c, names),
        )  # fmt: skip


def _with_parents(session: Session, shown: list[Checkpoint]) -> Iterator[tuple[int, int | None]]:
    """(seq, parent's seq); where the parent was pruned, the nearest ancestor that is there."""
    seqs = {c.id: c.seq for c in shown}
    for c in shown:
        parent = c.parent_checkpoint_id
        if parent is None or parent in seqs:
            yield c.seq, seqs.get(parent or "")
        else:
            nearest = session.store.history(c, limit=2)[1:]
            yield c.seq, nearest[0].seq if nearest else None
