"""The one way to write which checkpoint is meant: parsed here, resolved by the store.

    NAME                        an agent, a branch, a tag, or the unique beginning of a checkpoint's id
    NAME@42                     the checkpoint with that seq
    NAME@-1                     the newest of its history; NAME@-2 the one before, and so on
    NAME@{10m ago}              the newest at or before that moment (s, m, h, d, w; together: 1h30m)
    NAME@{2026-01-02T03:04:05Z} the same; the time says its zone
    NAME@branch                 a branch or tag of that agent
    REF:messages[-1].content    a place in its state
    A..B                        two of them, from and to; in `agent@3..@-1` the second is of the same agent

A name is written bare when it is letters, digits and `_ - + / .` (no `.` at its ends, no `..`), else in
quotes: `"a@b.c"@-1`. Which thing a name means is the store's to decide; a URL is never a reference.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from .errors import InvalidInputError, RekindleError
from .quoting import quote, read_quoted
from .state.shown import path as state_path

GRAMMAR = (
    "write agent, agent@42, agent@-1, agent@{10m ago}, agent@branch, a branch, a tag or an id; "
    'REF:messages[-1].content for a place in its state, A..B for two; quote odd names: "a@b.c"@-1'
)
MAX_AGENT_BYTES = 512

_BARE = re.compile(r"[\w+/-]+(?:\.[\w+/-]+)*")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_NUMBER = re.compile(r"-?\d+")
_AGO = re.compile(r"\s*(\S+)\s+ago\s*")
_DURATION = re.compile(r"(?:(\d{1,9})w)?(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?", re.ASCII)
_SECONDS = {"w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1}


@dataclass(frozen=True, slots=True)
class TimeAgo:
    """A moment by its distance from now, whole seconds."""

    ago: timedelta


@dataclass(frozen=True, slots=True)
class Instant:
    """A moment; its time zone is known."""

    at: datetime


@dataclass(frozen=True, slots=True)
class Ref:
    """What a reference says. `name` is None where it is left to the place it is used (`@-1`, `:messages`).

    `at` is a seq (int, 0 or more), a place from the end (int, below 0), a moment, or the name of a branch or
    tag. `path` is the text of a path into the state, already known to be one.
    """

    name: str | None
    at: int | TimeAgo | Instant | str | None = None
    path: str | None = None

    def __str__(self) -> str:
        name = "" if self.name is None else quote_agent(self.name)
        return f"{name}{_at_text(self.at)}" + ("" if self.path is None else f":{self.path}")


@dataclass(frozen=True, slots=True)
class Range:
    """From `a` to `b`; `b` is None when only one reference was given."""

    a: Ref
    b: Ref | None = None

    def __str__(self) -> str:
        return str(self.a) if self.b is None else f"{self.a}..{self.b}"


def parse_ref(text: str) -> Ref:
    """The one reference that `text` writes; InvalidInputError where it is none, or two."""
    found = parse_range(text)
    if found.b is not None:
        raise _bad(text, "is two references, and one is wanted here")
    return found.a


def parse_range(text: str) -> Range:
    """The one or two references that `text` writes. A second without a name is of the first one's."""
    if _URL.match(text):
        raise InvalidInputError(
            "ref-is-url", f"{quote(text)} is a URL, not a reference", hint="a URL names a store: " + GRAMMAR
        )
    first, at = _read_ref(text, 0)
    if at == len(text):
        return Range(first)
    second, end = _read_ref(text, at + 2)
    if end != len(text):
        raise _bad(text, "has more than two references")
    return Range(first, second if second.name is not None else replace(second, name=first.name))


def quote_agent(agent: str) -> str:
    """The name of an agent (or branch, or tag) as references write it: bare if possible, else quoted."""
    return agent if _BARE.fullmatch(agent) and agent.isprintable() else quote(agent)


def parse_duration(text: str) -> timedelta:
    """`90s`, `10m`, `1h30m`, `2w`: each unit once, the larger first, more than nothing."""
    found = _DURATION.fullmatch(text)
    if not text or found is None:
        raise InvalidInputError(
            "bad-duration", f"{quote(text)} is not a duration", hint="write 90s, 10m, 1h30m, 2d or 2w"
        )
    seconds = sum(int(count) * size for count, size in zip(found.groups(), _SECONDS.values(), strict=True) if count)
    if not 0 < seconds <= 86400 * 365000:
        raise InvalidInputError("bad-duration", f"{quote(text)} is too short or too long", hint="up to 365000d")
    return timedelta(seconds=seconds)


