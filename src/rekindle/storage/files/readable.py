"""A record as JSON that a person can read, and back to the very bytes.

Whatever would not come back byte for byte is base64 instead: `"packed"`, `"sealed"`, `"head"`. A document
ends with a checksum of all before it, so that one edited by hand, or by a failing disk, is never believed.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import CorruptDataError, RekindleError, UnsupportedError
from ...state.shown.plain import packed_of, plain_of
from ...state.tree.nodes import check
from ...state.tree.slots import RAW, SPLICE, pack_body, parse, unpack_body
from ...state.values.codec import array_header
from ..words import WORDS

FORMAT = 1
_CHECK_LENGTH = 16
_CHECK = b',\n "check": "'
_END = b'"\n}\n'
_SPREAD = frozenset({"slots", "elements", "entries", "values", "steps"})
"""Lists written one item a line."""

_FIXED = 20
_PLAIN = ("parent", "kind", "time", "size")
_SEALED = (
    "branch", "parent_link", "digest", "root", "label", "agent_type", "status", "metadata", "alias", "heads",
    "guard", "more",
)  # fmt: skip
_HEX = frozenset({"parent_link", "digest"})
_EPOCH = dt.datetime(1970, 1, 1)
_LIMIT = 1 << 28
_NOT_SHOWN = (RekindleError, ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError)


# -- documents -------------------------------------------------------------------------------------------


def document(fields: Mapping[str, Any]) -> bytes:
    """The fields as JSON, one a line, and a checksum of it."""
    lines = [f' "{name}": {_value(name, value)}' for name, value in {"rekindle": FORMAT, **fields}.items()]
    text = ("{\n" + ",\n".join(lines)).encode()
    return text + _ending(text)


def _ending(text: bytes) -> bytes:
    return b"".join((_CHECK, check(text).hex().encode(), _END))


def _value(name: str, value: Any) -> str:
    if name in _SPREAD and isinstance(value, list) and value:
        return "[\n  " + ",\n  ".join(map(_json, value)) + "\n ]"
    return _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def open_document(data: bytes, path: str) -> dict[str, Any]:
    """The fields again. CorruptDataError: a byte is not as it was; UnsupportedError: a newer format."""
    text = data[: max(len(data) - len(_CHECK) - _CHECK_LENGTH - len(_END), 0)]
    if data[len(text) :] != _ending(text):
        raise damaged(path, "is not what was written")
    try:
        fields = json.loads(text + b"}")
    except (ValueError, RecursionError) as e:
        raise damaged(path, f"does not read: {e}") from e
    if not isinstance(fields, dict) or type(fields.get("rekindle")) is not int:
        raise damaged(path, "does not read")
    if fields["rekindle"] > FORMAT:
        raise UnsupportedError(
            "newer-format",
            f"{path} is of format {fields['rekindle']}; this version reads up to {FORMAT}",
            hint="upgrade rekindle; nothing was changed",
        )
    return fields


def damaged(path: str, what: str) -> CorruptDataError:
    hint = "run `rekindle verify`; restore the file from a copy"
    return CorruptDataError("bad-file", f"the file {path} {what}", hint=hint)


# -- heads -----------------------------------------------------------------------------------------------


def show_head(head: bytes) -> dict[str, Any]:
    """What a head says, by name; `read_head` answers the same bytes."""
    try:
        facts = _facts(head)
        if read_head(facts) == head:
            return facts
    except _NOT_SHOWN:
        pass
    return {"head": _base64(head)}


def _facts(head: bytes) -> dict[str, Any]:
    start = value_end(head, _FIXED)
    facts = dict(zip(_PLAIN, plain_of(head[_FIXED:start]), strict=True))
    facts["time"] = (_EPOCH + dt.timedelta(milliseconds=facts["time"])).isoformat(timespec="milliseconds") + "Z"
    sealed = head[start:]
    packed = bool(head[2] & 1)
    facts |= _sealed_facts(WORDS.inflate(sealed, _LIMIT) if packed else sealed)
    if packed:  # another zstd would not compress it to the same bytes: they are kept
        del facts["root"]
        facts["sealed"] = _base64(sealed)
    return facts | {"frame": head[:_FIXED].hex()}


def _sealed_facts(sealed: bytes) -> dict[str, Any]:
    facts = dict(zip(_SEALED, plain_of(sealed), strict=False))
    for name in _HEX:
        facts[name] = _unbase64(facts[name]["$bytes"]).hex()
    metadata = _unbase64(facts.pop("metadata")["$bytes"])
    return {**facts, "metadata": plain_of(metadata)} if metadata else facts


def read_head(facts: Mapping[str, Any]) -> bytes:
    """The head's bytes, of what `show_head` made of them."""
    if "head" in facts:
        return _unbase64(facts["head"])
    time = (dt.datetime.fromisoformat(facts["time"][:-1]) - _EPOCH) // dt.timedelta(milliseconds=1)
    plain = packed_of([facts["parent"], facts["kind"], time, facts["size"]])
    sealed = _unbase64(facts["sealed"]) if "sealed" in facts else _sealed_bytes(facts)
    return b"".join((bytes.fromhex(facts["frame"]), plain, sealed))


