"""Plain values <-> bytes: MessagePack, data only.

What MessagePack has no word for travels as an extension type with a code of ours. The encoder is strict: a tuple
is never written as a list, a subclass never as its base, so that what comes back is equal and of the same type.
Reading builds nothing but the types listed here and those registered by name.
"""

from __future__ import annotations

import datetime as dt
import sys
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PosixPath, PurePath, PurePosixPath, PureWindowsPath
from typing import Any
from uuid import UUID

import ormsgpack
from ormsgpack import Ext

from ...errors import CorruptDataError, InvalidInputError, RekindleError
from ..tracked import TrackedDict, TrackedList, tracked
from .arrays import array_data, array_of
from .registry import Opaque, build, entry_for, numpy_loaded, unregistered, unsavable
from .zones import pack_zone, zone_of

# Codes are stored: never renumber, only add.
TUPLE, SET, FROZENSET, BIG_INT, WILD_STR, MAP, DATETIME, DATE, TIME, TIMEDELTA = range(1, 11)
UUID_, DECIMAL, PATH, COMPLEX, OBJECT, ARRAY, SCALAR, TRACKED, ORDERED, DEQUE = range(11, 21)
COUNTER, RANGE, FRACTION, BYTEARRAY, ELLIPSIS = range(21, 26)

MAX_DEPTH = 200
EXACT = (
    ormsgpack.OPT_PASSTHROUGH_BIG_INT
    | ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_SUBCLASS
    | ormsgpack.OPT_PASSTHROUGH_TUPLE
    | ormsgpack.OPT_PASSTHROUGH_UUID
)
_packb = ormsgpack.packb
_unpackb = ormsgpack.unpackb
Extend = Callable[[Any], Any]
"""What MessagePack's encoder asks for a value it has no exact word for."""


def pack(value: Any, *, tracks: bool = True) -> bytes:
    """A value as bytes; equal values of equal types give equal bytes (sets are sorted, dict order counts).

    `tracks=False` writes tracked containers as plain ones: inside a tracked container they are understood.
    A bytearray comes back as bytes.
    """
    try:
        return _packb(value, _extend if tracks else _extend_inside, EXACT)
    except (TypeError, RekindleError, RecursionError):
        # rare: a lone surrogate, a key that is not a str, a type nobody registered. Say where, or write it out.
        try:
            return _packb(_spell_out(value, "", 0, tracks), _extend, EXACT)
        except RecursionError as e:
            raise too_deep("") from e


def too_deep(where: str) -> InvalidInputError:
    at = f" at {where[:80]}…" if where else ""
    return InvalidInputError("too-deep", f"the state is nested more than {MAX_DEPTH} deep{at}", hint="is it cyclic?")


def unpack(data: bytes, *, opaque: bool = False) -> Any:
    """The value of bytes that `pack` wrote. With `opaque`, unregistered types come back as `Opaque` data."""
    failed: list[RekindleError] = []
    depth = 0

    def hook(code: int, payload: bytes) -> Any:
        nonlocal depth
        if failed:
            return None
        depth += 1
        try:
            if depth > MAX_DEPTH + 8:  # a leaf of what was packed may be an extension too
                raise CorruptDataError("too-deep", f"extension values nested more than {MAX_DEPTH} deep")
            if code == OBJECT:
                name, version, held = _unpackb(payload, ext_hook=hook)
                if failed:
                    return None
                return Opaque(name, version, held) if opaque else build(name, version, held)
            raw = _RAW_READERS.get(code)
            if raw is not None:
                return raw(payload)
            read = _reader(code)
            held = _unpackb(payload, ext_hook=hook)
            return None if failed else read(held)
        except RekindleError as e:
            failed.append(e)
        except Exception as e:  # noqa: BLE001 - hostile data may raise anything, and answers with one error
            failed.append(CorruptDataError("bad-value", f"extension {code} holds no such value: {e!r}"))
        finally:
            depth -= 1

    try:
        value = _unpackb(data, ext_hook=hook)
    except (ValueError, RecursionError) as e:
        raise failed[0] if failed else CorruptDataError("bad-encoding", f"not a value: {e}") from e
    if failed:
        raise failed[0]
    return value