def render_duration(span: timedelta) -> str:
    """The shortest text that `parse_duration` reads as `span` (whole seconds)."""
    left, parts = int(span.total_seconds()), []
    for unit, size in _SECONDS.items():
        if left >= size:
            parts.append(f"{left // size}{unit}")
            left %= size
    return "".join(parts) or "0s"


def _read_ref(text: str, at: int) -> tuple[Ref, int]:
    """The reference that begins at `at`, and where it ends: at `..` or at the end of the text."""
    start = at
    name, at = _read_name(text, at)
    where, path = None, None
    if text[at : at + 1] == "@":
        where, at = _read_at(text, at + 1)
    if text[at : at + 1] == ":":
        path, at = _read_path(text, at + 1)
    if at == start:
        raise _bad(text, "has an empty reference" if text else "is empty")
    if at < len(text) and not text.startswith("..", at):
        raise _bad(text, f"cannot be read at position {at}")
    if name is not None:
        _check_name(text, name)
    return Ref(name, where, path), at


def _read_name(text: str, at: int) -> tuple[str | None, int]:
    if text[at : at + 1] in ('"', "'"):
        return read_quoted(text, at)
    bare = _BARE.match(text, at)
    return (bare[0], bare.end()) if bare else (None, at)


def _read_at(text: str, at: int) -> tuple[int | TimeAgo | Instant | str, int]:
    if text[at : at + 1] == "{":
        end = text.find("}", at)
        if end < 0:
            raise _bad(text, f"has a brace at position {at} that is not closed")
        return _moment(text, text[at + 1 : end]), end + 1
    name, end = _read_name(text, at)
    if not name:
        raise _bad(text, f"says nothing after the @ at position {at - 1}")
    if text[at] in "\"'" or not _NUMBER.fullmatch(name):
        _check_name(text, name)
        return name, end
    if len(name) > 19 or not name.isascii() or name.startswith("-0"):
        raise _bad(text, f"has a number at position {at} that cannot be a place in a history")
    return int(name), end


def _moment(text: str, written: str) -> TimeAgo | Instant:
    ago = _AGO.fullmatch(written)
    if ago:
        return TimeAgo(parse_duration(ago[1]))
    try:
        at = datetime.fromisoformat(written.strip())
    except ValueError as error:
        raise _bad(text, f"has {quote(written)} where a time belongs (10m ago, 2026-01-02T03:04:05Z)") from error
    if at.utcoffset() is None:
        raise InvalidInputError(
            "time-without-zone",
            f"the time {quote(written)} does not say its zone",
            hint=f"write {at.isoformat()}Z for UTC, or its offset: {at.isoformat()}+02:00",
        )
    return Instant(at)


def _read_path(text: str, at: int) -> tuple[str, int]:
    """The path that begins at `at`: up to a `..` outside its quotes and braces, or the end."""
    end = at
    while end < len(text) and not text.startswith("..", end):
        if text[end] in "\"'":
            end = read_quoted(text, end)[1]
        elif text[end] == "{" and text[end + 1 : end + 2] != '"':
            end = text.find("}", end) + 1 or len(text)
        else:
            end += 1
    state_path.parse(text[at:end])
    return text[at:end], end


def _check_name(text: str, name: str) -> None:
    size = len(name.encode("utf-8", "surrogatepass"))
    control = any(ord(char) < 32 or 127 <= ord(char) < 160 for char in name)
    if not name or size > MAX_AGENT_BYTES or control:
        raise _bad(text, f"names something that cannot be: 1 to {MAX_AGENT_BYTES} bytes, no control characters")


def _at_text(at: int | TimeAgo | Instant | str | None) -> str:
    if at is None:
        return ""
    if isinstance(at, TimeAgo):
        return f"@{{{render_duration(at.ago)} ago}}"
    if isinstance(at, Instant):
        return f"@{{{at.at.isoformat()}}}"
    if isinstance(at, int):
        return f"@{at}"
    return f"@{quote(at)}" if _NUMBER.fullmatch(at) else f"@{quote_agent(at)}"


def _bad(text: str, what: str) -> RekindleError:
    return InvalidInputError("bad-ref", f"{quote(text)} {what}", hint=GRAMMAR)
