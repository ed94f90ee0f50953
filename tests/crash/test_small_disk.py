"""A full disk and a read-only folder: an error that says so and what to do, and nothing is lost by it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.crash.small_disk import CANNOT, SCENES, URLS

import rekindle
from rekindle.errors import UnavailableError
from rekindle.store import open_store

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("kind", URLS)
@pytest.mark.parametrize("scene", SCENES)
def test_on_a_small_disk_of_its_own(kind: str, scene: str, tmp_path: Path) -> None:
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("a small disk is a tmpfs: it needs Linux, root and unshare (full disks are simulated beside this)")
    path = os.pathsep.join((str(ROOT), str(Path(rekindle.__file__).parents[1])))
    done = subprocess.run(
        ["unshare", "--mount", sys.executable, "-m", "tests.crash.small_disk", str(tmp_path), kind, scene],
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=ROOT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    if done.returncode == CANNOT or done.stderr.startswith("unshare"):
        pytest.skip(f"no tmpfs may be mounted here: {done.stdout}{done.stderr}")
    assert done.returncode == 0, done.stderr


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Path]:
    if sys.platform == "win32" or os.geteuid() == 0:
        pytest.skip("permissions say nothing to root: the read-only disk beside this is for it")
    yield tmp_path
    for folder, _, _ in os.walk(tmp_path):
        os.chmod(folder, 0o700)


@pytest.mark.parametrize("kind", URLS)
def test_a_folder_that_may_not_be_written_is_named(kind: str, locked: Path) -> None:
    url = URLS[kind].format(locked)
    with open_store(url) as store:
        saved = store.save("chat", {"n": 1})
    for folder, _, _ in os.walk(locked):
        os.chmod(folder, 0o500)
    for there in (url, URLS[kind].format(locked / "new")):
        with pytest.raises(UnavailableError) as refused:
            open_store(there).save("chat", {"n": 2})
        assert refused.value.code == "not-writable"
        assert str(locked) in refused.value.message
        assert refused.value.hint
    for folder, _, _ in os.walk(locked):
        os.chmod(folder, 0o700)
    with open_store(url) as store:
        assert store.restore(saved.id) == {"n": 1}
        assert not store.verify().problems