def _sorted_items(value: Any, extend: Extend) -> bytes:
    items = sorted([_packb(v, extend, EXACT) for v in value])
    return _header(len(items)) + b"".join(items)


def _header(n: int) -> bytes:
    """MessagePack's array header."""
    return bytes((0x90 | n,)) if n < 16 else b"\xdc" + n.to_bytes(2) if n < 65536 else b"\xdd" + n.to_bytes(4)


def map_header(n: int) -> bytes:
    return bytes((0x80 | n,)) if n < 16 else b"\xde" + n.to_bytes(2) if n < 65536 else b"\xdf" + n.to_bytes(4)


array_header = _header


def header_size(n: int) -> int:
    """How many bytes the header of an array or map of n elements takes."""
    return 1 if n < 16 else 3 if n < 65536 else 5


def _pack_path(value: PurePath) -> Ext:
    flavour = "path" if isinstance(value, Path) else "windows" if isinstance(value, PureWindowsPath) else "posix"
    return Ext(PATH, pack([flavour, str(value)]))


def _pack_datetime(v: dt.datetime) -> Ext:
    at = [v.year, v.month, v.day, v.hour, v.minute, v.second, v.microsecond, v.fold]
    return Ext(DATETIME, _packb([*at, pack_zone(v.tzinfo)]))


def _pack_time(v: dt.time) -> Ext:
    return Ext(TIME, _packb([v.hour, v.minute, v.second, v.microsecond, v.fold, pack_zone(v.tzinfo)]))


