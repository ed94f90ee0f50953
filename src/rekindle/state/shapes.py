"""How a registered class's values become data: one pair of functions a family of classes.

Values are rebuilt without running `__init__`: they come back as they were, and restoring has no side effects.
No third-party library is imported here; a class is recognised by the attributes its family is known by.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from typing import Any

Dump = Callable[[Any], Any]
Load = Callable[[Any], Any]


def shape_of(cls: type) -> tuple[Dump, Load]:
    if hasattr(cls, "to_state") and hasattr(cls, "from_state"):
        return (lambda v: v.to_state()), _load_by_hook(cls)
    if issubclass(cls, enum.Flag):
        return (lambda v: v.value), cls
    if issubclass(cls, enum.Enum):
        return (lambda v: v.name), cls.__getitem__
    if hasattr(cls, "__pydantic_fields__") or hasattr(cls, "__pydantic_fields_set__"):
        return _dump_pydantic, _load_pydantic(cls)
    if hasattr(cls, "__struct_fields__"):
        return _dump_struct, _load_struct(cls)
    if issubclass(cls, tuple):
        return _dump_tuple, _load_tuple(cls)
    for base in (dict, list, set, frozenset, str, bytes, int, float):
        if issubclass(cls, base):
            return _dump_derived(base), _load_derived(cls, base)
    return _dump_object, _load_object(cls)


def _load_by_hook(cls: Any) -> Load:
    """`from_state` of the class: a class or static method that answers the value, or one that fills a new `self`."""
    hook = next(vars(base)["from_state"] for base in cls.__mro__ if "from_state" in vars(base))
    if isinstance(hook, (classmethod, staticmethod)):
        return cls.from_state  # type: ignore[no-any-return]

    def load(data: Any) -> Any:
        value = cls.__new__(cls)
        made = value.from_state(data)
        return value if made is None else made

    return load


def _slots(cls: type) -> list[str]:
    found = []
    for base in cls.__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__"):
                mangled = name.startswith("__") and not name.endswith("__")
                found.append(f"_{base.__name__.lstrip('_')}{name}" if mangled else name)
    return found


def _attributes(value: Any) -> dict[str, Any]:
    """All a plain object holds: its dict and its slots, dataclass fields in their order first."""
    held = dict(getattr(value, "__dict__", {}))
    for name in _slots(type(value)):
        if hasattr(value, name):
            held[name] = getattr(value, name)
    if dataclasses.is_dataclass(value):
        fields = [f.name for f in dataclasses.fields(value) if f.name in held]
        held = {name: held[name] for name in fields} | held
    return held


def _fill(value: Any, attributes: dict[str, Any]) -> Any:
    for name, item in attributes.items():
        object.__setattr__(value, name, item)
    return value


def _dump_object(value: Any) -> dict[str, Any]:
    return _attributes(value)


def _load_object(cls: Any) -> Load:
    return lambda data: _fill(cls.__new__(cls), data)


def _dump_pydantic(value: Any) -> list[Any]:
    return [
        dict(value.__dict__),
        sorted(value.__pydantic_fields_set__),
        value.__pydantic_extra__,
        value.__pydantic_private__,
    ]


def _load_pydantic(cls: Any) -> Load:
    def load(data: list[Any]) -> Any:
        value = cls.__new__(cls)
        object.__setattr__(value, "__dict__", data[0])
        object.__setattr__(value, "__pydantic_fields_set__", set(data[1]))
        object.__setattr__(value, "__pydantic_extra__", data[2])
        object.__setattr__(value, "__pydantic_private__", data[3])
        return value

    return load


def _dump_struct(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__struct_fields__ if hasattr(value, name)}


def _load_struct(cls: Any) -> Load:
    return lambda data: cls(**data)  # a struct cannot be made without its constructor


def _dump_tuple(value: Any) -> list[Any]:
    return [list(value), _attributes(value)]


def _load_tuple(cls: type) -> Load:
    return lambda data: _fill(tuple.__new__(cls, data[0]), data[1])


def _dump_derived(base: type) -> Dump:
    return lambda value: [base(value), _attributes(value)]


def _load_derived(cls: Any, base: Any) -> Load:
    def load(data: list[Any]) -> Any:
        if base in (dict, list, set):
            value = cls.__new__(cls)
            (dict.update if base is dict else list.extend if base is list else set.update)(value, data[0])
        else:
            value = base.__new__(cls, data[0])
        return _fill(value, data[1])

    return load
