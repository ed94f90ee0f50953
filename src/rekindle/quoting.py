"""Text that may hold anything, written so that it is safe to show and can be read back."""

from __future__ import annotations

import re

from .errors import InvalidInputError

_LETTER = {"\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}
_MEANING = {letter: char for char, letter in _LETTER.items()} | {'"': '"', "'": "'", "\\": "\\", "/": "/"}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)


def escape(text: str) -> str:
    """`text` with every character that is not printable (control, ANSI, OSC, bidi, surrogates) as an escape.

    Nothing a terminal would obey is left. Backslashes stay as they are: for people, not for reading back.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def quote(text: str) -> str:
    """`text` in double quotes, printable characters only; `read_quoted` answers exactly `text`."""
    return '"' + escape(text.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def read_quoted(text: str, start: int) -> tuple[str, int]:
    """The text quoted at `start` (in `"` or `'`) and the position after its closing quote.

    Raises InvalidInputError when it is not closed or holds an unknown escape.
    """
    mark, at = text[start], start + 1
    parts: list[str] = []
    while at < len(text):
        if text[at] == mark:
            return "".join(parts), at + 1
        if text[at] == "\\":
            char, at = _unescaped(text, at)
            parts.append(char)
            continue
        parts.append(text[at])
        at += 1
    raise InvalidInputError("bad-quotes", f"the quote opened at position {start} of {quote(text)} is not closed")


def _escaped(char: str) -> str:
    if char in _LETTER:
        return "\\" + _LETTER[char]
    return f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08x}"


def _unescaped(text: str, at: int) -> tuple[str, int]:
    found = _ESCAPE.match(text, at)
    if found is None:
        raise InvalidInputError("bad-quotes", f"{quote(text)} ends inside an escape")
    code = found[1] or found[2]
    if code is not None and int(code, 16) <= 0x10FFFF:
        return chr(int(code, 16)), found.end()
    if found[3] in _MEANING:
        return _MEANING[found[3]], found.end()
    raise InvalidInputError(
        "bad-quotes",
        f"unknown escape {quote(found[0])} at position {at} of {quote(text)}",
        hint='write \\" for a quote, \\\\ for a backslash, \\n, \\t, \\u0041 or \\U0001f600 for a character',
    )
