"""Dropping checkpoints and freeing their space. All but the last is undone by `undo`."""

from __future__ import annotations

from datetime import UTC
from typing import Any

import click

from ..errors import InvalidInputError
from ..quoting import escape
from ..refs import quote_agent
from ..retention import Decision, Plan
from . import words
from .names import undo_hint
from .output import Cell, Column
from .progress import progress
from .session import Session, agent_argument, verb

_EVERY = 100
POLICY_HELP = (
    "\b\nPOLICY is one or more of, with commas between:\n"
    "  keep-last=10  keep-hourly=24  keep-daily=7  keep-weekly=4  keep-monthly=6  keep-within=2d\n"
    "  max-age=30d  max-bytes=500MB  max-count=1000\n"
    "  keep-kind=manual  drop-kind=routine  kind.routine.keep-last=3"
)


@verb(
    "prune",
    examples=(
        "rekindle prune keep-last=10,keep-daily=7 --dry-run",
        "rekindle prune max-age=30d --agent planner",
        "rekindle prune keep-last=20,keep-kind=manual,kind.routine.keep-last=3",
    ),
    epilog=POLICY_HELP,
)
@click.argument("policy")
@click.option("--agent", metavar="AGENT", help="Only of this agent; else of all, each by itself.")
@click.option("--dry-run", is_flag=True, help="Change nothing; say what would go and why, for every checkpoint.")
def cmd_prune(session: Session, policy: str, agent: str | None, dry_run: bool) -> None:
    """Drop what a policy does not keep. Heads, tags and open operations always stay.

    It is undoable until `rekindle collect`, which is what frees the space.
    """
    from ..retention import Policy

    rules = Policy.parse(policy)
    agents = session.store.agents() if agent is None else [session.agent_of(agent)]
    plans = {name: session.store.prune(rules, agent_id=name, dry_run=True) for name in agents}
    operation = None
    done = Plan(
        keep=tuple(each for plan in plans.values() for each in plan.keep),
        drop=tuple(each for plan in plans.values() for each in plan.drop),
    )
    if not dry_run and done.drop:
        done = session.store.prune(rules, agent_id=None if agent is None else agents[0])
        operation = session.last_operation("prune")
    out, owners = session.out, _owners(plans)
    if out.json:
        made: dict[str, Any] = {
            "dry_run": dry_run,
            "policy": str(rules),
            "operation": operation,
            "freed": done.freed,
        }
        for action in ("keep", "drop"):
            decisions: tuple[Decision, ...] = getattr(done, action)
            made[action] = [{"agent_id": owners.get(each.candidate.id), **_decided(each)} for each in decisions]
        out.data(made)
        return
    if dry_run:
        _show_plan(session, plans)
    said = "would drop" if dry_run else "dropped"
    out.line(
        f"{said} {words.count(len(done.drop), 'checkpoint')} of {len(done.drop) + len(done.keep):,} ",
        (f"({words.size(done.freed)} of states)", "dim"),
    )
    if operation is not None:
        out.note("", undo_hint(operation), "`rekindle collect` frees the space, for good")


def _owners(plans: dict[str, Plan]) -> dict[str, str]:
    return {each.candidate.id: name for name, plan in plans.items() for each in (*plan.keep, *plan.drop)}


def _decided(decision: Decision) -> dict[str, Any]:
    made = decision.to_dict()
    time = made.pop("time")
    from datetime import datetime

    return made | {"timestamp": words.iso(datetime.fromtimestamp(time, UTC))}


def _show_plan(session: Session, plans: dict[str, Plan]) -> None:
    columns = [
        Column(""),
        Column("CHECKPOINT"),
        Column("KIND"),
        Column("SIZE", right=True),
        Column("WHY", flexible=True),
    ]
    rows: list[list[Cell]] = []
    for name, plan in plans.items():
        for each in sorted((*plan.keep, *plan.drop), key=lambda d: -d.candidate.seq):
            c, style = each.candidate, "bad" if each.action == "drop" else "good"
            rows.append([
                (each.action, style), (f"{quote_agent(name)}@{c.seq}", "seq"), c.kind, words.size(c.size),
                escape(", ".join(each.reasons)),
            ])  # fmt: skip
    session.out.table(columns, rows)


