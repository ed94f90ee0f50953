"""JSON with tags -> the codec's bytes. plain.py makes such JSON, and says what the tags are."""

from __future__ import annotations

import base64
import datetime as dt
import math
import struct
from collections.abc import Callable
from typing import Any
from uuid import UUID

import ormsgpack

from ...errors import InvalidInputError
from ...quoting import quote, read_quoted
from ..values import codec

_DEPTH = 300
FORMATS = {
    "b1": "?", "i1": "b", "i2": "h", "i4": "i", "i8": "q", "u1": "B", "u2": "H", "u4": "I", "u8": "Q",
    "f2": "e", "f4": "f", "f8": "d",
}  # fmt: skip
PATHS = {"path": "$path", "posix": "$posix_path", "windows": "$windows_path"}
FLOATS = {text: struct.pack(">d", float(text)) for text in ("nan", "-nan", "inf", "-inf")}


class Raw:
    """One extension value, not looked into."""

    __slots__ = ("code", "data")

    def __init__(self, code: int, data: bytes) -> None:
        self.code = code
        self.data = data


def packed_of(data: Any) -> bytes:
    """The codec's bytes again: those that were shown, where they were the codec's."""
    try:
        return pack_tree(read_tree(data, 0))
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError, struct.error) as e:
        if isinstance(e, InvalidInputError):
            raise
        raise refusal(f"{type(e).__name__}: {e}") from e


def refusal(why: str) -> InvalidInputError:
    return InvalidInputError("bad-plain", f"this is not the JSON of a state: {why}")


def pack_tree(tree: Any) -> bytes:
    return ormsgpack.packb(tree, default=lambda raw: ormsgpack.Ext(raw.code, raw.data))


def tree_of(data: bytes) -> Any:
    return ormsgpack.unpackb(data, ext_hook=Raw)


def base64_text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def struct_format(dtype: str, count: int) -> str:
    return f"{'>' if dtype[0] == '>' else '<'}{count}{FORMATS[dtype[1:]]}"


def read_tree(data: Any, depth: int) -> Any:
    kind = type(data)
    if kind is str:
        return data if data.isascii() else _read_text(data)
    if kind is int:
        return data if -(1 << 63) <= data < 1 << 64 else Raw(codec.BIG_INT, _big(data))
    if data is None or kind is bool or kind is float:
        return data
    if depth > _DEPTH:
        raise refusal(f"it is nested more than {_DEPTH} deep")
    if kind is list:
        return [read_tree(item, depth + 1) for item in data]
    if kind is not dict:
        raise refusal(f"JSON has no {kind.__qualname__}")
    if any(key[:1] == "$" for key in data):
        return _read_tagged(data, depth + 1)
    return _read_dict(data, depth)


def _read_text(text: str) -> Any:
    try:
        text.encode()
    except UnicodeEncodeError:
        return Raw(codec.WILD_STR, text.encode("utf-8", "surrogatepass"))
    return text


def _read_dict(data: Any, depth: int) -> Any:
    read = {key: read_tree(held, depth + 1) for key, held in data.items()}
    if all(key.isascii() or type(_read_text(key)) is str for key in read):
        return read
    return Raw(codec.MAP, pack_tree([x for key, held in read.items() for x in (_read_text(key), held)]))


def _read_tagged(data: dict[str, Any], depth: int) -> Any:
    tag = next(key for key in data if key[:1] == "$")
    about = {key: held for key, held in data.items() if key != tag}
    code, read = _READ.get(tag, (0, None))
    if read is None or not about.keys() <= _ABOUT.get(tag, frozenset()):
        raise refusal(f"{', '.join(map(quote, data))} is no tag of this version")
    made = read(data[tag], about, depth)
    return Raw(code, made) if code else made


def _big(value: int) -> bytes:
    return value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)


def _read_float(text: Any, about: Any, depth: int) -> float:
    return float(struct.unpack(">d", FLOATS[text])[0])


def _read_str(text: Any, about: Any, depth: int) -> Any:
    found, end = read_quoted(text, 0)
    if end != len(text):
        raise refusal("there is more after the closing quote")
    return _read_text(found)


def _packed(held: Any, about: Any, depth: int) -> bytes:
    return pack_tree(read_tree(held, depth))


def _read_pairs(held: Any, about: Any, depth: int) -> bytes:
    return pack_tree([[read_tree(k, depth), read_tree(v, depth)] for k, v in held])


def _read_map(held: Any, about: Any, depth: int) -> bytes:
    return pack_tree([read_tree(x, depth) for k, v in held for x in (k, v)])


