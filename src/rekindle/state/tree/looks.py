"""What models look like to the native encoder: a cheaper way to see that none of them has changed.

Encoding a message by what its class is registered with takes a call of Python for each. Of a model that goes by nothing
but what every model of pydantic holds, the encoder can be given just that, for a whole run in one call. What it has no
exact word for (a tuple, a model in a model, a set, a lone surrogate) it refuses, and nothing is taken for granted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import ormsgpack

from ..values.codec import EXACT
from ..values.registry import Entry, entry_for

_PARTS = tuple(map(attrgetter, ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")))


@dataclass(frozen=True, slots=True)
class Look:
    """Two looks are equal only where the elements would be packed to the same bytes."""

    types: tuple[type, ...]
    entries: tuple[Entry, ...]
    """How each of the types is registered: another name or version is another encoding."""
    packed: bytes

    @property
    def size(self) -> int:
        return len(self.packed) + 8 * len(self.types)


def look(elements: Sequence[Any]) -> Look | None:
    """None where they are not all models, or hold what only the full encoding can say."""
    types = tuple(map(type, elements))
    entries = []
    for each in dict.fromkeys(types):
        entry = entry_for(each)
        if entry is None or not entry.model:
            return None
        entries.append(entry)
    try:
        fields, given, extra, private = (list(map(part, elements)) for part in _PARTS)
        packed = ormsgpack.packb([fields, list(map(list, given)), extra, private], None, EXACT)
    except (TypeError, AttributeError):
        return None
    return Look(types, tuple(entries), packed)
