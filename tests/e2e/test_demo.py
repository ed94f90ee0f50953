"""The demo does what it shows, in a process of its own, and leaves nothing behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


def demo(tmp_path: Path, *more: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "TMPDIR": str(tmp_path), "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8", "COLUMNS": "110"}
    command = [sys.executable, "-m", "rekindle.demo", *more]
    return subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL on Windows")
def test_a_killed_agent_goes_on_and_ends_as_one_that_nobody_killed(tmp_path: Path) -> None:
    done = demo(tmp_path, "--fast")

    assert done.returncode == 0, done.stdout + done.stderr
    before, after = done.stdout.split("kill -9", maxsplit=1)
    assert "saved as reader@5" in before
    assert "exit status -9" in after
    assert "restored reader@5, 5 books to go" in after
    assert "saved as reader@10" in after
    digests = [line.split()[-1] for line in after.splitlines() if "state digest" in line]
    assert len(digests) == 2
    assert digests[0] == digests[1]
    assert "The two final states are the same, byte for byte." in after


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL on Windows")
def test_every_verb_it_shows_answers(tmp_path: Path) -> None:
    done = demo(tmp_path, "--fast")

    _, *shown = done.stdout.split("\n$ rekindle ")
    answers = {text.split()[0]: text.split("\n", 1)[1].split("\n\n")[0] for text in shown}
    assert set(answers) == {"log", "diff", "blame", "verify"}
    assert all(answer.strip() for answer in answers.values()), answers
    assert "what-if" in done.stdout.split("--graph")[1]


def test_its_folder_is_removed(tmp_path: Path) -> None:
    demo(tmp_path, "--fast")

    assert list(tmp_path.iterdir()) == []
