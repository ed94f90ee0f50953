"""The enumerator is worth its name: it finds the losses known to be there, and none where there are none."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator

import pytest

from rekindle.testing.crash import CrashState, Recording, SimDisk, SimFiles, connect, crash_states
from rekindle.testing.crash.vfs import SimConnection

SEED = 20260731
ROWS = 30
SCHEMA = "CREATE TABLE saved (id INTEGER PRIMARY KEY, body BLOB)"


def body(n: int) -> bytes:
    return bytes([n + 1]) * 300


def thirty_acknowledged_inserts(journal: str, synchronous: str) -> Recording:
    disk = SimDisk()
    db = connect(disk, "saved.db", exclusive=journal == "WAL")
    db.execute("PRAGMA page_size = 512")
    db.execute(f"PRAGMA journal_mode = {journal}")
    db.execute(f"PRAGMA synchronous = {synchronous}")
    db.execute("PRAGMA wal_autocheckpoint = 20")
    db.execute(SCHEMA)
    disk.mark("schema")
    for n in range(ROWS):
        db.execute("INSERT INTO saved VALUES (?, ?)", (n, body(n)))
        disk.mark(n)
    db.close()
    return disk.recording()


def reopened(state: CrashState, journal: str = "WAL") -> SimConnection:
    return connect(state.disk(), "saved.db", exclusive=journal == "WAL")


def holds_what_was_promised(state: CrashState, journal: str = "WAL") -> bool:
    """All acknowledged rows are there, whole, perhaps the one under way too, and nothing else."""
    db = reopened(state, journal)
    promised = len(state.marks) - 1
    try:
        if promised < 0:
            return db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        rows = db.execute("SELECT id, body FROM saved ORDER BY id").fetchall()
        sound = db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return sound and rows in ([(n, body(n)) for n in range(m)] for m in (promised, promised + 1))
    except sqlite3.Error:
        return False
    finally:
        db.abandon()


def losses(states: Iterator[CrashState], journal: str = "WAL") -> tuple[list[CrashState], int, int]:
    started, lost, seen, images = time.perf_counter(), [], 0, set()
    for state in states:
        seen += 1
        images.add(state.digest)
        if not holds_what_was_promised(state, journal):
            lost.append(state)
    rate = seen / (time.perf_counter() - started)
    print(f"seed {SEED}: {seen} states, {len(images)} images, {len(lost)} with losses, {rate:.0f} states/s")
    return lost, seen, len(images)


def test_wal_and_full_keep_every_acknowledged_row_in_every_state() -> None:
    recording = thirty_acknowledged_inserts("WAL", "FULL")
    lost, seen, images = losses(crash_states(recording, seed=SEED, per_point=400))
    assert not lost, lost[0]
    assert seen >= 5_000
    assert images >= 5_000


def test_wal_and_normal_are_found_to_lose_acknowledged_rows() -> None:
    recording = thirty_acknowledged_inserts("WAL", "NORMAL")
    lost, _, _ = losses(crash_states(recording, seed=SEED, limit=1_000))
    assert len(lost) > 100
    assert any(state.marks[-1] == ROWS - 1 for state in lost)


def test_a_rollback_journal_whose_removal_was_not_synced_is_found_to_undo_the_last_row() -> None:
    """SQLite's documentation: FULL does not sync the folder after removing the journal, EXTRA does."""
    full, extra = (thirty_acknowledged_inserts("DELETE", how) for how in ("FULL", "EXTRA"))
    assert losses(crash_states(full, seed=SEED, limit=2_000), "DELETE")[0]
    assert not losses(crash_states(extra, seed=SEED, limit=2_000), "DELETE")[0]


def test_a_second_power_cut_while_sqlite_recovers_from_the_first_loses_nothing() -> None:
    recording = thirty_acknowledged_inserts("WAL", "FULL")
    for first in crash_states(recording, seed=SEED, limit=40):
        if "schema" not in first.marks:
            continue
        disk = first.disk()
        for label in first.marks:
            disk.mark(label)
        db = connect(disk, "saved.db")
        db.execute("SELECT count(*) FROM saved").fetchall()
        db.close()
        for second in crash_states(disk.recording(), seed=SEED, limit=60):
            if len(second.marks) == len(first.marks):
                assert holds_what_was_promised(second), f"{first}\nthen {second}"


DATA, HEAD = "/store/data", "/store/head"


def saves(*, head_first: bool) -> Recording:
    """A toy store: data under a new name, and a head that says how many there are."""
    disk = SimDisk()
    files = SimFiles(disk)
    files.mkdir("/store")
    for n in range(5):
        data = (f"{DATA}{n}", body(n) * 8)
        if head_first:
            files.replace(HEAD, str(n).encode())
            files.write_new(*data)
        else:
            files.write_new(*data)
            files.replace(HEAD, str(n).encode())
        disk.mark(n)
    return disk.recording()


def head_points_at_whole_data(state: CrashState) -> bool:
    files = state.image.files
    if HEAD not in files:
        return not state.marks
    n = int(files[HEAD])
    promised = all(files.get(f"{DATA}{m}") == body(m) * 8 for m in state.marks if isinstance(m, int))
    return promised and n >= len(state.marks) - 1 and files.get(f"{DATA}{n}") == body(n) * 8


def test_head_before_data_is_found_to_be_half() -> None:
    states = list(crash_states(saves(head_first=True), seed=SEED))
    half = [state for state in states if not head_points_at_whole_data(state)]
    print(f"seed {SEED}: {len(half)} of {len(states)} states are half")
    assert half


