"""A program that saves, forks, prunes, collects and imports until it is killed. Every line it prints is a promise.

python saver.py URL SEED STEPS DURABILITY
"""

from __future__ import annotations

import random
import sys
from io import BytesIO
from typing import Any

from rekindle.store import open_store
from rekindle.store.saving import filling
from rekindle.store.store import Store

KEPT = ("chat", "tool")
"""Agents from which nothing is ever dropped."""
SCRATCH = "scratch"
LAST = 3
"""So many of SCRATCH a prune leaves."""


def state_of(number: int) -> dict[str, Any]:
    """A state that only its number decides. Every seventh is large."""
    rng = random.Random(number)
    notes = [{"n": n, "text": f"{number} note {n} " + "and so on " * rng.randrange(9)} for n in range(number % 11)]
    large = rng.randbytes(40_000) if number % 7 == 0 else b""
    return {"number": number, "notes": notes, "large": large, "same for all": b"s" * 6_000}


def tell(*words: object) -> None:
    print(*words, flush=True)


def step(store: Store, rng: random.Random) -> None:
    agent = rng.choice((*KEPT, SCRATCH))
    verb = rng.choice(["save"] * 8 + ["fork", "prune", "collect", "import"])
    if verb == "save" or agent not in store.agents():
        number = rng.randrange(1 << 30)
        tell("saved", agent, number, store.save(agent, state_of(number)).id)
    elif verb == "fork":
        branch = f"b{rng.randrange(1 << 30)}"
        tell("forked", agent, branch, store.fork(agent, branch).id)
    elif verb == "prune":
        store.prune(f"keep-last={LAST}", agent_id=SCRATCH)
    elif verb == "collect":
        store.collect()
    else:
        out, to = BytesIO(), f"moved-{rng.randrange(1 << 30)}"
        count = store.export(KEPT[0] if KEPT[0] in store.agents() else agent, out)
        out.seek(0)
        store.import_(out, agent_id=to)
        tell("imported", to, count)


def main(url: str, seed: int, steps: int, durability: str) -> None:

    filling.SPILL = 20_000
    rng = random.Random(seed)
    with open_store(url, durability=durability) as store:
        tell("open")
        for _ in range(steps):
            step(store, rng)
    tell("closed")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
