"""What every storage must do, as tests that anybody can run on theirs.

    from rekindle.testing.storage import StorageConformance

    class TestMine(StorageConformance):
        def make(self, folder):
            return MyStorage(folder / "store")

        def reopen(self, storage):  # leave it out where nothing outlasts the handle
            return MyStorage(storage.path)

pytest collects the tests with the class. `make` opens an empty storage; `folder` is an empty folder for it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rekindle.errors import UnavailableError
from rekindle.storage.base import Append, Key, Outcome, Rewrite, Storage
from rekindle.testing.packs import PacksConformance
from rekindle.testing.records import LOG, A, B, contents, put, record
from rekindle.testing.several import SeveralConformance

__all__ = ["LOG", "A", "B", "StorageConformance", "contents", "put", "record"]

_ODD_NAMES = (
    "a/b", "a", "A", "..", ".", "~", "%41", "%", " ", "a b", "aux.json", "00000001.json", "agent.json",
    "~operations", "é", "e\u0301", "\u202e", "🎈" * 128, "x" * 512, "x" * 511 + "y", "X" * 512,
    "x" * 511 + "Y", "-rf", "*", "'\"\\;",
)  # fmt: skip


class StorageConformance(PacksConformance, SeveralConformance):
    """Mix it in; see the module for how. No test is left out, but those of several processes where
    `storage.concurrent` says that there is only one."""

    def make(self, folder: Path) -> Storage:
        """An empty storage, open."""
        raise NotImplementedError

    def reopen(self, storage: Storage) -> Storage:
        """Another handle of the same store; the handle itself where nothing outlasts it."""
        return storage

    @pytest.fixture
    def storage(self, tmp_path: Path) -> Iterator[Storage]:
        storage = self.make(tmp_path)
        self._opened = [storage]
        yield storage
        for handle in self._opened:
            handle.close()

    def _again(self, storage: Storage) -> Storage:
        self._opened.append(self.reopen(storage))
        return self._opened[-1]

    # -- appending -----------------------------------------------------------------------------------------

    def test_a_new_store_is_empty_and_sound(self, storage: Storage) -> None:
        assert storage.keys() == []
        assert storage.heads(A) == []
        assert storage.head(A, 1) is None
        assert list(storage.bodies(A, [(1, 9)])) == []
        assert storage.find_alias("u", "x") is None
        assert storage.find_shared("u", b"d" * 16) is None
        assert storage.shared_in(A, [(1, 9)]) == []
        assert storage.newest_operation("u") == 0
        assert storage.check() == []
        assert len(storage.secret) == 32
        assert isinstance(storage.url, str)
        assert storage.url

    def test_what_was_appended_is_read_byte_for_byte(self, storage: Storage) -> None:
        rng = random.Random(1)
        for seq, size in enumerate((0, 1, 3, 100, 4095, 4096, 4097, 70_000), 1):
            head, body = rng.randbytes(min(size, 300)), rng.randbytes(size)
            assert put(storage, record(A, seq, head=head, body=body)) is Outcome.CREATED
            assert storage.head(A, seq) == head
            assert list(storage.bodies(A, [(seq, seq)])) == [(seq, body)]
        assert storage.check() == []

    def test_a_body_of_20_mb(self, storage: Storage) -> None:
        body = random.Random(2).randbytes(20 << 20)
        assert put(storage, record(body=body)) is Outcome.CREATED
        assert list(storage.bodies(A, [(1, 1)])) == [(1, body)]

    def test_a_seq_is_given_once(self, storage: Storage) -> None:
        assert put(storage, record(head=b"first")) is Outcome.CREATED
        assert put(storage, record(head=b"second", alias="x")) is Outcome.TAKEN
        assert storage.head(A, 1) == b"first"
        assert storage.find_alias("u", "x") is None

    def test_a_unit_is_whole_or_not_there_at_all(self, storage: Storage) -> None:
        put(storage, record(A, 1))
        assert put(storage, record(B, 1, alias="x"), record(A, 1)) is Outcome.TAKEN
        assert put(storage, record(B, 1), record(B, 1)) is Outcome.TAKEN
        assert storage.keys() == [A]
        assert storage.heads(B) == []
        assert storage.find_alias("u", "x") is None
        assert put(storage, record(B, 1, alias="x"), record(A, 2), record(B, 2)) is Outcome.CREATED
        assert set(contents(storage, B)) == set(contents(storage, A)) == {1, 2}
        assert storage.find_alias("u", "x") == ("b", 1)

    def test_each_unit_of_a_batch_has_its_own_outcome(self, storage: Storage) -> None:
        batch = [
            Append((record(A, 1),), 0),
            Append((record(A, 1),), 0),
            Append((record(B, 1, alias="x"), record(A, 2)), 0),
            Append((record(B, 2, alias="x"),), 0),
            Append((record(B, 2),), 5),
            Append((record(B, 2),), 0),
        ]
        created, taken, known, stale = Outcome.CREATED, Outcome.TAKEN, Outcome.KNOWN, Outcome.STALE
        assert storage.append(batch) == [created, taken, created, known, stale, created]
        assert set(contents(storage, A)) == set(contents(storage, B)) == {1, 2}

    def test_an_empty_batch_does_nothing(self, storage: Storage) -> None:
        assert storage.append([]) == []
        assert storage.keys() == []

    # -- operations ----------------------------------------------------------------------------------------

    def test_a_writer_who_has_not_seen_the_newest_operation_is_stale(self, storage: Storage) -> None:
        assert put(storage, record(LOG, 1), guard=0) is Outcome.CREATED
        assert storage.newest_operation("u") == 1
        assert put(storage, record(A, 1), guard=0) is Outcome.STALE
        assert storage.keys() == [LOG]
        assert put(storage, record(A, 1), guard=1) is Outcome.CREATED
        assert put(storage, record(Key("v", "a"), 1), guard=0) is Outcome.CREATED, "another user's log is another"

    def test_an_operation_counts_within_its_batch(self, storage: Storage) -> None:
        both = Append((record(LOG, 1), record(A, 1)), 0)
        outcomes = storage.append([both, Append((record(A, 2),), 0), Append((record(A, 2),), 1)])
        assert outcomes == [Outcome.CREATED, Outcome.STALE, Outcome.CREATED]

    # -- reading -------------------------------------------------------------------------------------------

    def test_heads_come_newest_first_within_before_and_limit(self, storage: Storage) -> None:
        for seq in (1, 2, 5, 9, 10, 11, 100, 3):
            put(storage, record(A, seq, head=b"h%d" % seq))
        put(storage, record(B, 7))

        def seqs(before: int | None = None, limit: int | None = None) -> list[int]:
            found = storage.heads(A, before=before, limit=limit)
            assert all(stored.head == b"h%d" % stored.seq for stored in found)
            return [stored.seq for stored in found]

        assert seqs() == [100, 11, 10, 9, 5, 3, 2, 1]
        assert seqs(limit=3) == [100, 11, 10]
        assert seqs(before=11) == [10, 9, 5, 3, 2, 1]
        assert seqs(before=9, limit=2) == [5, 3]
        assert seqs(before=1) == seqs(limit=0) == []
        assert seqs(before=1 << 31, limit=1) == [100]

    def test_bodies_of_spans(self, storage: Storage) -> None:
        for seq in (1, 2, 4, 8, 9):
            put(storage, record(A, seq, body=b"b%d" % seq))
        put(storage, record(B, 3))

        def found(*spans: tuple[int, int]) -> list[int]:
            pairs = list(storage.bodies(A, spans))
            assert all(body == b"b%d" % seq for seq, body in pairs)
            return sorted(seq for seq, _ in pairs)

        assert found((1, 9)) == [1, 2, 4, 8, 9]
        assert found((2, 4), (9, 9)) == [2, 4, 9]
        assert found((3, 3)) == found() == found((5, 4)) == found((10, 1 << 31)) == []

    def test_a_head_that_is_not_there_is_none(self, storage: Storage) -> None:
        put(storage, record())
        assert [storage.head(A, seq) for seq in (0, 2, (1 << 32) - 1)] == [None, None, None]
        assert storage.head(B, 1) is None

    def test_names_may_be_any_text(self, storage: Storage) -> None:
        keys = [Key("u", name) for name in _ODD_NAMES] + [Key(name, "a") for name in _ODD_NAMES]
        for number, key in enumerate(keys):
            alias = _ODD_NAMES[number % len(_ODD_NAMES)]
            stored = record(key, 1, head=b"%d" % number, alias=alias if key.user == "u" else None)
            assert put(storage, stored) is Outcome.CREATED, key
        for handle in (storage, self._again(storage)):
            assert set(handle.keys()) == set(keys)
            assert [handle.head(key, 1) for key in keys] == [b"%d" % n for n in range(len(keys))]
            assert {name: handle.find_alias("u", name) for name in _ODD_NAMES} == {n: (n, 1) for n in _ODD_NAMES}
            assert handle.check() == []

    def test_users_are_kept_apart(self, storage: Storage) -> None:
        mine, theirs = Key("u", "a"), Key("v", "a")
        put(storage, record(mine, 1, head=b"mine", alias="x", shared=((b"d" * 16, 0),)))
        assert storage.find_alias("v", "x") is None
        assert storage.find_shared("v", b"d" * 16) is None
        assert storage.head(theirs, 1) is None
        assert put(storage, record(theirs, 1, head=b"theirs", alias="x")) is Outcome.CREATED
        assert (storage.head(mine, 1), storage.head(theirs, 1)) == (b"mine", b"theirs")
        assert (storage.keys("u"), storage.keys("v"), storage.keys("w")) == ([mine], [theirs], [])
        assert set(storage.keys()) == {mine, theirs}

    # -- what finds records --------------------------------------------------------------------------------

    def test_an_alias_is_known_once(self, storage: Storage) -> None:
        assert put(storage, record(A, 1, alias="x")) is Outcome.CREATED
        assert put(storage, record(A, 2, alias="x")) is Outcome.KNOWN
        assert put(storage, record(B, 1), record(A, 2, alias="x")) is Outcome.KNOWN
        assert storage.keys() == [A]
        assert storage.find_alias("u", "x") == ("a", 1)
        assert put(storage, record(A, 2, alias="y"), record(B, 1, alias="y")) is Outcome.KNOWN
        assert storage.find_alias("u", "y") is None

    def test_shared_runs_are_found_until_they_are_forgotten(self, storage: Storage) -> None:
        one, two, three = b"1" * 16, b"2" * 16, b"3" * 16
        put(storage, record(A, 1, shared=((one, 0), (two, 3))))
        put(storage, record(B, 5, shared=((three, 1),)))
        assert storage.find_shared("u", one) == ("a", 1, 0)
        assert storage.find_shared("u", two) == ("a", 1, 3)
        assert sorted(storage.shared_in(A, [(1, 1)])) == [(one, 1, 0), (two, 1, 3)]
        assert storage.shared_in(A, [(2, 9)]) == storage.shared_in(A, []) == []
        assert storage.shared_in(B, [(1, 2), (4, 6)]) == [(three, 5, 1)]
        assert storage.sweep([], 0, "u", forget=[one, three, b"never" * 3])
        assert storage.find_shared("u", one) is None
        assert storage.find_shared("u", two) == ("a", 1, 3)
        assert storage.shared_in(A, [(1, 9)]) == [(two, 1, 3)]

    # -- sweeping ------------------------------------------------------------------------------------------

    def test_a_sweep_rewrites_and_takes_out(self, storage: Storage) -> None:
        for seq in (1, 2, 3):
            put(storage, record(A, seq, alias=f"x{seq}", body=bytes([seq]) * 9000))
        assert storage.sweep([Rewrite(A, 1, b"new", b"less"), Rewrite(A, 2, None, b"")], 0, "u")
        kept = {1: (b"new", b"less"), 3: (record(A, 3).head, b"\3" * 9000)}
        for handle in (storage, self._again(storage)):
            assert contents(handle, A) == kept
            assert handle.head(A, 2) is None
            assert [handle.find_alias("u", f"x{n}") for n in (1, 2, 3)] == [("a", 1), None, ("a", 3)]
            assert handle.check() == []
        assert put(storage, record(A, 4, alias="x2")) is Outcome.CREATED

    def test_a_sweep_behind_the_log_does_nothing(self, storage: Storage) -> None:
        put(storage, record(A, 1, shared=((b"d" * 16, 0),)))
        put(storage, record(A, 2))
        put(storage, record(LOG, 1), guard=0)
        before = contents(storage, A)
        assert not storage.sweep([Rewrite(A, 1, None, b"")], 0, "u", forget=[b"d" * 16])
        assert contents(storage, A) == before
        assert storage.find_shared("u", b"d" * 16) == ("a", 1, 0)
        assert storage.sweep([Rewrite(A, 1, None, b"")], 1, "u", forget=[b"d" * 16])
        assert set(contents(storage, A)) == {2}
        assert storage.find_shared("u", b"d" * 16) is None

    def test_a_sweep_of_what_is_gone_does_nothing(self, storage: Storage) -> None:
        put(storage, record(A, 1))
        edits = [
            Rewrite(A, 7, b"new", b""),
            Rewrite(A, 8, None, b""),
            Rewrite(B, 1, b"new", b""),
            Rewrite(B, 2, None, b""),
        ]
        assert storage.sweep(edits, 0, "u")
        assert storage.keys() == [A]
        assert set(contents(storage, A)) == {1}

    def test_space_is_given_back_and_nothing_else(self, storage: Storage) -> None:
        rng = random.Random(3)
        for seq in range(1, 21):
            put(storage, record(A, seq, body=rng.randbytes(20_000)))
        full = sum(storage.size().values())
        kept = {seq: c for seq, c in contents(storage, A).items() if seq % 5 == 0}
        storage.sweep([Rewrite(A, seq, None, b"") for seq in range(1, 21) if seq % 5], 0, "u")
        while storage.shrink():
            pass
        assert sum(storage.size().values()) < full / 2
        assert contents(storage, A) == kept
        assert storage.check() == []

    # -- the whole -----------------------------------------------------------------------------------------

    def test_a_store_opened_again_holds_everything(self, storage: Storage) -> None:
        put(storage, record(A, 1, alias="x", shared=((b"d" * 16, 2),)), record(B, 1, body=b"x" * 10_000))
        put(storage, record(LOG, 1))
        before = {key: contents(storage, key) for key in (A, B, LOG)}
        again = self._again(storage)
        assert {key: contents(again, key) for key in (A, B, LOG)} == before
        assert set(again.keys()) == {A, B, LOG}
        assert again.find_alias("u", "x") == ("a", 1)
        assert again.find_shared("u", b"d" * 16) == ("a", 1, 2)
        assert again.newest_operation("u") == 1
        assert again.secret == storage.secret
        assert put(again, record(A, 2), guard=1) is Outcome.CREATED
        assert storage.head(A, 2) is not None

    def test_size_counts_what_was_written(self, storage: Storage) -> None:
        before = sum(storage.size().values())
        put(storage, record(body=random.Random(4).randbytes(100_000)))
        writer = storage.packs.create(b"p" * 16)
        writer.append(bytes(50_000))
        writer.seal()
        sizes = storage.size()
        assert sizes["packs"] == 50_000
        assert sum(sizes.values()) - before >= 150_000

    def test_a_closed_storage_says_so(self, storage: Storage) -> None:
        put(storage, record())
        storage.close()
        storage.close()
        calls: list[Callable[[], object]] = [
            lambda: put(storage, record(A, 2)),
            lambda: storage.sweep([], 0, "u"),
            lambda: storage.shrink(),
            lambda: storage.keys(),
            lambda: storage.heads(A),
            lambda: storage.head(A, 1),
            lambda: list(storage.bodies(A, [(1, 1)])),
            lambda: storage.find_shared("u", b"d" * 16),
            lambda: storage.shared_in(A, [(1, 1)]),
            lambda: storage.find_alias("u", "x"),
            lambda: storage.newest_operation("u"),
            lambda: storage.check(),
            lambda: storage.size(),
        ]
        for call in calls:
            with pytest.raises(UnavailableError) as raised:
                call()
            assert raised.value.code == "closed"
