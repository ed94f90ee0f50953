"""Any value as a person is shown it: cut to size, as JSON or as one short line. It is not read back."""

from __future__ import annotations

import math
import sys
from base64 import b64encode
from collections.abc import Iterable
from enum import Enum
from typing import Any

from ...quoting import escape, quote
from ..values.parts import fields_of, is_array
from ..values.registry import Opaque

_SAFE_INT = 2**53
_TEXT = 200
_ITEMS = 20
_DEPTH = 6
_REPR = 500


def plain(value: Any, *, full: bool = False) -> Any:
    """`value` as JSON holds it. What JSON has no word for is an object with one tag that begins with `$`:

        {"$int": "0x.."}  {"$float": "nan"}  {"$str": quoted, "size": n}  {"$bytes": base64, "size": n}
        {"$tuple": [..]}  {"$set": [..]}  {"$map": [[key, value], ..]} (odd keys, or with a `$` in front)
        {"$type": name, "fields": {..}}  {"$repr": text, "type": name}

    Unless `full`, long texts and bytes, long collections and what is deep inside are cut:
    `{"$cut": beginning, "size": n}`. A tag means what it means in `plain.to_plain`, which cuts nothing.
    """
    return _plain(value, full, 0)


def preview(value: Any, width: int = 60) -> str:
    """`value` on one printable line of about `width` characters, cut with `...`."""
    parts: list[str] = []
    _preview(value, width, parts)
    line = "".join(parts)
    return line if len(line) <= width else line[: max(width - 3, 1)] + "..."


def _plain(value: Any, full: bool, depth: int) -> Any:
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is int:
        return value if abs(value) < _SAFE_INT else {"$int": hex(value)}
    if kind is float:
        return value if math.isfinite(value) else {"$float": repr(value)}
    if kind is str:
        return _plain_text(value, full)
    if kind is bytes or kind is bytearray:
        return {"$bytes": b64encode(value if full else value[:_TEXT]).decode(), "size": len(value)}
    if depth >= _DEPTH and not full:
        return {"$cut": preview(value, _TEXT)}
    return _plain_container(value, full, depth + 1)


def _plain_container(value: Any, full: bool, depth: int) -> Any:
    if isinstance(value, dict):
        return _tagged_type(value, dict, _plain_dict(value, full, depth))
    if isinstance(value, list):
        return _tagged_type(value, list, _plain_items(value, len(value), full, depth))
    if isinstance(value, (set, frozenset)):
        items = sorted(value, key=lambda item: (type(item).__name__, repr(item)))
        return {"$frozenset" if isinstance(value, frozenset) else "$set": _plain_items(items, len(items), full, depth)}
    if isinstance(value, Opaque):
        return {
            "$type": escape(value.name),
            "version": value.version,
            "data": _plain(value.data, full, depth),
        }
    fields = fields_of(value)
    if fields is not None:
        return {"$type": type(value).__qualname__, "fields": _plain_dict(fields, full, depth)}
    if isinstance(value, tuple):
        return {"$tuple": _plain_items(value, len(value), full, depth)}
    return {"$repr": _shown(value), "type": type(value).__qualname__}


def _tagged_type(value: Any, base: type, made: Any) -> Any:
    return made if type(value) is base else {"$type": type(value).__qualname__, "items": made}


def _plain_text(value: str, full: bool) -> Any:
    made = value if full or len(value) <= _TEXT else value[:_TEXT]
    if not _is_utf8(made):
        return {"$str": quote(made), "size": len(value)}
    return made if len(made) == len(value) else {"$cut": made, "size": len(value)}


def _is_utf8(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)


def _plain_items(items: Iterable[Any], size: int, full: bool, depth: int) -> Any:
    if full or size <= _ITEMS:
        return [_plain(item, full, depth) for item in items]
    shown = [_plain(item, full, depth) for item, _ in zip(items, range(_ITEMS), strict=False)]
    return {"$cut": shown, "size": size}


def _plain_dict(value: dict[Any, Any], full: bool, depth: int) -> Any:
    size = len(value)
    shown = value if full or size <= _ITEMS else dict(list(value.items())[:_ITEMS])
    if all(type(key) is str and key[:1] != "$" and _is_utf8(key) for key in shown):
        made: Any = {key: _plain(held, full, depth) for key, held in shown.items()}
    else:
        made = {"$map": [[_plain(key, full, depth), _plain(held, full, depth)] for key, held in shown.items()]}
    return made if len(shown) == size else {"$cut": made, "size": size}


def _preview(value: Any, room: int, parts: list[str]) -> int:
    """Adds `value` to `parts`, about `room` characters of it; answers the room that is left."""
    if type(value) is str:
        return _put(quote(value) if len(value) <= room else f"{quote(value[:room])}", room, parts)
    if isinstance(value, dict):
        return _preview_dict(value, "{", "}", room, parts)
    if isinstance(value, (list, set, frozenset)) or (isinstance(value, tuple) and not hasattr(value, "_fields")):
        opening, closing = (
            ("[", "]") if isinstance(value, list) else ("(", ")") if isinstance(value, tuple) else ("{", "}")
        )
        return _preview_items(value, opening, closing, room, parts)
    if isinstance(value, Opaque):
        return _preview(value.data, _put(f"{escape(value.name)} ", room, parts), parts)
    fields = fields_of(value)
    if fields is not None:
        return _preview_fields(fields, escape(type(value).__qualname__), room, parts)
    words = {None: "null", True: "true", False: "false"}
    return _put(words[value] if value is None or type(value) is bool else _shown(value), room, parts)


def _put(text: str, room: int, parts: list[str]) -> int:
    parts.append(text)
    return room - len(text)


def _preview_dict(value: dict[Any, Any], opening: str, closing: str, room: int, parts: list[str]) -> int:
    room = _put(opening, room, parts)
    for index, (key, held) in enumerate(value.items()):
        if room <= 0:
            return _put("...", room, parts)
        room = _put(", " if index else "", room, parts)
        room = _put(": ", _preview(key, room, parts), parts)
        room = _preview(held, room, parts)
    return _put(closing, room, parts)


def _preview_fields(fields: dict[str, Any], name: str, room: int, parts: list[str]) -> int:
    room = _put(f"{name}(", room, parts)
    for index, (field, held) in enumerate(fields.items()):
        if room <= 0:
            return _put("...", room, parts)
        room = _preview(held, _put(f"{', ' if index else ''}{escape(field)}=", room, parts), parts)
    return _put(")", room, parts)


def _preview_items(value: Iterable[Any], opening: str, closing: str, room: int, parts: list[str]) -> int:
    room = _put(opening, room, parts)
    for index, held in enumerate(value):
        if room <= 0:
            return _put("...", room, parts)
        room = _preview(held, _put(", " if index else "", room, parts), parts)
    return _put(closing, room, parts)


def _shown(value: Any) -> str:
    """A value without insides as text, without running code of a user's class."""
    kind = type(value)
    if kind is int and value.bit_length() > 1000:
        return f"an int of {value.bit_length()} bits"
    if isinstance(value, Enum):
        return escape(f"{kind.__qualname__}.{value.name or value.value}")
    if isinstance(value, (bytes, bytearray)):
        return escape(repr(bytes(value[:_REPR])))
    if is_array(value) and getattr(value, "shape", None):
        return f"array of {value.dtype} {value.shape}"
    if is_array(value) or kind.__module__.partition(".")[0] in sys.stdlib_module_names:
        return escape(repr(value)[:_REPR])
    return escape(f"<{kind.__module__}.{kind.__qualname__}>")
