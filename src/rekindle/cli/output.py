"""Where answers go: data to stdout, messages to stderr; colors and rich only where a terminal shows them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import click

from . import words

_LEAST = 6
"""Columns that a flexible column keeps on a narrow terminal."""
_GAP = 2
"""Between two columns."""

Span = tuple[str, str]
"""A text that is safe to print, and the name of its style."""
Cell = str | Span | Sequence[Span]

STYLES: dict[str, dict[str, Any]] = {
    "": {},
    "seq": {"fg": "yellow"},
    "branch": {"fg": "green", "bold": True},
    "tag": {"fg": "cyan", "bold": True},
    "key": {"fg": "blue"},
    "title": {"bold": True},
    "dim": {"fg": "bright_black"},
    "good": {"fg": "green"},
    "bad": {"fg": "red", "bold": True},
    "warn": {"fg": "yellow"},
    "lane": {"fg": "magenta"},
}


@dataclass(frozen=True)
class Column:
    title: str
    right: bool = False
    flexible: bool = False
    """May be cut to the terminal's width."""


def spans(cell: Cell) -> list[Span]:
    if isinstance(cell, str):
        return [(cell, "")]
    if isinstance(cell, tuple) and len(cell) == 2 and isinstance(cell[0], str) and isinstance(cell[1], str):
        return [cell]
    return list(cell)


def width_of(cell: Cell) -> int:
    return sum(words.width(text) for text, _ in spans(cell))


def fitted(widths: Sequence[int], columns: Sequence[Column], room: int) -> list[int]:
    """The widths with `room` for all of them: the widest flexible ones give way, down to their titles.

    Where that is not enough the sum stays above `room`: a line that wraps tells more than a column left out.
    """
    made = list(widths)
    while sum(made) > room:
        giving = [i for i, c in enumerate(columns) if c.flexible and made[i] > max(_LEAST, len(c.title))]
        if not giving:
            break
        made[max(giving, key=lambda i: made[i])] -= 1
    return made


class Output:
    """Writes answers, as JSON or for people."""

    def __init__(self, *, json: bool, color: bool) -> None:
        self.json = json
        self.terminal = sys.stdout.isatty() and not json
        self.color = color and self.terminal
        encoding = (getattr(sys.stdout, "encoding", "") or "").lower()
        self.unicode = encoding.replace("-", "") == "utf8"

    def data(self, payload: Any) -> None:
        click.echo(words.as_json(payload))

    def line(self, *parts: Cell) -> None:
        """One line of an answer for people."""
        found = [span for part in parts for span in spans(part)]
        click.echo("".join(self.painted(*span) for span in found).rstrip(" "), color=self.color)

    def painted(self, text: str, style: str) -> str:
        return click.style(text, **STYLES[style]) if self.color and style and text else text

    def note(self, text: str, *hints: str) -> None:
        """A message for people, on stderr; hints say what to do next. With `--json` only errors are there."""
        if self.json:
            return
        lines = [text] if text or not hints else []
        click.echo("\n".join([*lines, *(f"  -> {hint}" for hint in hints)]), err=True)

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[Cell]], *, indent: int = 0) -> None:
        cells = [list(row) for row in rows]
        rich = _rich() if self.terminal else None
        widths = [max([len(c.title), *(width_of(row[i]) for row in cells)]) for i, c in enumerate(columns)]
        if rich is not None:
            self._rich_table(rich, columns, widths, cells, indent)
            return
        if any(c.title for c in columns):
            self._row(columns, widths, [(c.title, "dim") for c in columns], indent)
        for row in cells:
            self._row(columns, widths, row, indent)

    def _row(self, columns: Sequence[Column], widths: Sequence[int], row: Sequence[Cell], indent: int) -> None:
        line = " " * indent
        for i, (column, width, cell) in enumerate(zip(columns, widths, row, strict=True)):
            gap = " " * (width - width_of(cell))
            shown = "".join(self.painted(*span) for span in spans(cell))
            last = i == len(columns) - 1
            line += gap + shown if column.right else shown + ("" if last else gap)
            line += "" if last else " " * _GAP
        click.echo(line.rstrip(), color=self.color)

    def _rich_table(
        self, rich: Any, columns: Sequence[Column], widths: Sequence[int], cells: list[list[Cell]], indent: int
    ) -> None:
        """The same, cut to fit the terminal. rich would make room by leaving columns out: the widths are ours."""
        console = rich.Console(no_color=not self.color, highlight=False, markup=False, emoji=False)
        gaps = _GAP * (len(columns) - 1) + indent
        widths = fitted(widths, columns, console.width - gaps)
        console.width = max(console.width, sum(widths) + gaps)
        table = rich.Table(
            box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="bright_black" if self.color else ""
        )
        table.show_header = any(c.title for c in columns)
        for c, width in zip(columns, widths, strict=True):
            justify = "right" if c.right else "left"
            table.add_column(rich.Text(c.title), justify=justify, no_wrap=True, overflow="ellipsis", width=width)
        for row in cells:
            table.add_row(*(_rich_text(rich, cell, color=self.color) for cell in row))
        with console.capture() as drawn:
            console.print(rich.Padding(table, (0, 0, 0, indent)))
        # without the blanks at the ends of lines, which would wrap where the terminal is too narrow
        click.echo("\n".join(line.rstrip() for line in drawn.get().splitlines()), color=self.color)


@dataclass(frozen=True)
class _Rich:
    Console: Any
    Padding: Any
    Table: Any
    Text: Any


def _rich() -> _Rich | None:
    """rich, where it is installed: it is an extra."""
    try:
        from rich.console import Console
        from rich.padding import Padding
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        return None
    return _Rich(Console, Padding, Table, Text)


def _rich_text(rich: _Rich, cell: Cell, *, color: bool) -> Any:
    made = rich.Text()
    for text, style in spans(cell):
        how = STYLES[style if color else ""]
        made.append(text, " ".join([*(["bold"] if how.get("bold") else []), *([how["fg"]] if "fg" in how else [])]))
    return made