def _zone(about: Any, offset: dt.timedelta | None) -> Any:
    return about.get("zone") if offset is None else [offset // dt.timedelta(microseconds=1), None]


def _read_datetime(text: Any, about: Any, depth: int) -> bytes:
    v = dt.datetime.fromisoformat(text)
    at = [v.year, v.month, v.day, v.hour, v.minute, v.second, v.microsecond]
    return pack_tree([*at, about.get("fold", 0), _zone(about, v.utcoffset())])


def _read_time(text: Any, about: Any, depth: int) -> bytes:
    v = dt.time.fromisoformat(text)
    at = [v.hour, v.minute, v.second, v.microsecond]
    return pack_tree([*at, about.get("fold", 0), _zone(about, v.utcoffset())])


def _read_date(text: Any, about: Any, depth: int) -> bytes:
    v = dt.date.fromisoformat(text)
    return pack_tree([v.year, v.month, v.day])


def _read_path(flavour: str) -> Callable[[Any, Any, int], bytes]:
    return lambda text, about, depth: pack_tree([flavour, read_tree(text, depth)])


def _read_object(name: Any, about: Any, depth: int) -> bytes:
    return pack_tree([read_tree(name, depth), about["version"], read_tree(about["data"], depth)])


def _read_array(held: Any, about: Any, depth: int) -> bytes:
    dtype, shape = about["dtype"], about["shape"]
    if not isinstance(held, str):
        for _ in shape[1:]:
            held = [x for row in held for x in row]
        held = struct.pack(struct_format(dtype, math.prod(shape)), *(held if shape else [held]))
    else:
        held = _bytes(held)
    return pack_tree([read_tree(dtype, depth), shape, about.get("order", "C"), held])


def _read_scalar(held: Any, about: Any, depth: int) -> bytes:
    dtype = about["dtype"]
    made = _bytes(held) if isinstance(held, str) else struct.pack(struct_format(dtype, 1), held)
    return pack_tree([read_tree(dtype, depth), made])


_ABOUT = {
    "$datetime": frozenset({"zone", "fold"}), "$time": frozenset({"zone", "fold"}),
    "$deque": frozenset({"maxlen"}),
    "$type": frozenset({"version", "data"}), "$array": frozenset({"dtype", "shape", "order"}),
    "$scalar": frozenset({"dtype"}),
}  # fmt: skip
_READ: dict[str, tuple[int, Callable[[Any, Any, int], Any]]] = {
    "$float": (0, _read_float),
    "$bytes": (0, lambda text, about, depth: _bytes(text)),
    "$packed": (0, lambda text, about, depth: tree_of(_bytes(text))),
    "$dict": (0, lambda held, about, depth: _read_dict(held, depth)),
    "$str": (0, _read_str),
    "$int": (codec.BIG_INT, lambda text, about, depth: _big(int(text, 16))),
    "$tuple": (codec.TUPLE, _packed),
    "$set": (codec.SET, _packed),
    "$frozenset": (codec.FROZENSET, _packed),
    "$map": (codec.MAP, _read_map),
    "$datetime": (codec.DATETIME, _read_datetime),
    "$date": (codec.DATE, _read_date),
    "$time": (codec.TIME, _read_time),
    "$timedelta": (codec.TIMEDELTA, _packed),
    "$uuid": (codec.UUID_, lambda text, about, depth: UUID(text).bytes),
    "$decimal": (codec.DECIMAL, lambda text, about, depth: text.encode("ascii")),
    "$complex": (codec.COMPLEX, _packed),
    "$type": (codec.OBJECT, _read_object),
    "$array": (codec.ARRAY, _read_array),
    "$scalar": (codec.SCALAR, _read_scalar),
    "$tracked": (codec.TRACKED, _packed),
    "$ordered": (codec.ORDERED, _read_pairs),
    "$deque": (
        codec.DEQUE,
        lambda held, about, depth: pack_tree([about.get("maxlen"), read_tree(held, depth)]),
    ),
    "$counter": (codec.COUNTER, _read_pairs),
    "$range": (codec.RANGE, _packed),
    "$fraction": (codec.FRACTION, lambda text, about, depth: text.encode("ascii")),
    "$bytearray": (codec.BYTEARRAY, lambda text, about, depth: _bytes(text)),
    "$ellipsis": (codec.ELLIPSIS, lambda text, about, depth: _bytes(text)),
    **{tag: (codec.PATH, _read_path(flavour)) for flavour, tag in PATHS.items()},
}
