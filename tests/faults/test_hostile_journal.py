"""Records of a journal and of a thread with right checksums and evil content: CorruptDataError, and soon."""

from __future__ import annotations

import copy
import io
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import ormsgpack
import pytest
from tests.faults.test_hostile import EVIL, TORTURE, changed, sealed, store_on

from rekindle import Store, open_store
from rekindle.adapters.langgraph import RekindleSaver
from rekindle.errors import CorruptDataError, RekindleError
from rekindle.state.tree import slots
from rekindle.state.tree.against import bases_of
from rekindle.state.tree.nodes import node_from
from rekindle.state.values import codec
from rekindle.storage.base import Append, Key, Record, journal_of
from rekindle.storage.memory import MemoryStorage
from rekindle.storage.record import Head, open_head
from rekindle.store.engine import Engine

THREAD = Key("local", "t")
JOURNAL = Key("local", journal_of("t"))
PAGE = "a page of nothing much. " * 70


def ident(n: int) -> str:
    return f"00000000-0000-0000-0000-{n:012}"


def config(n: int = 0) -> Any:
    told = {"thread_id": "t", "checkpoint_ns": ""}
    return {"configurable": {**told, "checkpoint_id": ident(n)} if n else told}


def message(n: int) -> str:
    return "".join(f"{n * k + 7:x} " for k in range(1, 300))


@pytest.fixture(scope="module")
def storage() -> MemoryStorage:
    """A thread with an input, writes, what was written against these, and states that name all of it."""
    storage = MemoryStorage()
    storage.compresses = True
    saver = RekindleSaver(store_on(storage))
    texts: list[Any] = []
    for n in range(1, 6):
        text = {"content": message(n), "id": None}
        values = {"messages": texts, "page": PAGE, "__start__": {"messages": [text]}}
        put(saver, 2 * n - 1, values)
        saver.put_writes(config(2 * n - 1), [("messages", [text]), ("small", n), ("big", PAGE * n)], "task")
        saver.put_writes(config(2 * n - 1), [("__error__", "x" * 100)], ident(n), "~path")
        texts = [*texts, {**text, "id": ident(n)}]
        put(saver, 2 * n, {"messages": texts, "page": PAGE})
    assert saver.store.verify()
    flags = [slot[0] for _, body in bodies(storage, JOURNAL) for slot in slots.unpack_body(body) if slot]
    assert any(flag & slots.AGAINST for flag in flags)
    return storage


def put(saver: RekindleSaver, n: int, values: dict[str, Any]) -> None:
    checkpoint: Any = {
        "v": 4, "id": ident(n), "ts": "2026-01-01T00:00:00+00:00", "channel_values": values,
        "channel_versions": dict.fromkeys(values, n), "versions_seen": {"a": {"messages": n}}, "updated_channels": ["a"],
    }  # fmt: skip
    saver.put(config(n - 1), checkpoint, {"source": "loop", "step": n, "run_id": "r"}, dict.fromkeys(values, n))


def bodies(storage: MemoryStorage, key: Key) -> list[tuple[int, bytes]]:
    return [(seq, record[1]) for seq, record in storage._records[key].items()]


def with_record(storage: MemoryStorage, key: Key, seq: int, record: tuple[bytes, bytes]) -> Store:
    """A store in which one record is another."""
    other = MemoryStorage()
    other.__dict__ |= {
        name: copy.copy(value) for name, value in storage.__dict__.items() if name not in ("_records", "_lock")
    }
    other._records = {at: dict(held) for at, held in storage._records.items()}
    other._order = {at: list(order) for at, order in storage._order.items()}
    other._records[key][seq] = record
    return store_on(other)


def head_of(storage: MemoryStorage, key: Key, seq: int) -> tuple[Head, bytes]:
    data, body = storage._records[key][seq][:2]
    return open_head(key, seq, data), body


def read(saver: RekindleSaver, n: int = 0) -> None:
    found = saver.get_tuple(config(n))
    if found is not None:
        dict(found.checkpoint["channel_values"])
        list(found.pending_writes or ())


