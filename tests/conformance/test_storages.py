"""The storages that come with rekindle keep the contract."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Literal

import pytest

from rekindle.errors import (
    CorruptDataError,
    InvalidInputError,
    RekindleError,
    UnavailableError,
    UnsupportedError,
)
from rekindle.state.tree.slots import pack_body, plain_slot, splice_slot
from rekindle.state.values import codec
from rekindle.storage.base import Key, Outcome, Rewrite, Storage
from rekindle.storage.disk import OsDisk
from rekindle.storage.files import FilesStorage
from rekindle.storage.files.readable import document, open_document
from rekindle.storage.memory import MemoryStorage
from rekindle.storage.record import Head, seal
from rekindle.storage.sqlite import SqliteStorage
from rekindle.store import open_store
from rekindle.testing.crash import SimDisk, SimFiles, crash_states
from rekindle.testing.crash.log import Mark
from rekindle.testing.storage import LOG, A, B, StorageConformance, contents, put, record


class TestMemory(StorageConformance):
    def make(self, folder: Path) -> Storage:
        return MemoryStorage()


class TestSqlite(StorageConformance):
    def make(self, folder: Path) -> Storage:
        return SqliteStorage(folder / "store.db")

    def reopen(self, storage: Storage) -> Storage:
        assert isinstance(storage, SqliteStorage)
        return SqliteStorage(storage.path)


class TestFiles(StorageConformance):
    def make(self, folder: Path) -> Storage:
        return FilesStorage(folder / "store")

    def reopen(self, storage: Storage) -> Storage:
        assert isinstance(storage, FilesStorage)
        return FilesStorage(storage.root)


# -- what only the files storage promises --------------------------------------------------------------------


def head_of(storage: Storage, seq: int, body: bytes, *, metadata: bytes = b"") -> bytes:
    facts = Head(
        A, seq, seq - 1, "step", 1_700_000_000_123, 42, "main", b"l" * 8, b"d" * 16, [3, None, []], "a label",
        "chat", "running", metadata, None, {"other": 3}, 0,
    )  # fmt: skip
    return seal(facts, body, compress=storage.compresses)[0]


def test_a_checkpoint_is_a_json_file_that_shows_facts_and_values(tmp_path: Path) -> None:
    storage = FilesStorage(tmp_path / "store")
    elements = [codec.pack(x) for x in ({"role": "user", "content": "hé"}, (1, b"\0"))]
    small = plain_slot(b"".join(elements), [len(e) for e in elements], compress=False)
    pairs = [codec.pack(f"key number {n}") + codec.pack(n) for n in range(3)]
    entries = plain_slot(b"".join(pairs), [len(e) for e in pairs], compress=False)
    large = plain_slot(codec.pack(["word"] * 5000), None, compress=False)
    text = splice_slot(b"a\nlong text", None, [(1, 2, 3)], compress=False)
    body = pack_body([small, b"", large, entries, text, plain_slot(b"x" * 500, None, compress=True)])
    head = head_of(storage, 1, body, metadata=codec.pack({"cost": 1.5}))
    put(storage, record(A, 1, head=head, body=body))

    shown = json.loads((tmp_path / "store/users/u/agents/a/00000001.json").read_text())
    assert (shown["kind"], shown["time"], shown["label"]) == ("step", "2023-11-14T22:13:20.123Z", "a label")
    assert (shown["metadata"], shown["heads"], shown["digest"]) == ({"cost": 1.5}, {"other": 3}, (b"d" * 16).hex())
    first, emptied, group, mapped, spliced, packed = shown["slots"]
    assert first == {"elements": [{"role": "user", "content": "hé"}, {"$tuple": [1, {"$bytes": "AA=="}]}]}
    assert emptied is None
    assert mapped == {"entries": [[f"key number {n}", n] for n in range(3)]}
    assert spliced == {"text": "a\nlong text", "splices": [1, 2, 3]}
    assert list(packed) == ["packed"]
    whole = json.loads((tmp_path / "store/users/u/agents/a/groups" / group["group"]).read_text())
    assert whole["value"] == ["word"] * 5000
    assert storage.head(A, 1) == head
    assert list(storage.bodies(A, [(1, 1)])) == [(1, body)]


@pytest.mark.parametrize("compress", [False, True])
def test_a_compressed_head_comes_back_too(tmp_path: Path, compress: bool) -> None:
    storage = FilesStorage(tmp_path / "store")
    facts = Head(A, 1, 0, "step", 5, 42, "main", b"l" * 8, b"d" * 16, ["root"] * 500, None, "", "", b"", None, {}, 0)
    head, _ = seal(facts, b"", compress=compress)
    put(storage, record(A, 1, head=head, body=b""))
    assert storage.head(A, 1) == head
    shown = json.loads((tmp_path / "store/users/u/agents/a/00000001.json").read_text())
    assert ("sealed" in shown, shown["branch"]) == (compress, "main")


def test_a_listing_reads_no_groups_and_only_the_files_it_shows(tmp_path: Path) -> None:
    read: list[str] = []

    class Watched(OsDisk):
        def read(self, path: str) -> bytes:
            read.append(Path(path).name)
            return super().read(path)

    storage = FilesStorage(tmp_path / "store", disk=Watched())
    for seq in range(1, 31):
        put(storage, record(A, seq, body=bytes([seq]) * 5000))
    read.clear()
    storage.heads(A, before=20, limit=3)
    assert read == ["00000019.json", "00000018.json", "00000017.json"]


def test_any_byte_of_any_file_changed_is_noticed_or_harmless(tmp_path: Path) -> None:
    root = tmp_path / "store"
    storage = FilesStorage(root)
    body = pack_body([plain_slot(codec.pack(["é", 1]), None, compress=False), random.Random(1).randbytes(5000)])
    put(storage, record(A, 1, head=head_of(storage, 1, body), body=body, alias="x", shared=((b"d" * 16, 1),)))
    storage.close()
    rng = random.Random(2)
    for path in [p for p in sorted(root.rglob("*")) if p.is_file() and p.name != "lock"]:
        data = path.read_bytes()
        for at in sorted(rng.sample(range(len(data)), min(len(data), 40))):
            path.write_bytes(data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :])
            try:
                with closing(FilesStorage(root, create=False)) as again:
                    answers = (again.keys(), again.find_alias("u", "x"), contents(again, A)[1][1])
                    shared = again.find_shared("u", b"d" * 16)
            except CorruptDataError as e:
                assert str(path) in e.message
            else:
                assert answers == ([A], ("a", 1), body)
                assert path.parent.name == "shared"
                assert shared is None
        path.write_bytes(data)


def test_a_file_in_another_file_s_place_is_noticed(tmp_path: Path) -> None:
    root = tmp_path / "store"
    storage = FilesStorage(root)
    put(storage, record(A, 1), record(A, 2), record(B, 1))
    agents = root / "users/u/agents"
    for name in ("a/00000001.json", "b/00000001.json"):
        held = (agents / name).read_bytes()
        (agents / name).write_bytes((agents / "a/00000002.json").read_bytes())
        with pytest.raises(CorruptDataError, match="another record"):
            storage.head(Key("u", name[0]), 1)
        assert storage.check() != []
        (agents / name).write_bytes(held)
    assert storage.check() == []
    (agents / "a/notes.txt").write_text("mine")
    assert [line for line in storage.check() if "notes.txt" in line]


def test_a_folder_that_is_no_store_is_told_apart(tmp_path: Path) -> None:
    def code(kind: type[RekindleError], path: Path, *, create: bool = True) -> str:
        with pytest.raises(kind) as raised:
            FilesStorage(path, create=create)
        return raised.value.code

    assert code(UnavailableError, tmp_path / "none", create=False) == "no-store"
    (tmp_path / "empty").mkdir()
    assert code(UnavailableError, tmp_path / "empty", create=False) == "no-store"
    FilesStorage(tmp_path / "empty").close()
    (tmp_path / "other").mkdir()
    (tmp_path / "other/file").write_text("")
    assert code(InvalidInputError, tmp_path / "other") == "not-a-store"
    assert code(InvalidInputError, tmp_path / "other/file") == "not-a-store"
    marker = tmp_path / "empty/rekindle.json"
    held = open_document(marker.read_bytes(), "")
    marker.write_bytes(document({**held, "format": 2}))
    assert code(UnsupportedError, tmp_path / "empty") == "newer-format"
    marker.write_bytes(document({**held, "rekindle": 2}))
    assert code(UnsupportedError, tmp_path / "empty") == "newer-format"
    marker.write_bytes(b"{}")
    assert code(CorruptDataError, tmp_path / "empty") == "bad-file"
    marker.unlink()
    assert code(CorruptDataError, tmp_path / "empty") == "bad-file"


def test_what_a_crashed_writer_left_is_counted_and_cleared_away(tmp_path: Path) -> None:
    root = tmp_path / "store"
    storage = FilesStorage(root)
    put(storage, record(A, 1, body=bytes(9000)))
    groups = root / "users/u/agents/a/groups"
    (whole,) = groups.iterdir()
    orphan = groups / whole.name.replace("00000001", "00000002")
    orphan.write_bytes(whole.read_bytes())
    (root / "users/u/agents/a/.tmp-1").write_bytes(b"half")
    assert storage.check() == []
    assert storage.size()["leftovers"] == 4
    assert storage.shrink() is False
    assert storage.size()["leftovers"] == 0
    assert not orphan.exists()
    assert list(storage.bodies(A, [(1, 1)])) == [(1, bytes(9000))]


_UNITS = (
    (record(A, 1, body=b"x" * 5000, alias="x", shared=((b"d" * 16, 0),)),),
    (record(A, 2), record(B, 1, alias="y"), record(LOG, 1)),
    (record(B, 2, body=b"y" * 5000),),
)


def save_all(disk: SimDisk) -> None:
    """Every write verb, each told as safe once it has returned."""
    storage = FilesStorage("/store", disk=SimFiles(disk), lock=nullcontext())
    for number, unit in enumerate(_UNITS):
        assert put(storage, *unit, guard=int(number > 1)) is Outcome.CREATED
        disk.mark(number)
    assert storage.sweep([Rewrite(A, 1, b"less", b"left"), Rewrite(B, 1, None, b"")], 1, "u", forget=[b"d" * 16])
    disk.mark("swept")


def check_state(disk: SimDisk, promised: set[object]) -> None:
    storage = FilesStorage("/store", disk=SimFiles(disk), lock=nullcontext())
    assert storage.check() == []
    held = {(key, seq): pair for key in (A, B, LOG) for seq, pair in contents(storage, key).items()}
    swept = held.get((A, 1), (b"", b""))[0] == b"less"
    assert swept or "swept" not in promised
    expected = {}
    for number, unit in enumerate(_UNITS):
        there = [(r.key, r.seq) in held for r in unit if not (swept and (r.key, r.seq) == (B, 1))]
        assert len(set(there)) == 1, "half a unit"
        assert there[0] or number not in promised
        expected |= {(r.key, r.seq): (r.head, r.body) for r in unit if there[0]}
    if swept:
        expected[A, 1] = (b"less", b"left")
        expected.pop((B, 1))
    assert held == expected
    assert storage.find_alias("u", "x") == (("a", 1) if (A, 1) in held else None)
    assert storage.find_alias("u", "y") == (("b", 1) if (B, 1) in held else None)
    assert storage.find_shared("u", b"d" * 16) in (None, ("a", 1, 0))
    assert storage.find_shared("u", b"d" * 16) is None or (A, 1) in held
    seq = max([s for k, s in held if k == A], default=0) + 1
    assert put(storage, record(A, seq, alias="z"), guard=storage.newest_operation("u")) is Outcome.CREATED
    assert storage.find_alias("u", "z") == ("a", seq)


def test_no_power_cut_loses_what_was_told_or_shows_half(tmp_path: Path) -> None:
    disk = SimDisk()
    save_all(disk)
    states = 0
    for state in crash_states(disk.recording(), limit=400):
        check_state(state.disk(), set(state.marks))
        states += 1
    assert states >= 300


@pytest.mark.parametrize("error", ["EIO", "ENOSPC"])
def test_no_failed_call_loses_what_was_told_or_shows_half(error: Literal["EIO", "ENOSPC"]) -> None:
    n = failed = 0
    while True:
        n += 1
        disk = SimDisk()
        disk.fail_at(n, error)
        try:
            save_all(disk)
        except UnavailableError:
            failed += 1
        disk.heal()
        check_state(disk, {op.label for op in disk.recording().ops if isinstance(op, Mark)})
        if not disk.failed:
            break
    assert failed > 20


def test_a_unit_that_failed_never_comes_back_over_what_took_its_place() -> None:
    undone = 0
    for n in range(1, 80):
        disk = SimDisk()
        storage = FilesStorage("/store", disk=SimFiles(disk), lock=nullcontext())
        assert put(storage, record(A, 1), record(B, 1)) is Outcome.CREATED
        disk.fail_at(n, "EIO")
        try:
            put(storage, record(A, 2), record(B, 2))
        except UnavailableError:
            disk.heal()
            if put(storage, record(A, 2, head=b"instead")) is not Outcome.CREATED:
                continue
            undone += 1
            disk.mark("told")
            for state in crash_states(disk.recording(), limit=300):
                if state.marks:
                    again = FilesStorage("/store", disk=SimFiles(state.disk()), lock=nullcontext())
                    assert again.head(A, 2) == b"instead"
    assert undone > 5


class Beside(OsDisk):
    """Does something else in the middle of one of its steps, once."""

    def __init__(self) -> None:
        super().__init__()
        self.at_rename: Callable[[], object] | None = None
        self.around_names: Callable[[Callable[[], list[str]]], list[str]] | None = None

    def rename(self, source: str, target: str) -> None:
        if self.at_rename is not None and target.endswith("00000002.json"):
            self.at_rename()
        super().rename(source, target)

    def names(self, path: str) -> list[str]:
        around, look = self.around_names, lambda: super(Beside, self).names(path)
        if around is None or "/agents/" not in path:
            return look()
        self.around_names = None
        return around(look)


def test_a_reader_that_looked_at_half_a_unit_which_ended_meanwhile_looks_again(tmp_path: Path) -> None:
    reading, writing = Beside(), Beside()
    reader = FilesStorage(tmp_path / "store", disk=reading)
    writer = FilesStorage(tmp_path / "store", disk=writing)
    put(writer, record(B), record(B, 2))
    half, looked = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: put(writer, record(A), record(A, 2)))

    def look_between(look: Callable[[], list[str]]) -> list[str]:
        writing.at_rename = lambda: (half.set(), looked.wait(10))
        thread.start()
        assert half.wait(10)
        found = look()
        looked.set()
        thread.join()
        return found

    Path(reader.root, "users", "u", "agents", "a").mkdir()
    reading.around_names = look_between
    assert [seq for seq, _ in reader.heads(A)] == [2, 1]


def test_a_chat_grows_by_what_is_new_in_it(tmp_path: Path) -> None:
    storage = FilesStorage(tmp_path / "store", durability="relaxed")
    rng = random.Random(3)
    new = 0
    for seq in range(1, 201):
        elements = [codec.pack({"role": role, "content": rng.randbytes(1024)}) for role in ("user", "assistant")]
        new += 2048
        body = pack_body([plain_slot(b"".join(elements), [len(e) for e in elements], compress=False)])
        put(storage, record(A, seq, head=head_of(storage, seq, body), body=body))
    assert sum(storage.size().values()) < 2 * new


@pytest.mark.parametrize("what", ["a chat", "a chat beside a document", "scattered fields"])
def test_a_folder_grows_by_what_is_new_in_real_states(what: str, tmp_path: Path) -> None:
    rng = random.Random(5)
    fields = {f"field {n}": rng.randbytes(16).hex() for n in range(400)}
    state: dict[str, object] = {"messages": [], "fields": {}, "document": ""}
    if what == "a chat beside a document":
        state["document"] = rng.randbytes(200_000).hex()
    new = len(str(state["document"]))
    with open_store(f"file://{tmp_path}/store", durability="relaxed") as store:
        for _ in range(150):
            if what == "scattered fields":
                for name in rng.sample(sorted(fields), 20):
                    fields[name] = rng.randbytes(16).hex()
                    new += len(name) + 32
                state["fields"] = fields
            else:
                texts = [rng.randbytes(512).hex() for _ in range(2)]
                state["messages"] = [*state["messages"], *({"content": text} for text in texts)]  # type: ignore[misc]
                new += sum(map(len, texts))
            store.save("agent", state)
        assert sum(store.size().values()) <= 3 * new
        assert store.restore("agent") == state
