"""Where the bytes are, and the store in numbers."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..refs import quote_agent
from . import words
from .output import Cell, Column
from .session import Session, agent_argument, verb


@verb("du", examples=("rekindle du", "rekindle du planner --json"))
@agent_argument(required=False)
def cmd_du(session: Session, agent: str | None) -> None:
    """Where the bytes are: of each agent, and of the store's files.

    STATES is what the checkpoints would take if each were kept whole; ON DISK is what they do take. A part
    of a state that several agents share is counted where it was first written.
    """
    from ..store.usage import usage

    only = None if agent is None else session.agent_of(agent)
    found = [each for each in usage(session.store) if only in (None, each.agent_id)]
    parts = session.store.size()
    if session.out.json:
        session.out.data({"agents": [each.to_dict() for each in found], "files": parts, "total": sum(parts.values())})
        return
    columns = [
        Column("AGENT", flexible=True),
        Column("CHECKPOINTS", right=True),
        Column("STATES", right=True),
    ]
    columns += [Column("ON DISK", right=True), Column("DROPPED", right=True)]
    rows: list[list[Cell]] = [
        [
            (quote_agent(each.agent_id), "title"), f"{each.checkpoints:,}", words.size(each.states),
            words.size(each.written), f"{each.dropped:,}" if each.dropped else "",
        ]
        for each in sorted(found, key=lambda each: -each.written)
    ]  # fmt: skip
    session.out.table(columns, rows)
    if only is not None:
        return
    session.out.line("")
    files: list[list[Any]] = [[(name, "title"), words.size(taken)] for name, taken in parts.items()]
    session.out.table([Column("FILES"), Column("", right=True)], [*files, ["total", words.size(sum(parts.values()))]])
    if any(each.dropped for each in found):
        session.out.note("", "`rekindle collect` frees the space of what was dropped")


@verb("stats", examples=("rekindle stats", "rekindle stats --json"))
def cmd_stats(session: Session) -> None:
    """The store in numbers: agents, checkpoints by kind, branches, tags, bytes."""
    store = session.store
    agents = store.agents()
    checkpoints = store.list(limit=None)
    kinds = Counter(c.kind for c in checkpoints)
    states, taken = sum(c.size for c in checkpoints), sum(store.size().values())
    held, operations = store.policy(), store.operations()
    times = [c.timestamp for c in checkpoints]
    numbers: dict[str, Any] = {
        "url": store.url,
        "user": store.user,
        "agents": len(agents),
        "checkpoints": len(checkpoints),
        "kinds": dict(kinds.most_common()),
        "branches": sum(len(store.branches(name)) for name in agents),
        "tags": sum(len(store.tags(name)) for name in agents),
        "first": words.iso(min(times)) if times else None,
        "last": words.iso(max(times)) if times else None,
        "states_bytes": states,
        "disk_bytes": taken,
        "operations": len(operations),
        "undoable": sum(o.undoable for o in operations),
        "policy": None if held is None else {"rules": str(held[0]), "every": held[1]},
    }
    if session.out.json:
        session.out.data(numbers)
        return
    by_kind = words.joined(f"{count:,} {kind}" for kind, count in kinds.most_common())
    rows = [
        ("store", numbers["url"] + ("" if store.user == "local" else f"  (user {store.user})")),
        ("agents", f"{len(agents):,}"),
        ("checkpoints", f"{len(checkpoints):,}" + (f"  ({by_kind})" if by_kind else "")),
        ("branches", f"{numbers['branches']:,}"),
        ("tags", f"{numbers['tags']:,}"),
        ("saved", f"{words.when(min(times))} to {words.when(max(times))}" if times else "nothing yet"),
        ("states", f"{words.size(states)}, kept in {words.size(taken)}"),
        ("operations", f"{len(operations):,}, of which {numbers['undoable']:,} can be undone"),
        ("policy", "none" if held is None else f"{held[0]}, after every {held[1]} saves of an agent"),
    ]
    session.out.table([Column(""), Column("", flexible=True)], [[(name, "key"), text] for name, text in rows])
