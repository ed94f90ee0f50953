"""Which records a place means."""

from __future__ import annotations

from ..state.tree.nodes import Place
from ..storage.base import journal_of


def span_of(agent: str, place: Place) -> tuple[str, int, int] | None:
    """(agent or journal, first seq, last seq) of the records a place in a state of `agent` means; None: a pack."""
    first, n, _ = place
    if type(first) is int:
        return (agent, first, first + n - 1) if first >= 0 else (journal_of(agent), -first, n - first - 1)
    return (first, n, n) if type(first) is str else None


def in_journal(place: Place) -> bool:
    """Whether it lies in the agent's own journal: there a record may have no such slot, and holds nothing of it."""
    return type(place[0]) is int and place[0] < 0