@verb(
    "policy",
    examples=(
        "rekindle policy",
        "rekindle policy keep-last=100,keep-daily=30 --every 50",
        "rekindle policy --none",
    ),
    epilog=POLICY_HELP,
)
@click.argument("rules", metavar="[POLICY]", required=False)
@click.option(
    "--every", metavar="N", type=click.IntRange(min=1), help=f"Saves of an agent between; {_EVERY} if not given."
)
@click.option("--none", is_flag=True, help="Keep no policy any more.")
def cmd_policy(session: Session, rules: str | None, every: int | None, none: bool) -> None:
    """The policy the store keeps by itself, after every so many saves of an agent; with POLICY, set it.

    What it drops is logged, and can be undone as a prune can.
    """
    if rules is not None and none:
        raise InvalidInputError("usage", "a policy and --none cannot go together")
    if every is not None and rules is None:
        raise InvalidInputError("usage", "--every goes with a policy", hint="rekindle policy POLICY --every N")
    store = session.store
    if rules is not None or none:
        store.set_policy(rules, every=every or _EVERY)
    held = store.policy()
    if session.out.json:
        session.out.data(
            {"policy": None, "every": None} if held is None else {"policy": str(held[0]), "every": held[1]}
        )
        return
    if held is None:
        session.out.line("none: everything is kept")
        return
    session.out.line((str(held[0]), "title"), f"  after every {held[1]} saves of an agent")


@verb("delete", examples=("rekindle delete planner --dry-run", "rekindle delete planner"))
@agent_argument()
@click.option("--dry-run", is_flag=True, help="Change nothing; say what would go.")
def cmd_delete(session: Session, agent: str, dry_run: bool) -> None:
    """Drop an agent whole: its checkpoints, branches and tags. Late saves to it are refused. Undoable."""
    from ..refs import parse_ref

    parsed = parse_ref(agent)
    if parsed.name is None or parsed.at is not None or parsed.path:
        raise InvalidInputError(
            "usage", f"{escape(agent)} is not an agent", hint="delete drops a whole agent; see prune"
        )
    store = session.store
    if dry_run:
        store.branches(parsed.name)  # it is an error where there is no such agent
        count, operation = len(store.list(parsed.name, limit=None)), None
    else:
        count = store.delete(parsed.name)
        operation = session.last_operation("delete")
    if session.out.json:
        session.out.data({"agent_id": parsed.name, "dry_run": dry_run, "dropped": count, "operation": operation})
        return
    said = "would delete" if dry_run else "deleted"
    session.out.line(f"{said} {quote_agent(parsed.name)}: {words.count(count, 'checkpoint')}")
    if dry_run:
        session.out.note("nothing was changed (--dry-run)")
        return
    session.out.note("", undo_hint(operation), "`rekindle collect` frees the space, for good")


@verb("collect", examples=("rekindle collect --dry-run", "rekindle collect"))
@click.option("--dry-run", is_flag=True, help="Change nothing; say what was dropped and could not be undone after.")
def cmd_collect(session: Session, dry_run: bool) -> None:
    """Free the space of what prune and delete dropped. It is gone then: undo cannot bring it back.

    Savers in this and other processes may go on meanwhile.
    """
    from ..store.usage import usage

    waiting = sum(each.dropped for each in usage(session.store))
    lost = [o.seq for o in session.store.operations() if o.undoable and any(e[0] == "drop" for e in o.edits)]
    if dry_run:
        if session.out.json:
            session.out.data({"dry_run": True, "dropped": waiting, "operations": lost})
            return
        session.out.line(f"would free the space of {words.count(waiting, 'dropped checkpoint')}")
        if waiting and lost:
            session.out.note(f"after it these could not be undone: {words.joined(map(str, lost))}")
        return
    with progress("collecting") as bar:
        freed = session.store.collect(progress=bar)
    if session.out.json:
        session.out.data({"dry_run": False, "dropped": waiting, "freed": freed})
        return
    session.out.line(f"freed {words.size(freed)} of {words.count(waiting, 'dropped checkpoint')}")