def _pack_int(v: int) -> Ext:
    return Ext(BIG_INT, v.to_bytes(v.bit_length() // 8 + 1, "little", signed=True))


_INSIDES: dict[type, tuple[int, Callable[[Any], list[Any]]]] = {
    tuple: (TUPLE, list),
    OrderedDict: (ORDERED, lambda v: [list(p) for p in v.items()]),
    deque: (DEQUE, lambda v: [v.maxlen, list(v)]),
    Counter: (COUNTER, lambda v: [list(p) for p in v.items()]),
    Opaque: (OBJECT, lambda v: [v.name, v.version, v.data]),
}
_WRITERS: dict[type, Callable[[Any], Ext]] = {
    int: _pack_int,
    dt.datetime: _pack_datetime,
    dt.date: lambda v: Ext(DATE, _packb([v.year, v.month, v.day])),
    dt.time: _pack_time,
    dt.timedelta: lambda v: Ext(TIMEDELTA, _packb([v.days, v.seconds, v.microseconds])),
    UUID: lambda v: Ext(UUID_, v.bytes),
    Decimal: lambda v: Ext(DECIMAL, str(v).encode()),
    PurePosixPath: _pack_path,
    PureWindowsPath: _pack_path,
    type(Path()): _pack_path,
    complex: lambda v: Ext(COMPLEX, _packb([v.real, v.imag])),
    range: lambda v: Ext(RANGE, pack([v.start, v.stop, v.step])),
    Fraction: lambda v: Ext(FRACTION, str(v).encode()),
    type(...): lambda v: Ext(ELLIPSIS, b""),
}


def _of_parts(code: int, parts: Callable[[Any], list[Any]]) -> Callable[[Any, Extend, Extend], Ext]:
    return lambda v, extend, _: Ext(code, _packb(parts(v), extend, EXACT))


_HOLDERS: dict[type, Callable[[Any, Extend, Extend], Ext]] = {
    **{t: _of_parts(*known) for t, known in _INSIDES.items()},
    set: lambda v, extend, _: Ext(SET, _sorted_items(v, extend)),
    frozenset: lambda v, extend, _: Ext(FROZENSET, _sorted_items(v, extend)),
    TrackedList: lambda v, _, extend_inside: Ext(TRACKED, _packb(list(v), extend_inside, EXACT)),
    TrackedDict: lambda v, _, extend_inside: Ext(TRACKED, _packb(dict(v), extend_inside, EXACT)),
}
"""What holds other values: their insides are packed with what extends one level deeper, or inside of tracked ones."""
OWN = frozenset((list, dict, *_WRITERS, *_HOLDERS))
"""Whoever registers one of these types changes nothing."""


def _insides(value: Any) -> tuple[int, list[Any]] | None:
    """(code, what is inside) of a value that holds others and travels as an extension."""
    known = _INSIDES.get(type(value))
    if known is not None:
        return known[0], known[1](value)
    entry = entry_for(type(value))
    return None if entry is None else (OBJECT, [entry.name, entry.version, entry.dump(value)])


def _level(deeper: Extend, deeper_inside: Extend) -> tuple[Extend, Extend]:
    """What extends at one level, and what does so inside of tracked containers. A level knows the one below it:
    so nothing has to be counted, in any thread, and the last one refuses."""

    def extend(value: Any) -> Any:
        """What to write for a value MessagePack has no exact word for."""
        kind = type(value)
        entry = entry_for(kind)
        if entry is not None and kind not in OWN:
            return Ext(OBJECT, _packb([entry.name, entry.version, entry.dump(value)], deeper, EXACT))
        write = _WRITERS.get(kind)
        if write is not None:
            return write(value)
        hold = _HOLDERS.get(kind)
        if hold is not None:
            return hold(value, deeper, deeper_inside)
        numpy = numpy_loaded()
        if numpy is not None and kind.__module__ == "numpy":
            return _pack_numpy(numpy, value)
        raise unsavable(value, "")

    def extend_inside(value: Any) -> Any:
        if type(value) is TrackedDict:
            return dict(value)
        return list(value) if type(value) is TrackedList else extend(value)

    return extend, extend_inside


def _levels() -> tuple[Extend, Extend]:
    def refuse(_: Any) -> Any:
        raise too_deep("")

    levels: tuple[Extend, Extend] = refuse, refuse
    for _ in range(MAX_DEPTH):
        levels = _level(*levels)
    return levels


_extend, _extend_inside = _levels()


def _pack_numpy(numpy: Any, value: Any) -> Ext:
    held = array_data(numpy, value)
    if held is None:
        raise unsavable(value, "")
    return Ext(ARRAY if len(held) == 4 else SCALAR, pack(held))


def _spell_out(value: Any, where: str, depth: int, tracks: bool) -> Any:
    """The value with everything MessagePack's encoder refuses outright already written as extensions."""
    if depth > MAX_DEPTH:
        raise too_deep(where)
    t = type(value)
    if t is str:
        return _spell_str(value)
    if t is list or t is TrackedList:
        plain = [_spell_out(v, f"{where}[{i}]", depth + 1, tracks) for i, v in enumerate(value)]
        return Ext(TRACKED, _packb(plain, _extend, EXACT)) if tracks and t is TrackedList else plain
    if t is dict or t is TrackedDict:
        out = _spell_dict(value, where, depth, tracks)
        return Ext(TRACKED, _packb(out, _extend, EXACT)) if tracks and t is TrackedDict else out
    if t is set or t is frozenset:
        items = sorted(_packb(_spell_out(v, f"{where}{{…}}", depth + 1, True), _extend, EXACT) for v in value)
        return Ext(SET if t is set else FROZENSET, _header(len(items)) + b"".join(items))
    if value is None or t in (bool, int, float, bytes, bytearray, Ext):
        return value
    inside = _insides(value)
    if inside is not None:
        return _spell_insides(*inside, where, depth)
    try:
        return _extend(value)
    except InvalidInputError as e:
        raise (
            unsavable(value, where.lstrip("."))
            if e.code == "type-unregistered" and where and entry_for(t) is None
            else e
        ) from None


def _spell_insides(code: int, held: list[Any], where: str, depth: int) -> Ext:
    if code in (OBJECT, DEQUE):
        *about, data = held
        spelled = [*(_spell_out(x, where, depth + 1, True) for x in about), _spell_out(data, where, depth + 1, True)]
    else:
        spelled = [_spell_out(x, f"{where}[{i}]", depth + 1, True) for i, x in enumerate(held)]
    return Ext(code, _packb(spelled, _extend, EXACT))


def _spell_dict(value: Any, where: str, depth: int, tracks: bool) -> Any:
    plain = {}
    for k, v in value.items():
        at = f"{where}.{k}" if isinstance(k, str) else f"{where}[{k!r}]"
        plain[k] = _spell_out(v, at, depth + 1, tracks)
    if all(type(k) is str and not _is_wild(k) for k in plain):
        return plain
    pairs = [x for k, v in plain.items() for x in (_spell_out(k, f"{where} (a key)", depth + 1, tracks), v)]
    return Ext(MAP, _packb(pairs, _extend, EXACT))


def _is_wild(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _spell_str(text: str) -> Any:
    return Ext(WILD_STR, text.encode("utf-8", "surrogatepass")) if _is_wild(text) else text


def _pairs(flat: list[Any]) -> dict[Any, Any]:
    if len(flat) % 2:
        raise CorruptDataError("bad-value", "a map with a key and no value")
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _revive_tracked(stored: Any) -> Any:
    if type(stored) not in (list, dict):
        raise CorruptDataError("bad-value", "a tracked container that is neither a list nor a dict")
    return tracked(stored)


def _revive_datetime(stored: list[Any]) -> dt.datetime:
    year, month, day, hour, minute, second, micro, fold, zone = stored
    return dt.datetime(year, month, day, hour, minute, second, micro, zone_of(zone), fold=fold)


def _revive_time(stored: list[Any]) -> dt.time:
    hour, minute, second, micro, fold, zone = stored
    return dt.time(hour, minute, second, micro, zone_of(zone), fold=fold)


def _revive_path(flavour: str, text: str) -> PurePath:
    if flavour == "path" and sys.platform != "win32":
        return PosixPath(text)
    return Path(text) if flavour == "path" else PureWindowsPath(text) if flavour == "windows" else PurePosixPath(text)


def _revive_array(stored: list[Any]) -> Any:
    text, shape, order, data = stored
    return array_of(text, shape, order, bytearray(data))


def _revive_scalar(stored: list[Any]) -> Any:
    return array_of(stored[0], (), "C", stored[1])[()]


_READERS: dict[int, Callable[[Any], Any]] = {
    TUPLE: tuple,
    SET: set,
    FROZENSET: frozenset,
    MAP: _pairs,
    DATETIME: _revive_datetime,
    DATE: lambda v: dt.date(*v),
    TIME: _revive_time,
    TIMEDELTA: lambda v: dt.timedelta(*v),
    PATH: lambda v: _revive_path(*v),
    COMPLEX: lambda v: complex(*v),
    ARRAY: _revive_array,
    SCALAR: _revive_scalar,
    TRACKED: _revive_tracked,
    ORDERED: OrderedDict,
    DEQUE: lambda v: deque(v[1], v[0]),
    COUNTER: lambda v: Counter(dict(v)),
    RANGE: lambda v: range(*v),
}
_RAW_READERS: dict[int, Callable[[bytes], Any]] = {
    BIG_INT: lambda b: int.from_bytes(b, "little", signed=True),
    WILD_STR: lambda b: b.decode("utf-8", "surrogatepass"),
    UUID_: lambda b: UUID(bytes=b),
    DECIMAL: lambda b: Decimal(b.decode()),
    FRACTION: lambda b: Fraction(b.decode()),
    BYTEARRAY: bytearray,
    ELLIPSIS: lambda b: ...,
}


def _reader(code: int) -> Callable[[Any], Any]:
    read = _READERS.get(code)
    if read is None:
        raise CorruptDataError(
            "unknown-value", f"extension type {code} is not known to this version", hint="a newer rekindle wrote it"
        )
    return read


__all__ = ["Opaque", "array_header", "header_size", "map_header", "pack", "unpack", "unregistered"]
