"""Failures as people and scripts see them: an exit code, a message, a hint. One table for all commands."""

from __future__ import annotations

from ..errors import (
    ConflictError,
    CorruptDataError,
    InvalidInputError,
    NotFoundError,
    RekindleError,
    UnavailableError,
    UnsupportedError,
)
from ..quoting import escape
from .app import OK, PIPE_CLOSED, USAGE

__all__ = ["BY_CLASS", "BY_CODE", "OK", "PIPE_CLOSED", "USAGE", "as_rekindle", "code_of", "told"]

FAILED = 1
PARTIAL = 3
NOT_FOUND = 4
CONFLICT = 5
UNSUPPORTED = 8
CORRUPT = 13
TRY_AGAIN = 75
INTERRUPTED = 130

BY_CODE = {"no-store": NOT_FOUND}
"""A store that was never made is not found, and trying again does not make it."""

BY_CLASS: dict[type[BaseException], int] = {
    NotFoundError: NOT_FOUND,
    ConflictError: CONFLICT,
    InvalidInputError: USAGE,
    UnsupportedError: UNSUPPORTED,
    CorruptDataError: CORRUPT,
    UnavailableError: TRY_AGAIN,
    FileNotFoundError: NOT_FOUND,
    FileExistsError: CONFLICT,
    KeyboardInterrupt: INTERRUPTED,
    BrokenPipeError: PIPE_CLOSED,
}


def code_of(error: BaseException) -> int:
    if isinstance(error, RekindleError) and error.code in BY_CODE:
        return BY_CODE[error.code]
    return next((code for kind, code in BY_CLASS.items() if isinstance(error, kind)), FAILED)


def as_rekindle(error: BaseException) -> RekindleError | None:
    """What a file system or a user stopped, told as our own errors are; None for what nobody expected."""
    if isinstance(error, RekindleError):
        return error
    if isinstance(error, KeyboardInterrupt):
        return RekindleError("interrupted", "interrupted: what was reported as done is done")
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename is not None else ""
        return RekindleError("file", f"{where}{error.strerror}")
    return None


def told(error: RekindleError, *, as_json: bool) -> str:
    if as_json:
        import json

        fields = {"code": error.code, "message": error.message, "hint": error.hint}
        return json.dumps({"error": fields})
    lines = [escape(line.replace("\t", "    ")) for line in error.message.splitlines() or [""]]
    if error.hint:
        lines += [f"  -> {escape(line)}" for line in error.hint.splitlines()]
    return "\n".join(lines)
