"""Values of a journal: lists in them lie apart, so that a state which takes their elements over can name them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..values import codec
from . import cut
from .kinds import plain_keys
from .nodes import Child, Kind, Node, Run
from .write import Writer


class ApartWriter(Writer):
    """Writes what one entry of a journal holds."""

    def values(self, values: Sequence[Any]) -> Node:
        """A list of values, each a node of its own. InvalidInputError: one is nested too deep, or contains itself."""
        try:
            return self._node(Kind.LIST, [Child(b"", self._apart(value)) for value in values], None)
        except RecursionError as e:
            raise codec.too_deep("") from e

    def _apart(self, value: Any) -> Node:
        if type(value) is list and value:
            return self._write(value, Kind.LIST, None)
        if type(value) is dict and plain_keys(value) and any(type(x) is list and x for x in value.values()):
            return self._node(Kind.MAP, list(self._entries(value)), None)
        element = self._element(value, None)
        return self._leaf(element, None) if isinstance(element, bytes) else element.node

    def _entries(self, value: dict[str, Any]) -> Sequence[Run | Child]:
        """A dict's entries in order: its lists as nodes of their own, what stands between them in runs."""
        items: list[Run | Child] = []
        between: list[bytes | Child] = []

        def close() -> None:
            items.extend(self._runs.rest(between, [], [], cut.closes_entry))
            between.clear()

        for key, x in value.items():
            packed = codec.pack(key)
            if type(x) is list and x:
                close()
                items.append(Child(packed, self._write(x, Kind.LIST, None)))
            else:
                between.append(self._element(x, None, packed))
        close()
        return items
