"""The agent of the demo: a process of its own that reads through a shelf of books and keeps a chat about them.

    python -m rekindle.demo.agent STORE AGENT [--branch NAME] [--pause SECONDS]

Where the store knows the agent, it goes on from there. It tells what it does on stdout, one JSON object a line, and
says that a step is done only after `save` has returned.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import rekindle

SHELF = (
    ("The Tides", "why the sea rises twice a day", 212),
    ("A History of Paper", "how rags became pages", 340),
    ("On Being Wrong", "what a mistake feels like from inside", 268),
    ("The Night Mail", "how letters crossed a country by dawn", 154),
    ("Salt", "what people did for it", 498),
    ("Small Engines", "how to mend what still turns", 176),
    ("The Cartographer's Error", "an island that never was", 301),
    ("Bread", "four things and patience", 222),
    ("Lighthouse Logs", "forty years of weather", 410),
    ("The Last Telegram", "what was worth a word", 133),
)
"""Title, what it is about, pages."""


def begin() -> dict[str, Any]:
    """The state of an agent that has not done anything yet."""
    return {
        "style": "careful",
        "todo": [title for title, _, _ in SHELF],
        "pages": 0,
        "notes": {},
        "messages": [{"role": "system", "content": "Read every book on the shelf. Note what each is about."}],
    }


def step(state: dict[str, Any]) -> str:
    """Read the next book: the state changes, and depends on nothing but the state. Answers the title."""
    title: str = state["todo"].pop(0)
    about, pages = next((about, pages) for name, about, pages in SHELF if name == title)
    note = about if state["style"] == "brief" else f"{about} ({pages} pages, {state['pages']} read before it)"
    state["notes"][title] = note
    state["pages"] += pages
    state["messages"] += [
        {"role": "user", "content": f"What is {title!r} about?"},
        {"role": "assistant", "content": f"It tells {note}."},
    ]
    return title


def work(store: rekindle.Store, agent: str, branch: str | None, pause: float) -> None:
    if agent in store.agents():
        newest = f"{agent}@{branch or 'main'}"
        state = store.restore(newest)
        tell(restored=store.get(newest).seq, left=len(state["todo"]))
    else:
        state = begin()
        tell(restored=None, left=len(state["todo"]))
    while state["todo"]:
        tell(reading=state["todo"][0])
        time.sleep(pause)
        title = step(state)
        saved = store.save(agent, state, branch=branch, kind="step", label=f"read {title}")
        tell(saved=saved.seq, title=title)


def tell(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m rekindle.demo.agent")
    parser.add_argument("store")
    parser.add_argument("agent")
    parser.add_argument("--branch")
    parser.add_argument("--pause", type=float, default=0.0)
    told = parser.parse_args()
    with rekindle.open_store(told.store) as store:
        work(store, told.agent, told.branch, told.pause)


if __name__ == "__main__":
    main()
