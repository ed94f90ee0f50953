"""Bytes whose checksums are right and whose content is evil: an error that says so, never a hang, never a crash."""

from __future__ import annotations

import copy
import io
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import ormsgpack
import pytest

from rekindle import Store, register
from rekindle.errors import CorruptDataError, RekindleError
from rekindle.state.tree import slots
from rekindle.state.tree.nodes import node_from
from rekindle.state.values import codec
from rekindle.storage.base import OPERATIONS, Key
from rekindle.storage.memory import MemoryStorage
from rekindle.storage.record import Head, open_head, seal
from rekindle.store.engine import Engine
from rekindle.store.portable.file import PortableFile, PortableWriter

TORTURE = 60 if os.environ.get("REKINDLE_TORTURE") else 1
KEY = Key("local", "a")
EVIL = [
    None, True, -1, 0, 1, 5, 2**31, 2**32, 2**40, 2**62, 2**63 - 1, 2**64 - 1, -(2**63), 1.5, "", "main", b"", b"x" * 16,
    [], [1], [[]], {}, {"a": 1}, "x" * 300,
]  # fmt: skip


@register(name="hostile.Thing", version=3, upgrade=lambda data, old: data)
class Thing:
    def __init__(self, held: Any) -> None:
        self.held = held


def store_on(storage: MemoryStorage) -> Store:
    return Store(Engine(storage), "local")


@pytest.fixture(scope="module")
def storage() -> MemoryStorage:
    """A store with something of everything: runs, splices, streams, indexes, objects, branches."""
    storage = MemoryStorage()
    store = store_on(storage)
    state: dict[str, Any] = {
        "chat": [{"role": "u", "text": f"hello {n} " * 20} for n in range(30)], "doc": "a line\n" * 3000,
        "map": {("k", n): n for n in range(1500)}, "thing": Thing(["y" * 100] * 80), "s": 1,
    }  # fmt: skip
    store.save("a", state)
    for n in range(4):
        state["chat"].append({"role": "u", "text": f"more {n} " * 50})
        state["doc"] += f"new {n}\n"
        state["map"]["k", n] = -n
        if n == 2:
            state["chat"][0]["text"] = "edited"
            state["doc"] = state["doc"][:50] + "XX" + state["doc"][52:]
        store.save("a", state)
    store.fork("a@2", "side")
    store.save("a", {"small": 1}, branch="side")
    store.tag("a@2", "tag")
    return storage


def changed(value: Any, rng: random.Random) -> Any:
    """The value with something wrong, somewhere in it."""
    if isinstance(value, list) and value and rng.random() < 0.85:
        value, at, luck = list(value), rng.randrange(len(value)), rng.random()
        if luck < 0.75:
            value[at] = changed(value[at], rng)
        elif luck < 0.8:
            del value[at]
        elif luck < 0.9:
            value.append(copy.deepcopy(value[at]))
        else:
            value[at] = copy.deepcopy(rng.choice(EVIL))
        return value
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = rng.choice(list(value))
        return {**value, key: changed(value[key], rng)}
    if type(value) is int and rng.random() < 0.5:
        return value + rng.choice([-1, 1, 2, 256])
    return copy.deepcopy(rng.choice(EVIL))


FIELDS = [
    *["root"] * 8, "body", "parent", "kind", "time", "size", "branch", "parent_link", "digest", "label", "agent_type",
    "status", "metadata", "alias", "heads", "guard", "more",
]  # fmt: skip


def sealed(head: Head, body: bytes) -> tuple[bytes, bytes]:
    return seal(head, body, compress=False)[0], body


def evil_record(storage: MemoryStorage, seq: int, rng: random.Random) -> tuple[bytes, bytes] | None:
    """A record with one thing wrong in it, all of its checksums and digests right; None where none can be made."""
    head = open_head(KEY, seq, storage._records[KEY][seq][0])
    body = storage._records[KEY][seq][1]
    field = rng.choice(FIELDS)
    try:
        if field == "body":
            parts = slots.unpack_body(body)
            at = rng.randrange(len(parts))
            slot = slots.parse(parts[at])
            about = [slot.lengths, [x for splice in slot.splices or [(0, 0, 1)] for x in splice]]
            header = ormsgpack.packb(changed(about, rng))
            parts[at] = bytes([slot.compression | slots.SPLICE]) + len(header).to_bytes(2, "little") + header
            parts[at] += slot.payload
            return sealed(head, slots.pack_body(parts))
        evil = replace(head, **{field: changed(getattr(head, field), rng)})
        if field == "root":
            hasher = Engine(storage).hasher("local")
            evil = replace(evil, digest=hasher.root(node_from(evil.root, hasher)))
        return sealed(evil, body)
    except (RekindleError, TypeError, ValueError, OverflowError, IndexError, AttributeError):
        return None


