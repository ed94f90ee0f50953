"""The first step: a store."""

from __future__ import annotations

from .session import Session, verb
from .words import count


@verb("init", examples=("rekindle init", "rekindle init --store runs/today.db"))
def cmd_init(session: Session) -> None:
    """Make a store, .rekindle/store.db or the one --store names. Harmless where there is one already."""
    from ..errors import RekindleError

    try:
        store, made = session.open(), False
    except RekindleError as e:
        if e.code != "no-store":
            raise
        store, made = session.open(create=True), True
    agents = store.agents()
    if session.out.json:
        session.out.data({"url": store.url, "made": made, "agents": len(agents)})
        return
    if not made:
        session.out.line(f"there is a store already: {store.url} ({count(len(agents), 'agent')})")
        return
    session.out.line(("made ", "good"), store.url)
    named = repr(session.settings.store) if session.settings.store else ""
    session.out.note("")
    session.out.note("next, in Python:")
    session.out.note("    import rekindle")
    session.out.note(f"    store = rekindle.open_store({named})")
    session.out.note('    store.save("my-agent", {"messages": []})')
    session.out.note("then `rekindle log` shows it.")
