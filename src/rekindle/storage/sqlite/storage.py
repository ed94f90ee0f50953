"""Records in one SQLite file, packs beside it. WAL, synchronous=FULL: what `append` answered survives a power cut."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

from ...errors import CorruptDataError
from ...state.tree.nodes import check as checksum
from ..base import OPERATIONS, Append, Key, Outcome, Packs, Record, Rewrite, Storage, Stored
from ..packs import FolderPacks
from ..record import short_id
from .database import Database
from .file import (
    RESCUE,
    Connect,
)
from .file import connect as open_file

_SEQ_BITS = 32
_SEQ_MASK = (1 << _SEQ_BITS) - 1
_SHRINK_PAGES = 2048


class SqliteStorage(Database, Storage):
    """The default storage. `durability="relaxed"` survives a kill but may lose the last saves at a power cut.

    `connect` and `packs` and `lock` are handed in by tests that run this class on a simulated disk.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        durability: str = "durable",
        create: bool = True,
        connect: Connect = open_file,
        packs: Packs | None = None,
        lock: AbstractContextManager[Any] | None = None,
    ) -> None:
        # the packs and the lock lie beside the file itself: by whatever link it is reached, wherever the process goes
        name = os.path.realpath(path) if connect is open_file else os.fspath(path)
        self.url = f"sqlite:///{name}"
        self._packs = packs if packs is not None else FolderPacks(name + "-packs")
        self._numbers: dict[Key, int] = {}
        super().__init__(name, durability=durability, create=create, connect=connect, lock=lock)

    def _forget(self) -> None:
        self._numbers.clear()  # agents made in a transaction that was rolled back are not there

    @property
    def packs(self) -> Packs:
        return self._packs

    # -- agents ------------------------------------------------------------------------------------------------------

    def _number(self, key: Key) -> int | None:
        number = self._numbers.get(key)
        if number is None:
            row = self._row("SELECT no, checksum FROM agents WHERE user = ? AND agent = ?", key)
            if row is None:
                return None
            number = row[0]
            if row[1] != _agent_check(number, key):
                raise CorruptDataError("bad-agent", f"the entry of agent {key.agent!r} is damaged", hint=RESCUE)
            self._numbers[key] = number
        return number

    def _made_number(self, key: Key) -> int:
        number = self._number(key)
        if number is None:
            top = self._db.execute("SELECT max(no) FROM agents").fetchone()[0] or 0
            number = int(top) + 1
            self._db.execute("INSERT INTO agents VALUES (?, ?, ?, ?, 0)", (number, *key, _agent_check(number, key)))
            self._numbers[key] = number
        return number

    def keys(self, user: str | None = None) -> list[Key]:
        found = []
        # the newest record first: agents that come in between are then in the list
        newest = self._row("SELECT max(key) FROM records")[0] or 0
        rows = self._rows("SELECT no, user, agent, checksum FROM agents ORDER BY no")
        for expected, (number, owner, agent, check) in enumerate(rows, 1):
            if number != expected or check != _agent_check(number, Key(owner, agent)):
                raise CorruptDataError("bad-agent", f"the list of agents is damaged at entry {expected}", hint=RESCUE)
            if user is None or owner == user:
                found.append(Key(owner, agent))
        if newest >> _SEQ_BITS > len(rows):
            raise CorruptDataError("bad-agent", "the list of agents has lost its end", hint=RESCUE)
        return found

    def _known(self, key: Key) -> int | None:
        """The agent's number; before answering that there is none, look whether the index lies."""
        number = self._number(key)
        if number is None and key in self.keys(key.user) and (number := self._number(key)) is None:
            raise CorruptDataError("bad-index", f"the index of agents has lost {key.agent!r}", hint=RESCUE)
        return number

    # -- writing -------------------------------------------------------------------------------------------------------

    def append(self, batch: Sequence[Append]) -> list[Outcome]:
        with self._access, self._lock, self._transaction():
            guards = {user: self.newest_operation(user) for user in {a.records[0].key.user for a in batch}}
            outcomes = []
            for unit in batch:
                user = unit.records[0].key.user
                if guards[user] != unit.guard:
                    outcomes.append(Outcome.STALE)
                    continue
                outcomes.append(self._append_unit(unit))
                operations = [record.seq for record in unit.records if record.key.agent == OPERATIONS]
                if operations and outcomes[-1] is Outcome.CREATED:
                    guards[user] = max(guards[user], *operations)
            return outcomes

    def _append_unit(self, unit: Append) -> Outcome:
        if len(unit.records) == 1:
            return self._append_record(unit.records[0])
        self._db.execute("SAVEPOINT unit")
        for record in unit.records:
            outcome = self._append_record(record)
            if outcome is not Outcome.CREATED:
                self._db.execute("ROLLBACK TO unit")
                self._numbers.clear()
                break
        self._db.execute("RELEASE unit")
        return outcome

    def _append_record(self, record: Record) -> Outcome:
        db = self._db
        if record.alias is not None and self.find_alias(record.key.user, record.alias) is not None:
            return Outcome.KNOWN
        number = self._made_number(record.key)
        key = number << _SEQ_BITS | record.seq
        try:
            db.execute("INSERT INTO records VALUES (?, ?, ?)", (key, record.head, record.body))
        except sqlite3.IntegrityError:
            return Outcome.TAKEN
        db.execute("UPDATE agents SET newest = max(newest, ?) WHERE no = ?", (record.seq, number))
        if record.alias is not None:
            db.execute("INSERT INTO aliases VALUES (?, ?, ?)", (record.key.user, short_id(record.alias), key))
        if record.shared:
            rows = [(digest, key, slot) for digest, slot in record.shared]
            db.executemany("INSERT OR REPLACE INTO shared VALUES (?, ?, ?)", rows)
        return Outcome.CREATED

    def sweep(self, edits: Sequence[Rewrite], guard: int, user: str, forget: Sequence[bytes] = ()) -> bool:
        with self._access as db, self._lock, self._transaction():
            if self.newest_operation(user) != guard:
                return False
            for edit in edits:
                number = self._number(edit.key)
                if number is None:
                    continue
                key = number << _SEQ_BITS | edit.seq
                if edit.head is None:
                    db.execute("DELETE FROM records WHERE key = ?", (key,))
                    db.execute("DELETE FROM aliases WHERE key = ? AND user = ?", (key, user))
                else:
                    db.execute("UPDATE records SET head = ?, body = ? WHERE key = ?", (edit.head, edit.body, key))
            db.executemany("DELETE FROM shared WHERE digest = ?", [(digest,) for digest in forget])
            return True

    def shrink(self) -> bool:
        with self._access as db, self._lock:
            free = db.execute("PRAGMA freelist_count").fetchone()[0]
            if free:
                # executescript: the pragma has a row of no columns a page, and execute stops at the first
                db.executescript(f"PRAGMA incremental_vacuum({_SHRINK_PAGES})")
                left = db.execute("PRAGMA freelist_count").fetchone()[0]
                if 0 < left < free:
                    return True
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            return False

    # -- reading -------------------------------------------------------------------------------------------------------

    def heads(self, key: Key, *, before: int | None = None, limit: int | None = None) -> list[Stored]:
        number = self._known(key)
        if number is None:
            return []
        low = number << _SEQ_BITS
        high = low | (_SEQ_MASK if before is None else max(before - 1, 0))
        sql = (
            "SELECT key, head, (SELECT newest FROM agents WHERE no = ?) FROM records "
            "WHERE key BETWEEN ? AND ? ORDER BY key DESC LIMIT ?"
        )
        rows = self._rows(sql, (number, low + 1, high, -1 if limit is None else limit))
        if before is None and limit != 0:
            self._check_newest(key, rows[0][0] & _SEQ_MASK if rows else 0, rows[0][2] if rows else None)
        keys = [high + 1, *(row[0] for row in rows), low]
        if any(later <= earlier for later, earlier in pairwise(keys)):
            raise CorruptDataError(
                "bad-file", f"the records of agent {key.agent!r} are not in their order", hint=RESCUE
            )
        return [Stored(row[0] & _SEQ_MASK, row[1]) for row in rows]

    def _check_newest(self, key: Key, found: int, told: int | None) -> None:
        """An agent's last record is told of in two places: without it the list would only look shorter."""
        if not found or found != told:
            raise CorruptDataError(
                "record-lost",
                f"the newest records of agent {key.agent!r} are not there as they were written",
                hint=RESCUE,
            )

    def head(self, key: Key, seq: int) -> bytes | None:
        number = self._known(key)
        if number is None or not 0 < seq <= _SEQ_MASK:
            return None
        row = self._row("SELECT head FROM records WHERE key = ?", (number << _SEQ_BITS | seq,))
        return None if row is None else row[0]

    def bodies(self, key: Key, spans: Sequence[tuple[int, int]]) -> Iterable[tuple[int, bytes]]:
        number = self._known(key)
        if number is None:
            return []
        low = number << _SEQ_BITS
        sql = f"SELECT key & {_SEQ_MASK}, body FROM records WHERE key BETWEEN ? AND ?"
        found = (self._rows(sql, (low | first, low | last)) for first, last in spans)
        return next(found) if len(spans) == 1 else chain.from_iterable(found)

    def find_shared(self, user: str, digest: bytes) -> tuple[str, int, int] | None:
        row = self._row("SELECT key, slot FROM shared WHERE digest = ?", (digest,))
        if row is None or not type(row[0]) is type(row[1]) is int:
            return None
        found = self._row("SELECT user, agent FROM agents WHERE no = ?", (row[0] >> _SEQ_BITS,))
        if found is None or found[0] != user:
            return None  # a damaged entry: sharing is an economy, going without is right
        return found[1], row[0] & _SEQ_MASK, row[1]

    def shared_in(self, key: Key, spans: Sequence[tuple[int, int]]) -> list[tuple[bytes, int, int]]:
        number = self._known(key)
        if number is None:
            return []
        low = number << _SEQ_BITS
        rows = self._rows("SELECT digest, key, slot FROM shared WHERE key BETWEEN ? AND ?", (low, low | _SEQ_MASK))
        whole = [row for row in rows if type(row[1]) is int]
        return [(row[0], row[1] & _SEQ_MASK, row[2]) for row in whole if _inside(row[1] & _SEQ_MASK, spans)]

    def find_alias(self, user: str, alias: str) -> tuple[str, int] | None:
        row = self._row("SELECT key FROM aliases WHERE user = ? AND alias = ?", (user, short_id(alias)))
        if row is None:
            return None
        number = row[0] >> _SEQ_BITS if type(row[0]) is int else 0
        found = self._row("SELECT agent FROM agents WHERE no = ? AND user = ?", (number, user))
        if found is None:
            raise CorruptDataError("bad-index", f"the index of ids is damaged at {alias!r}", hint=RESCUE)
        return found[0], row[0] & _SEQ_MASK

    def newest_operation(self, user: str) -> int:
        number = self._number(Key(user, OPERATIONS))
        if number is None:
            return 0
        sql = "SELECT max(key), (SELECT newest FROM agents WHERE no = ?) FROM records WHERE key BETWEEN ? AND ?"
        row = self._row(sql, (number, number << _SEQ_BITS, number << _SEQ_BITS | _SEQ_MASK)) or (0, None)
        found = (row[0] or 0) & _SEQ_MASK
        self._check_newest(Key(user, OPERATIONS), found, row[1])
        return found

    # -- the whole -----------------------------------------------------------------------------------------------------

    def check(self) -> list[str]:
        problems = [str(row[0]) for row in self._rows("PRAGMA integrity_check")]
        problems = [] if problems == ["ok"] else problems
        try:
            self.keys()
        except CorruptDataError as e:
            return [*problems, e.message]
        sql = "SELECT count(*) FROM {} WHERE key NOT IN (SELECT key FROM records)"
        for table in ("aliases", "shared"):
            stray = self._row(sql.format(table))[0]
            if stray:
                problems.append(f"{stray} entries of the index {table!r} name records that are not there")
        return problems

    def size(self) -> dict[str, int]:
        path = Path(self.path)
        parts = {"records": path, "log": Path(self.path + "-wal"), "lock": Path(self.path + "-lock")}
        with self._access:
            sizes = {name: p.stat().st_size for name, p in parts.items() if p.exists()}
            sizes["packs"] = sum(size for _, size in self._packs.list())
            return sizes


def _inside(seq: int, spans: Sequence[tuple[int, int]]) -> bool:
    return any(first <= seq <= last for first, last in spans)


def _agent_check(number: int, key: Key) -> bytes:
    return checksum(f"{number}\0{key.user}\0{key.agent}".encode())
