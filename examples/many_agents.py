"""Many agents in one process: saves that come together are committed together, each durable when it answers.

python examples/many_agents.py
"""

import asyncio
import tempfile
from pathlib import Path

from rekindle import AsyncStore, open_store

AGENTS = 50
STEPS = 10


async def work(store: AsyncStore, name: str) -> None:
    state = {"name": name, "done": []}
    for step in range(STEPS):
        await asyncio.sleep(0)  # here the agent would think
        state["done"].append(f"step {step}")
        await store.save(name, state, kind="step")


async def run(path: Path) -> None:
    async with AsyncStore.open(path) as store:
        await asyncio.gather(*(work(store, f"agent-{n:02}") for n in range(AGENTS)))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        asyncio.run(run(path))
        with open_store(path) as store:
            agents = store.agents()
            assert all(len(store.restore(name)["done"]) == STEPS for name in agents)
            print(f"{len(agents)} agents, {len(store.list(limit=None))} checkpoints, all of them whole")
            newest = store.list("agent-07", limit=3)
            print("newest of agent-07:", ", ".join(f"@{checkpoint.seq}" for checkpoint in newest))


if __name__ == "__main__":
    main()
