"""Branches drawn beside a list of checkpoints, newest first, as `git log --graph` does it.

* 5      a branch keeps its lane from its head down to where it began;
| * 4    there its lane joins the one beside it
|/
* 3
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Signs:
    node: str
    line: str
    fork: str
    across: str
    join: str
    end: str


UNICODE = Signs(node="●", line="│", fork="├", across="┼", join="┴", end="╯")
ASCII = Signs(node="*", line="|", fork="|", across="|", join="'", end="'")


@dataclass(frozen=True)
class Row:
    """What is drawn left of one line; `seq` is the checkpoint of that line, None between two."""

    lanes: str
    seq: int | None


def draw(checkpoints: Iterable[tuple[int, int | None]], *, unicode: bool = False) -> list[Row]:
    """Rows for (seq, parent's seq or None) pairs, newest first. Every child comes before its parent."""
    signs = UNICODE if unicode else ASCII
    lanes: list[int | None] = []  # what each lane leads down to; None: free
    rows: list[Row] = []
    for seq, parent in checkpoints:
        mine = [i for i, wanted in enumerate(lanes) if wanted == seq]
        if len(mine) > 1:
            rows.append(Row(_joining(lanes, mine, signs), None))
            for i in mine[1:]:
                lanes[i] = None
        place = mine[0] if mine else _free(lanes)
        lanes[place] = seq
        rows.append(Row(_standing(lanes, place, signs), seq))
        lanes[place] = parent
        while lanes and lanes[-1] is None:
            lanes.pop()
    return rows


def _free(lanes: list[int | None]) -> int:
    """The first lane nobody uses; a new one where all are used."""
    if None in lanes:
        return lanes.index(None)
    lanes.append(None)
    return len(lanes) - 1


def _standing(lanes: list[int | None], place: int, signs: Signs) -> str:
    shown = [signs.node if i == place else " " if lane is None else signs.line for i, lane in enumerate(lanes)]
    return " ".join(shown).rstrip()


def _joining(lanes: list[int | None], mine: list[int], signs: Signs) -> str:
    """The line on which lanes that lead to one checkpoint become one."""
    if signs is ASCII and len(mine) == 2 and mine[1] == mine[0] + 1:
        parts = [signs.line if lane is not None else " " for lane in lanes]
        text = "".join(f"{part} " for part in parts)
        at = 2 * mine[0]
        return (text[:at] + "|/ " + text[at + 3 :]).rstrip()
    first, last = mine[0], mine[-1]
    text = ""
    for i, lane in enumerate(lanes):
        if i == first:
            sign = signs.fork
        elif i in mine:
            sign = signs.end if i == last else signs.join
        elif lane is not None:
            sign = signs.across if first < i < last else signs.line
        else:
            sign = _level(signs) if first < i < last else " "
        text += sign + (_level(signs) if first <= i < last else " ")
    return text.rstrip()


def _level(signs: Signs) -> str:
    return "─" if signs is UNICODE else "-"
