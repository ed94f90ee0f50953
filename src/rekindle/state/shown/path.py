"""A path into a state, and its text.

    messages[-1].content        a key (or an attribute), an index, a key
    vars["odd key"].x           a key that is no plain word is quoted; single quotes are read too
    [0]                         an index at the root; the empty text is the whole state
    table{1}  table{(1, 2)}     a dict key that is not a str, as Python writes it
    table{Color.RED}            the same, for a key no Python literal can write: found by its text
    table{"b'}'"}               the same, where its text holds a brace: quoted

A plain word is letters, digits, `_` and `-`, not beginning with a digit or `-`. So `[3]` is always a place in
a list, `{3}` always a dict key that is the int 3, and `["3"]` always the str.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ...errors import InvalidInputError, NotFoundError, RekindleError
from ...quoting import escape, quote, read_quoted
from ..values.parts import children_of
from ..values.registry import Opaque

_WORD = re.compile(r"[^\W\d][\w-]*")
_INDEX = re.compile(r"\[(-?\d{1,18})\]")
_RAW_KEY = re.compile(r"\{([^{}\"][^{}]*)\}")
_LITERALS = (type(None), bool, int, float, complex, bytes, str)
_UNKNOWN: Any = object()
ABSENT = _UNKNOWN


@dataclass(frozen=True, slots=True)
class Key:
    """A dict key that is not a str. Two are equal when written alike: 1, True and 1.0 are three keys.

    `value` is the key itself, or unknown when a path was parsed that names a key no literal can write.
    """

    text: str
    value: Any = field(default=_UNKNOWN, compare=False, repr=False)

    @classmethod
    def of(cls, value: Any) -> Key:
        return cls(_written(value), value)


Step = str | int | Key
"""A str is a dict key or an attribute, an int an index, a Key any other dict key."""

Path = tuple[Step, ...]


def step_of(key: Any) -> str | Key:
    """The step that leads to the entry of a dict under `key`."""
    return key if type(key) is str else Key.of(key)


def parse(text: str) -> Path:
    """The path that `text` writes. Raises InvalidInputError, with the position, where it is none."""
    steps: list[Step] = []
    at = 0
    while at < len(text):
        step, at = _read_step(text, at, first=not steps)
        steps.append(step)
    return tuple(steps)


def render(path: Path) -> str:
    """The text of a path: printable, and `parse` answers an equal path."""
    parts = []
    for step in path:
        if isinstance(step, Key):
            parts.append("{" + _key_text(step.text) + "}")
        elif isinstance(step, int):
            parts.append(f"[{step}]")
        elif _WORD.fullmatch(step) and step.isprintable():
            parts.append(f".{step}" if parts else step)
        else:
            parts.append(f"[{quote(step)}]")
    return "".join(parts)


def get(value: Any, path: Path) -> Any:
    """What lies at `path` in `value`; a negative index counts from the end.

    Raises NotFoundError that names the longest part of the path that exists, and what is there.
    """
    for depth, step in enumerate(path):
        found = _child(value, step)
        if found is _UNKNOWN:
            there = f"{render(path[:depth])} exists and" if depth else "it"
            raise NotFoundError(
                "path-not-found",
                f"the state has no {render(path)}: {there} is {_described(value)}",
                hint=_hint(value, step),
            )
        value = found
    return value


def find(value: Any, path: Path) -> Any:
    """What lies at `path` in `value`; ABSENT where nothing does."""
    for step in path:
        value = _child(value, step)
        if value is _UNKNOWN:
            break
    return value


def _read_step(text: str, at: int, *, first: bool) -> tuple[Step, int]:
    if text[at] == "[":
        index = _INDEX.match(text, at)
        if index:
            return int(index[1]), index.end()
        if text[at + 1 : at + 2] in ('"', "'"):
            return _closed(text, read_quoted(text, at + 1), "]")
    elif text[at] == "{":
        return _read_key(text, at)
    elif first or text[at] == ".":
        word = _WORD.match(text, at if first else at + 1)
        if word:
            return word[0], word.end()
    raise _bad(text, at)


def _read_key(text: str, at: int) -> tuple[Key, int]:
    raw = _RAW_KEY.match(text, at)
    if raw:
        written, end = raw[1], raw.end()
    elif text[at + 1 : at + 2] == '"':
        written, end = _closed(text, read_quoted(text, at + 1), "}")
    else:
        raise _bad(text, at)
    if len(written) > 4096:
        return Key(written), end
    try:
        value = ast.literal_eval(written)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return Key(written), end  # not a literal: found by its text
    if type(value) is str or not _is_literal(value):
        raise _bad(text, at)
    # the repr of a complex number loses signs of zeros when it is read: its text is its name
    return Key(written) if _has_complex(value) else Key.of(value), end


def _has_complex(value: Any) -> bool:
    return type(value) is complex or (type(value) is tuple and any(map(_has_complex, value)))


def _closed(text: str, read: tuple[str, int], bracket: str) -> tuple[str, int]:
    value, end = read
    if text[end : end + 1] != bracket:
        raise _bad(text, end)
    return value, end + 1


def _bad(text: str, at: int) -> RekindleError:
    return InvalidInputError(
        "bad-path",
        f"{quote(text)} is not a path: position {at} cannot be read",
        hint='write messages[-1].content, vars["odd key"], table{1} for a dict key that is not a str',
    )


def _is_literal(key: Any) -> bool:
    if type(key) is tuple:
        return all(_is_literal(part) for part in key)
    return type(key) in _LITERALS


def _written(key: Any) -> str:
    if type(key) is tuple:
        parts = [_written(part) for part in key]
        return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
    if type(key) is int and key.bit_length() > 1000:
        return hex(key)  # Python refuses very long decimal numbers
    if isinstance(key, Enum):
        return f"{type(key).__qualname__}.{key.name or key.value}"
    text = repr(key)
    name = type(key).__name__
    return text if type(key) in _LITERALS or name in text else f"{name}({text})"


def _key_text(written: str) -> str:
    plain = _RAW_KEY.fullmatch("{" + written + "}") and written.isprintable()
    return written if plain else quote(written)


def _child(value: Any, step: Step) -> Any:
    if isinstance(value, Opaque):
        return _child(value.data, step)
    if isinstance(value, dict):
        if isinstance(step, Key):
            return next((held for key, held in value.items() if step_of(key) == step), _UNKNOWN)
        return value.get(step, _UNKNOWN) if isinstance(step, str) else _UNKNOWN
    if isinstance(step, int):
        inside = isinstance(value, (list, tuple)) and -len(value) <= step < len(value)
        return value[step] if inside else _UNKNOWN
    if isinstance(step, Key) or isinstance(value, list):
        return _UNKNOWN
    return children_of(value).get(step, _UNKNOWN)


def _described(value: Any) -> str:
    if isinstance(value, Opaque):
        return _described(value.data)
    name = escape(type(value).__name__)
    if isinstance(value, (dict, list, tuple, set, frozenset)):
        return f"a {name} of {len(value)}"
    return f"a {name}"


def _hint(value: Any, step: Step) -> str | None:
    if isinstance(value, dict):
        if isinstance(step, int) and any(step_of(key) == Key.of(step) for key in value):
            return f"{{{step}}} is the dict key {step}; [{step}] is a place in a list"
        names: list[Step] = [step_of(key) for key in value]
    else:
        names = [name for name in children_of(value) if isinstance(name, str)]
    if not names:
        return None
    return "it has " + ", ".join(render((name,)) for name in names[:8]) + (", ..." if names[8:] else "")
