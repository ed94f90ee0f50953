"""EIO and a full disk at every I/O call of every verb: an error that says so, and nothing lost or half stored by it."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import pytest
from tests.crash import stores_on_disk
from tests.crash.stores_on_disk import STORAGES, Picture, let_go, opened, picture, picture_of, store_on
from tests.crash.verbs import bulky, chat, exported, ident, in_parts, noise, put, writes
from tests.crash.verbs import told as told_of

from rekindle.adapters.langgraph import RekindleSaver
from rekindle.errors import RekindleError, UnavailableError
from rekindle.store.store import Store
from rekindle.testing.crash import Image, SimDisk, crash_states
from rekindle.testing.crash.disk import Fault

pytestmark = [
    pytest.mark.usefixtures("tame"),
    # Where SQLite goes on after a fault, apsw has nobody but sys.unraisablehook to tell.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

tame = stores_on_disk.tame
LONG = bool(os.environ.get("REKINDLE_TORTURE"))
KINDS = list(STORAGES) if LONG else ["sqlite", "files"]
WAYS: list[tuple[Fault, bool]] = [("EIO", False), ("EIO", True), ("ENOSPC", False), ("ENOSPC", True)]
EVERY = {("EIO", False): 1, ("EIO", True): 9, ("ENOSPC", False): 1, ("ENOSPC", True): 7}
"""In a short run not every call fails in every way."""


def before(store: Store) -> None:
    """What every verb finds: branches, a tag, ids, a pack, shared runs, something dropped, something to undo."""
    store.save("chat", chat(1))
    store.save("chat", chat(2), id="mine")
    store.save("chat", {**chat(3), "page": noise(5_000, 7)})
    store.save("big", bulky(1))
    store.save("big", {**bulky(2), "page": noise(5_000, 7)})
    store.fork("chat@2", "try")
    store.tag("chat@2", "good")
    store.prune("keep-last=1", agent_id="big")
    put(1, None, __start__={"messages": [told_of(1)]})(store)
    writes(1, [told_of(1)], [noise(5_000, 8)])(store)
    put(2, 1, "gone", messages=[{**told_of(1), "id": ident(1)}, noise(5_000, 8)])(store)
    writes(2, [told_of(2)])(store)
    put(3, 2, messages=[{**told_of(1), "id": ident(1)}, told_of(2)])(store)


VERBS: dict[str, Callable[[Store], object]] = {
    "save": lambda store: store.save("chat", chat(4)),
    "save a new agent": lambda store: store.save("new", chat(1), id="theirs"),
    "save with a pack": lambda store: store.save("big", bulky(3)),
    "save on a branch": lambda store: store.save("chat", chat(4, salt="try "), branch="try"),
    "save a known id": lambda store: store.save("chat", chat(9), id="mine"),
    "fork": lambda store: store.fork("chat@1", "other"),
    "tag": lambda store: store.tag("chat@3", "good", move=True),
    "label": lambda store: store.label("chat@1", "first"),
    "delete branch": lambda store: store.delete_branch("chat", "try"),
    "prune": lambda store: store.prune("keep-last=1"),
    "undo": lambda store: store.undo(),
    "delete": lambda store: store.delete("chat"),
    "clear": lambda store: store.clear(),
    "policy": lambda store: store.set_policy("keep-last=2", every=2),
    "collect": lambda store: store.collect(),
    "put with input": put(4, 3, messages=[told_of(1), told_of(2)], __start__=[told_of(3), noise(5_000, 9)]),
    "put_writes": writes(3, [{**told_of(2), "id": ident(2)}], [noise(5_000, 9)]),
    "delete for runs": lambda store: RekindleSaver(store).delete_for_runs(["gone"]),
    "delete thread": lambda store: RekindleSaver(store).delete_thread("t"),
    "copy thread": lambda store: RekindleSaver(store).copy_thread("t", "copy"),
    "import": lambda store: store.import_(exported(), agent_id="moved"),
    "import in parts": in_parts(exported, "moved"),
}
GRADUAL = {"collect", "import in parts", "copy thread"}


@dataclass(frozen=True)
class Ground:
    image: Image
    before: Picture


@cache
def ground(kind: str) -> Ground:
    disk = SimDisk()
    storage = STORAGES[kind](disk)
    before(store_on(storage))
    found = picture_of(storage)
    storage.close()
    return Ground(disk.image(), found)


def faulty(
    image: Image, run: Callable[[SimDisk], None], error: Fault, sticky: bool, stride: int = 1
) -> Iterator[tuple[int, SimDisk, RekindleError | None]]:
    """The run with each of its calls made to fail, one after the other; only UnavailableError may come of it."""
    n = 1
    while True:
        disk = SimDisk(image)
        told: RekindleError | None = None
        disk.fail_at(n, error, sticky=sticky)
        try:
            run(disk)
        except UnavailableError as e:
            told = e
        disk.heal()
        if not disk.failed:
            return
        yield n, disk, told
        n = max(n, disk.failed_first) + stride  # ENOSPC waits for a call that asks for space


def allowed(verb: str, found: Picture, was: Picture, after: Picture) -> bool:
    if verb not in GRADUAL or found == after:
        return found in (was, after)
    same = (found.checkpoints, found.names, found.threads) == (was.checkpoints, was.names, was.threads)
    return same and found.log == after.log[: len(found.log)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(("error", "sticky"), WAYS)
def test_a_failing_disk_loses_nothing_and_the_open_store_goes_on(
    kind: str, verb: str, error: Fault, sticky: bool, tame: random.Random
) -> None:
    base = ground(kind)
    tame.seed(1)
    with opened(STORAGES[kind], SimDisk(base.image)) as store:
        VERBS[verb](store)
        after = picture(store)
    seen = n = 0
    while True:
        n += 1
        disk = SimDisk(base.image)
        storage = STORAGES[kind](disk)
        store = store_on(storage)
        store.agents()  # what an open store remembers is there
        calls = disk.calls
        disk.fail_at(n, error, sticky=sticky)
        told = None
        tame.seed(1)
        try:
            VERBS[verb](store)
        except UnavailableError as e:
            told = e
        disk.heal()
        if not disk.failed:
            let_go(storage)
            break
        seen += 1
        where = f"{verb}, {error} at call {n}{' and on' if sticky else ''}, told {told!r}"
        found = picture_of(storage)
        assert allowed(verb, found, base.before, after), f"{where}: {found.what_differs(base.before)}"
        if told is None:
            assert found == after, f"{where}: nothing was said"
        elif error == "ENOSPC":
            assert told.code == "disk-full", where
        assert picture(store) == found, f"{where}: the open store remembers something else"
        assert store.restore(store.save("afterwards", [1, 2]).id) == [1, 2], where
        if verb != "policy":  # which drops others for it
            put(9, None, messages=[told_of(2), {**told_of(2), "id": ident(2)}], __start__=[told_of(3)])(store)
        assert not store.verify().problems, f"{where}: {store.verify().problems}"
        if not sticky and (LONG or n % 12 == 0):
            _survives_a_cut(kind, disk, where)
        let_go(storage)
        with opened(STORAGES[kind], SimDisk(disk.image())) as again:
            kept = picture(again)
        old = tuple(c for c in kept.checkpoints if c[0] != "afterwards" and c[2] != ident(9))
        assert old == found.checkpoints, where
        assert verb == "policy" or set(found.threads) < set(kept.threads), where
        apart = 1 if LONG else EVERY[error, sticky] * (4 if verb in GRADUAL else 1)
        n = max(n, disk.failed_first - calls) - 1 + apart
    assert seen or verb == "save a known id"
    print(f"{kind}: {verb}: {error}{' sticky' if sticky else ''} at {seen} calls")


def _survives_a_cut(kind: str, disk: SimDisk, where: str) -> None:
    """A sync that failed may have dropped what it was for: the save after it must not stand on that."""
    disk.mark("afterwards")
    for state in crash_states(disk.recording(), seed=1, limit=None if LONG else 30):
        if not state.marks:
            continue
        with opened(STORAGES[kind], state.disk()) as store:
            assert store.restore("afterwards") == [1, 2], f"{where}\n{state}"
            assert not store.verify().problems, f"{where}: {store.verify().problems}\n{state}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("error", "sticky"), WAYS)
@pytest.mark.parametrize("there", [False, True], ids=["new", "old"])
def test_opening_on_a_failing_disk_says_so_and_works_when_it_is_mended(
    kind: str, error: Fault, sticky: bool, there: bool
) -> None:
    base = ground(kind)
    image = base.image if there else Image()

    def run(disk: SimDisk) -> None:
        storage = STORAGES[kind](disk)
        journal = storage._db.execute("PRAGMA journal_mode").fetchone() if kind != "files" else ("wal",)  # type: ignore[attr-defined]
        let_go(storage)
        assert journal == ("wal",), "another journal promises less, and nobody was told"

    for n, disk, told in faulty(image, run, error, sticky):
        with opened(STORAGES[kind], disk) as store:
            found = picture(store)
            assert found.checkpoints == (base.before.checkpoints if there else ()), f"call {n}, told {told!r}"
            store.save("afterwards", 1)
            assert not store.verify().problems


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sticky", [False, True])
def test_what_cannot_be_read_is_never_a_shorter_answer(kind: str, sticky: bool) -> None:
    base = ground(kind)
    answers: list[Picture] = []

    def run(disk: SimDisk) -> None:
        answers.clear()
        with opened(STORAGES[kind], disk) as store:
            answers.append(picture(store))

    seen = 0
    for n, _, told in faulty(base.image, run, "EIO", sticky, stride=1 if LONG else 5):
        seen += 1
        if told is None:
            assert answers == [base.before], f"EIO at call {n}"
    assert seen > 3


@pytest.mark.parametrize("kind", KINDS)
def test_verify_of_a_disk_that_cannot_be_read_is_never_clean(kind: str) -> None:
    base = ground(kind)
    reports: list[bool] = []

    def run(disk: SimDisk) -> None:
        reports.clear()
        with opened(STORAGES[kind], disk) as store:
            failed = disk.failed
            clean = bool(store.verify())
            reports.append(clean and disk.failed > failed)

    for n, _, told in faulty(base.image, run, "EIO", True, stride=1 if LONG else 4):
        assert told is not None or reports == [False], f"EIO at call {n}"
