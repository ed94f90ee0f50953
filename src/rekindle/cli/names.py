"""Names: branches, tags and labels."""

from __future__ import annotations

from typing import Any

import click

from ..errors import InvalidInputError
from ..quoting import escape
from ..refs import quote_agent
from . import words
from .completing import complete_branch
from .output import Cell, Column
from .session import Session, agent_argument, ref_argument, verb


@verb("fork", examples=("rekindle fork planner@42 experiment", "rekindle fork planner@-3 retry"))
@ref_argument()
@click.argument("branch")
def cmd_fork(session: Session, ref: str, branch: str) -> None:
    """Begin a branch at a checkpoint. Nothing is copied."""
    made = session.store.fork(session.parsed(ref), branch)
    agent = quote_agent(made.agent_id)
    if session.out.json:
        session.out.data({"branch": branch, "checkpoint": words.facts(made)})
        return
    session.out.line(("branch ", "dim"), (quote_agent(branch), "branch"), " begins at ", (words.ref(made), "seq"))
    session.out.note("", f"save on it with branch={branch!r}; `rekindle log {agent}@{quote_agent(branch)}` shows it")


@verb("branches", examples=("rekindle branches planner", "rekindle branches planner --delete experiment"))
@agent_argument(required=False)
@click.option("--delete", metavar="NAME", shell_complete=complete_branch, help="Take a branch's name away.")
def cmd_branches(session: Session, agent: str | None, delete: str | None) -> None:
    """An agent's branches and their heads. --delete takes a name away; its checkpoints stay until a prune."""
    owner = session.agent_of(agent) if agent is not None else session.the_agent()
    if delete is not None:
        session.store.delete_branch(owner, delete)
        _undoable(
            session,
            "delete-branch",
            {"deleted": delete, "agent_id": owner},
            f"deleted branch {quote_agent(delete)}",
        )
        return
    found = session.store.branches(owner)
    if session.out.json:
        session.out.data({"agent_id": owner, "branches": {name: words.facts(c) for name, c in found.items()}})
        return
    columns = [
        Column("BRANCH", flexible=True),
        Column("HEAD"),
        Column("SAVED"),
        Column("KIND"),
        Column("LABEL", flexible=True),
    ]
    rows: list[list[Cell]] = [
        [
            (quote_agent(name), "branch"),
            (words.ref(c), "seq"),
            words.when(c.timestamp),
            c.kind,
            words.brief(c.label or ""),
        ]
        for name, c in found.items()
    ]
    session.out.table(columns, rows)


@verb(
    "tag",
    examples=(
        "rekindle tag planner@42 v1",
        "rekindle tag planner v1 --move",
        "rekindle tag planner v1 --delete",
    ),
)
@ref_argument()
@click.argument("name")
@click.option("--move", is_flag=True, help="Where the tag is on another checkpoint, move it here.")
@click.option("--delete", is_flag=True, help="Take the tag away; REF may be just the agent.")
def cmd_tag(session: Session, ref: str, name: str, move: bool, delete: bool) -> None:
    """Name a checkpoint. No prune takes a tagged one away."""
    if move and delete:
        raise InvalidInputError("usage", "--move and --delete cannot go together")
    if delete:
        agent = session.agent_of(ref)
        session.store.untag(agent, name)
        _undoable(session, "untag", {"deleted": name, "agent_id": agent}, f"deleted tag {quote_agent(name)}")
        return
    made = session.store.tag(session.parsed(ref), name, move=move)
    if session.out.json:
        session.out.data({"tag": name, "checkpoint": words.facts(made)})
        return
    session.out.line(("tag ", "dim"), (quote_agent(name), "tag"), " is on ", (words.ref(made), "seq"))


@verb("tags", examples=("rekindle tags", "rekindle tags planner --json"))
@agent_argument(required=False)
def cmd_tags(session: Session, agent: str | None) -> None:
    """The tags of an agent, or of all agents, and the checkpoints they name."""
    agents = [session.agent_of(agent)] if agent is not None else session.store.agents()
    found = [(owner, name, c) for owner in agents for name, c in session.store.tags(owner).items()]
    if session.out.json:
        made = [{"agent_id": owner, "tag": name, "checkpoint": words.facts(c)} for owner, name, c in found]
        session.out.data({"tags": made})
        return
    if not found:
        session.out.note("no tags", "`rekindle tag REF NAME` makes one")
        return
    columns = [
        Column("TAG", flexible=True),
        Column("CHECKPOINT"),
        Column("SAVED"),
        Column("LABEL", flexible=True),
    ]
    rows: list[list[Cell]] = [
        [(quote_agent(name), "tag"), (words.ref(c), "seq"), words.when(c.timestamp), words.brief(c.label or "")]
        for _, name, c in found
    ]
    session.out.table(columns, rows)


@verb("label", examples=("rekindle label planner@42 'before the refactoring'", "rekindle label planner@42 ''"))
@ref_argument()
@click.argument("text")
def cmd_label(session: Session, ref: str, text: str) -> None:
    """Write a few words beside a checkpoint; an empty text takes them off."""
    made = session.store.label(session.parsed(ref), text or None)
    if session.out.json:
        session.out.data({"checkpoint": words.facts(made)})
        return
    session.out.line((words.ref(made), "seq"), "  ", escape(made.label or "(no label)"))


def _undoable(session: Session, verb: str, made: dict[str, Any], told: str) -> None:
    """Say what was done, and how it is undone."""
    operation = session.last_operation(verb)
    if session.out.json:
        session.out.data({**made, "operation": operation})
        return
    session.out.line(told)
    session.out.note("", undo_hint(operation))


def undo_hint(operation: int | None) -> str:
    number = "" if operation is None else f" {operation}"
    return f"`rekindle undo{number}` brings it back"
