"""What is inside a value, under which names, and how a copy with other insides is made.

An object's fields are what the codec saves of it: all it holds. A record of an unregistered type (`Opaque`)
is seen through: its insides are those of its data.
"""

from __future__ import annotations

import copy
import sys
import types
from collections.abc import Mapping
from enum import Enum
from typing import Any

from .registry import Opaque
from .shapes import _attributes as attributes_of
from .shapes import _slots as slots_of

_WHOLE = (
    str, bytes, bytearray, int, float, complex, type, Enum, BaseException, dict, list, set, frozenset, Opaque,
    types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType,
)  # fmt: skip


def is_array(value: object) -> bool:
    """Whether `value` is a numpy array or scalar (told by its parts: numpy is not imported here)."""
    kind = type(value)
    return hasattr(kind, "dtype") and hasattr(kind, "shape") and hasattr(kind, "tobytes")


def fields_of(value: object) -> dict[str, Any] | None:
    """The fields of an object by name, those that are set; None for what is not an object with fields.

    Objects are those of classes written in Python, msgspec structs and named tuples. What the standard
    library makes (a UUID, a Path) is one value without insides, as are scalars, functions and enum members.
    """
    kind = type(value)
    if isinstance(value, _WHOLE) or is_array(value):
        return None
    if isinstance(value, tuple):
        names = getattr(kind, "_fields", None)
        return None if names is None else {name: getattr(value, name) for name in names}
    if hasattr(kind, "__struct_fields__"):
        return {name: getattr(value, name) for name in kind.__struct_fields__ if hasattr(value, name)}
    if is_pydantic(value):
        return _pydantic_fields(value)
    return attributes_of(value) if _is_open(kind) else None


def is_pydantic(value: object) -> bool:
    return hasattr(type(value), "__pydantic_fields_set__")


def children_of(value: object) -> dict[Any, Any]:
    """What is directly inside `value`: by key for a dict, index for a list or tuple, name for an object.

    Empty for everything else (a scalar, a set, an array).
    """
    if isinstance(value, Opaque):
        return children_of(value.data)
    if isinstance(value, dict):
        return dict(value)
    fields = fields_of(value)
    if fields is not None:
        return fields
    if isinstance(value, (list, tuple)):
        return dict(enumerate(value))
    return {}


def with_fields(value: Any, fields: Mapping[str, Any]) -> Any:
    """A copy of the object `value` with exactly `fields`. No code of its class runs; `value` is untouched."""
    kind = type(value)
    if isinstance(value, tuple):
        return tuple.__new__(kind, list(fields.values()))
    if hasattr(kind, "__struct_fields__"):
        return _struct(value, fields)
    if is_pydantic(value):
        return _pydantic(value, fields)
    made = object.__new__(kind)
    slots = set(slots_of(kind))
    for name, field in fields.items():
        if name in slots:
            object.__setattr__(made, name, field)
        else:
            made.__dict__[name] = field
    return made


def with_items(value: Any, items: list[Any]) -> Any:
    """A copy of the list, tuple, set or frozenset `value`, same class and attributes, that holds `items`."""
    kind = type(value)
    if kind in (list, tuple, set, frozenset):
        return kind(items)
    if isinstance(value, (tuple, frozenset)):
        base = tuple if isinstance(value, tuple) else frozenset
        made = base.__new__(kind, items)
        for name, held in attributes_of(value).items():
            object.__setattr__(made, name, held)
        return made
    made = copy.copy(value)
    made.clear()
    (made.extend if isinstance(value, list) else made.update)(items)
    return made


def with_entries(value: dict[Any, Any], entries: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """A copy of the dict `value`, same class and attributes, that holds `entries` in their order."""
    if type(value) is dict:
        return dict(entries)
    made = copy.copy(value)
    made.clear()
    for key, held in entries:
        made[key] = held
    return made


def _is_open(kind: type) -> bool:
    """Whether all an object of this class holds is in its attributes: nothing of it is written in C."""
    if kind.__module__.partition(".")[0] in sys.stdlib_module_names:
        return kind is types.SimpleNamespace
    return not any(isinstance(vars(base).get("__new__"), types.BuiltinFunctionType) for base in kind.__mro__[:-1])


def _struct(value: Any, fields: Mapping[str, Any]) -> Any:
    from msgspec.structs import force_setattr  # a frozen struct refuses even object.__setattr__

    made = copy.copy(value)
    for name, field in fields.items():
        force_setattr(made, name, field)
    return made


def _pydantic_fields(value: Any) -> dict[str, Any]:
    return {**vars(value), **(value.__pydantic_extra__ or {}), **(value.__pydantic_private__ or {})}


def _pydantic(value: Any, fields: Mapping[str, Any]) -> Any:
    """Fields that change count as set, as assigning them would make them."""
    was, extra, private = _pydantic_fields(value), value.__pydantic_extra__, value.__pydantic_private__
    changed = {name for name, field in fields.items() if name not in was or was[name] is not field}
    private_names = set(private or ()) | set(type(value).__private_attributes__)
    extra_names = fields.keys() - type(value).model_fields.keys() - private_names if extra is not None else set()
    held = {name: fields[name] for name in fields if name not in private_names and name not in extra_names}
    made = object.__new__(type(value))
    object.__setattr__(made, "__dict__", held)
    object.__setattr__(made, "__pydantic_extra__", _some(fields, extra_names, extra))
    object.__setattr__(made, "__pydantic_private__", _some(fields, private_names, private))
    object.__setattr__(made, "__pydantic_fields_set__", value.__pydantic_fields_set__ | (changed - private_names))
    return made


def _some(fields: Mapping[str, Any], names: set[str], before: object) -> dict[str, Any] | None:
    return None if before is None else {name: fields[name] for name in fields if name in names}
