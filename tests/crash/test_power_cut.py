"""The power goes under a real ext4 and a real xfs: what was promised is there when they are mounted again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.crash.cut_the_power import CANNOT, MAKE

import rekindle

LONG = bool(os.environ.get("REKINDLE_TORTURE"))
SEED = 20261118
ROOT = Path(__file__).parents[2]
PACKAGES = {"mkfs.ext4": "e2fsprogs", "mkfs.xfs": "xfsprogs", "unshare": "util-linux", "mount": "mount"}

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="a power cut is made on a loop device: it needs Linux and root"
)


def power_cuts(folder: Path, fs: str, kind: str, *, durability: str = "durable", cuts: int) -> dict[str, Any]:
    for tool in ("unshare", "mount", MAKE[fs][0]):
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool} here: `apt-get install {PACKAGES[tool]}`")
    path = os.pathsep.join((str(ROOT), str(Path(rekindle.__file__).parents[1])))
    command = ["unshare", "--mount", sys.executable, "-m", "tests.crash.cut_the_power"]
    done = subprocess.run(
        [*command, str(folder), fs, kind, durability, str(SEED), str(cuts)],
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=ROOT, capture_output=True, text=True, timeout=60 + 20 * cuts,
    )  # fmt: skip
    if done.returncode == CANNOT or "unshare" in done.stderr:
        pytest.skip(f"no {fs} on a loop device here (it needs root with CAP_SYS_ADMIN): {done.stdout}{done.stderr}")
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(f"{kind} on {fs}, {durability}: seed {SEED}: {answer['promised']} promises, {cuts} power cuts")
    return answer


@pytest.mark.parametrize("fs", MAKE)
@pytest.mark.parametrize("kind", ["sqlite", "files"])
def test_every_acknowledged_save_is_there_after_a_power_cut(fs: str, kind: str, tmp_path: Path) -> None:
    answer = power_cuts(tmp_path, fs, kind, cuts=200 if LONG else 1 + (fs == "ext4"))
    assert not answer["problems"], answer["problems"][:3]
    assert answer["promised"] > 2


def test_relaxed_durability_is_found_to_lose_some(tmp_path: Path) -> None:
    """The cut is a real one: what was not synced does not come back."""
    answer = power_cuts(tmp_path, "ext4", "sqlite", durability="relaxed", cuts=3)
    assert any("is gone" in problem for problem in answer["problems"])
