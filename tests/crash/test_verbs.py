"""A power cut at any moment of any write verb: what was acknowledged is there, byte for byte, and nothing is half."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator, Sequence

import pytest
from tests.crash import stores_on_disk
from tests.crash.recorded import Judge, Recorded, record
from tests.crash.stores_on_disk import STORAGES, Open, store_on
from tests.crash.verbs import SCRIPTS, Step, bulky, by_chance, chat

from rekindle.storage.base import Append, Outcome, PackWriter, Storage
from rekindle.storage.disk import Disk
from rekindle.storage.packs import FolderPacks
from rekindle.storage.sqlite import SqliteStorage
from rekindle.testing.crash import SimDisk, SimFiles, crash_states

pytestmark = pytest.mark.usefixtures("tame")

tame = stores_on_disk.tame
LONG = bool(os.environ.get("REKINDLE_TORTURE"))
SEED = 20261118
PER_SCRIPT = {"sqlite": 560, "eager-sqlite": 360, "files": 300}
CHECKED: dict[str, int] = {}
"""How many states a test has checked."""


@pytest.fixture(autouse=True)
def told(record_property: Callable[[str, object], None]) -> Iterator[None]:
    """Count for the whole run (tests/conftest.py), whichever processes its tests are in."""
    CHECKED.clear()
    yield
    record_property("crash_states", sum(CHECKED.values()))


def judged(what: str, recorded: Recorded, *, seed: int = SEED, limit: int | None = None) -> Judge:
    started = time.perf_counter()
    judge = Judge(recorded)
    judge.all(crash_states(recorded.recording, seed=seed, limit=limit, per_point=1_000 if LONG else 64))
    rate = judge.checked / (time.perf_counter() - started)
    CHECKED[what] = judge.checked
    found = f"{judge.checked} states, {judge.thorough} of them to the end, {len(judge.problems)} bad"
    print(f"{what}: seed {seed}: {found}, {rate:.0f} states/s")
    return judge


@pytest.mark.parametrize("kind", STORAGES)
@pytest.mark.parametrize("script", SCRIPTS)
def test_every_acknowledged_call_survives_and_none_is_half(kind: str, script: str) -> None:
    limit = 20_000 if LONG else PER_SCRIPT[kind]
    judge = judged(f"{kind} {script}", record(STORAGES[kind], SCRIPTS[script]()), limit=limit)
    assert not judge.problems, judge.problems[0]


@pytest.mark.parametrize("kind", STORAGES)
@pytest.mark.parametrize("seed", [SEED + n for n in range(40 if LONG else 1)])
def test_verbs_in_any_order_survive_too(kind: str, seed: int) -> None:
    recorded = record(STORAGES[kind], by_chance(seed))
    judge = judged(f"{kind} {seed}", recorded, seed=seed, limit=20_000 if LONG else 150)
    assert not judge.problems, judge.problems[0]


@pytest.mark.parametrize("kind", STORAGES)
def test_a_second_power_cut_during_what_follows_the_first_loses_nothing(kind: str) -> None:
    """Recovery, a save and a collect on what the first cut left are cut again."""
    first = record(STORAGES[kind], SCRIPTS["drops"]())
    rng = random.Random(SEED)
    cuts = list(crash_states(first.recording, seed=SEED, limit=150))
    checked = 0
    for cut in rng.sample(cuts, 60 if LONG else 5):
        then = record(STORAGES[kind], _more(), cut.disk())
        judge = Judge(then)
        judge.all(crash_states(then.recording, seed=SEED, limit=None if LONG else 25))
        checked += judge.checked
        assert not judge.problems, f"{cut}\nthen {judge.problems[0]}"
    CHECKED[f"{kind} twice"] = checked
    print(f"{kind}: seed {SEED}: {checked} states after a second power cut")


def _more() -> list[Step]:
    return [
        Step("save again", lambda store: store.save("later", chat(2))),
        Step("collect", lambda store: store.collect(), gradual=True, unseen=True),
    ]


# -- it would be found -----------------------------------------------------------------------------------------


def relaxed_sqlite(disk: SimDisk) -> Storage:
    return stores_on_disk.sqlite(disk, durability="relaxed")


class Unsynced(SimFiles):
    def sync(self, handle: int) -> None: ...

    def sync_dir(self, path: str) -> None: ...


def unsynced_files(disk: SimDisk) -> Storage:
    return stores_on_disk.files(disk, on=Unsynced(disk))


class NamesUnsynced(SimFiles):
    def sync_dir(self, path: str) -> None: ...


def packs_with_unsynced_names(disk: SimDisk) -> Storage:
    """The pack's bytes are synced and its rename is not: the row that names it may be there before it."""
    return stores_on_disk.sqlite(disk, files=NamesUnsynced(disk))


class BytesUnsynced(SimFiles):
    def sync(self, handle: int) -> None: ...


