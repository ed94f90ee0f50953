"""What changed in a text: by lines, and inside long lines by words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .sequence import common

LONG_LINE = 200
_LINES = re.compile(r"[^\n]*\n|[^\n]+")  # only \n ends a line: what else does is a character like others
# Words, but single characters of scripts that are written without spaces.
_TOKENS = re.compile(r"[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+|\s+|.")
_MOST_SPLIT = 2_000_000
_SMALL_ISLAND = 3


@dataclass(frozen=True, slots=True)
class Hunk:
    """At character `at` of the old text (line `line`, from 1) `old` gave way to `new`."""

    at: int
    line: int
    old: str
    new: str


def text_hunks(old: str, new: str) -> tuple[Hunk, ...]:
    """The hunks that make `new` of `old`, in order, apart from each other; none when both are the same."""
    if old == new:
        return ()
    start, end = shared_ends(old, new)
    line_start = old.rfind("\n", 0, start) + 1
    end -= _rest_of_line(old, new, end)
    pieces = _line_pieces(old[line_start : len(old) - end], new[line_start : len(new) - end])
    hunks = []
    line, counted = 1, 0
    for at, was, now in pieces:
        line += old.count("\n", counted, line_start + at)
        counted = line_start + at
        hunks.append(Hunk(counted, line, was, now))
    return tuple(hunks)


def patch_text(old: str, hunks: tuple[Hunk, ...]) -> str | None:
    """The new text; None when a hunk does not fit `old`."""
    parts, at = [], 0
    for hunk in hunks:
        end = hunk.at + len(hunk.old)
        if hunk.at < at or old[hunk.at : end] != hunk.old:
            return None
        parts += [old[at : hunk.at], hunk.new]
        at = end
    return "".join([*parts, old[at:]])


Piece = tuple[int, str, str]
"""(place in the old text, what was there, what is there now)"""


def _line_pieces(old: str, new: str) -> Iterator[Piece]:
    for at, was, now in _pieces(_LINES.findall(old), _LINES.findall(new)):
        longest = max(map(len, was.split("\n") + now.split("\n")))
        if longest < LONG_LINE or not was or not now:
            yield at, was, now
            continue
        for inner, was_word, now_word in _word_pieces(was, now):
            yield at + inner, was_word, now_word


def _word_pieces(old: str, new: str) -> list[Piece]:
    start, end = shared_ends(old, new)
    while start and _in_word(old, start) | _in_word(new, start):
        start -= 1
    while end and _in_word(old, len(old) - end) | _in_word(new, len(new) - end):
        end -= 1
    was, now = old[start : len(old) - end], new[start : len(new) - end]
    if len(was) + len(now) > _MOST_SPLIT:
        return [(start, was, now)]
    pieces = _pieces(_TOKENS.findall(was), _TOKENS.findall(now))
    return [(start + at, a, b) for at, a, b in _joined(was, pieces)]


def _in_word(text: str, at: int) -> bool:
    return 0 < at < len(text) and text[at - 1].isalnum() and text[at].isalnum()


def _pieces(old: list[str], new: list[str]) -> list[Piece]:
    pieces = []
    last_i = last_j = at = 0
    for i, j in [*common(old, new), (len(old), len(new))]:
        was, now = "".join(old[last_i:i]), "".join(new[last_j:j])
        if was or now:
            pieces.append((at, was, now))
        at += len(was) + (len(old[i]) if i < len(old) else 0)
        last_i, last_j = i + 1, j + 1
    return pieces


def _joined(old: str, pieces: list[Piece]) -> list[Piece]:
    """Pieces with hardly anything between them as one: a changed sentence is not a row of changed words."""
    joined: list[Piece] = []
    for at, was, now in pieces:
        if joined:
            before, was_before, now_before = joined[-1]
            end = before + len(was_before)
            between = old[end:at]
            if len(between) <= _SMALL_ISLAND:
                joined[-1] = (before, was_before + between + was, now_before + between + now)
                continue
        joined.append((at, was, now))
    return joined


def shared_ends(old: str, new: str) -> tuple[int, int]:
    """How many characters are the same at the start, and at the end of the rest."""
    most = min(len(old), len(new))
    start = _longest(most, lambda n: old.startswith(new[:n]))
    end = _longest(most - start, lambda n: not n or old.endswith(new[-n:]))
    return start, end


def _longest(most: int, holds: Callable[[int], bool]) -> int:
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low


def _rest_of_line(old: str, new: str, end: int) -> int:
    """How many of the `end` last characters belong to a line that began before them."""
    if all(len(text) == end or text[-end - 1] == "\n" for text in (old, new)):
        return 0
    newline = old.find("\n", len(old) - end)
    return end if newline < 0 else newline + 1 - (len(old) - end)