def _sealed_bytes(facts: Mapping[str, Any]) -> bytes:
    known = dict(facts)
    for name in _HEX:
        known[name] = {"$bytes": _base64(bytes.fromhex(facts[name]))}
    known["metadata"] = {"$bytes": _base64(packed_of(facts["metadata"]) if "metadata" in facts else b"")}
    return packed_of([known[name] for name in _SEALED if name in known])


# -- bodies ----------------------------------------------------------------------------------------------


def slots_of(body: bytes) -> list[bytes] | None:
    """A body's slots; None where it is none that they give again."""
    try:
        slots = unpack_body(body)
        return slots if pack_body(slots) == body else None
    except RekindleError:
        return None


def show_slot(slot: bytes) -> dict[str, Any]:
    """A slot's elements as values, by a name that says how they lie in it; `read_slot` answers its bytes."""
    try:
        shown = _slot_shown(slot)
        if read_slot(shown) == slot:
            return shown
    except _NOT_SHOWN:
        pass
    return {"packed": _base64(slot)}


def _slot_shown(slot: bytes) -> dict[str, Any]:
    parsed = parse(slot)
    if parsed.compression != RAW:
        return {"packed": _base64(slot)}
    shown = _elements(parsed.payload, parsed.lengths) if parsed.lengths is not None else _values(parsed.payload)
    if parsed.splices is not None:
        shown["splices"] = [x for splice in parsed.splices for x in splice]
    return shown


def _elements(payload: bytes, lengths: Sequence[int]) -> dict[str, Any]:
    """A list's elements, or a map's entries: key and value lie side by side."""
    pairs = bool(lengths) and value_end(payload, 0) < lengths[0]
    values = plain_of(array_header(len(lengths) * (1 + pairs)) + payload)
    if pairs:
        return {"entries": [list(pair) for pair in zip(values[::2], values[1::2], strict=True)]}
    return {"elements": values}


def _values(payload: bytes) -> dict[str, Any]:
    try:
        text = payload.decode()
        if all(char >= " " or char in "\t\n\r\x1b" for char in text):
            return {"text": text}
    except UnicodeDecodeError:
        pass
    count = at = 0
    while at < len(payload):
        at = value_end(payload, at)
        count += 1
    values = plain_of(array_header(count) + payload)
    return {"value": values[0]} if count == 1 else {"values": values}


def read_slot(shown: Mapping[str, Any]) -> bytes:
    """The slot's bytes, of what `show_slot` made of them."""
    if "packed" in shown:
        return _unbase64(shown["packed"])
    lengths = None
    if "elements" in shown or "entries" in shown:
        parts = [packed_of(e) for e in shown["elements"]] if "elements" in shown else _entries(shown["entries"])
        lengths = [len(part) for part in parts]
    elif "text" in shown:
        parts = [shown["text"].encode()]
    else:
        parts = [packed_of(value) for value in ([shown["value"]] if "value" in shown else shown["values"])]
    splices = shown.get("splices")
    header = b"" if lengths is None else packed_of(lengths)
    if splices is not None:
        header = packed_of([lengths, splices])
    flags = RAW if splices is None else RAW | SPLICE
    return b"".join((bytes((flags,)), len(header).to_bytes(2, "little"), header, *parts))


def _entries(entries: Sequence[Any]) -> list[bytes]:
    return [packed_of(key) + packed_of(value) for key, value in entries]


# -- bytes -----------------------------------------------------------------------------------------------


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _unbase64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def value_end(data: bytes, at: int) -> int:
    """Where the MessagePack value that begins there ends. IndexError: it is cut off."""
    todo = 1
    while todo:
        todo -= 1
        first = data[at]
        at += 1
        if 0x80 <= first < 0xA0:
            todo += (first & 15) * (2 if first < 0x90 else 1)
        elif 0xA0 <= first < 0xC0:
            at += first & 31
        elif 0xC0 < first < 0xE0:
            at, more = _sized(data, at, first)
            todo += more
    if at > len(data):
        raise IndexError("a value is cut off")
    return at


def _sized(data: bytes, at: int, first: int) -> tuple[int, int]:
    """(where the value's own bytes end, values that follow in it) for the types that say their size."""
    if first in _WIDTHS:
        return at + _WIDTHS[first], 0
    size, rest, each = _COUNTED[first]
    n = int.from_bytes(data[at : at + size])
    return (at + size, n * each) if each else (at + size + rest + n, 0)


# fmt: off
_WIDTHS = {
    0xC2: 0, 0xC3: 0, 0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4,
    0xD3: 8, 0xD4: 2, 0xD5: 3, 0xD6: 5, 0xD7: 9, 0xD8: 17,
}
"""First byte of a value of fixed size -> the bytes that follow."""
_COUNTED = {
    0xC4: (1, 0, 0), 0xC5: (2, 0, 0), 0xC6: (4, 0, 0), 0xC7: (1, 1, 0), 0xC8: (2, 1, 0), 0xC9: (4, 1, 0),
    0xD9: (1, 0, 0), 0xDA: (2, 0, 0), 0xDB: (4, 0, 0), 0xDC: (2, 0, 1), 0xDD: (4, 0, 1), 0xDE: (2, 0, 2),
    0xDF: (4, 0, 2),
}
"""First byte -> (bytes of its count, bytes beside, values a count stands for: 0 where it counts bytes)."""
# fmt: on
