"""The shipped storages on a simulated disk, and all that a store shows its user as one value to compare."""

from __future__ import annotations

import posixpath
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import pytest

from rekindle.adapters.langgraph import RekindleSaver
from rekindle.storage.base import OPERATIONS, Key, Storage, is_journal
from rekindle.storage.disk import TEMP_PREFIX
from rekindle.storage.files import FilesStorage
from rekindle.storage.packs import FolderPacks
from rekindle.storage.sqlite import SqliteStorage
from rekindle.store.engine import Engine
from rekindle.store.saving import filling
from rekindle.store.store import Store
from rekindle.testing.crash import Image, SimDisk, SimFiles, connect
from rekindle.testing.crash.vfs import SimConnection

USER = "ann"
NOON = 1_700_000_000.0
SPILL = 3_000
"""In place of 256 KiB: a save of a few KB streams its rest into a pack."""

Open = Callable[[SimDisk], Storage]


def sqlite(disk: SimDisk, *, durability: str = "durable", files: SimFiles | None = None, wal: int = 1000) -> Storage:
    """A SqliteStorage; its WAL is brought into the database after so many pages."""

    def dial(path: str) -> SimConnection:
        connection = connect(disk, path, exclusive=True)
        connection.execute(f"PRAGMA wal_autocheckpoint = {wal}")
        return connection

    packs = FolderPacks("/packs", files or SimFiles(disk))
    return SqliteStorage("store.db", durability=durability, connect=dial, packs=packs, lock=nullcontext())


def eager_sqlite(disk: SimDisk) -> Storage:
    """The same, its WAL brought into the database all the time."""
    return sqlite(disk, wal=12)


def files(disk: SimDisk, *, on: SimFiles | None = None) -> Storage:
    return FilesStorage("/store", disk=on or SimFiles(disk), lock=nullcontext())


STORAGES: dict[str, Open] = {"sqlite": sqlite, "eager-sqlite": eager_sqlite, "files": files}


def store_on(storage: Storage) -> Store:
    ticks = iter(range(1, 1 << 30))
    return Store(Engine(storage, clock=lambda: NOON + next(ticks)), USER)


def let_go(storage: Storage) -> None:
    """End as a killed process does: nothing more is written."""
    db = getattr(storage, "_db", None)
    if db is not None:
        db.abandon()


@contextmanager
def opened(open_it: Open, disk: SimDisk) -> Iterator[Store]:
    storage = open_it(disk)
    try:
        yield store_on(storage)
    finally:
        let_go(storage)


@pytest.fixture
def tame(monkeypatch: pytest.MonkeyPatch) -> random.Random:
    """Small packs, and the same secrets in every run: a recording can be made again. Answers what they come from."""
    rng = random.Random(20261118)
    monkeypatch.setattr(filling, "SPILL", SPILL)
    monkeypatch.setattr("secrets.token_bytes", rng.randbytes)
    monkeypatch.setattr("secrets.token_hex", lambda n: rng.randbytes(n).hex())
    return rng


@dataclass(frozen=True)
class Picture:
    """All that a store shows, read through its public calls, states by `repr`: it tells 1 from True and 1.0."""

    checkpoints: tuple[Any, ...] = ()
    """(agent, seq, id, parent id, kind, label, branch, metadata, the head's bytes, the state) of each listed."""
    names: tuple[Any, ...] = ()
    """(agent, branches, tags)."""
    log: tuple[Any, ...] = ()
    """(verb, summary, what it undoes, what undid it)."""
    policy: Any = None
    threads: tuple[Any, ...] = ()
    """(thread, checkpoint, its values with the input it was put with, what is pending on it)."""

    def state(self, agent: str, seq: int) -> str | None:
        return next((c[-1] for c in self.checkpoints if c[:2] == (agent, seq)), None)

    def what_differs(self, other: Picture) -> str:
        parts = (name for name in self.__dataclass_fields__ if getattr(self, name) != getattr(other, name))
        return "; ".join(f"{name}: {_apart(getattr(self, name), getattr(other, name))}" for name in parts)


def _apart(found: Any, wanted: Any) -> str:
    if not isinstance(found, tuple):
        return f"{found!r}, not {wanted!r}"
    more = [repr(one)[:300] for one in found if one not in wanted]
    less = [repr(one)[:300] for one in wanted if one not in found]
    return f"has {more} beyond, lacks {less}"


def picture(store: Store) -> Picture:
    """Whatever is listed is restored too; any error of the store's comes out of here."""
    storage = store._engine.storage
    checkpoints, names = [], []
    for agent in store.agents():
        for c in store.list(agent, limit=None):
            head, state = storage.head(Key(USER, agent), c.seq), repr(store.restore(c.id))
            facts = (c.parent_checkpoint_id, c.kind, c.label, c.branch, repr(c.metadata))
            checkpoints.append((agent, c.seq, c.id, *facts, head, state))
        branches = tuple((name, c.seq) for name, c in store.branches(agent).items())
        names.append((agent, branches, tuple((name, c.seq) for name, c in store.tags(agent).items())))
    threads: list[Any] = []
    if any(is_journal(key.agent) for key in storage.keys(USER)):
        for each in RekindleSaver(store).list(None):
            values = repr(sorted(each.checkpoint["channel_values"].items()))
            threads.append((repr(each.config), values, repr(list(each.pending_writes or ()))))
    log = tuple((op.verb, op.summary, op.undoes, op.undone_by) for op in store.operations())
    return Picture(tuple(sorted(checkpoints)), tuple(names), log, repr(store.policy()), tuple(sorted(threads)))


def picture_of(storage: Storage) -> Picture:
    """As another process would see it: nothing that an open store remembers is used."""
    return picture(store_on(storage))


def essence(storage: Storage, image: Image) -> bytes:
    """Equal where all that is stored is equal, whatever pages and logs it lies in."""
    digest = blake2b(digest_size=16)
    for path, data in sorted(image.files.items()):
        hint = posixpath.basename(path).startswith(TEMP_PREFIX) or "/shared/" in path
        if not hint and not path.startswith("/store.db"):
            digest.update(f"{path} {len(data)} ".encode() + data)
    db = getattr(storage, "_db", None)
    if db is not None:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")]
        for table in tables:
            for row in db.execute(f"SELECT * FROM {table} ORDER BY 1, 2"):
                for value in row:
                    part = value if isinstance(value, bytes) else repr(value).encode()
                    digest.update(f"{table} {len(part)} ".encode() + part)
    return digest.digest()


def records_of(storage: Storage) -> dict[tuple[str, int], bytes]:
    """Every record of every agent, dropped ones and operations too: (agent, seq) to head."""
    keys = [*storage.keys(USER), Key(USER, OPERATIONS)]
    return {(key.agent, seq): head for key in set(keys) for seq, head in storage.heads(key)}
