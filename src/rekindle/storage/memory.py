"""Records in memory: as long as the process, and with the same contract as those that last."""

from __future__ import annotations

import secrets
import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence

from ..errors import UnavailableError
from ..forks import waited_for
from .base import OPERATIONS, Append, Key, Outcome, Packs, Record, Rewrite, Storage, Stored
from .packs import MemoryPacks


class MemoryStorage(Storage):
    concurrent = False
    compresses = False

    def __init__(self) -> None:
        self.url = "memory://"
        self._packs = MemoryPacks()
        self._secret = secrets.token_bytes(32)
        self._lock = waited_for(threading.RLock())
        self._records: dict[Key, dict[int, tuple[bytes, bytes]]] = {}
        self._order: dict[Key, list[int]] = {}
        self._aliases: dict[tuple[str, str], tuple[Key, int]] = {}
        self._shared: dict[bytes, tuple[Key, int, int]] = {}
        self._open = True

    @property
    def packs(self) -> Packs:
        return self._packs

    @property
    def secret(self) -> bytes:
        return self._secret

    def _live(self) -> threading.RLock:
        if not self._open:
            raise UnavailableError("closed", "the store memory:// is closed")
        return self._lock

    # -- writing -------------------------------------------------------------------------------------------------------

    def append(self, batch: Sequence[Append]) -> list[Outcome]:
        with self._live():
            return [self._append_unit(unit) for unit in batch]

    def _append_unit(self, unit: Append) -> Outcome:
        if self.newest_operation(unit.records[0].key.user) != unit.guard:
            return Outcome.STALE
        places, aliases = set(), set()
        for record in unit.records:
            if record.alias is not None:
                alias = (record.key.user, record.alias)
                if alias in self._aliases or alias in aliases:
                    return Outcome.KNOWN
                aliases.add(alias)
            if record.seq in self._records.get(record.key, {}) or (record.key, record.seq) in places:
                return Outcome.TAKEN
            places.add((record.key, record.seq))
        for record in unit.records:
            self._add(record)
        return Outcome.CREATED

    def _add(self, record: Record) -> None:
        self._records.setdefault(record.key, {})[record.seq] = (record.head, record.body)
        insort(self._order.setdefault(record.key, []), record.seq)
        if record.alias is not None:
            self._aliases[record.key.user, record.alias] = (record.key, record.seq)
        for digest, slot in record.shared:
            self._shared[digest] = (record.key, record.seq, slot)

    def sweep(self, edits: Sequence[Rewrite], guard: int, user: str, forget: Sequence[bytes] = ()) -> bool:
        with self._live():
            if self.newest_operation(user) != guard:
                return False
            for edit in edits:
                held = self._records.get(edit.key, {})
                if edit.seq not in held:
                    continue
                if edit.head is not None:
                    held[edit.seq] = (edit.head, edit.body)
                else:
                    del held[edit.seq]
                    self._order[edit.key].remove(edit.seq)
            taken = {(edit.key, edit.seq) for edit in edits if edit.head is None}
            self._aliases = {k: v for k, v in self._aliases.items() if v not in taken}
            for digest in forget:
                self._shared.pop(digest, None)
            return True

    def shrink(self) -> bool:
        with self._live():
            return False

    # -- reading -------------------------------------------------------------------------------------------------------

    def keys(self, user: str | None = None) -> list[Key]:
        with self._live():
            return [key for key in self._records if user is None or key.user == user]

    def heads(self, key: Key, *, before: int | None = None, limit: int | None = None) -> list[Stored]:
        with self._live():
            order = self._order.get(key, [])
            end = len(order) if before is None else bisect_left(order, before)
            start = 0 if limit is None else max(0, end - limit)
            records = self._records.get(key, {})
            return [Stored(seq, records[seq][0]) for seq in reversed(order[start:end])]

    def head(self, key: Key, seq: int) -> bytes | None:
        with self._live():
            found = self._records.get(key, {}).get(seq)
            return None if found is None else found[0]

    def bodies(self, key: Key, spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, bytes]]:
        with self._live():
            order = self._order.get(key, [])
            records = self._records.get(key, {})
            found = [
                (seq, records[seq][1])
                for first, last in spans
                for seq in order[bisect_left(order, first) : bisect_right(order, last)]
            ]
        yield from found

    def find_shared(self, user: str, digest: bytes) -> tuple[str, int, int] | None:
        with self._live():
            found = self._shared.get(digest)
            return None if found is None or found[0].user != user else (found[0].agent, found[1], found[2])

    def shared_in(self, key: Key, spans: Sequence[tuple[int, int]]) -> list[tuple[bytes, int, int]]:
        with self._live():
            return [
                (digest, seq, slot)
                for digest, (owner, seq, slot) in self._shared.items()
                if owner == key and any(first <= seq <= last for first, last in spans)
            ]

    def find_alias(self, user: str, alias: str) -> tuple[str, int] | None:
        with self._live():
            found = self._aliases.get((user, alias))
            return None if found is None else (found[0].agent, found[1])

    def newest_operation(self, user: str) -> int:
        with self._live():
            order = self._order.get(Key(user, OPERATIONS))
            return order[-1] if order else 0

    # -- the whole -----------------------------------------------------------------------------------------------------

    def check(self) -> list[str]:
        with self._live():
            return []

    def size(self) -> dict[str, int]:
        with self._live():
            records = sum(len(h) + len(b) for held in self._records.values() for h, b in held.values())
            return {"records": records, "packs": sum(size for _, size in self._packs.list())}

    def close(self) -> None:
        self._open = False
