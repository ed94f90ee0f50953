"""What the program can do, and its help: read without click, so that `rekindle --help` is there at once."""

from __future__ import annotations

import os
from textwrap import wrap
from typing import NamedTuple


class Entry(NamedTuple):
    name: str
    module: str
    help: str


TABLE: dict[str, tuple[Entry, ...]] = {
    "Begin": (
        Entry("init", "begin", "make a store here"),
        Entry("doctor", "doctor", "is everything there that rekindle needs?"),
        Entry("completion", "shells", "print a completion script for your shell"),
    ),
    "Look": (
        Entry("agents", "look", "every agent and where it stands"),
        Entry("log", "log", "checkpoints, newest first; --graph draws the branches"),
        Entry("show", "look", "one checkpoint, or a place in its state"),
        Entry("branches", "names", "an agent's branches and their heads"),
        Entry("tags", "names", "the tags of an agent, or of all"),
        Entry("stats", "space", "the store in numbers"),
    ),
    "Compare": (
        Entry("diff", "compare", "what changed between two checkpoints"),
        Entry("blame", "compare", "which checkpoints changed a place in the state"),
        Entry("grep", "compare", "search the texts in states"),
        Entry("bisect", "bisect", "find the first checkpoint for which a command fails"),
    ),
    "Go back and go on": (
        Entry("restore", "restore", "get a state back, as JSON"),
        Entry("fork", "names", "begin a branch at a checkpoint"),
        Entry("tag", "names", "name a checkpoint, and keep it"),
        Entry("label", "names", "write a few words beside a checkpoint"),
        Entry("undo", "operations", "turn the last operation round"),
    ),
    "Keep it small and sound": (
        Entry("prune", "retain", "drop what a policy does not keep"),
        Entry("policy", "retain", "the policy the store keeps by itself"),
        Entry("delete", "retain", "drop an agent whole"),
        Entry("collect", "retain", "free the space of what was dropped, for good"),
        Entry("du", "space", "where the bytes are"),
        Entry("verify", "verify", "check every record, hash and reference"),
    ),
    "Move": (
        Entry("export", "moving", "write an agent as one file"),
        Entry("import", "moving", "bring in what export wrote, or a langgraph database"),
    ),
}
ENTRIES = {entry.name: entry for entries in TABLE.values() for entry in entries}

OPTIONS = {
    "--store URL": "A path, sqlite:///path or file:///folder; else $REKINDLE_STORE, else .rekindle/store.db",
    "--user NAME": "Whose agents (local)",
    "--json": "Answer with one JSON document",
    "--no-color": "No colors, as $NO_COLOR",
    "--version": "Say the version",
    "-h, --help": "Say this; after a command, tell about it",
}
REFERENCES = (
    "A checkpoint is written agent, agent@42, agent@-1, agent@{10m ago}, agent@branch, a branch, a tag or the "
    "beginning of its id; REF:messages[-1].content is a place in its state, A..B are two."
)
EXIT_CODES = (
    "Exit codes: 0 ok, 1 failed, 2 usage, 3 partial, 4 not found, 5 conflict or refused, 8 unsupported, 13 corrupt, "
    "75 try again, 130 interrupted."
)
MOST_COLUMNS = 100
_NAMES = 13


def columns() -> int:
    """Of the terminal, as far as help uses them."""
    try:
        found = int(os.environ.get("COLUMNS") or os.get_terminal_size().columns)
    except (ValueError, OSError):
        found = 80
    return max(40, min(found, MOST_COLUMNS))


def help_text(width: int) -> str:
    """What `rekindle --help` prints."""
    lines = ["Usage: rekindle [OPTIONS] COMMAND [ARGS]...", ""]
    lines += ["  Checkpoints of agents: save, look back, fork, compare, restore.", ""]
    lines += ["Options:", *(line for name, told in OPTIONS.items() for line in _item(name, told, width)), ""]
    for title, entries in TABLE.items():
        lines += [f"{title}:", *(line for entry in entries for line in _item(entry.name, entry.help, width)), ""]
    for text in (REFERENCES, EXIT_CODES):
        lines += [*wrap(text, width - 2, initial_indent="  ", subsequent_indent="  "), ""]
    return "\n".join(lines[:-1])


def _item(name: str, told: str, width: int) -> list[str]:
    indent = " " * (_NAMES + 2)
    return wrap(told, width - 2, initial_indent=f"  {name:<{_NAMES}}", subsequent_indent=indent)
