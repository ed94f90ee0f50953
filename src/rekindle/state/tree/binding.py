"""States bound to the trees they were read from, or written as: a save by identity need not encode them once first,
and who takes objects as they are gets them again."""

from __future__ import annotations

from typing import Any

from .identity import Elements, elements_of
from .nodes import Child, Kind, Node
from .read import Reader


def bind(node: Node, value: Any) -> None:
    """Let the node, and those below it, know `value` as what they are made of.

    The value must be what was read through this very node, and nobody may have changed it since. Parts of the tree that
    were not read stay as they are; so does what is not a plain list, dict, text or byte string.
    """
    kind, made = node.kind, type(value)
    if (kind, made) in ((Kind.STR, str), (Kind.BYTES, bytes)):
        node.source = value
    elif node.items is None or node.count != (len(value) if made in (list, dict) else -1):
        return
    elif kind == Kind.LIST and made is list:
        _bind_below(node, value)
        node.source = elements_of(value.copy(), node)
    elif kind in (Kind.MAP, Kind.PAIRS) and made is dict:
        _bind_below(node, list(value.values()))
        node.source = value.copy()


def _bind_below(node: Node, elements: list[Any]) -> None:
    at = 0
    for item in node.items or ():
        if isinstance(item, Child):
            bind(item.node, elements[at])
        at += item.count


class BoundReader(Reader):
    """Reads a state out of the tree it is bound to: new lists of the very objects, where these are not lists and dicts
    themselves. For callers who promise that nobody changes such objects in place; all else is read."""

    def _value(self, node: Node) -> Any:
        source = node.source
        if node.kind == Kind.LIST and type(source) is Elements and not source.loose:
            return source.held.copy()
        return source if node.kind in (Kind.STR, Kind.BYTES) and type(source) in (str, bytes) else super()._value(node)