def everything(store: Store) -> Iterator[Callable[[], object]]:
    yield lambda: [store.restore(f"a@{seq}") for seq in (6, 5, 4, 3, 1)]
    yield lambda: store.restore("a")
    yield lambda: repr(store.list("a"))
    yield lambda: repr(store.list())
    yield lambda: store.history("a@5")
    yield lambda: (store.branches("a"), store.tags("a"), store.children("a@2"))
    yield lambda: store.diff("a@1", "a@5")
    yield lambda: store.blame("a@5", "doc")
    yield lambda: list(store.grep("hello"))
    yield lambda: store.verify()
    yield lambda: store.export("a", io.BytesIO())
    yield lambda: store.prune("keep-last=3", dry_run=True)
    yield lambda: store.save("a", {"x": 1})
    yield lambda: store.prune("keep-last=2")
    yield lambda: store.collect()


@pytest.mark.parametrize("seed", range(3))
def test_an_evil_record_is_an_error_of_ours_or_does_no_harm(storage: MemoryStorage, seed: int) -> None:
    rng = random.Random(seed)
    records = {key: dict(held) for key, held in storage._records.items()}
    for _ in range(20 * TORTURE):
        seq = rng.choice([6, 5, 5, 4, 3, 1])
        evil = evil_record(storage, seq, rng)
        if evil is None:
            continue
        other = MemoryStorage()
        other.__dict__ |= {
            name: copy.copy(value) for name, value in storage.__dict__.items() if name not in ("_records", "_lock")
        }
        other._records = {key: dict(held) for key, held in records.items()}
        other._order = {key: list(order) for key, order in storage._order.items()}
        other._records[KEY][seq] = evil
        for act in everything(store_on(other)):
            try:
                act()
            except RekindleError as e:
                assert e.message


def put(storage: MemoryStorage, **fields: Any) -> Store:
    """A store whose newest record is another one."""
    seq = max(storage._records[KEY])
    head = open_head(KEY, seq, storage._records[KEY][seq][0])
    other = MemoryStorage()
    other.__dict__ |= {name: value for name, value in storage.__dict__.items() if name != "_records"}
    other._records = {key: dict(held) for key, held in storage._records.items()}
    other._records[KEY][seq] = sealed(replace(head, **fields), storage._records[KEY][seq][1])
    return store_on(other)


@pytest.mark.parametrize(
    "fields",
    [
        {"parent": 6},
        {"parent": 7},
        {"parent": -1},
        {"time": 2**62},
        {"heads": {"x": "y"}},
        {"digest": 1},
        {"alias": {}},
    ],
    ids=str,
)
def test_a_field_that_cannot_be_is_damage(storage: MemoryStorage, fields: dict[str, Any]) -> None:
    store = put(storage, **fields)
    for act in (lambda: store.list("a"), lambda: store.restore("a@6"), lambda: store.history("a@6")):
        with pytest.raises(CorruptDataError) as raised:
            act()
        assert raised.value.hint
    assert not store.verify()


DIGEST = b"d" * 16


@pytest.mark.parametrize(
    "root",
    [
        [1, None, [[DIGEST, 2**63, 10, 1, [1, 1, 0]]]],
        [1, None, [[DIGEST, 1, 10, 1, [1, 2**40, 0]]]],
        [1, None, [[DIGEST, 1, 10, 1, [2**40, 1, 0]]]],
        [1, None, [[DIGEST, 1, -10, 1, [1, 1, 0]]]],
        [1, None, [[DIGEST, 1, 10, 1, []]]],
        [1, None, [["text", 1, 10, 1, [1, 1, 0]]]],
        [0, None, []],
        [7, ["hostile.Thing", -(2**62)], [[b"", [0, None, [[DIGEST, 1, 10, 1, [1, 1, 0]]]]]]],
        [7, "ab", [[b"", [0, None, [[DIGEST, 1, 10, 1, [1, 1, 0]]]]]]],
        [99, None, []],
        ["1", None, []],
    ],
    ids=range(11),
)
def test_a_description_that_cannot_be_is_damage(storage: MemoryStorage, root: Any) -> None:
    store = put(storage, root=root)
    for act in (lambda: store.restore("a@6"), lambda: store.blame("a@6", "small"), lambda: store.diff("a@5", "a@6")):
        with pytest.raises(CorruptDataError):
            act()
    assert not store.verify()
    assert store.restore("a@5")["s"] == 1


def test_edits_that_repeat_what_was_there_are_refused_before_they_grow() -> None:
    """A few hundred bytes of them would come to gigabytes."""
    from rekindle.state.tree.read import splice

    for splices in ([(9, 0, 0), (0, 0, 0), (9, 0, 0)], [(-1, 0, 0)], [(0, -5, 0)], [(0, 0, -1)]):
        with pytest.raises(CorruptDataError):
            splice(b"x" * 10, b"", splices)


LOG = Key("local", OPERATIONS)
_BRANCH = ["branch", "a", "side", None, 2]


