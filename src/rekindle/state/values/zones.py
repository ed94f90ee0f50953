"""Time zones as they are stored: a name, or an offset."""

from __future__ import annotations

import datetime as dt
from typing import Any
from zoneinfo import ZoneInfo

from ...errors import InvalidInputError


def pack_zone(zone: dt.tzinfo | None) -> Any:
    if zone is None:
        return None
    if isinstance(zone, ZoneInfo) and zone.key:
        return zone.key
    if type(zone) is dt.timezone:
        offset = zone.utcoffset(None)
        name = zone.tzname(None)
        plain = dt.timezone(offset)
        return [offset // dt.timedelta(microseconds=1), None if name == plain.tzname(None) else name]
    raise InvalidInputError(
        "zone-unknown",
        f"the time zone {zone!r} has no name that could be stored",
        hint="use datetime.timezone or zoneinfo.ZoneInfo(key)",
    )


def zone_of(stored: Any) -> dt.tzinfo | None:
    if stored is None:
        return None
    if isinstance(stored, str):
        return ZoneInfo(stored)
    micros, name = stored
    offset = dt.timedelta(microseconds=micros)
    return dt.UTC if not micros and name is None else dt.timezone(offset, *([] if name is None else [name]))
