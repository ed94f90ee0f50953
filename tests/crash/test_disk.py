"""The disks keep their contract, and the simulated one fails where it is told to."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rekindle.storage.disk import TEMP_PREFIX, Disk, OsDisk
from rekindle.testing.crash import SimDisk, SimFiles, connect


@pytest.fixture(params=["real", "simulated"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Disk, str]:
    if request.param == "real":
        return OsDisk(), str(tmp_path)
    files = SimFiles(SimDisk())
    files.mkdir("/here")
    return files, "/here"


def test_what_was_written_is_read_and_listed_without_leftovers(place: tuple[Disk, str]) -> None:
    disk, here = place
    disk.write_new(f"{here}/b", b"bb")
    disk.write_new(f"{here}/a", b"")
    disk.replace(f"{here}/b", b"new")
    disk.replace(f"{here}/c", b"first")
    assert disk.listdir(here) == disk.names(here) == ["a", "b", "c"]
    assert [disk.read(f"{here}/{name}") for name in "abc"] == [b"", b"new", b"first"]


def test_write_new_refuses_a_taken_name_and_leaves_it_as_it_was(place: tuple[Disk, str]) -> None:
    disk, here = place
    disk.write_new(f"{here}/a", b"first")
    with pytest.raises(FileExistsError):
        disk.write_new(f"{here}/a", b"second")
    assert disk.read(f"{here}/a") == b"first"
    assert disk.names(here) == ["a"]


def test_a_cut_off_write_is_a_leftover_and_not_listed(place: tuple[Disk, str]) -> None:
    disk, here = place
    disk.close(disk.create(f"{here}/{TEMP_PREFIX}1"))
    disk.write_new(f"{here}/a", b"")
    assert disk.listdir(here) == ["a"]
    assert disk.leftovers(here) == [f"{TEMP_PREFIX}1"]
    disk.unlink(f"{here}/{TEMP_PREFIX}1")
    assert disk.leftovers(here) == []


def test_mkdir_makes_all_that_is_missing_and_may_be_said_twice(place: tuple[Disk, str]) -> None:
    disk, here = place
    disk.mkdir(f"{here}/x/y/z")
    disk.mkdir(f"{here}/x/y/z")
    disk.write_new(f"{here}/x/y/z/f", b"1")
    assert disk.names(here) == ["x"]
    assert disk.exists(f"{here}/x/y/z/f")
    assert not disk.exists(f"{here}/x/f")


@pytest.mark.parametrize("act", ["read", "unlink", "names", "sync_dir", "create", "link", "rename"])
def test_a_missing_place_is_a_file_not_found_error(place: tuple[Disk, str], act: str) -> None:
    disk, here = place
    call: Callable[..., object] = getattr(disk, act)
    missing = f"{here}/no/such"
    with pytest.raises(FileNotFoundError):
        call(*([missing, f"{here}/a"] if act in ("link", "rename") else [missing]))


def test_a_short_write_is_gone_on_with(tmp_path: Path) -> None:
    class Stingy(OsDisk):
        def write(self, handle: int, data: memoryview) -> int:
            return os.write(handle, data[:3])

    Stingy().write_new(f"{tmp_path}/a", b"0123456789")
    assert (tmp_path / "a").read_bytes() == b"0123456789"


def faults(run: Callable[[SimDisk], object], error: str) -> Iterator[SimDisk]:
    """A disk for every call of the run, on which just that call failed and the run with it."""
    n = 0
    while True:
        n += 1
        disk = SimDisk()
        SimFiles(disk).write_new("/old", b"old" * 500)
        disk.fail_at(n, error)  # type: ignore[arg-type]
        try:
            run(disk)
        except (OSError, sqlite3.Error):
            assert disk.failed == 1
            yield disk
        if not disk.failed:
            return


@pytest.mark.parametrize("error", ["EIO", "ENOSPC"])
def test_a_failed_write_shows_nothing_half_and_can_be_repeated(error: str) -> None:
    seen = 0
    for disk in faults(lambda disk: SimFiles(disk).write_new("/new", b"new" * 500), error):
        files = SimFiles(disk)
        if files.exists("/new"):
            assert files.read("/new") == b"new" * 500
            files.unlink("/new")
        files.write_new("/new", b"new" * 500)
        seen += 1
    for disk in faults(lambda disk: SimFiles(disk).replace("/old", b"new" * 500), error):
        files = SimFiles(disk)
        assert files.read("/old") in (b"old" * 500, b"new" * 500)
        files.replace("/old", b"new" * 500)
        assert files.read("/old") == b"new" * 500
        seen += 1
    assert seen >= (10 if error == "EIO" else 6)


def three_rows(disk: SimDisk) -> None:
    db = connect(disk, "saved.db")
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("CREATE TABLE saved (id INTEGER PRIMARY KEY, body BLOB)")
        for n in range(3):
            db.execute("INSERT INTO saved VALUES (?, ?)", (n, bytes(500)))
            disk.mark(n)
    finally:
        db.abandon()


# Where SQLite goes on after a fault, apsw has nobody but sys.unraisablehook to tell.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(("error", "code"), [("EIO", sqlite3.SQLITE_IOERR), ("ENOSPC", sqlite3.SQLITE_FULL)])
def test_sqlite_answers_a_fault_with_its_code_and_keeps_what_it_acknowledged(error: str, code: int) -> None:
    told: set[int] = set()

    def run(disk: SimDisk) -> None:
        try:
            three_rows(disk)
        except sqlite3.OperationalError as failed:
            told.add(failed.sqlite_errorcode & 0xFF)
            raise

    for disk in faults(run, error):
        promised = sum(hasattr(op, "label") for op in disk.recording().ops)
        db = connect(disk, "saved.db")
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        if promised:
            assert db.execute("SELECT count(*) FROM saved").fetchone() in {(promised,), (promised + 1,)}
        db.close()
    assert told == {code, sqlite3.SQLITE_CANTOPEN}


def test_a_sticky_fault_lasts_until_the_disk_is_healed() -> None:
    disk = SimDisk()
    files = SimFiles(disk)
    files.write_new("/a", b"a")
    disk.fail_at(1, "ENOSPC", sticky=True)
    for _ in range(2):
        with pytest.raises(OSError, match="No space left"):
            files.write_new("/b", b"b")
    assert files.read("/a") == b"a"
    disk.heal()
    files.write_new("/b", b"b")


# -- the connection speaks as sqlite3's -------------------------------------------------------------------


@pytest.fixture(params=["sqlite3", "simulated"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[sqlite3.Connection]:
    if request.param == "sqlite3":
        connection = sqlite3.connect(tmp_path / "x.db", isolation_level=None, check_same_thread=False)
    else:
        connection = connect(SimDisk(), "x.db")  # type: ignore[assignment]
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v UNIQUE)")
    yield connection
    connection.close()


def test_rows_counts_and_ids_are_the_same(db: sqlite3.Connection) -> None:
    before = db.total_changes
    inserted = db.execute("INSERT INTO t VALUES (7, ?)", (b"\0x",))
    assert (inserted.lastrowid, inserted.rowcount) == (7, 1)
    assert db.executemany("INSERT INTO t VALUES (?, ?)", [(8, "a"), (9, None)]).rowcount == 2
    assert db.total_changes - before == 3
    assert db.execute("UPDATE t SET v = :v WHERE id > :id", {"v": None, "id": 7}).rowcount == 2
    assert db.execute("UPDATE t SET v = 1.5 WHERE id = 99").rowcount == 0
    selected = db.execute("SELECT id, v FROM t ORDER BY id")
    assert selected.rowcount == -1
    assert selected.fetchone() == (7, b"\0x")
    assert list(selected) == [(8, None), (9, None)]
    assert selected.fetchone() is None
    assert selected.fetchall() == []
    assert db.execute("DELETE FROM t WHERE id = 7 RETURNING id").fetchall() == [(7,)]


def test_transactions_are_the_same(db: sqlite3.Connection) -> None:
    seen = [db.in_transaction]
    for sql in ("BEGIN IMMEDIATE", "INSERT INTO t VALUES (1, 1)", "ROLLBACK"):
        db.execute(sql)
        seen.append(db.in_transaction)
    assert seen == [False, True, True, False]
    db.executescript("INSERT INTO t VALUES (1, 1); INSERT INTO t VALUES (2, 2);")
    assert db.execute("SELECT count(*) FROM t").fetchone() == (2,)


@pytest.mark.parametrize(
    ("sql", "params", "error", "name"),
    [
        ("INSERT INTO t VALUES (1, 1), (1, 2)", (), sqlite3.IntegrityError, "SQLITE_CONSTRAINT_PRIMARYKEY"),
        ("INSERT INTO t VALUES (1, 1), (2, 1)", (), sqlite3.IntegrityError, "SQLITE_CONSTRAINT_UNIQUE"),
        ("SELECT * FROM missing", (), sqlite3.OperationalError, "SQLITE_ERROR"),
        ("SELEKT", (), sqlite3.OperationalError, "SQLITE_ERROR"),
        ("SELECT ?", (), sqlite3.ProgrammingError, None),
        ("SELECT ?", (1, 2), sqlite3.ProgrammingError, None),
    ],
)
def test_errors_are_the_same(
    db: sqlite3.Connection, sql: str, params: tuple[int, ...], error: type[sqlite3.Error], name: str | None
) -> None:
    with pytest.raises(error) as raised:
        db.execute(sql, params)
    assert raised.type is error
    assert getattr(raised.value, "sqlite_errorname", None) == name


def test_a_closed_connection_is_a_programming_error(db: sqlite3.Connection) -> None:
    db.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
        db.execute("SELECT 1")


def test_bytes_that_are_no_database_are_a_database_error() -> None:
    disk = SimDisk()
    SimFiles(disk).write_new("/x.db", b"not a database, and long enough to be looked at" * 100)
    with pytest.raises(sqlite3.DatabaseError) as raised:
        connect(disk, "x.db").execute("SELECT * FROM sqlite_master")
    assert raised.type is sqlite3.DatabaseError
    assert raised.value.sqlite_errorcode == sqlite3.SQLITE_NOTADB


def test_a_second_connection_to_an_exclusive_database_is_told_that_it_is_locked() -> None:
    disk = SimDisk()
    first = connect(disk, "x.db")
    first.execute("CREATE TABLE t (v)")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        connect(disk, "x.db").execute("SELECT * FROM t")
    first.close()
