"""Changes for people and programs. What agents wrote is hostile: nothing a terminal would obey comes out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...quoting import escape
from ..shown.path import Path
from ..shown.path import render as render_path
from ..shown.plain import plain, preview
from .change import Change
from .texts import Hunk, shared_ends

_SIGNS = {"add": "+", "remove": "-", "replace": "~", "move": ">", "text": "~", "reorder": "%"}
_SIGNS |= {"set_add": "+", "set_remove": "-"}
_COLORS = {"+": "\x1b[32m", "-": "\x1b[31m", "~": "\x1b[33m", ">": "\x1b[36m", "%": "\x1b[36m"}
_PLAIN = "\x1b[0m"
_PATH_COLUMN = 24
_SHOWN_LINES = 20
_SHOWN_PLACES = 8
_SHOWN_WIDTH = 160


@dataclass(frozen=True, slots=True)
class Summary:
    """How many changes there are of each op, and under which first steps of the state."""

    total: int
    counts: Mapping[str, int]
    touched: tuple[str, ...]

    def __str__(self) -> str:
        if not self.total:
            return "no changes"
        counts = ", ".join(f"{count:,} {op}" for op, count in self.counts.items())
        more = len(self.touched) - _SHOWN_PLACES
        places = ", ".join(self.touched[:_SHOWN_PLACES]) + (f" and {more:,} more" if more > 0 else "")
        return f"{self.total:,} change{'s' if self.total > 1 else ''} ({counts}) in {places}"


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list of changes; `next_offset` is None after the last."""

    items: tuple[Change, ...]
    total: int
    offset: int
    next_offset: int | None


def summary(changes: Sequence[Change]) -> Summary:
    """What a list of changes amounts to."""
    touched = dict.fromkeys(_where(change.path[:1]) for change in changes)
    return Summary(len(changes), dict(Counter(change.op for change in changes).most_common()), tuple(touched))


def page(changes: Sequence[Change], limit: int, offset: int = 0) -> Page:
    """At most `limit` changes from `offset` on. To apply, take all of them."""
    items = tuple(changes[offset : offset + limit])
    end = offset + len(items)
    return Page(items, len(changes), offset, end if items and end < len(changes) else None)


def to_json(change: Change, *, full: bool = False) -> dict[str, Any]:
    """A change as JSON holds it: no NaN, no lone surrogate, no bytes; what JSON has no word for is a tagged
    object (see `plain`). Long values are cut, and say their size, unless `full`."""
    made: dict[str, Any] = {"op": change.op, "path": render_path(change.path)}
    if change.from_path is not None:
        made["from"] = render_path(change.from_path)
    if change.op not in ("add", "set_add"):
        made["old"] = plain(change.old, full=full)
    if change.op not in ("remove", "set_remove"):
        made["new"] = plain(change.new, full=full)
    if change.hunks:
        made["hunks"] = [
            {"at": h.at, "line": h.line, "old": plain(h.old, full=full), "new": plain(h.new, full=full)}
            for h in change.hunks
        ]
    return made


def render(changes: Sequence[Change], color: bool = False) -> str:
    """Changes as lines for a person, one or more each; `color` for a terminal that wants it."""
    lines = [line for change in changes for line in _lines(change)]
    if color:
        lines = [_colored(line) for line in lines]
    return "\n".join(lines)


def preview_both(old: Any, new: Any, width: int) -> tuple[str, str]:
    """Both, a line each; of two long texts that begin alike, from shortly before they differ."""
    if type(old) is str and type(new) is str and max(len(old), len(new)) > width:
        skip = shared_ends(old, new)[0] - width // 4
        if skip > 0:
            old_end, new_end = (preview(text[skip:], width - 3) for text in (old, new))
            return f"...{old_end}", f"...{new_end}"
    return preview(old, width), preview(new, width)


def _lines(change: Change) -> list[str]:
    sign, where = _SIGNS[change.op], _where(change.path)
    if change.op == "move":
        return [f"{sign} {_where(change.from_path or ())} -> {where}"]
    if change.op == "text":
        size = f"{len(change.old):,} -> {len(change.new):,} characters"
        first = f"{sign} {where:{_PATH_COLUMN}} {preview(change.new, 24)} ({size})"
        return [first, *[line for hunk in change.hunks for line in _hunk_lines(hunk)]]
    if change.op == "reorder":
        return [f"{sign} {where:{_PATH_COLUMN}} order: {preview(list(change.new), _SHOWN_WIDTH)}"]
    if change.op == "replace":
        old, new = preview_both(change.old, change.new, _SHOWN_WIDTH // 2)
        return [f"{sign} {where:{_PATH_COLUMN}} {old} -> {new}"]
    value = change.new if sign == "+" else change.old
    place = where + (" (in the set)" if change.op.startswith("set_") else "")
    return [f"{sign} {place:{_PATH_COLUMN}} {preview(value, _SHOWN_WIDTH)}"]


def _hunk_lines(hunk: Hunk) -> list[str]:
    return [f"  @ line {hunk.line}", *_side("-", hunk.old), *_side("+", hunk.new)]


def _side(sign: str, text: str) -> list[str]:
    lines = text.removesuffix("\n").split("\n", _SHOWN_LINES) if text else []
    more = lines[_SHOWN_LINES:]
    shown = [f"  {sign} {_cut(line)}" for line in lines[:_SHOWN_LINES]]
    return shown + [f"  {sign} ... {rest.count(chr(10)) + 1} more lines" for rest in more]


def _cut(line: str) -> str:
    if len(line) <= _SHOWN_WIDTH:
        return escape(line)
    return f"{escape(line[:_SHOWN_WIDTH])}... ({len(line):,} characters)"


def _where(path: Path) -> str:
    return render_path(path) or "(all)"


def _colored(line: str) -> str:
    paint = _COLORS.get(line.strip()[:1])
    return f"{paint}{line}{_PLAIN}" if paint else line
