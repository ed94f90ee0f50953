"""Any state as JSON that a person can read, and back, exactly.

It is made of the codec's bytes and not of the values: what JSON has no word for is an object with a tag that
begins with `$`, one for each of the codec's types, and a type nobody registered here comes and goes as data.

    {"$tuple": [..]}  {"$set": [..]}  {"$bytes": base64}  {"$float": "nan"}  {"$str": quoted, with surrogates}
    {"$datetime": iso, "zone": "Europe/Berlin"}  {"$map": [[key, value], ..]}  {"$dict": {"$ref": 1}}
    {"$array": [[1, 2], [3, 4]], "dtype": "<i8", "shape": [2, 2]}  {"$type": name, "version": 1, "data": ..}
    {"$packed": base64 of the codec's bytes}  (nested too deep, or of a type that is newer than this)
"""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Callable
from typing import Any
from uuid import UUID

from ...errors import CorruptDataError
from ...quoting import quote
from ..values import codec
from .preview import plain, preview
from .tagged import (
    FLOATS,
    FORMATS,
    PATHS,
    base64_text,
    pack_tree,
    packed_of,
    read_tree,
    refusal,
    struct_format,
    tree_of,
)

__all__ = ["from_plain", "packed_of", "plain", "plain_of", "preview", "to_plain"]

_DEPTH = 100
"""What is nested deeper stays packed: readers of JSON give up at some depth, each at its own."""
_DIGITS = 2048
"""An integer of more bits is written in hex: Python itself refuses to read very long decimal ones."""
_NUMBERS_SHOWN = 256


def to_plain(value: Any) -> Any:
    """The value as JSON can hold it; `from_plain` gives back what was put in, types and order and all.

    Refused with InvalidInputError, as saving it would be: a type that is not registered, a cycle.
    """
    return plain_of(codec.pack(value))


def from_plain(data: Any, *, opaque: bool = False) -> Any:
    """The value that `to_plain` was given. With `opaque`, values of registered types come as `Opaque` data.

    Nothing the data names is imported or called but what is registered.
    InvalidInputError: it is no such data.
    """
    try:
        return codec.unpack(packed_of(data), opaque=opaque)
    except CorruptDataError as e:
        raise refusal(e.message) from e


def plain_of(packed: bytes) -> Any:
    """The same for bytes of the codec: no value is built. ValueError: these are none."""
    return _show(tree_of(packed), 0)


# -- the codec's tree -> JSON ---------------------------------------------------------------------------


def _show(tree: Any, depth: int) -> Any:
    kind = type(tree)
    if kind is str or kind is int or kind is bool or tree is None:
        return tree
    if kind is float:
        return tree if math.isfinite(tree) else _show_float(tree)
    if kind is bytes:
        return {"$bytes": base64_text(tree)}
    if depth >= _DEPTH:
        return {"$packed": base64_text(pack_tree(tree))}
    if kind is list:
        return [_show(item, depth + 1) for item in tree]
    if kind is dict:
        shown = {key: _show(held, depth + 1) for key, held in tree.items()}
        return {"$dict": shown} if any(key[:1] == "$" for key in tree) else shown
    try:
        shown = _SHOW[tree.code](tree.data, depth + 1)
        if tree.code in _CONTAINERS or read_tree(shown, depth).data == tree.data:
            return shown
    except (ValueError, TypeError, KeyError, IndexError, OverflowError, struct.error):
        pass  # not as this version's codec writes it: it is kept as it is
    return {"$packed": base64_text(pack_tree(tree))}


def _show_float(value: float) -> Any:
    bits = struct.pack(">d", value)
    for text, known in FLOATS.items():
        if bits == known:
            return {"$float": text}
    return {"$packed": base64_text(pack_tree(value))}


def _shown(tag: str) -> Callable[[bytes, int], Any]:
    return lambda data, depth: {tag: _show(tree_of(data), depth)}


def _show_pairs(tag: str) -> Callable[[bytes, int], Any]:
    return lambda data, depth: {tag: [[_show(k, depth), _show(v, depth)] for k, v in tree_of(data)]}


def _show_map(data: bytes, depth: int) -> Any:
    flat = [_show(item, depth) for item in tree_of(data)]
    return {"$map": [list(pair) for pair in zip(flat[::2], flat[1::2], strict=True)]}


def _show_int(data: bytes, _: int) -> Any:
    value = int.from_bytes(data, "little", signed=True)
    return value if value.bit_length() <= _DIGITS else {"$int": hex(value)}


def _show_zoned(tag: str, iso: str, fold: int, zone: Any) -> Any:
    more: dict[str, Any] = {"fold": fold} if fold else {}
    if isinstance(zone, list) and zone[1] is None:
        offset = dt.timezone(dt.timedelta(microseconds=zone[0]))
        iso += dt.datetime(2000, 1, 1, tzinfo=offset).isoformat()[19:]
    elif zone is not None:
        more["zone"] = zone
    return {tag: iso, **more}


