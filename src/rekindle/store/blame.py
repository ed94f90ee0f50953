"""Which checkpoints changed a value, by its path."""

from __future__ import annotations

from itertools import islice
from typing import Any

from ..errors import NotFoundError
from ..state.diff.follow import Follower
from ..state.shown.path import get, parse
from ..storage.record import Head
from .engine import Engine
from .resolve import Resolver

_BATCH = 512


def blame(engine: Engine, refs: Resolver, head: Head, path_text: str) -> list[Head]:
    """The checkpoints in the history of `head` that changed the value at a path, newest first.

    The one where it came to exist is among them, and so is one where it went (to come back later). An index is a
    place: what stands there, whoever moved it; one that counts from the end is the place it means in `head`'s state.
    A change made in a checkpoint that was pruned counts for the next one that is left.
    Raises NotFoundError where `head`'s state has nothing at the path.
    """
    path = parse(path_text)
    follower = Follower(path, engine.fetch(head.key), engine.hasher(head.key.user))
    with engine.reading(head):
        follower.resolve(head.root)
        there = follower.answers([head.root])[0]
    if there is None:
        get(engine.state(head, opaque=True), path)
        raise NotFoundError("path-not-found", f"the state has no {path_text}")
    changed: list[Head] = []
    newer: tuple[Head, Any] | None = None
    history = refs.history(head)
    while batch := list(islice(history, _BATCH)):
        with engine.reading(*batch):
            answers = follower.answers([older.root for older in reversed(batch)])[::-1]
        for older, answer in zip(batch, answers, strict=True):
            if newer is not None and follower.differ(newer[1], answer):
                changed.append(newer[0])
            newer = (older, answer)
    if newer is not None and newer[1] is not None:
        changed.append(newer[0])
    return changed
