"""URLs to stores. A storage is one file of code and one line in the table here."""

from __future__ import annotations

import os
import re
import time

from ..errors import InvalidInputError, UnsupportedError
from ..storage.base import Storage
from .engine import Clock, Engine
from .store import Store

DEFAULT = ".rekindle/store.db"
DURABILITIES = ("durable", "relaxed")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_ALMOST = re.compile(r":?(memory|sqlite|file):", re.IGNORECASE)
"""What nobody names a file, and what other libraries call a store in memory."""


def open_store(
    url: str | os.PathLike[str] | None = None,
    *,
    user: str = "local",
    durability: str = "durable",
    create: bool = True,
    clock: Clock = time.time,
) -> Store:
    """Open (or make) a store: `sqlite:///relative/path` (four slashes: absolute), a plain path, `file:///dir`, `memory://`.

    None: `.rekindle/store.db` of the working folder. `durability="durable"`: a save that returned survives a power
    cut; `"relaxed"`: it survives the death of the process, and the last ones may be lost at a power cut.
    """
    if durability not in DURABILITIES:
        raise InvalidInputError("bad-durability", f"durability={durability!r}", hint="'durable' or 'relaxed'")
    return Store(Engine(open_storage(url, durability=durability, create=create), clock=clock), user)


def open_storage(
    url: str | os.PathLike[str] | None = None, *, durability: str = "durable", create: bool = True
) -> Storage:
    text = DEFAULT if url is None else os.fspath(url)
    if not text:
        raise InvalidInputError("bad-url", "a store's URL is empty", hint="name a file, or leave it out")
    match = _SCHEME.match(text)
    if match is None and (almost := _ALMOST.match(text)):
        meant = "memory://" if almost[1].lower() == "memory" else f"{almost[1].lower()}:///path"
        raise InvalidInputError("bad-url", f"{text!r} is no store's URL", hint=f"{meant}, or ./{text} for a file")
    scheme, rest = (match[1].lower(), text[match.end() :]) if match else ("sqlite", text)
    if match and scheme == "sqlite":
        rest = rest.removeprefix("/")  # as everywhere: three slashes a relative path, four an absolute one
    if scheme == "memory":
        from ..storage.memory import MemoryStorage

        return MemoryStorage()
    if scheme == "sqlite":
        from ..storage.sqlite import SqliteStorage

        return SqliteStorage(_path(rest, text), durability=durability, create=create)
    if scheme == "file":
        from ..storage.files import FilesStorage

        return FilesStorage(_path(rest, text), durability=durability, create=create)
    raise UnsupportedError(
        "no-such-storage", f"there is no storage for {scheme}:// in this version",
        hint="use sqlite:///path, a plain path, file:///dir or memory://",
    )  # fmt: skip


def _path(rest: str, url: str) -> str:
    if not rest:
        raise InvalidInputError("bad-url", f"{url!r} names no path", hint="for example sqlite:///store.db")
    return os.path.expanduser(rest)
