"""What a process remembers of the end of an agent's timeline, so that a save need not read it again."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from ...errors import CorruptDataError
from ...state.tree.nodes import Node
from ...state.tree.pieces import Pieces
from ...storage.record import Head
from ..view import AgentView
from .parked import Line

JOURNAL_FROM = "journal"
"""In a head's `more`: the seq its entries in the journal begin at."""
_TREES = 4
_EARLY = 256
_NEVER = 1 << 62


class Mark(NamedTuple):
    """Enough of a record to be a parent."""

    link: bytes
    alias: str | None
    branch: str
    entries: int
    """Where its entries in the journal begin."""


def entries_from(head: Head) -> int:
    """No entry of a checkpoint lies before that one; 1 where the record does not tell."""
    first = head.more.get(JOURNAL_FROM, 1)
    if type(first) is not int or first < 1:
        raise CorruptDataError("bad-record", f"record {head.seq} of {head.key.agent!r} says no place of its entries")
    return first


class Turn:
    """A lock for threads, which block, and for tasks, which must not.

    A task that finds it taken is told when it is let go, and asks again. It is never handed to anyone: an event loop
    that stands still (its thread saves, blocking) would keep it from those who can run.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asking: deque[Callable[[], None]] = deque()

    def acquire(self) -> None:
        self._lock.acquire()

    def release(self) -> None:
        """From any thread."""
        self._lock.release()
        self._tell_next()

    def locked(self) -> bool:
        return self._lock.locked()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def ask(self, tell: Callable[[], None]) -> bool:
        """True: it is yours. Else `tell` is called once, from whichever thread lets go; ask again then."""
        if self._lock.acquire(blocking=False):
            return True
        self._asking.append(tell)
        if not self._lock.acquire(blocking=False):  # again: it may have been let go before we stood in the line
            return False
        with suppress(ValueError):
            self._asking.remove(tell)
        return True

    def leave(self, tell: Callable[[], None]) -> None:
        """Ask no more. Where `tell` was called already, the next one is told instead."""
        try:
            self._asking.remove(tell)
        except ValueError:
            self._tell_next()

    def _tell_next(self) -> None:
        if self._asking:
            with suppress(IndexError):
                self._asking.popleft()()


@dataclass
class Tip:
    """`lock` is held through a save: saves of one agent follow each other. `known` False: read it again first.

    `journal` is the newest seq of its journal, None where that is not known.
    """

    lock: Turn = field(default_factory=Turn)
    known: bool = False
    operation: int = 0
    newest: int = 0
    heads: dict[str, int] = field(default_factory=dict)
    marks: dict[int, Mark] = field(default_factory=dict)
    trees: OrderedDict[int, Node] = field(default_factory=OrderedDict)
    journal: int | None = None
    pieces: Pieces = field(default_factory=Pieces)
    parked: Line = field(default_factory=deque)
    """Entries that wait for the next save."""
    early: dict[str, int] = field(default_factory=dict)
    """The first entries of checkpoints that are not there yet: a framework may write these down first."""
    learned: int = 0
    """The newest record when this was learned: what came since, and its entries, this process has written."""
    begins: int = _NEVER
    """Where that record's entries begin: from there on, early ones are looked for in the journal."""

    def note_early(self, of: str, seq: int) -> None:
        if all(mark.alias != of for mark in self.marks.values()):
            self.early.setdefault(of, seq)
            if len(self.early) > _EARLY:
                del self.early[next(iter(self.early))]
                self.known, self.learned = False, _NEVER  # what is forgotten now may be asked for: look again

    def entries_of(self, name: str, parent: int) -> int:
        """Where the entries begin of a checkpoint that is about to come; where the journal ends is known. None of them
        is older than the parent's: others may have written some before this was learned."""
        assert self.journal is not None
        if parent < self.learned:
            return self.marks[parent].entries if parent else 1
        return self.early.get(name, self.journal + 1)

    def forget(self) -> None:
        """It is not known any more how things are, nor what a save that failed has taught the trees."""
        self.known = False
        self.trees.clear()

    def learn(self, newest: Head | None, view: AgentView, operation: int) -> None:
        """The state of affairs as the newest record and the operation log (up to `operation`) tell it."""
        self.operation = operation
        self.newest = newest.seq if newest is not None else 0
        self.heads = branch_heads(newest, view)
        self.learned = self.newest
        self.begins = entries_from(newest) if newest is not None else 1
        self.early.clear()
        self.marks.clear()
        if newest is not None:
            self.mark(newest)
        self.journal = None
        self.pieces.clear()
        self.known = True

    def mark(self, head: Head) -> None:
        if len(self.marks) > 64:
            self.marks.clear()
        self.marks[head.seq] = Mark(head.link, head.alias, head.branch, entries_from(head))

    def keep_tree(self, seq: int, node: Node) -> None:
        self.trees[seq] = node
        self.trees.move_to_end(seq)
        while len(self.trees) > _TREES:
            self.trees.popitem(last=False)


def branch_heads(newest: Head | None, view: AgentView) -> dict[str, int]:
    """Every branch's head. A record tells the heads its writer knew; later operations have the last word, but not over
    a save that was under way when they were decided: what it kept stays the head of its branch."""
    heads: dict[str, int] = {}
    since = 0
    if newest is not None:
        heads = {**newest.heads, newest.branch: newest.seq}
        since = newest.guard
    for name, pointer in view.branches.items():
        if name not in heads or (pointer.operation > since and heads[name] <= pointer.seen):
            if pointer.seq is None:
                heads.pop(name, None)
            else:
                heads[name] = pointer.seq
    return {name: seq for name, seq in heads.items() if seq not in view.dropped}


def unknown_heads(heads: dict[str, int], branch: str, view: AgentView) -> dict[str, int]:
    """The heads a record on `branch` has to tell: those the operation log does not."""
    return {
        name: seq
        for name, seq in heads.items()
        if name != branch and ((pointer := view.branches.get(name)) is None or pointer.seq != seq)
    }
