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
    """Elements look so only where they would be packed to the same bytes."""

    types: tuple[type, ...]
    entries: tuple[Entry, ...]
    """How each of the types is registered: another name or version is another encoding."""
    given: list[frozenset[str]]
    """Which fields were set, of each element."""
    packed: bytes

    @property
    def size(self) -> int:
        return len(self.packed) + 16 * len(self.types)

    def fits(self, elements: Sequence[Any]) -> bool:
        """Whether these look so now."""
        seen = _seen(elements)
        if seen is None or seen[0] != self.types or seen[1] != self.entries or seen[3] != self.packed:
            return False
        given: list[Any] = seen[2]
        return given == self.given  # a set equals a frozenset of the same


def look(elements: Sequence[Any]) -> Look | None:
    """None where they are not all models, or hold what only the full encoding can say."""
    seen = _seen(elements)
    if seen is None:
        return None
    types, entries, given, packed = seen
    known: dict[frozenset[str], frozenset[str]] = {}
    return Look(types, entries, [known.setdefault(each, each) for each in map(frozenset, given)], packed)


def _seen(elements: Sequence[Any]) -> tuple[tuple[type, ...], tuple[Entry, ...], list[Any], bytes] | None:
    types = tuple(map(type, elements))
    entries = []
    for each in dict.fromkeys(types):
        entry = entry_for(each)
        if entry is None or not entry.model:
            return None
        entries.append(entry)
    try:
        fields, given, extra, private = (list(map(part, elements)) for part in _PARTS)
        return types, tuple(entries), given, ormsgpack.packb([fields, extra, private], None, EXACT)
    except (TypeError, AttributeError):
        return None