def _show_datetime(data: bytes, _: int) -> Any:
    *at, fold, zone = tree_of(data)
    return _show_zoned("$datetime", dt.datetime(*at).isoformat(), fold, zone)


def _show_time(data: bytes, _: int) -> Any:
    *at, fold, zone = tree_of(data)
    return _show_zoned("$time", dt.time(*at).isoformat(), fold, zone)


def _show_path(data: bytes, depth: int) -> Any:
    flavour, text = tree_of(data)
    return {PATHS[flavour]: _show(text, depth)}


def _show_object(data: bytes, depth: int) -> Any:
    name, version, held = tree_of(data)
    return {"$type": _show(name, depth), "version": version, "data": _show(held, depth)}


def _show_deque(data: bytes, depth: int) -> Any:
    limit, items = tree_of(data)
    return {"$deque": _show(items, depth), **({} if limit is None else {"maxlen": limit})}


def _show_array(data: bytes, depth: int) -> Any:
    dtype, shape, order, held = tree_of(data)
    turned = shape if order == "C" else shape[::-1]
    about = {"dtype": _show(dtype, depth), "shape": shape, **({} if order == "C" else {"order": order})}
    numbers = _numbers(dtype, held) if math.prod(shape) <= _NUMBERS_SHOWN else None
    return {"$array": base64_text(held) if numbers is None else _nested(numbers, turned), **about}


def _show_scalar(data: bytes, depth: int) -> Any:
    dtype, held = tree_of(data)
    numbers = _numbers(dtype, held)
    return {"$scalar": numbers[0] if numbers else base64_text(held), "dtype": _show(dtype, depth)}


def _numbers(dtype: Any, data: bytes) -> list[Any] | None:
    """The numbers in these bytes, None where JSON's numbers would not give the bytes again."""
    if not isinstance(dtype, str) or dtype[1:] not in FORMATS or not data:
        return None
    fmt = struct_format(dtype, len(data) // int(dtype[2:]))
    numbers = list(struct.unpack(fmt, data))
    if dtype[1] == "f":
        if not all(map(math.isfinite, numbers)):
            return None
        if dtype[2:] != "8":
            numbers = [_shortest(x, fmt[0] + fmt[-1]) for x in numbers]
    return numbers if struct.pack(fmt, *numbers) == data else None


def _shortest(x: float, fmt: str) -> float:
    """0.1 for what a float of 4 bytes makes of 0.1."""
    bits = struct.pack(fmt, x)
    for digits in range(3, 10):
        short = float(f"{x:.{digits}g}")
        try:
            if struct.pack(fmt, short) == bits:
                return short
        except OverflowError:
            pass
    return x


def _nested(flat: list[Any], shape: list[int]) -> Any:
    for size in reversed(shape[1:]):
        flat = [flat[i : i + size] for i in range(0, len(flat), size)]
    return flat if shape else flat[0]


_CONTAINERS = frozenset({
    codec.TUPLE, codec.SET, codec.FROZENSET, codec.MAP, codec.OBJECT, codec.TRACKED, codec.ORDERED,
    codec.DEQUE, codec.COUNTER,
})  # fmt: skip
_SHOW: dict[int, Callable[[bytes, int], Any]] = {
    codec.TUPLE: _shown("$tuple"),
    codec.SET: _shown("$set"),
    codec.FROZENSET: _shown("$frozenset"),
    codec.BIG_INT: _show_int,
    codec.WILD_STR: lambda data, _: {"$str": quote(data.decode("utf-8", "surrogatepass"))},
    codec.MAP: _show_map,
    codec.DATETIME: _show_datetime,
    codec.DATE: lambda data, _: {"$date": dt.date(*tree_of(data)).isoformat()},
    codec.TIME: _show_time,
    codec.TIMEDELTA: _shown("$timedelta"),
    codec.UUID_: lambda data, _: {"$uuid": str(UUID(bytes=data))},
    codec.DECIMAL: lambda data, _: {"$decimal": data.decode("ascii")},
    codec.PATH: _show_path,
    codec.COMPLEX: _shown("$complex"),
    codec.OBJECT: _show_object,
    codec.ARRAY: _show_array,
    codec.SCALAR: _show_scalar,
    codec.TRACKED: _shown("$tracked"),
    codec.ORDERED: _show_pairs("$ordered"),
    codec.DEQUE: _show_deque,
    codec.COUNTER: _show_pairs("$counter"),
    codec.RANGE: _shown("$range"),
    codec.FRACTION: lambda data, _: {"$fraction": data.decode("ascii")},
    codec.BYTEARRAY: lambda data, _: {"$bytearray": base64_text(data)},
    codec.ELLIPSIS: lambda data, _: {"$ellipsis": base64_text(data)},
}
