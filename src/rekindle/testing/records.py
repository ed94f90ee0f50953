"""Records for tests of storages, and the short way to write and read them."""

from __future__ import annotations

from rekindle.storage.base import OPERATIONS, Append, Key, Outcome, Record, Storage

A = Key("u", "a")
B = Key("u", "b")
LOG = Key("u", OPERATIONS)


def record(
    key: Key = A,
    seq: int = 1,
    *,
    head: bytes | None = None,
    body: bytes | None = None,
    alias: str | None = None,
    shared: tuple[tuple[bytes, int], ...] = (),
) -> Record:
    head = f"head {seq} of {key}".encode() if head is None else head
    body = f"body {seq} of {key}".encode() * 3 if body is None else body
    return Record(key, seq, head, body, alias, shared)


def put(storage: Storage, *records: Record, guard: int = 0) -> Outcome:
    """Append the records as one unit."""
    (outcome,) = storage.append([Append(records, guard)])
    return outcome


def contents(storage: Storage, key: Key) -> dict[int, tuple[bytes, bytes]]:
    bodies = dict(storage.bodies(key, [(1, 1 << 31)]))
    return {seq: (head, bodies[seq]) for seq, head in storage.heads(key)}