def read_all(saver: RekindleSaver) -> None:
    for each in saver.list(config()):
        dict(each.checkpoint["channel_values"])
        list(each.pending_writes or ())


def everything(store: Store) -> Iterator[Callable[[], object]]:
    saver = RekindleSaver(store)
    yield lambda: read_all(saver)
    for n in range(11):
        yield lambda n=n: read(saver, n)  # type: ignore[misc]
    yield lambda: list(saver.threads())
    yield lambda: [store.restore(f"t@{seq}") for seq in range(10, 0, -1)]
    yield lambda: store.diff("t@2", "t@10")
    yield lambda: store.blame("t@10", "messages")
    yield lambda: list(store.grep("nothing"))
    yield lambda: store.verify()
    yield lambda: store.export("t", io.BytesIO())
    yield lambda: saver.get_delta_channel_history(config=config(10), channels=["messages"])
    yield lambda: saver.put_writes(config(10), [("messages", [message(9)])], "more")
    yield lambda: put(saver, 11, {"messages": [message(9)], "page": PAGE, "__start__": [PAGE]})
    yield lambda: saver.put_writes(config(9), [("messages", [message(9)])], "more")
    yield lambda: read(saver)
    yield lambda: saver.copy_thread("t", "copy")
    yield lambda: saver.delete_for_runs(["r"])
    yield lambda: store.undo()
    yield lambda: saver.prune(["t"])
    yield lambda: store.collect()
    yield lambda: saver.delete_thread("t")
    yield lambda: store.collect()


FIELDS = [
    *["root"] * 6,
    *["metadata"] * 4,
    *["more"] * 4,
    *["body"] * 4,
    "parent",
    "kind",
    "size",
    "digest",
    "alias",
    "guard",
]


def evil_record(storage: MemoryStorage, key: Key, seq: int, rng: random.Random) -> tuple[bytes, bytes] | None:
    """A record with one thing wrong in it, all of its checksums and digests right; None where none can be made."""
    head, body = head_of(storage, key, seq)
    field = rng.choice(FIELDS)
    try:
        if field == "body":
            parts = slots.unpack_body(body)
            at = rng.randrange(len(parts))
            size = parts[at][1] | parts[at][2] << 8
            about = ormsgpack.unpackb(parts[at][3 : 3 + size]) if size else [None, seq, at]
            if rng.random() < 0.5:
                about = [None, rng.randrange(1, 20), rng.randrange(3)]
            header = ormsgpack.packb(changed(about, rng))
            parts[at] = bytes([rng.choice([8, 9, 9, 10, 11, 12])]) + len(header).to_bytes(2, "little") + header
            parts[at] += body[-size:] if rng.random() < 0.5 else slots.deflate(b"x" * 100)
            return sealed(head, slots.pack_body(parts))
        value: Any = getattr(head, field)
        if field == "metadata":
            evil = replace(head, metadata=codec.pack(changed(codec.unpack(value), rng)))
        elif field == "more" and "langgraph" in value and rng.random() < 0.7:
            rest = codec.pack(changed(codec.unpack(value["langgraph"]), rng))
            evil = replace(head, more={**value, "langgraph": rest})
        else:
            evil = replace(head, **{field: changed(value, rng)})
        if field == "root":
            hasher = Engine(storage).hasher("local")
            evil = replace(evil, digest=hasher.root(node_from(evil.root, hasher)))
        return sealed(evil, body)
    except (RekindleError, TypeError, ValueError, OverflowError, IndexError, AttributeError):
        return None


