"""Every example runs, in a process and a folder of its own, and says what it should."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
SAYS = {
    "any_agent.py": [
        "process 1: is killed while it books the hotel",
        "process 2: begins with {'train': 80}, 420 left",
        "main: 162 left, after train, hotel, museum",
        "no-hotel: 360 left, after train, hostel",
    ],
    "chat_agent.py": [
        "2nd process: begins with 4 messages",
        "2nd process: turn 3 saved: plan: what a prune would do",
        "8 messages in 4 checkpoints; bool(store.verify())=True",
    ],
    "langgraph_chat.py": [
        "1st process: the tool is asked",
        "2nd process: begins with 3 messages",
        "2nd process: 4 messages, the last: It is sunny there.",
        "5 checkpoints; bool(saver.store.verify())=True",
    ],
    "many_agents.py": ["50 agents, 500 checkpoints, all of them whole", "newest of agent-07: @10, @9, @8"],
    "own_types.py": ["restored: ShopOrder(customer='ada', items=[{'name': '(from version 1)', 'cents': 1250}])"],
}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_the_example_runs_and_says_what_it_should(example: Path, tmp_path: Path) -> None:
    env = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, str(example)], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for line in SAYS[example.name]:
        assert line in done.stdout
    assert list(tmp_path.iterdir()) == [], "it leaves nothing behind"
