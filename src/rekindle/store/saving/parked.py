"""Entries that wait a moment for a save of their agent, which takes them along: one commit for both."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .drafts import Draft
    from .ways import Way

Line = deque["Parked"]


class Parked:
    """`future`: True when they are there; False where the save that took them did not come through, or could not."""

    __slots__ = ("drafts", "future")

    def __init__(self, drafts: Sequence[Draft]) -> None:
        self.drafts = drafts
        self.future: Future[bool] = Future()


def take(line: Line) -> list[Parked]:
    """All that wait; nobody else takes them then."""
    taken = []
    with suppress(IndexError):
        while True:
            taken.append(line.popleft())
    return taken


async def wait_in(line: Line, way: Way, drafts: Sequence[Draft], patience: float) -> bool:
    """Whether a save took them along. Who gave up waiting leaves nothing in the line."""
    parked = Parked(drafts)
    line.append(parked)
    try:
        taken = await way.wait(parked.future, patience)
        if taken is None and not _left(line, parked):
            taken = await way.wait(parked.future, None)
    except BaseException:
        _left(line, parked)
        raise
    return bool(taken)


def _left(line: Line, parked: Parked) -> bool:
    """Whether it stood in the line still."""
    try:
        line.remove(parked)
    except ValueError:
        return False
    return True
