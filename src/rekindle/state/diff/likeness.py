"""How much two elements of a list look like one element, changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from itertools import islice
from typing import Any

from ..values.canon import Canon
from ..values.parts import children_of
from ..values.registry import Opaque
from .texts import shared_ends

_IDENTITY = ("id", "tool_call_id", "uid", "uuid")
_KINDS = ("role", "type", "kind")
_SKETCH = 32
_COMPARED = 1000
_LEAST = 0.02
_SMALL = 2
ENOUGH = 0.2  # to say what changed inside, and not that another element took its place


class Likeness:
    """Compares with the keys of one `Canon`; the answer is 0 (two different things) to 1 (the same)."""

    def __init__(self, canon: Canon) -> None:
        self._canon = canon

    def __call__(self, old: Any, new: Any) -> float:
        if type(old) is not type(new):
            return _LEAST
        if type(old) is str:
            return 0.1 + 0.9 * _text_likeness(old, new)
        if isinstance(old, (list, tuple, set, frozenset)) and not hasattr(old, "_fields"):
            small = max(len(old), len(new)) <= _SMALL
            return max(ENOUGH if small else _LEAST, self._shared(old, new))
        if isinstance(old, Opaque) and (old.name, old.version) != (new.name, new.version):
            return _LEAST
        olds, news = children_of(old), children_of(new)
        if not olds and not news:
            return 0.1
        if any(_differ(olds, news, name) for name in _IDENTITY):
            return 0.0
        score = sum(self._field(olds[name], news[name]) for name in olds if name in news)
        score /= len(olds.keys() | news.keys())
        if any(_differ(olds, news, name) for name in _KINDS):
            return max(_LEAST, score * 0.3)
        return max(ENOUGH if max(len(olds), len(news)) <= _SMALL else _LEAST, score)

    def identities(self, items: Sequence[Any]) -> list[Hashable]:
        """For each element the identity it bears (its id, else its name), None if it has none of its own."""
        borne = [_identity(item) for item in items]
        counts = Counter(borne)
        return [key if counts[key] == 1 else None for key in borne]

    def sketch(self, item: Any) -> Hashable:
        """A rough key that survives most changes inside an element; None where there is nothing to go by."""
        if type(item) is str:
            return item[:_SKETCH]
        if not isinstance(item, dict):
            return None
        text = next((held for held in item.values() if type(held) is str and len(held) >= 8), None)
        kind = next((item[name] for name in _KINDS if type(item.get(name)) is str), None)
        return None if text is None else (kind, text[:_SKETCH])

    def _field(self, old: Any, new: Any) -> float:
        if self._canon.key(old) == self._canon.key(new):
            return 1.0
        if type(old) is type(new) is str:
            return 0.3 + 0.6 * _text_likeness(old, new)
        return 0.3 if type(old) is type(new) else 0.2

    def _shared(self, old: Collection[Any], new: Collection[Any]) -> float:
        some, others = (Counter(map(self._canon.key, islice(items, _COMPARED))) for items in (old, new))
        return (some & others).total() / max(some.total(), others.total(), 1)


def _identity(item: Any) -> Hashable:
    fields = children_of(item) if not isinstance(item, (str, list, tuple)) else {}
    for name in (*_IDENTITY, "name"):
        held = fields.get(name)
        if type(held) in (str, int) and held:
            return (name, type(held), held)
    return None


def _differ(olds: dict[Any, Any], news: dict[Any, Any], name: str) -> bool:
    if name not in olds or name not in news:
        return False
    old, new = olds[name], news[name]
    return type(old) in (str, int) and type(new) in (str, int) and old != new


def _text_likeness(old: str, new: str) -> float:
    """How much of the longer one two texts share at their start and end; of long ones, of their beginning."""
    old, new = old[:_COMPARED], new[:_COMPARED]
    return sum(shared_ends(old, new)) / max(len(old), len(new), 1)
