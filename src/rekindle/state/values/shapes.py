"""How a registered class's values become data: one pair of functions a family of classes.

Values are rebuilt without running `__init__`: they come back as they were, and restoring has no side effects.
No third-party library is imported for it; a class is recognised by the attributes its family is known by.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import sys
from collections import OrderedDict, deque
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from pathlib import PurePath
from types import BuiltinFunctionType
from typing import Any

from ...errors import InvalidInputError
from .models import dump_model, load_model

Dump = Callable[[Any], Any]
Load = Callable[[Any], Any]

_WORD = tuple.__itemsize__
"""Bytes of a pointer."""


def shape_of(cls: type) -> tuple[Dump, Load]:
    """InvalidInputError: what it holds is out of reach, and only a dump and load of its own can keep it."""
    if hasattr(cls, "to_state") and hasattr(cls, "from_state"):
        return (lambda v: v.to_state()), _load_by_hook(cls)
    if issubclass(cls, enum.Flag):
        return (lambda v: v._value_), cls
    if issubclass(cls, enum.Enum):
        return (lambda v: v._name_), (lambda name: cls[name])  # of a str enum, cls.__getitem__ would be that of str
    if hasattr(cls, "__pydantic_fields_set__"):
        return dump_model, load_model(cls)
    if hasattr(cls, "__struct_fields__"):
        return _dump_struct, _load_struct(cls)
    for base in BASES:
        if issubclass(cls, base):
            _refuse_what_is_out_of_reach(cls, base)
            return _dump_derived(base), _load_derived(cls, base)
    _refuse_what_is_out_of_reach(cls, object)
    return _attributes, _load_object(cls)


def _refuse_what_is_out_of_reach(cls: type, base: type) -> None:
    """A class made in C that holds more than its base would come back empty, or not at all."""
    words = len(_slots(cls)) - len(_slots(base))
    words += cls.__dictoffset__ > 0 >= base.__dictoffset__
    words += cls.__weakrefoffset__ > 0 >= base.__weakrefoffset__
    if not base.__itemsize__ and cls.__basicsize__ > base.__basicsize__ + words * _WORD:
        raise InvalidInputError(
            "type-needs-dump", f"what a {cls.__module__}.{cls.__qualname__} holds is not in its attributes",
            hint=f"say how it becomes plain data and comes back: register({cls.__name__}, dump=..., load=...)",
        )  # fmt: skip


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


def _filler(cls: type) -> Callable[[Any, dict[str, Any]], Any]:
    """What gives a new value its attributes, and runs none of its code: no __setattr__, no property."""
    slots = frozenset(_slots(cls))

    def fill(value: Any, attributes: dict[str, Any]) -> Any:
        held = getattr(value, "__dict__", None)
        if held is not None and slots.isdisjoint(attributes):
            held.update(attributes)
            return value
        for name, item in attributes.items():
            if held is None or name in slots:
                object.__setattr__(value, name, item)
            else:
                held[name] = item
        return value

    return fill


def _load_object(cls: Any) -> Load:
    fill, added = _filler(cls), cache(lambda: _fields_by_default(cls))

    def load(data: dict[str, Any]) -> Any:
        defaults = added()
        if not defaults.keys() <= data.keys():
            data = data | {name: default() for name, default in defaults.items() if name not in data}
        return fill(_new(cls), data)

    return load


def _fields_by_default(cls: Any) -> dict[str, Callable[[], Any]]:
    """What gives a dataclass the fields that it has got since a value was stored."""
    return {f.name: _default(f) for f in dataclasses.fields(cls) if f.init} if dataclasses.is_dataclass(cls) else {}


def _default(field: dataclasses.Field[Any]) -> Callable[[], Any]:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory

    def default() -> Any:
        if field.default is dataclasses.MISSING:
            raise TypeError(f"what was stored has no {field.name!r}, and the field has no default: raise the version")
        return field.default

    return default


def _new(cls: Any) -> Any:
    """A value of a class, without its __init__; without its own __new__ too, where that wants arguments."""
    try:
        return cls.__new__(cls)
    except TypeError:
        made_in_c = next(base for base in cls.__mro__ if isinstance(vars(base).get("__new__"), BuiltinFunctionType))
        return made_in_c.__new__(cls)


def _dump_struct(value: Any) -> dict[str, Any]:
    """Its fields, and what it holds beside. A field that is unset by itself is left out: it will be so again."""
    held = {name: getattr(value, name) for name in value.__struct_fields__ if hasattr(value, name)}
    if any(map(_unset, held.values())):
        fields, defaults = value.__struct_fields__, value.__struct_defaults__
        by_itself = dict(zip(fields[len(fields) - len(defaults) :], defaults, strict=True))
        held = {name: item for name, item in held.items() if not _unset(item) or by_itself.get(name) is not item}
    return held | getattr(value, "__dict__", {})


def _unset(item: Any) -> bool:
    return type(item).__name__ == "UnsetType"


def _load_struct(cls: Any) -> Load:
    """A struct cannot be made without its constructor, whose __post_init__ may change what it is given: so it is given
    it again."""

    def load(data: dict[str, Any]) -> Any:
        from msgspec.structs import force_setattr

        value = cls(**{name: data[name] for name in cls.__struct_fields__ if name in data})
        for name, held in data.items():
            force_setattr(value, name, held)
        return value

    return load


def _dump_derived(base: type) -> Dump:
    plain, of_base = BASES[base][0], frozenset(_slots(base))
    if not of_base:
        return lambda value: [plain(value), _attributes(value)]
    return lambda value: [plain(value), {k: v for k, v in _attributes(value).items() if k not in of_base}]


def _load_derived(cls: type, base: type) -> Load:
    make, fill = BASES[base][1], _filler(cls)
    return lambda data: fill(make(cls, data[0]), data[1])


def _filled(put: Callable[[Any, Any], None]) -> Callable[[Any, Any], Any]:
    def make(cls: Any, held: Any) -> Any:
        value = _new(cls)
        put(value, held)
        return value

    return make


def _path(cls: Any, text: str) -> Any:
    value = PurePath.__new__(cls, text)
    if sys.version_info >= (3, 12):  # before, its parts were given to it by __new__
        PurePath.__init__(value, text)
    return value


def _put_in_order(value: Any, held: Any) -> None:
    for key, item in held.items():
        OrderedDict.__setitem__(value, key, item)


BASES: dict[type, tuple[Dump, Callable[[Any, Any], Any]]] = {
    tuple: (lambda v: list(tuple.__iter__(v)), tuple.__new__),
    OrderedDict: (lambda v: OrderedDict(OrderedDict.items(v)), _filled(_put_in_order)),
    dict: (lambda v: dict(dict.items(v)), _filled(dict.update)),
    list: (list.copy, _filled(list.extend)),
    set: (set, _filled(set.update)),
    frozenset: (frozenset, frozenset.__new__),
    deque: (
        lambda v: deque(deque.__iter__(v), v.maxlen),
        _filled(lambda v, held: deque.__init__(v, held, held.maxlen)),
    ),
    str: (str.__str__, str.__new__),
    bytes: (lambda v: bytes.__getitem__(v, slice(None)), bytes.__new__),
    bytearray: (lambda v: bytes(memoryview(v)), _filled(bytearray.__init__)),
    int: (int.__pos__, int.__new__),
    float: (float.__pos__, float.__new__),
    complex: (complex.__pos__, complex.__new__),
    Decimal: (Decimal, Decimal.__new__),
    PurePath: (PurePath.__str__, _path),
    dt.datetime: (
        lambda v: dt.datetime.combine(dt.datetime.date(v), dt.datetime.timetz(v)),
        lambda cls, v: dt.datetime.__new__(
            cls, v.year, v.month, v.day, v.hour, v.minute, v.second, v.microsecond, v.tzinfo, fold=v.fold
        ),
    ),
    dt.date: (lambda v: dt.date(v.year, v.month, v.day), lambda cls, v: dt.date.__new__(cls, v.year, v.month, v.day)),
    dt.time: (
        lambda v: dt.time(v.hour, v.minute, v.second, v.microsecond, v.tzinfo, fold=v.fold),
        lambda cls, v: dt.time.__new__(cls, v.hour, v.minute, v.second, v.microsecond, v.tzinfo, fold=v.fold),
    ),
    dt.timedelta: (
        lambda v: dt.timedelta(v.days, v.seconds, v.microseconds),
        lambda cls, v: dt.timedelta.__new__(cls, v.days, v.seconds, v.microseconds),
    ),
    BaseException: (lambda v: list(v.args), lambda cls, args: BaseException.__new__(cls, *args)),
}
"""By base, the first that fits: a value as one of the base itself, whatever its class says of how it is read, and a
value of the class made of that."""