def packs_with_unsynced_bytes(disk: SimDisk) -> Storage:
    return stores_on_disk.sqlite(disk, files=BytesUnsynced(disk))


class LatePacks(FolderPacks):
    """Seals only when it is told to."""

    def __init__(self, folder: str, disk: Disk) -> None:
        super().__init__(folder, disk)
        self.due: list[Callable[[], None]] = []

    def create(self, pack_id: bytes) -> PackWriter:
        writer = super().create(pack_id)
        seal = writer.seal
        writer.seal = lambda: self.due.append(seal)  # type: ignore[method-assign]
        return writer


class RecordsFirst(SqliteStorage):
    """The pointer before the data: packs are sealed after the records that name them."""

    def append(self, batch: Sequence[Append]) -> list[Outcome]:
        outcomes = super().append(batch)
        packs = self.packs
        assert isinstance(packs, LatePacks)
        while packs.due:
            packs.due.pop()()
        return outcomes


def records_before_packs(disk: SimDisk) -> Storage:
    storage = stores_on_disk.sqlite(disk)
    storage.__class__ = RecordsFirst
    storage._packs = LatePacks("/packs", SimFiles(disk))  # type: ignore[attr-defined]
    return storage


class GroupsLast(SimFiles):
    """The pointer before the data: what belongs into `groups` is written after the next file."""

    def __init__(self, disk: SimDisk) -> None:
        super().__init__(disk)
        self._due: list[tuple[str, bytes]] = []

    def replace(self, path: str, data: bytes) -> None:
        if "/groups/" in path:
            self._due.append((path, data))
        else:
            super().replace(path, data)

    def write_new(self, path: str, data: bytes) -> None:
        super().write_new(path, data)
        while self._due:
            super().replace(*self._due.pop())


def files_before_groups(disk: SimDisk) -> Storage:
    return stores_on_disk.files(disk, on=GroupsLast(disk))


class NotAtOnce(SimFiles):
    """Writes under the final name."""

    def write_new(self, path: str, data: bytes) -> None:
        handle = self.create(path)
        self.write(handle, memoryview(data))
        self.sync(handle)
        self.close(handle)
        self.sync_dir(path.rpartition("/")[0])


def files_in_place(disk: SimDisk) -> Storage:
    return stores_on_disk.files(disk, on=NotAtOnce(disk))


class EntriesLast(SqliteStorage):
    """A checkpoint without the input it was put with, for a moment."""

    def append(self, batch: Sequence[Append]) -> list[Outcome]:
        outcomes = super().append([Append(each.records[-1:], each.guard) for each in batch])
        super().append([Append(each.records[:-1], each.guard) for each in batch if each.records[1:]])
        return outcomes


def entries_after_checkpoints(disk: SimDisk) -> Storage:
    storage = stores_on_disk.sqlite(disk)
    storage.__class__ = EntriesLast
    return storage


def test_a_checkpoint_without_the_input_it_was_put_with_is_found() -> None:
    judge = judged("entries last", record(entries_after_checkpoints, SCRIPTS["threads"]()[:1]), limit=200)
    del CHECKED["entries last"]
    assert any("threads: has" in problem or "its records are" in problem for problem in judge.problems), judge.problems


def three_large_saves() -> list[Step]:
    return [
        Step("save", lambda store, n=n: store.save("big", {**bulky(n), "page": bytes([n]) * 6_000}))  # type: ignore[misc]
        for n in range(3)
    ]


LOSES = "what it shows: checkpoints"


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (relaxed_sqlite, LOSES),
        (unsynced_files, ""),
        (packs_with_unsynced_names, "pack-missing"),
        (packs_with_unsynced_bytes, "pack"),
        (records_before_packs, "pack-missing"),
        (files_before_groups, "is gone"),
        (files_in_place, "is not what was written"),
    ],
)
def test_a_store_that_is_wrong_is_found(broken: Open, words: str) -> None:
    judge = judged(broken.__name__, record(broken, three_large_saves()), limit=400)
    del CHECKED[broken.__name__]
    assert any(words in problem for problem in judge.problems), judge.problems


def test_relaxed_durability_is_found_to_lose_saves_that_were_acknowledged_and_durable_is_not() -> None:
    script = SCRIPTS["saves"]
    lost = judged("relaxed", record(relaxed_sqlite, script()), limit=400)
    kept = judged("durable", record(STORAGES["sqlite"], script()), limit=400)
    del CHECKED["relaxed"], CHECKED["durable"]
    assert any(LOSES in problem and "lacks" in problem for problem in lost.problems)
    assert not kept.problems


def test_a_call_that_is_seen_half_done_is_found() -> None:
    def two_saves(store: object) -> None:
        assert isinstance(store, type(store_on(STORAGES["sqlite"](SimDisk()))))
        store.save("a", 1)
        store.save("a", 2)

    with pytest.raises(AssertionError, match="half done"):
        record(STORAGES["sqlite"], [Step("two saves", two_saves)])
