"""Which values can never change in place, so that seeing one once is enough."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from pathlib import PosixPath, PurePosixPath, PureWindowsPath, WindowsPath
from uuid import UUID

FROZEN_TYPES: frozenset[type] = frozenset(
    [
        *(type(None), bool, int, float, complex, str, bytes),
        *(date, datetime, time, timedelta, timezone, Decimal, UUID),
        *(PosixPath, WindowsPath, PurePosixPath, PureWindowsPath),
    ]
)
"""Exact types: a subclass may carry attributes that change."""


def is_frozen(value: object) -> bool:
    """Whether nothing in `value` can be changed in place.

    True for the exact FROZEN_TYPES, Enum members, and tuples and frozensets of such. A tracked container is
    not frozen.
    """
    pending: list[object] = [value]
    for item in pending:  # grows while it is walked: no recursion, however deep the tuples
        kind = type(item)
        if kind in FROZEN_TYPES:
            continue
        if kind is tuple or kind is frozenset:
            pending.extend(item)  # type: ignore[arg-type]
        elif not isinstance(item, Enum):
            return False
    return True
