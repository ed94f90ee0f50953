"""Looking at two states, and at many: what differs, where it came from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import InvalidInputError
from ..refs import quote_agent
from ..state.diff.change import Change
from ..state.diff.trees import diff_trees
from ..state.tree.recall import RecallingReader
from ..storage.record import Head
from .blame import blame
from .engine import Engine
from .grep import grep
from .resolve import Resolver

__all__ = ["bisect", "blame", "diff", "grep"]


def diff(engine: Engine, head_a: Head, head_b: Head) -> tuple[Change, ...]:
    """The changes that make b's state of a's, values of registered types read as data.

    Applied to a's state, read the same way, they give b's. Parts whose digests are equal are not read.
    """
    if head_a.digest == head_b.digest:
        return ()
    a, b = RecallingReader(engine.fetch(head_a.key), engine.hasher(head_a.key.user)), None
    if head_a.key != head_b.key:
        b = RecallingReader(engine.fetch(head_b.key), engine.hasher(head_b.key.user))
    with engine.reading(head_a, head_b):
        return diff_trees(a, engine.root(head_a), b or a, engine.root(head_b))


def bisect(
    engine: Engine, refs: Resolver, good: Head, bad: Head, predicate: Callable[[Any], bool], *, opaque: bool = False
) -> Head:
    """The first checkpoint after `good`, in the history of `bad`, whose state the predicate holds for.

    Where it holds for some and then not for a while, one is found that it holds for and not for the one before.
    Restores O(log n) states. An error of the predicate is the caller's.
    """
    between = _between(refs, good, bad)

    def holds(seq: int) -> bool:
        return bool(predicate(engine.state(engine.head(bad.key, seq), opaque=opaque)))

    if holds(good.seq):
        raise InvalidInputError(
            "good-is-bad", f"{_name(good)}, named as good, is bad already", hint="name an older checkpoint as good"
        )
    if not holds(bad.seq):
        raise InvalidInputError(
            "bad-is-good", f"{_name(bad)}, named as bad, is good", hint="name a checkpoint as bad that is"
        )
    low, high = 0, len(between) - 1  # it holds at high, and not before low
    while low < high:
        middle = (low + high) // 2
        if holds(between[middle]):
            high = middle
        else:
            low = middle + 1
    return engine.head(bad.key, between[high])


def _between(refs: Resolver, good: Head, bad: Head) -> list[int]:
    """The seqs after good up to bad, along bad's history, oldest first."""
    seqs: list[int] = []
    if good.key == bad.key and good.seq < bad.seq:
        for head in refs.history(bad):
            if head.seq == good.seq:
                return seqs[::-1]
            seqs.append(head.seq)
    raise InvalidInputError(
        "not-an-ancestor", f"{_name(good)} is not an ancestor of {_name(bad)}",
        hint=f"choose one that `rekindle log {quote_agent(bad.key.agent)}` shows before it",
    )  # fmt: skip


def _name(head: Head) -> str:
    return f"{quote_agent(head.key.agent)}@{head.seq}"