def test_data_before_head_is_whole_in_every_state() -> None:
    states = list(crash_states(saves(head_first=False), seed=SEED))
    print(f"seed {SEED}: {len(states)} states")
    assert len(states) > 80
    for state in states:
        assert head_points_at_whole_data(state), state


def test_write_new_and_replace_never_show_a_part_of_the_data_under_the_name() -> None:
    disk = SimDisk()
    files = SimFiles(disk)
    old, new = b"o" * 3000, b"n" * 5000
    files.write_new("/a", old)
    disk.mark("written")
    files.replace("/a", new)
    disk.mark("replaced")
    allowed: list[set[bytes | None]] = [{None, old}, {old, new}, {new}]
    found: list[set[bytes | None]] = [set(), set(), set()]
    for state in crash_states(disk.recording(), seed=SEED, per_point=500):
        found[len(state.marks)].add(state.image.files.get("/a"))
    assert found == allowed


@pytest.mark.parametrize("step", ["sync", "sync_dir"])
def test_leaving_out_either_sync_of_write_new_is_found(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimDisk()
    files = SimFiles(disk)
    monkeypatch.setattr(files, step, lambda _: None)
    files.write_new("/a", body(1) * 8)
    disk.mark("written")
    states = crash_states(disk.recording(), seed=SEED)
    assert any(state.marks and state.image.files.get("/a") != body(1) * 8 for state in states)


# -- what a power cut may do, one rule a test ----------------------------------------------------------------


def contents(disk: SimDisk, path: str, *, keeps_name: bool = False) -> set[bytes | None]:
    """What the path may hold at the end of the recording."""
    recording = disk.recording()
    states = crash_states(recording, seed=SEED, per_point=2_000, fsync_keeps_name=keeps_name)
    return {state.image.files.get(path) for state in states if state.marks}


def a_durable_file(data: bytes) -> tuple[SimDisk, int]:
    disk = SimDisk()
    inode = disk.open("/f", create=True)
    disk.write(inode, 0, data)
    disk.sync(inode)
    disk.sync_dir("/")
    return SimDisk(disk.image()), inode


def test_a_synced_file_in_an_unsynced_folder_may_be_gone_unless_the_sync_keeps_names() -> None:
    disk = SimDisk()
    inode = disk.open("/f", create=True)
    disk.write(inode, 0, b"x")
    disk.sync(inode)
    disk.mark("done")
    assert contents(disk, "/f") == {None, b"x"}
    assert contents(disk, "/f", keeps_name=True) == {b"x"}


def test_unsynced_writes_land_in_any_combination() -> None:
    disk, inode = a_durable_file(b"...")
    for n, letter in enumerate(b"abc"):
        disk.write(inode, n, bytes([letter]))
    disk.mark("end")
    assert contents(disk, "/f") == {bytes((a, b, c)) for a in b"a." for b in b"b." for c in b"c."}


def test_a_write_is_torn_between_sectors_and_never_inside_one() -> None:
    disk, inode = a_durable_file(b"-" * 1024)
    disk.write(inode, 256, b"x" * 512)
    disk.mark("end")
    old, new = b"-" * 256, b"x" * 256
    assert contents(disk, "/f") == {
        old * 4,
        old + new + old * 2,
        old * 2 + new + old,
        old + new * 2 + old,
    }


def test_a_file_may_have_grown_over_zeros_or_junk() -> None:
    disk, inode = a_durable_file(b"")
    disk.write(inode, 0, b"x" * 4)
    disk.mark("end")
    assert contents(disk, "/f") == {b"", b"xxxx", b"\0\0\0\0", b"\xa5\xa5\xa5\xa5"}


def test_a_rename_leaves_the_old_name_or_the_new_and_never_neither() -> None:
    disk, _ = a_durable_file(b"x")
    disk.rename("/f", "/g")
    disk.mark("end")
    names = {frozenset(state.image.files) for state in crash_states(disk.recording())}
    assert names == {frozenset({"/f"}), frozenset({"/g"})}


def test_what_lies_in_a_folder_whose_name_was_not_synced_may_be_gone() -> None:
    disk = SimDisk()
    disk.mkdir("/d")
    inode = disk.open("/d/f", create=True)
    disk.sync(inode)
    disk.sync_dir("/d")
    disk.mark("end")
    assert contents(disk, "/d/f") == {None, b""}
    disk.sync_dir("/")
    disk.mark("again")
    last = [s for s in crash_states(disk.recording()) if s.marks == ("end", "again")]
    assert [dict(s.image.files) for s in last] == [{"/d/f": b""}]


def test_a_later_sync_does_not_save_what_a_failed_one_dropped() -> None:
    disk, inode = a_durable_file(b"old")
    disk.write(inode, 0, b"new")
    disk.fail_at(1)
    with pytest.raises(OSError, match="Input/output"):
        disk.sync(inode)
    disk.sync(inode)
    disk.mark("end")
    assert contents(disk, "/f") == {b"old", b"new"}


def test_the_same_seed_gives_the_same_states_and_the_limit_holds() -> None:
    recording = saves(head_first=False)
    one, two, other = (
        [s.digest for s in crash_states(recording, seed=seed, limit=60)] for seed in (SEED, SEED, SEED + 1)
    )
    assert one == two
    assert one != other
    assert 40 < len(one) <= 60


def test_a_state_says_what_landed_and_what_was_lost() -> None:
    disk, inode = a_durable_file(b"old")
    disk.mark("before")
    disk.write(inode, 0, b"new")
    disk.mark("after")
    told = {str(state) for state in crash_states(disk.recording())}
    assert any("lost: 1: write 3 bytes at 0 of inode 0" in text for text in told)
    assert any("landed: 1: write 3 bytes at 0 of inode 0" in text for text in told)
