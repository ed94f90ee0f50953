"""Texts by a regular expression, where they came to be."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

from ..errors import InvalidInputError
from ..state.diff.change import Change
from ..state.diff.states import LONG_TEXT
from ..state.diff.trees import diff_trees
from ..state.shown.path import ABSENT, Path, find, render, step_of
from ..state.tree.recall import RecallingReader
from ..state.values.registry import Opaque
from ..storage.base import Key
from ..storage.record import Head
from .engine import Engine
from .listing import Listing
from .resolve import AnyRef, Resolver

Match = tuple[Head, str, str]
_BATCH = 64


def grep(engine: Engine, refs: Resolver, pattern: str, ref: AnyRef | None, limit: int | None) -> Iterator[Match]:
    """(checkpoint, path, text) for texts and keys that match and are new in that checkpoint, newest first.

    In the history of `ref`, or in all checkpoints of all agents. A text is new where its parent's state has none
    that matches the same way in that place; one that only moved is not. What a checkpoint shares with its parent is
    not read.
    """
    try:
        regex = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as e:
        raise InvalidInputError("bad-regex", f"{pattern!r} is not a regular expression: {e}") from e
    heads = Listing(engine, refs, refs.key("").user).newest_first() if ref is None else refs.history(refs.head(ref))
    return islice(_matches_in(engine, regex, heads), limit)


def _matches_in(engine: Engine, regex: re.Pattern[str], heads: Iterator[Head]) -> Iterator[Match]:
    readers: dict[Key, RecallingReader] = {}
    size = 1
    while batch := list(islice(heads, size)):
        found: list[list[Match]] = []
        for head in reversed(batch):  # oldest first: of what only grew, only what it grew by is read
            reader = readers.get(head.key)
            if reader is None:
                reader = readers[head.key] = RecallingReader(engine.fetch(head.key), engine.hasher(head.key.user))
            came = _texts_that_came(_changes(engine, reader, head), regex)
            found.append([(head, render(path), text) for path, text in came])
        for matches in reversed(found):
            yield from matches
        size = min(2 * size, _BATCH)


def _changes(engine: Engine, reader: RecallingReader, head: Head) -> tuple[Change, ...]:
    """What the checkpoint changed of its parent's state: of the nearest one that was not pruned."""
    view = engine.log.view(head.key.user).agent(head.key.agent)
    parent, seq = None, view.parent_of_gone(head.parent)
    while seq and (parent is None or parent.seq in view.dropped):
        parent = engine.head(head.key, seq)
        seq = view.parent_of_gone(parent.parent)
    if parent is None or parent.seq in view.dropped:
        with engine.reading(head):
            return (Change("add", (), new=reader.value(engine.root(head))),)
    if parent.digest == head.digest:
        return ()
    with engine.reading(parent, head):
        return diff_trees(reader, engine.root(parent), reader, engine.root(head))


def _texts_that_came(changes: tuple[Change, ...], regex: re.Pattern[str]) -> Iterator[tuple[Path, str]]:
    for change in changes:
        named = change.path and isinstance(change.path[-1], str)
        if change.op in ("add", "move") and named and regex.search(change.path[-1]):  # type: ignore[arg-type]
            yield change.path, change.path[-1]  # type: ignore[misc]
        if change.op not in ("add", "replace", "text", "set_add"):
            continue
        for inner, text, is_key in _texts(change.new, ()):
            if regex.search(text) and _is_new(regex, text, find(change.old, inner), is_key=is_key):
                yield (*change.path, *inner), text


def _is_new(regex: re.Pattern[str], text: str, before: Any, *, is_key: bool) -> bool:
    """Whether a text that matches is another one in its place; a long one, whether it got a match it did not have."""
    if before is ABSENT or is_key:
        return before is ABSENT
    if not isinstance(before, str) or before == text:
        return bool(before != text)
    if len(text) < LONG_TEXT and "\n" not in text:
        return True
    return bool(_matches(regex, text) - _matches(regex, before))


def _matches(regex: re.Pattern[str], text: str) -> Counter[str]:
    return Counter(found[0] for found in regex.finditer(text))


def _texts(value: Any, path: Path) -> Iterator[tuple[Path, str, bool]]:
    """(path, text, whether it is a key) of every text in a value."""
    if isinstance(value, str):
        yield path, value, False
    elif isinstance(value, Opaque):
        yield from _texts(value.data, path)
    elif isinstance(value, (set, frozenset)):
        for item in value:
            yield from _texts(item, path)
    elif isinstance(value, dict):
        for key, held in value.items():
            step = step_of(key)
            if isinstance(step, str):
                yield (*path, step), step, True
            yield from _texts(held, (*path, step))
    elif isinstance(value, (list, tuple)):
        for at, held in enumerate(value):
            yield from _texts(held, (*path, at))
