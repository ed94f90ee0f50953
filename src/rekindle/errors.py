"""The one error tree. A class says what a caller can do about it; `code` is stable and says what happened."""

from __future__ import annotations


class RekindleError(Exception):
    """Anything rekindle refuses or fails at: what happened to what, and (in `hint`) what to do."""

    def __init__(self, code: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(code, message, hint)
        self.code = code
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\n  -> {self.hint}"


class NotFoundError(RekindleError, LookupError):
    """There is no such agent, checkpoint, branch, tag, path or file."""


class ConflictError(RekindleError):
    """Somebody else moved first, or the thing is protected: look again, then decide."""


class InvalidInputError(RekindleError, ValueError):
    """The caller gave something that cannot be right: mend the call."""


class UnsupportedError(RekindleError):
    """This storage, platform or version cannot do it: use another."""


class CorruptDataError(RekindleError):
    """Stored bytes are not what was written: nothing is answered from them."""


class UnavailableError(RekindleError):
    """The storage cannot be reached or written right now (busy, full, read-only): try again later."""
