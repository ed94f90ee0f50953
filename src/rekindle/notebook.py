"""Checkpoints, diffs and histories as a notebook shows them: small tables, readable on light and dark pages.

What agents wrote is hostile: every text is escaped here, and there is no script and no link in what comes out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape as escape_html
from typing import Any

from .errors import RekindleError
from .quoting import escape
from .state.diff.change import Change
from .state.diff.show import preview_both
from .state.shown.path import render as render_path
from .state.shown.preview import preview

Checkpoint = Any
"""A checkpoint; its module is above this one."""

_WIDTH = 100
_ROWS = 50
_HUNKS = 8
_CELL = "text-align:left;vertical-align:top;padding:2px 10px 2px 0;border:0;background:none"
_HEAD = f"{_CELL};font-weight:600;border-bottom:1px solid rgba(128,128,128,.4)"
_DIM = "opacity:.65"
_CODE = "font-family:ui-monospace,Menlo,Consolas,monospace;font-size:.92em;white-space:pre-wrap;word-break:break-word"
# mid-tones: they stand out against white and against black
_INK = {"+": "#2e9e5b", "-": "#d4504a", "~": "#b8860b", ">": "#3a8fc2"}
_SIGNS = {"add": "+", "set_add": "+", "remove": "-", "set_remove": "-", "move": ">", "reorder": ">"}


def checkpoint_html(checkpoint: Checkpoint) -> str:
    """What is known of the moment, and the top of the state."""
    facts: list[tuple[str, Any]] = [
        ("agent", f"{checkpoint.agent_id} ({checkpoint.agent_type})" if checkpoint.agent_type else checkpoint.agent_id),
        ("user", checkpoint.user_id), ("status", checkpoint.status), ("kind", checkpoint.kind),
        ("label", checkpoint.label), ("at", _moment(checkpoint)), ("parent", checkpoint.parent_checkpoint_id),
        *((f"metadata.{name}", preview(value, _WIDTH)) for name, value in checkpoint.metadata.items()),
    ]  # fmt: skip
    rows = [[_dim(name), _text(value)] for name, value in facts if value not in (None, "")]
    try:
        rows += [[_dim(name), _code(value)] for name, value in _insides(checkpoint)]
    except RekindleError as e:  # a view says so, and shows what it can
        rows.append([_dim("state"), _ink("-", _text(e.message))])
    return _box(f"checkpoint {checkpoint.id}", [], rows)


def history_html(checkpoints: Sequence[Checkpoint]) -> str:
    """A line a checkpoint; no state is loaded."""
    rows = [
        [
            _code_text(c.id), _text(c.agent_id), _text(_moment(c)), _text(c.kind), _text(c.status),
            _text(c.label or ""), _dim(_size(c.size)),
        ]
        for c in checkpoints[:_ROWS]
    ]  # fmt: skip
    title = f"{len(checkpoints)} checkpoint{'' if len(checkpoints) == 1 else 's'}"
    head = ["id", "agent", "at", "kind", "status", "label", "size"]
    return _box(title, head, rows, _more(len(checkpoints)))


def diff_html(ids: tuple[str, str], changes: Sequence[Change], status: tuple[str, str]) -> str:
    """A line a change: where, what it was, what it is."""
    rows = []
    if status[0] != status[1]:
        rows.append([_ink("~", "~"), _code_text("status"), _code(status[0]), _code(status[1])])
    for change in changes[:_ROWS]:
        if change.path != ("status",):
            sign = _SIGNS.get(change.op, "~")
            where = render_path(change.path)
            rows.append([_ink(sign, sign), _code_text(where or "(all)"), *_sides(change)])
    count = f"{len(changes)} change{'' if len(changes) == 1 else 's'}"
    head = ["", "path", "old", "new"] if rows else []
    return _box(f"{ids[0]} → {ids[1]}: {count}", head, rows, _more(len(changes)))


def _insides(checkpoint: Checkpoint) -> Iterable[tuple[str, Any]]:
    for name in ("collected_fields", "required_fields", "context_summary"):
        value = getattr(checkpoint, name)
        if value:
            yield name, value
    state = checkpoint.state
    if not isinstance(state, dict):
        yield "state", state
        return
    for shown, (key, value) in enumerate(state.items()):
        if shown == _ROWS:
            yield "state", f"... {len(state) - _ROWS} more"
            return
        yield f"state.{key}" if isinstance(key, str) else f"state{{{key!r}}}", value


def _sides(change: Change) -> tuple[str, str]:
    """What it was and what it is: of long texts the parts that changed, or what is shown is the same twice."""
    if change.from_path is not None:
        return _code_text(render_path(change.from_path)), _code(change.new)
    if change.op in ("add", "set_add"):
        return "", _code(change.new)
    if change.op in ("remove", "set_remove"):
        return _code(change.old), ""
    if change.hunks:
        return _parts([hunk.old for hunk in change.hunks]), _parts([hunk.new for hunk in change.hunks])
    old, new = preview_both(change.old, change.new, _WIDTH)
    return _code_text(old), _code_text(new)


def _parts(texts: Sequence[str]) -> str:
    """The parts of a long text that changed: the beginnings of the old and the new one would look the same."""
    shown = [_code(text) if text else _dim("(nothing)") for text in texts[:_HUNKS]]
    more = [_dim(f"… and {len(texts) - _HUNKS:,} more")] if len(texts) > _HUNKS else []
    return "<br>".join([*shown, *more])


def _moment(checkpoint: Checkpoint) -> str:
    place = f", {checkpoint.branch}@{checkpoint.seq}" if checkpoint.seq else ""
    return f"{checkpoint.timestamp:%Y-%m-%d %H:%M:%S %Z}".strip() + place


def _size(size: int) -> str:
    for unit in ("B", "KB", "MB"):
        if size < 1000:
            return f"{size:,.0f} {unit}"
        size = size // 1000
    return f"{size:,} GB"


def _more(count: int) -> str:
    return f"<div style='{_DIM}'>… and {count - _ROWS:,} more</div>" if count > _ROWS else ""


def _text(value: object) -> str:
    return escape_html(escape(str(value)), quote=True)


def _code_text(text: str) -> str:
    return f"<span style='{_CODE}'>{_text(text)}</span>"


def _code(value: Any) -> str:
    return _code_text(preview(value, _WIDTH))


def _dim(text: str) -> str:
    return f"<span style='{_DIM}'>{_text(text)}</span>"


def _ink(sign: str, safe: str) -> str:
    return f"<span style='color:{_INK[sign]};font-weight:600'>{safe}</span>"


def _box(title: str, head: Sequence[str], rows: Iterable[Sequence[str]], foot: str = "") -> str:
    """A titled table. The title and the head are texts, the cells are HTML already."""
    heads = "".join(f"<th style='{_HEAD}'>{_text(name)}</th>" for name in head)
    body = "".join(
        "<tr style='background:none'>" + "".join(f"<td style='{_CELL}'>{cell}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    table = f"<table style='border-collapse:collapse;border:0'>{f'<tr>{heads}</tr>' if heads else ''}{body}</table>"
    return f"<div style='margin:4px 0'><div style='font-weight:600'>{_text(title)}</div>{table}{foot}</div>"
