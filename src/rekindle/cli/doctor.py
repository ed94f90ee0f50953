"""`doctor`: is everything there that rekindle needs, and what is missing."""

from __future__ import annotations

import os
import platform
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Literal

from ..errors import RekindleError, UnavailableError
from ..quoting import escape
from . import exits, words
from .output import Cell, Column
from .session import Session, verb

NEEDED = ("ormsgpack", "blake3", "click")
EXTRAS = {
    "rich": "tables that fit the terminal",
    "numpy": "arrays in states",
    "pydantic": "pydantic models in states",
    "msgspec": "msgspec structs in states",
}
LITTLE_SPACE = 500 * 10**6
SHARED_DISKS = ("nfs", "cifs", "smb", "9p", "fuse.sshfs")


@dataclass(frozen=True)
class Finding:
    what: str
    verdict: Literal["ok", "warn", "bad"]
    told: str
    hint: str | None = None


@verb("doctor", examples=("rekindle doctor", "rekindle doctor --store file:///var/agents --json"))
def cmd_doctor(session: Session) -> int:
    """Look at this Python, its libraries, the disk and the store; say what is missing and how to get it.

    Exits with 1 where something is missing that rekindle needs.
    """
    found = [*_python(), *_libraries(), *_store(session)]
    code = exits.FAILED if any(each.verdict == "bad" for each in found) else exits.OK
    if session.out.json:
        session.out.data({"ok": code == exits.OK, "findings": [asdict(each) for each in found]})
        return code
    styles = {"ok": "good", "warn": "warn", "bad": "bad"}
    rows: list[list[Cell]] = [[(each.verdict, styles[each.verdict]), (each.what, "key"), each.told] for each in found]
    session.out.table([Column(""), Column(""), Column("", flexible=True)], rows)
    for each in found:
        if each.hint is not None:
            session.out.note(f"{each.what}: {each.told}", each.hint)
    return code


def _python() -> Iterator[Finding]:
    from .. import __version__

    yield Finding("rekindle", "ok", __version__)
    yield Finding("python", "ok", f"{platform.python_version()} ({sys.executable})")
    yield Finding("platform", "ok", platform.platform())
    yield Finding("sqlite", "ok", sqlite3.sqlite_version)


def _libraries() -> Iterator[Finding]:
    zstd = ("backports.zstd",) if sys.version_info < (3, 14) else ()
    for name in (*NEEDED, *zstd):
        version = _version(name)
        if version is None:
            yield Finding(name, "bad", "not installed", "pip install --force-reinstall rekindle")
        else:
            yield Finding(name, "ok", version)
    for name, purpose in EXTRAS.items():
        version = _version(name)
        told = version or f"not installed (for {purpose})"
        yield Finding(name, "ok" if version else "warn", told, None if version else f"pip install 'rekindle[{name}]'")


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _store(session: Session) -> Iterator[Finding]:
    try:
        store = session.store
    except RekindleError as e:
        verdict: Literal["warn", "bad"] = "warn" if e.code == "no-store" else "bad"
        yield Finding("store", verdict, escape(e.message), e.hint)
        if e.code == "no-store":
            yield from _disk(_folder(session.settings.store))
        return
    from ..storage.record import FORMAT

    yield Finding("store", "ok", escape(store.url))
    yield Finding("format", "ok", f"{FORMAT}, as this version writes it")
    yield Finding("durability", "ok", "durable: what was saved survives a power cut")
    yield _asked("agents", lambda: words.count(len(store.agents()), "agent"))
    yield _asked("size", lambda: words.size(sum(store.size().values())))
    yield from _disk(_folder(store.url))


def _asked(what: str, ask: Callable[[], str]) -> Finding:
    try:
        return Finding(what, "ok", ask())
    except RekindleError as e:
        return Finding(what, "bad", escape(e.message), e.hint)


def _folder(url: str | None) -> str | None:
    """The folder a store lies in (the nearest that is there); None for one in memory."""
    scheme, sign, rest = (url or ".rekindle/store.db").partition("://")
    if sign and scheme == "memory":
        return None
    path = os.path.expanduser((rest.removeprefix("/") if scheme == "sqlite" else rest) if sign else scheme)
    folder = os.path.abspath(path if scheme == "file" and sign else os.path.dirname(path) or ".")
    while not os.path.isdir(folder) and folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
    return folder


def _disk(folder: str | None) -> Iterator[Finding]:
    if folder is None:
        return
    yield _file_system(folder)
    free = shutil.disk_usage(folder).free
    few = free < LITTLE_SPACE
    yield Finding(
        "free space",
        "warn" if few else "ok",
        words.size(free),
        "free some before it is full" if few else None,
    )
    yield _writable(folder)
    yield _lock(folder)


def _file_system(folder: str) -> Finding:
    kind = _mounted(folder)
    if kind.startswith(SHARED_DISKS):
        return Finding(
            "file system", "warn", f"{kind}, shared between machines: locks may not hold there",
            "keep a SQLite store on a disk of this machine",
        )  # fmt: skip
    return Finding("file system", "ok", kind)


def _mounted(folder: str) -> str:
    """The kind of file system, where the system tells."""
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="replace") as file:
            mounts = [line.split()[1:3] for line in file]
    except OSError:
        return "not known on this system"
    real = os.path.realpath(folder)
    inside = [(m[0], m[1]) for m in mounts if m[0] == "/" or f"{real}/".startswith(m[0].rstrip("/") + "/")]
    return max(inside, key=lambda mount: len(mount[0]))[1] if inside else "not known"


def _writable(folder: str) -> Finding:
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".rekindle-doctor-") as file:
            file.write(b"x")
            file.flush()
            os.fsync(file.fileno())
    except OSError as e:
        return Finding("writing", "bad", f"{folder}: {e.strerror}", f"make {folder} writable for this user")
    return Finding("writing", "ok", f"{folder} can be written and synced")


def _lock(folder: str) -> Finding:
    """Whether a second taker of a lock has to wait, as one writer at a time needs it."""
    from ..storage.lock import FileLock

    if sys.platform == "win32":
        return Finding("lock", "ok", "SQLite's own, on this system")
    try:
        with tempfile.TemporaryDirectory(dir=folder, prefix=".rekindle-doctor-") as inner:
            path = os.path.join(inner, "lock")
            first, second = FileLock(path), FileLock(path, patience=0.05)
            try:
                with first, second:
                    return Finding("lock", "bad", "two take it at once", "keep the store on a disk of this machine")
            except UnavailableError:
                return Finding("lock", "ok", "holds")
            finally:
                first.close()
                second.close()
    except (OSError, RekindleError) as e:
        return Finding("lock", "bad", f"cannot be tried: {e}", f"make {folder} writable for this user")
