"""What to say of a record that is not there, and should be."""

from __future__ import annotations

from ..errors import CorruptDataError
from ..storage.base import OPERATIONS, Key, agent_of, is_journal


def described(key: Key, seq: int, what: str = "record") -> str:
    """A record, as errors speak of it."""
    if key.agent == OPERATIONS:
        return f"operation {seq} of user {key.user!r}"
    if is_journal(key.agent):
        return f"entry {seq} of the journal of agent {agent_of(key.agent)!r}"
    return f"{what} {seq} of agent {key.agent!r}"


def lost(key: Key, seq: int) -> CorruptDataError:
    what = described(key, seq)
    return CorruptDataError("record-lost", f"{what} is missing and nothing took it out", hint="run `rekindle verify`")


def part_lost(key: Key, seq: int) -> CorruptDataError:
    return CorruptDataError(
        "record-lost", f"{described(key, seq)}, which holds a part of this state, is missing",
        hint="run `rekindle verify`",
    )  # fmt: skip
