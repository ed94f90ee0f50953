"""A files store's folder as a whole: what is wrong in it, what it takes, what crashed writers left."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from contextlib import suppress

from ...errors import RekindleError
from ..base import Key
from ..disk import TEMP_PREFIX
from . import layout
from .shelf import Shelf, groups_of, index_of

_TOP = frozenset({layout.MARKER, layout.LOCK, layout.INTENTS, layout.PACKS, layout.USERS})
_OF_USER = frozenset({layout.AGENTS, layout.ALIASES, layout.SHARED})
_OF_AGENT = frozenset({layout.AGENT, layout.GROUPS})


def check(shelf: Shelf) -> list[str]:
    """A line for everything that is not as it should be. What a crash left is not: `measure` counts it."""
    found = _strays(shelf, "", _TOP)
    for user in shelf.names(layout.USERS):
        folder = posixpath.join(layout.USERS, user)
        found += _strays(shelf, folder, _OF_USER)
        found += _aliases(shelf, posixpath.join(folder, layout.ALIASES))
        shared = posixpath.join(folder, layout.SHARED)
        found += [_stray(shelf, shared, name) for name in shelf.names(shared) if layout.digest_of(name) is None]
        for name in shelf.names(posixpath.join(folder, layout.AGENTS)):
            found += _agent(shelf, posixpath.join(folder, layout.AGENTS, name))
    return found


def _strays(shelf: Shelf, folder: str, known: frozenset[str]) -> list[str]:
    return [_stray(shelf, folder, name) for name in shelf.names(folder) if name not in known]


def _stray(shelf: Shelf, folder: str, name: str) -> str:
    return f"{shelf.path(posixpath.join(folder, name))} is none of the store's files"


def _aliases(shelf: Shelf, folder: str) -> list[str]:
    found = []
    for name in shelf.names(folder):
        path = posixpath.join(folder, name)
        try:
            entry = shelf.read(path)
            if entry is not None and layout.alias_path(entry["user"], entry["alias"]) != path:
                found.append(f"{shelf.path(path)} is another id's")
        except RekindleError as e:
            found.append(e.message)
    return found


def _agent(shelf: Shelf, folder: str) -> list[str]:
    try:
        key = shelf.agent(folder)
    except RekindleError as e:
        return [e.message]
    found = []
    for name in shelf.names(folder):
        seq = layout.seq_of(name)
        if seq is not None and key is not None:
            found += _record(shelf, key, seq)
        elif name not in _OF_AGENT:
            found.append(_stray(shelf, folder, name))
    groups = posixpath.join(folder, layout.GROUPS)
    return found + [_stray(shelf, groups, name) for name in shelf.names(groups) if layout.group_seq(name) is None]


def _record(shelf: Shelf, key: Key, seq: int) -> list[str]:
    try:
        fields = shelf.record(key, seq)
        shelf.body(key, seq)
        alias = None if fields is None else index_of(fields).get("alias")
        if alias is None or shelf.aliased(key.user, alias) == (key.agent, seq):
            return []
        return [f"the id {alias!r} of record {seq} of agent {key.agent!r} does not lead to it"]
    except RekindleError as e:
        return [e.message]


def measure(shelf: Shelf) -> dict[str, int]:
    """Bytes by what they are for. `leftovers`: writes that never ended."""
    sizes = dict.fromkeys(("records", "groups", "index", "packs", "other", "leftovers"), 0)
    for folder in folders(shelf):
        for name in _everything(shelf, folder):
            path = posixpath.join(folder, name)
            what = "leftovers" if name.startswith(TEMP_PREFIX) else _purpose(folder, name)
            if what is not None:
                with suppress(FileNotFoundError):
                    sizes[what] += shelf.disk.size(shelf.path(path))
    return sizes


def _purpose(folder: str, name: str) -> str | None:
    if layout.seq_of(name) is not None or name == layout.AGENT:
        return "records"
    special = {
        layout.GROUPS: "groups",
        layout.ALIASES: "index",
        layout.SHARED: "index",
        layout.PACKS: "packs",
    }
    if (what := special.get(posixpath.basename(folder))) is not None:
        return what
    return "other" if name in (layout.MARKER, layout.LOCK) or folder == layout.INTENTS else None


def _everything(shelf: Shelf, folder: str) -> list[str]:
    try:
        return shelf.disk.names(shelf.path(folder))
    except FileNotFoundError:
        return []


def folders(shelf: Shelf) -> Iterator[str]:
    """Every folder of the store in which files lie."""
    yield from ("", layout.INTENTS, layout.PACKS)
    for user in shelf.names(layout.USERS):
        yield from userfolders(shelf, user)


def userfolders(shelf: Shelf, user: str) -> Iterator[str]:
    folder = posixpath.join(layout.USERS, user)
    yield posixpath.join(folder, layout.ALIASES)
    yield posixpath.join(folder, layout.SHARED)
    for name in shelf.names(posixpath.join(folder, layout.AGENTS)):
        agent = posixpath.join(folder, layout.AGENTS, name)
        yield agent
        yield posixpath.join(agent, layout.GROUPS)


def tidy(shelf: Shelf, folder: str) -> None:
    """Remove what crashed writers left in the folder. For the holder of the store's lock."""
    if folder == layout.PACKS:
        return  # packs are written without the lock
    for name in _everything(shelf, folder):
        if name.startswith(TEMP_PREFIX):
            with suppress(FileNotFoundError):
                shelf.disk.unlink(shelf.path(posixpath.join(folder, name)))
    if posixpath.basename(folder) == layout.GROUPS:
        _tidy_groups(shelf, folder)


def _tidy_groups(shelf: Shelf, folder: str) -> None:
    key = shelf.agent(posixpath.dirname(folder))
    if key is None:
        return
    named: dict[int, set[str]] = {}
    for name in shelf.names(folder):
        seq = layout.group_seq(name)
        if seq is None:
            continue
        if seq not in named:
            fields = shelf.record(key, seq)
            named[seq] = set() if fields is None else groups_of(fields)
        if name not in named[seq]:
            shelf.disk.unlink(shelf.path(posixpath.join(folder, name)))