@pytest.mark.parametrize(
    "told",
    [
        {"edits": 5}, {"edits": [5]}, {"edits": [[]]}, {"edits": [["no-verb", "a"]]}, {"edits": [[*_BRANCH[:4], "2"]]},
        {"edits": [[*_BRANCH, 1]]}, {"edits": [["branch", [], "side", None, 2]]}, {"edits": [["drop", "a", None]]},
        {"edits": [["drop", "a", [[1, 2, 3]]]]}, {"edits": [["drop", "a", [[1, 2**62]]]]}, {"undoes": "1"},
        {"edits": [["policy", "", None, "x"]]}, {"seen": {"a": None}}, {"summary": 1}, {"verb": []}, {"snapshot": [1]},
    ],
    ids=str,
)  # fmt: skip
def test_an_operation_that_cannot_be_is_damage(storage: MemoryStorage, told: dict[str, Any]) -> None:
    head = open_head(LOG, 1, storage._records[LOG][1][0])
    metadata = codec.pack({**codec.unpack(head.metadata), **told})
    other = MemoryStorage()
    other.__dict__ |= {name: value for name, value in storage.__dict__.items() if name != "_records"}
    other._records = {**storage._records, LOG: {1: sealed(replace(head, metadata=metadata), b"")}}
    other._order = {**storage._order, LOG: [1]}
    store = store_on(other)
    for act in (lambda: store.list("a"), lambda: store.restore("a"), lambda: store.undo(), lambda: store.save("a", 1)):
        with pytest.raises(CorruptDataError):
            act()
    assert not store.verify()


# -- portable files --------------------------------------------------------------------------------------------------


def parts_of(storage: MemoryStorage) -> tuple[list[Any], dict[str, Any], dict[str, Any]]:
    file = io.BytesIO()
    store_on(storage).export("a", file)
    file.seek(0)
    portable = PortableFile(file)
    entries = [entry for _, found in portable.scan() for entry in found]
    return entries, {name: held for name, held in portable.header.items() if name != "format"}, portable.end


def file_of(entries: list[Any], header: dict[str, Any], end: dict[str, Any]) -> io.BytesIO:
    file = io.BytesIO()
    writer = PortableWriter(file, header)
    for entry in entries:
        writer.add(entry)
    writer.close(end)
    file.seek(0)
    return file


@pytest.mark.parametrize("seed", range(2))
def test_an_evil_file_is_refused_or_what_came_can_be_listed_and_kept(storage: MemoryStorage, seed: int) -> None:
    rng = random.Random(seed)
    entries, header, end = parts_of(storage)
    for _ in range(150 * TORTURE):
        evil, told = list(entries), end
        if rng.random() < 0.85:
            at = rng.randrange(len(evil))
            evil[at] = changed(copy.deepcopy(evil[at]), rng)
        else:
            told = changed(copy.deepcopy(end), rng)
        try:
            file = file_of(evil, header, told)
        except (RekindleError, TypeError, AttributeError):
            continue
        store = store_on(MemoryStorage())
        try:
            store.import_(file)
        except RekindleError:
            assert store.operations() == []
            continue
        store.branches("a")
        repr(store.list("a"))
        store.save("a", {"x": 1})
        report = store.verify()
        assert report, report.problems


def test_an_index_that_holds_itself_is_refused(storage: MemoryStorage) -> None:
    entries, header, end = parts_of(storage)
    heads = [entry for entry in entries if entry[0] == "h"]
    for items in ([[0]], [[1]], [[0], [0]]):
        loop = [["i", 1, items], ["i", 1, [[0]]], ["h", heads[0][1], [1, None, [[0]]]]]
        store = store_on(MemoryStorage())
        with pytest.raises(CorruptDataError):
            store.import_(file_of(loop, header, {**end, "checkpoints": 1, "branches": {}, "tags": {}}))
    deep = [["i", 1, [[n - 1]] if n else []] for n in range(5000)]
    with pytest.raises(CorruptDataError):
        store_on(MemoryStorage()).import_(
            file_of(
                [*deep, ["h", heads[0][1], [1, None, [[4999]]]]], header,
                {**end, "checkpoints": 1, "branches": {}, "tags": {}},
            )
        )  # fmt: skip


def test_pieces_that_multiply_each_other_are_refused(storage: MemoryStorage) -> None:
    entries, header, end = parts_of(storage)
    head = next(entry for entry in entries if entry[0] == "h")
    again = [x for n in range(2000) for x in (1000, 0, 0, 0, 0, 0)]
    pieces = [["p", n - 1, None if n == 0 else again, [], b"x" * 1000 if n == 0 else b""] for n in range(9)]
    tree = [5, None, [[8, 0, 1000 * 2000**8, 1]]]
    with pytest.raises(CorruptDataError):
        store_on(MemoryStorage()).import_(
            file_of([*pieces, ["h", head[1], tree]], header, {**end, "checkpoints": 1, "branches": {}, "tags": {}})
        )
