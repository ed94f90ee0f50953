"""What to say of a record that is not there, and should be."""

from __future__ import annotations

from ..errors import CorruptDataError
from ..storage.base import OPERATIONS, Key


def lost(key: Key, seq: int) -> CorruptDataError:
    what = (
        f"operation {seq} of user {key.user!r}" if key.agent == OPERATIONS else f"record {seq} of agent {key.agent!r}"
    )
    return CorruptDataError("record-lost", f"{what} is missing and nothing took it out", hint="run `rekindle verify`")


def part_lost(agent: str, seq: int) -> CorruptDataError:
    return CorruptDataError(
        "record-lost", f"record {seq} of agent {agent!r}, which holds a part of this state, is missing",
        hint="run `rekindle verify`",
    )  # fmt: skip
