"""SIGKILL of a real process in the middle of real saves: every promise it made is kept."""

from __future__ import annotations

import os
import random
import re
import shutil
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.crash import promises
from tests.crash.promises import Lines

LONG = bool(os.environ.get("REKINDLE_TORTURE"))
SEED = 20261118
STEPS = 30
"""Of a saver that is killed at a system call."""

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL on Windows")
KINDS = {"sqlite": "sqlite:///{}/store.db", "files": "file://{}/store"}
CALLS = {
    "sqlite": ("pwrite64", "fdatasync", "fsync", "ftruncate", "unlink", "rename", "mkdir"),
    "files": ("write", "fsync", "link", "linkat", "rename", "unlink", "mkdir"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_random_moments_again_and_again(kind: str, tmp_path: Path) -> None:
    rng = random.Random(SEED)
    url = KINDS[kind].format(tmp_path)
    promised: Lines = []
    kills = 500 if LONG else 6
    for n in range(kills):
        run = promises.start(url, seed=SEED + n)
        assert run.stdout is not None
        opened = run.stdout.readline().split()
        time.sleep(rng.uniform(0, 0.3))
        run.kill()
        lines = promises.told(run)
        assert opened == ["open"]
        promised += lines
        problems = promises.broken(url, promised)
        assert not problems, f"{kind}, kill {n} of seed {SEED}: {problems[:3]}"
    print(f"{kind}: seed {SEED}: {kills} kills, {len(promised)} promises kept")
    assert len(promised) > kills


@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_a_system_call(kind: str, tmp_path: Path) -> None:
    if shutil.which("strace") is None:
        pytest.skip("no strace here: `apt-get install strace` (or the like) to kill at every I/O call")
    points = _points(kind, tmp_path)
    chosen = points if LONG else random.Random(SEED).sample(points, 5)
    kept = 0
    for call, n in chosen:
        folder = tmp_path / f"{call}-{n}"
        folder.mkdir()
        url = KINDS[kind].format(folder)
        inject = ["strace", "-f", "--seccomp-bpf", "-qq", "-o", os.devnull, "-e", f"trace={call}"]
        inject += ["-e", f"inject={call}:signal=KILL:when={n}"]
        lines = promises.told(promises.start(url, SEED, STEPS, under=inject))
        problems = promises.broken(url, lines)
        assert not problems, f"{kind}, killed at {call} number {n}: {problems[:3]}"
        kept += len(lines)
        shutil.rmtree(folder)
    print(f"{kind}: killed at {len(chosen)} of {len(points)} system calls, {kept} promises kept")


def _points(kind: str, tmp_path: Path) -> list[tuple[str, int]]:
    """(system call, n) of all that a saver does when nobody kills it."""
    log = tmp_path / "calls"
    url = KINDS[kind].format(tmp_path / "unkilled")
    (tmp_path / "unkilled").mkdir()
    # a call that this machine does not have may not be named
    wanted = ",".join(f"?{call}" for call in CALLS[kind])
    run = promises.start(
        url, SEED, STEPS, under=["strace", "-f", "--seccomp-bpf", "-qq", "-o", str(log), "-e", f"trace={wanted}"]
    )
    try:
        lines = promises.told(run)
    except AssertionError as e:
        pytest.skip(f"strace does not work here (it needs ptrace): {e}")
    assert lines[-1] == ["closed"]
    calls: Counter[str] = Counter(re.findall(r"^\d+ +(\w+)\(", log.read_text(), re.MULTILINE))
    assert not promises.broken(url, lines)
    return [(call, n) for call, count in sorted(calls.items()) for n in range(1, count + 1)]


def test_a_promise_that_is_broken_is_found(tmp_path: Path) -> None:
    url = KINDS["sqlite"].format(tmp_path)
    lines = promises.told(promises.start(url, SEED, STEPS))
    saved = next(line for line in lines if line[0] == "saved")
    assert promises.broken(url, [*lines, ["saved", "chat", saved[2], "chk_99-aaaaaaaaaaaaaa"]])
    assert promises.broken(url, [*lines, ["saved", saved[1], "5", saved[3]]])
    assert promises.broken(url, [*lines, ["forked", "chat", "no-such", saved[3]]])
    assert not promises.broken(url, lines)
