"""Facts as people read them: times with their zone, sizes, references. All of it is safe to print."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from unicodedata import combining, east_asian_width

from ..model import Checkpoint
from ..quoting import escape
from ..refs import quote_agent
from ..state.values.parts import children_of
from ..state.values.registry import Opaque

_UNITS = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (1000, "KB"))
_UNSHOWN = re.compile(r"[^\n -~]")


def when(moment: datetime) -> str:
    """Local time with its offset: `2026-01-02 03:04:05+01:00`."""
    return moment.astimezone().isoformat(sep=" ", timespec="seconds")


def iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def ago(moment: datetime, now: datetime) -> str:
    seconds = int((now - moment).total_seconds())
    if seconds < 0:
        return "in the future, by this clock"
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return f"{seconds} s ago"


def size(count: int) -> str:
    for unit, name in _UNITS:
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} B"


def count(number: int, noun: str) -> str:
    """`1 checkpoint`, `2 checkpoints`, `3 branches`."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun}{'es' if noun.endswith('ch') else 's'}"


def ref(checkpoint: Checkpoint) -> str:
    return f"{quote_agent(checkpoint.agent_id)}@{checkpoint.seq}"


def facts(checkpoint: Checkpoint) -> dict[str, Any]:
    """What `--json` says of a checkpoint everywhere; nothing of it loads the state."""
    from ..state.shown.preview import plain

    return {
        "ref": ref(checkpoint),
        "id": checkpoint.id,
        "agent_id": checkpoint.agent_id,
        "agent_type": checkpoint.agent_type,
        "user_id": checkpoint.user_id,
        "timestamp": iso(checkpoint.timestamp),
        "parent_checkpoint_id": checkpoint.parent_checkpoint_id,
        "status": checkpoint.status,
        **checkpoint.facts(),
        "metadata": plain(checkpoint.metadata, full=True),
    }


def kind_of(value: Any) -> str:
    """What a value is, and how much of it there is: `list of 42`, `str of 1,204`, `Plan`."""
    if isinstance(value, Opaque):
        return escape(value.name)
    name = escape(type(value).__name__)
    if isinstance(value, (str, bytes, dict, list, tuple, set, frozenset)):
        return f"{name} of {len(value):,}"
    return name


def parts(value: Any) -> dict[Any, Any]:
    return children_of(value)


def lines_of(text: str) -> list[str]:
    """The lines of a text somebody else wrote, each safe to print; a tab is as good as spaces."""
    return [escape(line.replace("\t", "    ")) for line in text.split("\n")]


def brief(text: str, most: int = 60) -> str:
    """The beginning of a text somebody else wrote, safe to print: what a row has room for."""
    shown = escape(text[: most + 1])
    return shown if len(shown) <= most else shown[: most - 3] + "..."


def as_json(payload: Any, *, indent: int | None = 2) -> str:
    """JSON that is readable in any script, and in which no character is obeyed by a terminal."""
    text = json.dumps(payload, ensure_ascii=False, indent=indent, allow_nan=False)
    return text if text.replace("\n", "").isprintable() else _UNSHOWN.sub(_guarded, text)


def _guarded(found: re.Match[str]) -> str:
    char = found[0]
    if char.isprintable():
        return char
    return json.dumps(char)[1:-1] if char != "\x7f" else "\\u007f"


def width(text: str) -> int:
    """Columns a terminal needs for a printable text."""
    if text.isascii():
        return len(text)
    return sum(2 if east_asian_width(c) in "WF" else 0 if combining(c) else 1 for c in text)


def joined(names: Iterable[str]) -> str:
    return ", ".join(names)


def name(text: str) -> str:
    """A branch or tag as references write it."""
    return quote_agent(text)
