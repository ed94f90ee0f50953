"""LangGraph on this store when things go wrong: killed at every step, two processes on one thread, another schema, a
full disk. Real processes, real graphs."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.crash.small_disk import CANNOT
from tests.faults.forking import ROOT, Forking, environment
from tests.faults.killed_graph import Durability, lines
from tests.faults.one_of_two import begins_new, chain, thread_of

import rekindle
from rekindle.adapters.langgraph import RekindleSaver

TORTURE = os.environ.get("REKINDLE_TORTURE") == "1"
SEED = 20261202
GRAPH = "tests.faults.killed_graph"
URLS = {"sqlite": "sqlite:///{}/store.db", "files": "file://{}/store"}
KILLED = -9

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL on Windows, and no fork")


@pytest.fixture(scope="module")
def forking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forking]:
    with Forking(tmp_path_factory.mktemp("forking")) as opened:
        yield opened


# -- killed, and gone on with ----------------------------------------------------------------------------------------

KILLS: list[tuple[str, Durability, bool, int]] = [
    ("sqlite", "sync", False, 10),
    ("sqlite", "async", True, 10),
    ("sqlite", "exit", False, 4),
    ("files", "sync", True, 3),
]
"""(storage, durability, called in tasks or in threads, how many kills of the short dose)"""
if TORTURE:
    KILLS = [
        (kind, how, tasks, 10_000) for kind in URLS for how in ("sync", "async", "exit") for tasks in (False, True)
    ]


@pytest.mark.parametrize(("kind", "durability", "tasks", "kills"), KILLS)
def test_a_killed_graph_goes_on_and_ends_as_one_nobody_killed(
    kind: str, durability: Durability, tasks: bool, kills: int, forking: Forking, tmp_path: Path
) -> None:
    url, log = URLS[kind].format(tmp_path), str(tmp_path / "unkilled.log")
    forking.answer(f"{GRAPH}:run", url, log, durability, tasks)
    unkilled = forking.answer(f"{GRAPH}:look", url, log)
    assert (unkilled["turns"], unkilled["branches"], unkilled["problems"]) == (2, ["main"], [])
    rng = random.Random(SEED)
    died = []
    for place, n in _chosen(_points(log), kills, rng):
        where = f"{kind}, {durability}, {tasks=}, seed {SEED}, killed at {place!r} number {n}"
        folder = tmp_path / f"{place}-{n}".replace(" ", "-").replace(":", "")
        folder.mkdir()
        died += [_kill_and_go_on(forking, folder, kind, durability, tasks, (place, n), rng, unkilled, where)]
    assert sum(died) > len(died) // 2, "a commit may be one with another, so not every point is reached again"


def _points(log: str) -> list[tuple[str, int]]:
    counts = Counter(line[1].strip() for line in lines(log) if line[0] == "at")
    return [(place, n) for place, count in sorted(counts.items()) for n in range(1, count + 1)]


def _chosen(points: list[tuple[str, int]], kills: int, rng: random.Random) -> list[tuple[str, int]]:
    """Some of the points: of every place as many."""
    if kills >= len(points):
        return points
    rng.shuffle(points)
    of_place: Counter[str] = Counter()
    ranked = []
    for place, n in points:
        ranked.append((of_place[place], place, n))
        of_place[place] += 1
    return [(place, n) for _, place, n in sorted(ranked)[:kills]]


def _kill_and_go_on(
    forking: Forking, folder: Path, kind: str, durability: Durability, tasks: bool,
    point: tuple[str, int], rng: random.Random, unkilled: dict[str, Any], where: str,
) -> bool:  # fmt: skip
    """Whether it was killed at all."""
    url, log = URLS[kind].format(folder), str(folder / "run.log")
    killed = forking.run(f"{GRAPH}:run", url, log, durability, tasks, *point)
    assert killed.status in (KILLED, 0), f"{where}: {killed}"
    between = forking.answer(f"{GRAPH}:look", url, log)
    assert between["problems"] == [], where
    if durability == "exit":
        assert between["values"] in unkilled["past"], f"{where}: it is neither before nor after a run"
    if rng.random() < 0.5:  # once more, on the way
        forking.run(f"{GRAPH}:run", url, log, durability, tasks, point[0], rng.randrange(1, 4))
    ended = forking.run(f"{GRAPH}:run", url, log, durability, tasks)
    assert (ended.status, ended.said) == (0, ""), f"{where}: {ended.said}"
    found = forking.answer(f"{GRAPH}:look", url, log)
    assert found["problems"] == [], where
    assert found["values"] == unkilled["values"], where
    assert (found["next"], found["branches"]) == ([], ["main"]), where
    if durability == "sync":  # else a checkpoint may be behind what its subgraphs and tasks have written
        assert found["steps"] == unkilled["steps"], where
    assert _ran_again(lines(log), by_name=durability == "sync") == [], where
    return killed.status == KILLED


def _ran_again(log: list[list[str]], *, by_name: bool) -> list[str]:
    """The tasks that began though all they write had been put: by their names where the checkpoint they belong to was
    put before they ran, else by their ids."""
    names: dict[str, str] = {}
    done: set[str] = set()
    again = []
    for line in log:
        if line[0] == "ran":
            names[line[1]] = line[2] if by_name else line[1]
            if names[line[1]] in done:
                again.append(line[2])
        elif line[0] == "wrote":
            done.add(names.get(line[3], line[3]))
    return again


# -- two on one thread -----------------------------------------------------------------------------------------------

TWO: list[tuple[str, str, Durability]] = [("sqlite", "branch", "async"), ("sqlite", "refuse", "sync")]
if TORTURE:
    ways = [(writers, how) for writers in ("branch", "refuse") for how in ("sync", "async", "exit")]
    TWO = [(kind, writers, how) for kind in URLS for writers, how in ways]
ROUNDS = 50 if TORTURE else 6


@pytest.mark.parametrize(("kind", "two_writers", "durability"), TWO)
def test_two_processes_on_one_thread(kind: str, two_writers: str, durability: Durability, tmp_path: Path) -> None:
    url = URLS[kind].format(tmp_path)
    with rekindle.open_store(url) as store:
        before = [_begin_round(RekindleSaver(store), number) for number in range(ROUNDS)]
    with ExitStack() as closing:
        runs = [closing.enter_context(_one_of_two(url, name, two_writers, durability)) for name in ("one", "two")]
        told = [_together(runs, base) for base in before]
    assert [run.returncode for run in runs] == [0, 0]
    with rekindle.open_store(url) as store:
        saver = RekindleSaver(store)
        for number, (base, pair) in enumerate(zip(before, told, strict=True)):
            endings = sorted(run[-1] for run in pair)
            assert endings == (["ended"] * 2 if two_writers == "branch" else ["ended", "head-moved"])
            for name, run in zip(("one", "two"), pair, strict=True):
                _is_all_there(saver, number, name, base, run)
            assert len(store.branches(f"thread-{number}")) == endings.count("ended")
        assert store.verify().problems == []


def _begin_round(saver: RekindleSaver, number: int) -> str:
    """The thread as both processes find it; the id of its newest checkpoint."""
    graph = chain(saver, "base")
    stops = [] if begins_new(number) else ["b"]
    graph.invoke({"log": ["base begins"]}, thread_of(number), interrupt_before=stops)
    return str(graph.get_state(thread_of(number)).config["configurable"]["checkpoint_id"])


def _one_of_two(url: str, name: str, two_writers: str, durability: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.faults.one_of_two", url, name, two_writers, durability, str(ROUNDS)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, env=environment(), stdin=pipe, stdout=pipe, text=True)


def _together(runs: Sequence[subprocess.Popen[str]], base: str) -> list[list[str]]:
    """A round: both have loaded the same checkpoint before either goes on. What each told, the last how it ended."""
    for run in runs:
        assert run.stdout is not None
        assert run.stdout.readline().split() == ["loaded", base]
    for run in runs:
        assert run.stdin is not None
        run.stdin.write("go\n")
        run.stdin.flush()
    return [_until_it_ended(run) for run in runs]


def _until_it_ended(run: subprocess.Popen[str]) -> list[str]:
    assert run.stdout is not None
    said = []
    for line in run.stdout:
        said.append(line.removeprefix("put ").strip())
        if not line.startswith("put "):
            return said
    raise AssertionError(f"it went away: {said}")


def _is_all_there(saver: RekindleSaver, number: int, name: str, base: str, run: list[str]) -> None:
    """What a run has put is there, each checkpoint on the one before, down to the one that both began at."""
    *puts, ending = run
    if ending == "head-moved":
        assert puts == []
        return
    thread = thread_of(number)["configurable"]
    found = saver.get_tuple({"configurable": {**thread, "checkpoint_id": puts[-1]}})
    assert found is not None
    log = found.checkpoint["channel_values"]["log"]
    own = [f"{name} {node}" for node in ("begins", "a", "b", "c")]
    assert log[-4:] == own if begins_new(number) else log[-2:] == own[-2:]
    history = []
    while found is not None and found.checkpoint["id"] != base:
        history.insert(0, found.checkpoint["id"])
        assert found.parent_config is not None
        found = saver.get_tuple(found.parent_config)
    assert history == puts


# -- another schema --------------------------------------------------------------------------------------------------

CHANGED = "tests.faults.changed_graphs"
AS_THEIRS = (
    "channel added", "channel removed", "reducer changed", "delta channel", "delta channel taken back", "node renamed"
)  # fmt: skip
SHOWS = {
    "field with a default": "Order(item='tea', prices=[1])",
    "version with an upgrade": "Order(items=['tea'])",
    "optional field of a model": "Trip(to='Lisbon', month=None)",
}
SAYS = {
    "field without a default": ("type-load-failed", "no 'price', and the field has no default: raise the version"),
    "version without an upgrade": ("no-upgrade", "'tests/Order'"),
    "class not registered": ("type-unregistered", "'tests/Order'"),
}


@pytest.mark.parametrize("case", [*AS_THEIRS, *SHOWS, *SAYS])
def test_a_changed_program_goes_on_or_says_why_not(case: str, forking: Forking, tmp_path: Path) -> None:
    url = URLS["sqlite"].format(tmp_path)
    assert forking.run(f"{CHANGED}:begin", case, url).status == KILLED
    before = forking.answer(f"{CHANGED}:past", case, url)
    assert len(before) > 2
    found = forking.answer(f"{CHANGED}:go_on", case, url)
    if case in AS_THEIRS:
        assert found == forking.answer(f"{CHANGED}:go_on_theirs", case)
    elif case in SHOWS:
        assert found["next"] == []
        assert found["values"].count(SHOWS[case]) == 3, "in the state, and told by two nodes"
    else:
        code, words = SAYS[case]
        assert (found["code"], words in found["message"]) == (code, True), found
    after = forking.answer(f"{CHANGED}:past", case, url)
    assert {name: after[name] for name in before} == before, "nothing of what was there is lost"
    assert before["problems"] == ""


# -- a full disk -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "durability", "way"),
    [("sqlite", "sync", "threads"), ("sqlite", "async", "tasks"), ("files", "sync", "tasks")],
)
def test_a_graph_on_a_disk_that_is_full_goes_on_when_there_is_room(
    kind: str, durability: Durability, way: str, tmp_path: Path
) -> None:
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("a small disk is a tmpfs: it needs Linux, root and unshare")
    module = "tests.faults.graph_on_a_small_disk"
    done = subprocess.run(
        ["unshare", "--mount", sys.executable, "-m", module, str(tmp_path), URLS[kind].format(tmp_path), durability, way],
        env=environment(), cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    if done.returncode == CANNOT or done.stderr.startswith("unshare"):
        pytest.skip(f"no tmpfs may be mounted here: {done.stdout}{done.stderr}")
    assert done.returncode == 0, done.stderr
