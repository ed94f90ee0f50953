"""Types of users, by name. A stored record names a type by a registered name and nothing else, so reading one
can only ever build what the running program has offered to be built."""

from __future__ import annotations

import dataclasses
import enum
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from ...errors import InvalidInputError, RekindleError

T = TypeVar("T")
Upgrade = Callable[[Any, int], Any]
"""(data, its version) -> the data one version on."""


@dataclass(frozen=True, slots=True)
class Entry:
    """How values of one registered type become data (plain values) and come back."""

    type: type
    name: str
    version: int
    dump: Callable[[Any], Any]
    load: Callable[[Any], Any]
    upgrade: Upgrade | None
    upgrades_from: frozenset[int] | None = None
    """The versions there is an upgrade for; None: `upgrade` takes any."""
    model: bool = False
    """Whether `dump` goes by nothing but what every model of pydantic holds: its fields, which of them were set, extra
    and private attributes."""


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value whose type is not registered here, as data: enough to show, compare, export and save again."""

    name: str
    version: int
    data: Any


_by_type: dict[type, Entry] = {}
_by_name: dict[str, Entry] = {}
entry_for: Callable[[type], Entry | None] = _by_type.get
"""How values of exactly this type become data; None where nobody registered it."""

Upgrades = Upgrade | Mapping[int, Callable[[Any], Any]]


@overload
def register(
    type_: type[T],
    /,
    *,
    name: str | None = ...,
    version: int = ...,
    upgrade: Upgrades | None = ...,
    dump: Callable[[T], Any] | None = ...,
    load: Callable[[Any], T] | None = ...,
) -> type[T]: ...
@overload
def register(
    type_: None = None,
    /,
    *,
    name: str | None = ...,
    version: int = ...,
    upgrade: Upgrades | None = ...,
    dump: Callable[[Any], Any] | None = ...,
    load: Callable[[Any], Any] | None = ...,
) -> Callable[[type[T]], type[T]]: ...
def register(
    type_: type[Any] | None = None,
    /,
    *,
    name: str | None = None,
    version: int = 1,
    upgrade: Upgrades | None = None,
    dump: Callable[[Any], Any] | None = None,
    load: Callable[[Any], Any] | None = None,
) -> Any:
    """Let values of a type be saved and come back. As a decorator, bare or with arguments, or as a call.

    `name` is what records carry (the class's name by default); keep it when the class moves or is renamed.
    Raise `version` when what the type holds changes, and give `upgrade`: a mapping {old version: data -> data
    of the next version}, or one function (data, old version) -> data of the next version.
    `dump` and `load` override how the value becomes data; `to_state()`/`from_state()` on the class do the same.
    """
    if type_ is None:
        return lambda t: register(t, name=name, version=version, upgrade=upgrade, dump=dump, load=load)
    if not isinstance(type_, type):
        raise InvalidInputError("not-a-type", f"register() takes a class, not {type_!r}")
    if version < 1:
        raise InvalidInputError("bad-version", f"version of {type_.__name__} must be 1 or more, not {version}")
    known = name or type_.__name__
    held = _by_name.get(known)
    if held is not None and not _same_class(held.type, type_):
        raise InvalidInputError(
            "name-taken",
            f"the name {known!r} is registered for {held.type.__module__}.{held.type.__qualname__}",
            hint=f"give {type_.__qualname__} another one: register({type_.__name__}, name=...)",
        )
    model = False
    if dump is None or load is None:
        from .models import dump_model
        from .shapes import shape_of  # here: shapes knows pydantic and friends, and most programs never get there

        own = shape_of(type_)
        dump, load = dump or own[0], load or own[1]
        model = dump is dump_model
    step = (lambda data, old, table=dict(upgrade): table[old](data)) if isinstance(upgrade, Mapping) else upgrade
    known_steps = frozenset(upgrade) if isinstance(upgrade, Mapping) else None
    entry = Entry(type_, known, version, dump, load, step, known_steps, model)
    for t in [t for t, e in _by_type.items() if e.name == known]:
        del _by_type[t]
    _by_type[type_] = _by_name[known] = entry
    return type_


def provide(
    type_: type, *, name: str, dump: Callable[[Any], Any], load: Callable[[Any], Any], model: bool = False
) -> None:
    """Register a library's type for those who have not: a program that registered it keeps its own name for it, and can
    read what is stored under this one too. Harmless a second time."""
    entry = _by_name.setdefault(name, Entry(type_, name, 1, dump, load, None, None, model))
    if entry.type is type_:
        _by_type.setdefault(type_, entry)


def _same_class(a: type, b: type) -> bool:
    """A class defined again (a notebook cell, a reload) takes the place of its former self."""
    return (a.__module__, a.__qualname__) == (b.__module__, b.__qualname__)


def entry_named(name: str) -> Entry | None:
    return _by_name.get(name)


def build(name: str, version: int, data: Any) -> Any:
    """The value a record holds, upgraded step by step where it is of an older version."""
    entry = _by_name.get(name)
    if entry is None:
        raise unregistered(name)
    if version != entry.version and version > entry.version:
        raise InvalidInputError(
            "type-too-new",
            f"the record holds {name!r} of version {version}; this program registers version {entry.version}",
            hint="run the program that wrote it, or a newer one",
        )
    try:
        return entry.load(data if version == entry.version else _upgraded(entry, version, data))
    except Exception as e:
        raise not_loaded(name, e) from e


def not_loaded(name: str, error: Exception) -> RekindleError:
    """The error that a value of a registered type could not be rebuilt: its own, where that is one of ours."""
    if isinstance(error, RekindleError):
        return error
    return InvalidInputError(
        "type-load-failed", f"the registered type {name!r} could not be rebuilt: {type(error).__name__}: {error}"
    )


def _upgraded(entry: Entry, version: int, data: Any) -> Any:
    while version < entry.version:
        if entry.upgrade is None or (entry.upgrades_from is not None and version not in entry.upgrades_from):
            raise InvalidInputError(
                "no-upgrade",
                f"the record holds {entry.name!r} of version {version}, and version {entry.version} has no upgrade",
                hint=f"register({entry.name}, version={entry.version}, upgrade={{{version}: function}})",
            )
        data = entry.upgrade(data, version)
        version += 1
    return data


def unregistered(name: str) -> InvalidInputError:
    return InvalidInputError(
        "type-unregistered",
        f"the record holds a value of type {name!r}, which is not registered in this program",
        hint=f"before restoring: rekindle.register(YourClass, name={name!r})",
    )


def unsavable(value: Any, where: str) -> InvalidInputError:
    t = type(value)
    at = f" at {where}" if where else ""
    what = "dataclass " if dataclasses.is_dataclass(t) else "enum " if isinstance(value, enum.Enum) else ""
    return InvalidInputError(
        "type-unregistered",
        f"the state holds a value of {what}{t.__module__}.{t.__qualname__}{at}, which is not registered",
        hint=f"put @rekindle.register above the class, or call rekindle.register({t.__name__})",
    )


def numpy_loaded() -> Any:
    """numpy where the program has imported it; a value of its types can't exist otherwise."""
    return sys.modules.get("numpy")


def require_numpy() -> Any:
    try:
        import numpy
    except ImportError as e:
        raise InvalidInputError(
            "numpy-missing", "the record holds a numpy value and numpy is not installed", hint="pip install numpy"
        ) from e
    return numpy
