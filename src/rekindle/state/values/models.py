"""Values of pydantic's classes <-> data, in two forms.

The whole form, which `register` gives to such a class: `[fields, sorted fields set, extra, private]`. The short form
is a map by field name, without what the class gives a value by itself: for classes of libraries, which have many fields
that are hardly used. Whoever reads the short form reads the whole one too.

pydantic is not imported: a class is asked for what it knows of itself. No code of a class runs in either direction, but
for what makes a default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

Dump = Callable[[Any], Any]
Load = Callable[[Any], Any]

_SET, _PRIVATE = "$set", "$private"
"""In a map by field name, where they do not follow from the rest: the names of fields that were set, and private
attributes."""
_FRESH = (dict, list, set)
_CONSTANT = (str, int, float, bool, bytes, type(None))
_NOTHING: Any = object()


# -- the whole form ------------------------------------------------------------------------------------------------


def dump_model(value: Any) -> list[Any]:
    """What is in the list is the value's own, not a copy."""
    return [
        value.__dict__, sorted(value.__pydantic_fields_set__), value.__pydantic_extra__, value.__pydantic_private__,
    ]  # fmt: skip


def load_model(cls: Any) -> Load:
    put, names = _filler(cls), cache(lambda: frozenset(cls.__pydantic_fields__))

    def load(data: list[Any]) -> Any:
        fields = data[0]
        if not names() <= fields.keys():
            for name in cls.__pydantic_fields__.keys() - fields.keys():
                fields[name] = default_of(cls.__pydantic_fields__[name], name, fields)
        return put(fields, set(data[1]), data[2], data[3])

    return load


def _filler(cls: Any) -> Callable[[dict[str, Any], set[str], Any, Any], Any]:
    """What makes a value of the four things that it consists of."""
    new, (put_fields, put_given) = cls.__new__, (_setter(cls, name) for name in ("__dict__", "__pydantic_fields_set__"))
    put_extra, put_private = _setter(cls, "__pydantic_extra__"), _setter(cls, "__pydantic_private__")

    def fill(fields: dict[str, Any], given: set[str], extra: Any, private: Any) -> Any:
        value = new(cls)
        put_fields(value, fields)
        put_given(value, given)
        put_extra(value, extra)
        put_private(value, private)
        return value

    return fill


def _setter(cls: Any, name: str) -> Callable[[Any, Any], None]:
    """What sets an attribute past the __setattr__ of the class."""
    held = next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), _NOTHING)
    if hasattr(type(held), "__set__"):
        return held.__set__  # type: ignore[no-any-return]

    def put(value: Any, item: Any) -> None:
        if item is not held:  # a root model has it once, for all of its values
            object.__setattr__(value, name, item)

    return put


def default_of(field: Any, name: str, fields: dict[str, Any]) -> Any:
    """The default of a field that what was stored does not have; TypeError where it has none."""
    if field.is_required():
        raise TypeError(f"what was stored has no {name!r}, and the field has no default: raise the version")
    if getattr(field, "default_factory_takes_validated_data", False):
        return field.default_factory(fields)
    return field.get_default(call_default_factory=True)


# -- the short form ------------------------------------------------------------------------------------------------


def by_field_name(cls: Any) -> tuple[Dump, Load]:
    """(dump, load) as a map by field name, extra fields among them.

    Left out are fields nobody set that have the default: None, a text, or an empty list or dict. What no such map
    can say (an attribute that is no field) is dumped in the whole form.
    """
    return _short_dump(cls), _short_load(cls)


def _short_dump(cls: Any) -> Dump:
    left_out = {name: default for name, field in cls.__pydantic_fields__.items() for default in _left_out(field)}

    def odd(value: Any) -> Any:
        """The same for a value whose fields set are not just what differs from the defaults, or that holds more."""
        given, extra, private = value.__pydantic_fields_set__, value.__pydantic_extra__, value.__pydantic_private__
        names = cls.__pydantic_fields__.keys()
        more = extra or {}
        if value.__dict__.keys() != names or not _fits(cls, extra) or more.keys() & {*names, _SET, _PRIVATE}:
            return dump_model(value)
        data = {
            name: item
            for name, item in value.__dict__.items()
            if name in given or name not in left_out or not _is_exactly(item, left_out[name])
        } | more
        if given != data.keys():
            data[_SET] = sorted(given)
        if private is not None:
            data[_PRIVATE] = private
        return data

    return _written_out(cls, left_out, odd)


def _left_out(field: Any) -> Iterable[Any]:
    """The default of a field, if that is one to leave out."""
    if field.default_factory in (dict, list):
        return (field.default_factory(),)
    return (field.default,) if field.default is None or type(field.default) is str else ()


def _is_exactly(item: Any, default: Any) -> bool:
    return bool(type(item) is type(default) and item == default)