@pytest.mark.parametrize("seed", range(4))
def test_an_evil_record_is_an_error_of_ours_or_does_no_harm(storage: MemoryStorage, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(12 * TORTURE):
        key = rng.choice([THREAD, JOURNAL])
        seq = rng.randrange(1, max(storage._records[key]) + 1)
        evil = evil_record(storage, key, seq, rng)
        if evil is None:
            continue
        for act in everything(with_record(storage, key, seq, evil)):
            try:
                act()
            except RekindleError as e:
                assert e.message


def against(seq: int, number: int, payload: bytes = b"") -> bytes:
    header = ormsgpack.packb([None, [seq, number]])
    return bytes([slots.AGAINST | slots.FRAME]) + len(header).to_bytes(2, "little") + header + payload


def refused(store: Store, seq: int) -> None:
    """A checkpoint does not come back, and verify says so; the others do."""
    saver = RekindleSaver(store)
    for act in (lambda: read(saver, seq), lambda: store.restore(f"t@{seq}"), lambda: store.export("t", io.BytesIO())):
        with pytest.raises(CorruptDataError):
            act()
    assert not store.verify()
    read(saver, 1)


DIGEST = b"d" * 16
BOMB = slots.deflate(bytes(1 << 26))


@pytest.mark.parametrize(
    "places",
    [
        [-1000, 1, 0], [-1000, 1024, 0], [-1, 1025, 0], [-1, 2**31, 0], [-(2**32), 1, 0], [-(2**63), 1, 0], [-1, 1, 99],
        [-1, 1, 2**61], [-1, 0, 0], [1, 0, 0], [-1, 2**64 - 1, 0], [-1, 1024, 0] * 5000, [journal_of("t"), 1, 2**40],
        [journal_of("t"), 2**62, 0], [journal_of("other"), 1, 0],
    ],
    ids=lambda places: repr(places[:3]),
)  # fmt: skip
def test_a_place_that_no_journal_has_is_damage(storage: MemoryStorage, places: list[Any]) -> None:
    head, body = head_of(storage, THREAD, 10)
    root = [3, None, [[DIGEST, 1, 10, 1, places]]]
    refused(with_record(storage, THREAD, 10, sealed(replace(head, root=root), body)), 10)
    hasher = Engine(storage).hasher("local")
    try:
        digest = hasher.root(node_from(root, hasher))
    except CorruptDataError:
        return
    refused(with_record(storage, THREAD, 10, sealed(replace(head, root=root, digest=digest), body)), 10)


def first_named(storage: MemoryStorage) -> tuple[int, int]:
    """(seq, slot) in the journal of something that was written against another, and that the newest state names."""
    for seq, body in bodies(storage, JOURNAL)[::-1]:
        for number, slot in enumerate(slots.unpack_body(body)):
            if bases_of(slot):
                return seq, number
    raise AssertionError("nothing was written against another")


@pytest.mark.parametrize(
    "made",
    [
        lambda seq, slot: against(seq, slot),
        lambda seq, slot: against(seq + 1, slot),
        lambda seq, slot: against(1, 99, BOMB),
        lambda seq, slot: against(10**6, 0, BOMB),
        lambda seq, slot: against(1, 1, BOMB),
        lambda seq, slot: against(1, 1, b""),
        lambda seq, slot: against(0, 0),
        lambda seq, slot: against(-1, 0),
        lambda seq, slot: against(2**63, 0),
        lambda seq, slot: against(2**64 - 1, 2**64 - 1),
        lambda seq, slot: b"\x09\0\0",
        lambda seq, slot: b"\x09\xff\xff\x93",
        lambda seq, slot: b"\x0f\1\0\x90",
        lambda seq, slot: b"\xff\0\0" + BOMB,
        lambda seq, slot: b"\x09",
    ],
    ids=range(15),
)
def test_what_was_written_against_nothing_is_damage(
    storage: MemoryStorage, made: Callable[[int, int], bytes], tmp_path: Any
) -> None:
    seq, number = first_named(storage)
    head, body = head_of(storage, JOURNAL, seq)
    parts = slots.unpack_body(body)
    parts[number] = made(seq, number)
    store = with_record(storage, JOURNAL, seq, sealed(head, slots.pack_body(parts)))
    refused(store, 10)
    with open_store(tmp_path / "same.db") as other:  # where a seq is a number of 64 bits
        for key, records in store._engine.storage._records.items():  # type: ignore[attr-defined]
            for at, (data, held, *_) in sorted(records.items()):
                other._engine.storage.append([Append((Record(key, at, data, held),), 0)])
        with pytest.raises(CorruptDataError):
            other.restore("t@10")


def test_slots_written_against_each_other_are_damage(storage: MemoryStorage) -> None:
    seq, number = first_named(storage)
    head, body = head_of(storage, JOURNAL, seq)
    parts = slots.unpack_body(body)
    [base] = bases_of(parts[number])
    head, body = head_of(storage, JOURNAL, base[0])
    parts = slots.unpack_body(body)
    parts[base[1]] = against(seq, number)
    refused(with_record(storage, JOURNAL, base[0], sealed(head, slots.pack_body(parts))), 10)


@pytest.mark.parametrize(
    "metadata", [b"", b"\x90", b"\x80", b"\x81", b"\xc1", *map(codec.pack, [{"of": 1}, {"of": []}, 5])]
)
def test_an_entry_that_is_none_is_damage(storage: MemoryStorage, metadata: bytes) -> None:
    newest = max(storage._records[JOURNAL])
    head, body = head_of(storage, JOURNAL, newest)
    store = with_record(storage, JOURNAL, newest, sealed(replace(head, metadata=metadata), body))
    saver = RekindleSaver(store)
    for act in (
        lambda: read(saver, 1), lambda: read_all(saver), lambda: saver.prune(["t"]),
        lambda: store.export("t", io.BytesIO()),
    ):  # fmt: skip
        with pytest.raises(CorruptDataError):
            act()
    assert [problem.code for problem in store.verify().problems if "journal" in problem.where]
    assert store.restore("t@10")


@pytest.mark.parametrize("told", [*EVIL, {"task": 1, "writes": []}, {"task": "a", "writes": [["x"]]}, {"task": "a"}])
def test_an_entry_that_tells_of_no_writes_is_damage(storage: MemoryStorage, told: Any) -> None:
    seq = next(seq for seq in storage._records[JOURNAL] if head_of(storage, JOURNAL, seq)[0].kind == "writes")
    head, body = head_of(storage, JOURNAL, seq)
    about = codec.unpack(head.metadata)
    evil = {"of": about["of"], **told} if type(told) is dict else {**about, "writes": [told]}
    saver = RekindleSaver(with_record(storage, JOURNAL, seq, sealed(replace(head, metadata=codec.pack(evil)), body)))
    if type(told) is str:
        return read(saver, 1)
    with pytest.raises(CorruptDataError):
        read(saver, 1)
    return read(saver, 10)


@pytest.mark.parametrize("rest", [*EVIL, *map(codec.pack, EVIL), codec.pack([["a"], 4, 2**62, [], [], None])])
def test_a_checkpoint_that_is_none_is_damage(storage: MemoryStorage, rest: Any) -> None:
    head, body = head_of(storage, THREAD, 10)
    try:
        record = sealed(replace(head, more={**head.more, "langgraph": rest}), body)
    except (TypeError, ValueError):
        return  # no record can hold it
    saver = RekindleSaver(with_record(storage, THREAD, 10, record))
    for act in (lambda: read(saver), lambda: read(saver, 10), lambda: read_all(saver)):
        with pytest.raises(CorruptDataError):
            act()
    read(saver, 9)


@pytest.mark.parametrize("first", [x for x in EVIL if type(x) is not int or x < 1])
def test_a_checkpoint_that_tells_no_place_of_its_entries_is_damage(storage: MemoryStorage, first: Any) -> None:
    head, body = head_of(storage, THREAD, 10)
    saver = RekindleSaver(
        with_record(storage, THREAD, 10, sealed(replace(head, more={**head.more, "journal": first}), body))
    )
    for act in (lambda: read(saver, 10), lambda: saver.put_writes(config(9), [("messages", [1])], "more")):
        with pytest.raises(CorruptDataError):
            act()
    read(saver, 9)
