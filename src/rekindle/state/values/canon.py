"""When two values are the same: by type and content, strictly.

1, True and 1.0 differ, so do 0.0 and -0.0, a tuple and a list, a class and its subclass, and two dicts in
other order; a NaN is the same as any NaN. Arrays are the same by dtype, shape and bytes, objects by class and
fields.
What is none of these is compared by what its own copy protocol gives, else by identity.
"""

from __future__ import annotations

import copyreg
import math
import types
from collections import Counter
from collections.abc import Hashable
from enum import Enum
from typing import Any

from ...errors import InvalidInputError
from ..tracked import TrackedDict, TrackedList
from .parts import fields_of, is_array, is_pydantic
from .registry import Opaque
from .shapes import _attributes as attributes_of

_SIMPLE = frozenset({str, int, bool, bytes, type(None)})
_NAMED = (type, types.FunctionType, types.BuiltinFunctionType, types.MethodType)
_OPEN = -1


def same(a: Any, b: Any) -> bool:
    """Whether two values are strictly the same; nothing is remembered. Fast for plain data."""
    if a is b:
        return True
    kind = type(a)
    if kind is not type(b):
        return False
    if kind in _SIMPLE:
        return bool(a == b)
    if kind is float:
        return _float_key(a) == _float_key(b)
    if kind is dict:
        return len(a) == len(b) and _same_entries(a, b)
    if kind is list or kind is tuple:
        return len(a) == len(b) and _same_items(a, b)
    canon = Canon()
    return canon.key(a) == canon.key(b)


def _same_entries(a: dict[Any, Any], b: dict[Any, Any]) -> bool:
    for (key, held), (other, other_held) in zip(a.items(), b.items(), strict=True):
        if key is not other and not same(key, other):
            return False
        if held is not other_held and not same(held, other_held):
            return False
    return True


def _same_items(a: Any, b: Any) -> bool:
    return all(held is other or same(held, other) for held, other in zip(a, b, strict=True))


class Canon:
    """Gives every value a small hashable key: two keys are equal exactly when the values are the same.

    Each container is looked at once, so the values must live, unchanged, as long as this does. A value that
    contains itself is refused with InvalidInputError.
    """

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}  # a container's content, by its parts' keys -> its key
        self._seen: dict[int, int] = {}  # id of a container -> its key
        self._alive: list[Any] = []  # what was made on the way: an id must not be used again

    def key(self, value: Any) -> Hashable:
        kind = type(value)
        if kind is str or value is None:
            return value  # type: ignore[no-any-return]
        if kind is int or kind is bool or kind is bytes:
            return (kind, value)
        if kind is float:
            return _float_key(value)
        known = self._seen.get(id(value))
        if known is None:
            self._seen[id(value)] = _OPEN
            content = self._content(kind, value)
            known = self._seen[id(value)] = self._numbers.setdefault(content, len(self._numbers))
        if known == _OPEN:
            raise InvalidInputError(
                "state-cycle",
                f"a {kind.__name__} in the state contains itself",
                hint="keep one of the two references out of the state",
            )
        return known

    def _content(self, kind: type, value: Any) -> Hashable:
        if kind is dict:
            parts: list[Any] = [dict]
            for name, held in value.items():
                parts.append(name if type(name) is str else self.key(name))
                parts.append(held if type(held) is str else self.key(held))
            return tuple(parts)
        if kind is list or kind is tuple:
            return (kind, *[item if type(item) is str else self.key(item) for item in value])
        if isinstance(value, Opaque):
            return (kind, value.name, value.version, self.key(value.data))
        if is_array(value):
            return self._array(kind, value)
        fields = fields_of(value)
        if fields is not None:
            set_by_user = frozenset(value.__pydantic_fields_set__) if is_pydantic(value) else None
            return (kind, set_by_user, *[(name, self.key(fields[name])) for name in sorted(fields)])
        if isinstance(value, Enum):
            return (kind, value.name, self.key(value.value))
        return self._other(kind, value)

    def _other(self, kind: type, value: Any) -> Hashable:
        if isinstance(value, _NAMED):
            return self._named(value)
        beside = self._made(extras_of(value))
        if isinstance(value, dict):
            return (kind, beside, *[(self.key(name), self.key(held)) for name, held in value.items()])
        if isinstance(value, (list, tuple)):
            return (kind, beside, *map(self.key, value))
        if isinstance(value, (set, frozenset)):
            return (kind, beside, frozenset(Counter(map(self.key, value)).items()))
        if isinstance(value, bytearray):
            return (kind, beside, bytes(value))
        if isinstance(value, BaseException):
            return (kind, beside, self.key(value.args))
        return self._by_copy_protocol(kind, value)

    def _named(self, value: Any) -> Hashable:
        name = value.__qualname__
        if "<" in name:  # a lambda, or made inside a function: its name says too little
            return (type, id(value))
        owner = getattr(value, "__self__", None)
        bound = None if isinstance(owner, types.ModuleType) else self.key(owner)
        return (type, value.__module__, name, bound)

    def _by_copy_protocol(self, kind: type, value: Any) -> Hashable:
        registered = copyreg.dispatch_table.get(kind)  # a compiled pattern's, for one
        try:
            parts = value.__reduce_ex__(4) if registered is None else registered(value)
        except TypeError:  # it cannot be copied (a lock, a socket): only itself is the same
            return (kind, id(value))
        if isinstance(parts, str):
            return (kind, parts)
        listed = [list(part) if index >= 3 and part is not None else part for index, part in enumerate(parts)]
        return (kind, self._made(listed))

    def _array(self, kind: type, value: Any) -> Hashable:
        dtype = value.dtype
        content = self._made(value.tolist()) if dtype.hasobject else value.tobytes()
        return (kind, str(dtype) if dtype.names else dtype.str, tuple(value.shape), content)

    def fresh_is(self, made: Any, value: Any) -> bool:
        """Whether `made`, a value nobody else holds, is the same as `value`."""
        return self._made(made) == self.key(value)

    def _made(self, value: Any) -> Hashable:
        self._alive.append(value)
        return self.key(value)


def extras_of(value: Any) -> dict[str, Any] | None:
    """The attributes a container of a user's own class has beside its content; None for the plain ones."""
    if isinstance(value, (TrackedDict, TrackedList)):  # what they have beside is about saving
        return None
    held = attributes_of(value)
    factory = getattr(value, "default_factory", None)
    return {**held, "default_factory": factory} if factory is not None else held or None


def _float_key(value: float) -> Hashable:
    return (float, "nan") if value != value else (float, value, math.copysign(1.0, value))
