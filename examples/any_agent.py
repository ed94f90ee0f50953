"""A hand-written agent loop, without any framework: killed inside a step, and gone on with by another process.

    python examples/any_agent.py

It is a class like any other. `rekindle.track` saves its attributes after every step, and puts them back.
"""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import rekindle

PRICES = {"train": 80, "hotel": 240, "museum": 18}


class Planner:
    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.booked: dict[str, int] = {}  # what is done: the loop goes on from here
        self.log = open(os.devnull, "w")  # cannot be saved, and need not be  # noqa: SIM115

    def book(self, what: str, *, die: bool) -> None:
        price = PRICES[what]
        if die:
            print(f"is killed while it books the {what}", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        self.booked[what] = price
        self.budget -= price


def plan(path: str, die_at: str) -> None:
    planner = Planner(budget=500)
    with rekindle.track(planner, "planner", store=path, exclude=("log",)) as agent:
        print(f"begins with {planner.booked}, {planner.budget} left", flush=True)
        book = agent.step(arguments=("what",))(planner.book)
        for what in PRICES:
            if what not in planner.booked:
                book(what, die=what == die_at)
                print(f"booked the {what}: {agent.checkpoint.label}, {agent.checkpoint.metadata}", flush=True)
    planner.log.close()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "agents.db")
        for number, die_at in ((1, "hotel"), (2, "")):
            done = subprocess.run([sys.executable, __file__, path, die_at], stdout=subprocess.PIPE, text=True)
            for line in done.stdout.splitlines():
                print(f"  process {number}: {line}")
        state = {}
        with rekindle.track(state, "planner", store=path) as agent:
            agent.fork("no-hotel", "@1")
            state["booked"]["hostel"] = 60
            state["budget"] -= 60
            agent.save("a hostel instead")
            for branch, head in agent.store.branches("planner").items():
                print(f"{branch}: {head.state['budget']} left, after {', '.join(head.state['booked'])}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        plan(sys.argv[1], sys.argv[2])
    else:
        main()