def _fits(cls: Any, extra: Any) -> bool:
    """Whether extra fields are held as a new value of the class holds them."""
    return bool((extra is not None) == (cls.model_config.get("extra") == "allow"))


def _written_out(cls: Any, left_out: dict[str, Any], odd: Dump) -> Dump:
    """The dump of a value of which nothing is `odd`, a line a field: a loop over the fields takes twice as long, and
    there may be thousands of messages to a save. What is compiled are the names of the class's own fields."""
    lines = []
    for name in cls.__pydantic_fields__:
        default = left_out.get(name, _NOTHING)
        get, keep = f"(item := held[{name!r}])", f"data[{name!r}] = item"
        if default is _NOTHING:
            lines.append(f"data[{name!r}] = held[{name!r}]")
        elif default is None:
            lines.append(f"if {get} is not None: {keep}")
        elif type(default) is str:
            lines.append(f"if {get} is not left_out[{name!r}] and not is_exactly(item, left_out[{name!r}]): {keep}")
        else:
            lines.append(f"if type{get} is not {type(default).__name__} or item: {keep}")
    odd_extra = "extra or extra is None" if _fits(cls, {}) else "extra is not None"
    source = _DUMP.format(lines="\n        ".join(lines), count=len(lines), extra=odd_extra)
    names: dict[str, Any] = {"left_out": left_out, "is_exactly": _is_exactly, "odd": odd}
    exec(compile(source, f"<dump of {cls.__qualname__}>", "exec"), names)
    return names["dump"]  # type: ignore[no-any-return]


_DUMP = """
def dump(value):
    held, extra, data = value.__dict__, value.__pydantic_extra__, {{}}
    if len(held) != {count} or {extra} or value.__pydantic_private__ is not None:
        return odd(value)
    try:
        {lines}
    except KeyError:
        return odd(value)
    return data if value.__pydantic_fields_set__ == data.keys() else odd(value)
"""


def _short_load(cls: Any) -> Load:
    whole, put, defaults = load_model(cls), _filler(cls), cache(lambda: _Defaults(cls))
    allows = _fits(cls, {})

    def odd(data: Any) -> Any:
        """The same where something is said beside the fields, or a field is missing."""
        if type(data) is not dict:
            return whole(data)
        given = data.pop(_SET) if _SET in data else data
        private = data.pop(_PRIVATE) if _PRIVATE in data else None
        given = set(given)
        known = defaults()
        fields = known.template.copy()
        for name, make in known.fresh:
            fields[name] = make()
        extra: Any = {} if allows else None
        if allows and not known.names >= data.keys():
            extra = {name: data.pop(name) for name in list(data) if name not in known.names}
        fields.update(data)
        for name in known.asked:
            if name not in data:
                fields[name] = default_of(cls.__pydantic_fields__[name], name, fields)
        return put(fields, given, extra, private)

    return _read_in(cls, _Defaults(cls), odd)


def _read_in(cls: Any, known: _Defaults, odd: Load) -> Load:
    """The load of data in which nothing is `odd`, all of it in one expression, as the dump is."""
    names: dict[str, Any] = {"cls": cls, "new": cls.__new__, "odd": odd, "template": known.template}
    for name in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__"):
        names[f"put{name.removeprefix('__pydantic').rstrip('_')}"] = _setter(cls, name)
    makes = {name: f"{make.__name__}()" for name, make in known.fresh}
    source = _LOAD.format(
        missing="".join(f" or {name!r} not in data" for name in known.asked),
        fields=", ".join(f"{name!r}: {makes.get(name, f'template[{name!r}]')}" for name in known.template),
        count=len(known.template),
        extra="{}" if _fits(cls, {}) else "None",
    )
    exec(compile(source, f"<load of {cls.__qualname__}>", "exec"), names)
    return names["load"]  # type: ignore[no-any-return]


_LOAD = """
def load(data):
    if type(data) is not dict{missing}:
        return odd(data)
    fields = {{{fields}, **data}}
    if len(fields) != {count}:
        return odd(data)
    value = new(cls)
    put__dict(value, fields)
    put_fields_set(value, set(data))
    put_extra(value, {extra})
    put_private(value, None)
    return value
"""


class _Defaults:
    """What a class gives a value of it that has nothing yet, sorted by how it comes by it."""

    def __init__(self, cls: Any) -> None:
        self.names = frozenset(cls.__pydantic_fields__)
        self.template: dict[str, Any] = dict.fromkeys(cls.__pydantic_fields__)
        self.fresh: list[tuple[str, Callable[[], Any]]] = []
        self.asked: list[str] = []
        for name, field in cls.__pydantic_fields__.items():
            if field.default_factory in _FRESH:
                self.fresh.append((name, field.default_factory))
            elif field.default_factory is None and type(field.default) in _CONSTANT:
                self.template[name] = field.default
            else:
                self.asked.append(name)
