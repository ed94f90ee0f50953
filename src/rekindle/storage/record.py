"""A record's head: what one save says about itself, byte by byte.

`format | codec | flags | key id | checksum (8) | body checksum (8) | plain | sealed`. The checksum binds the
user, the agent and the seq, so a record that has moved is a record that is damaged; it needs no key. Plain for ever
are parent, kind, time and size; all else is in the sealed part. docs/format.md tells more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import ormsgpack

from ..errors import CorruptDataError, UnsupportedError
from ..state.tree.nodes import check
from .base import Key
from .words import WORDS

FORMAT = 1
CODEC = 1
NO_KEY = 0
_FIXED = 20
_WORTH = 320
_UUID, _SHORT = 36, 16
_LIMIT = 1 << 28
_COMPRESSED, _REACHES = 1, 2

_SEALED = (
    "branch", "parent_link", "digest", "root", "label", "agent_type", "status", "metadata", "alias", "heads", "guard",
)  # fmt: skip

FIRST_TIME, LAST_TIME = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999, as milliseconds."""
_NONE = type(None)
_TYPES = frozenset(
    (int, str, int, int, str, bytes, bytes, root, label, str, str, bytes, alias, dict, int)
    for root in (list, _NONE) for label in (str, _NONE) for alias in (str, bytes, _NONE)
)  # fmt: skip
"""What the fields of the plain and the sealed part may be, in order."""

OPERATION = "operation"
"""The kind of a record in an operation log."""


@dataclass(frozen=True, slots=True)
class Head:
    """A record's head, open. `link` names the record by its content: a child keeps its parent's."""

    key: Key
    seq: int
    parent: int
    """The parent's seq; 0 at a root."""
    kind: str
    time: int
    """Milliseconds since 1970, by the writer's clock: shown, never used for order."""
    size: int
    branch: str
    parent_link: bytes
    digest: bytes
    """Of the state: equal digests under one user are equal states."""
    root: Any
    label: str | None
    agent_type: str
    status: str
    metadata: bytes
    alias: str | None
    heads: Mapping[str, int]
    """Other branches' heads where the operation log does not know them yet."""
    guard: int
    """The user's newest operation when this was written."""
    link: bytes = b""
    body_check: bytes = b""
    more: Mapping[str, Any] = field(default_factory=dict)
    reaches: bool = False
    """Its state names slots that neither it nor its parent wrote or named: shared ones, or a pack of its own."""


EMPTIED = "emptied"
"""In `more` of a record that was collected but holds slots others name: the link it had."""


def short_id(name: str | None) -> str | bytes | None:
    """An id as a head carries it: the text of a UUID takes 16 bytes."""
    if name is not None and len(name) == _UUID:
        try:
            if str(found := UUID(name)) == name:
                return found.bytes
        except ValueError:
            pass
    return name


def long_id(stored: Any) -> str | None:
    """ValueError where it is none."""
    return str(UUID(bytes=stored)) if type(stored) is bytes else stored


def aad(key: Key, seq: int) -> bytes:
    return f"{key.user}\0{key.agent}\0{seq}\0".encode()


def seal(head: Head, body: bytes, *, compress: bool = True) -> tuple[bytes, bytes]:
    """(head bytes, link). Not compressed where people read the storage: `compress=storage.compresses`."""
    plain = ormsgpack.packb([head.parent, head.kind, head.time, head.size])
    fields = [
        head.branch, head.parent_link, head.digest, head.root, head.label, head.agent_type, head.status,
        head.metadata, short_id(head.alias), head.heads, head.guard,
    ]  # fmt: skip
    if head.more:
        fields.append(head.more)
    sealed = ormsgpack.packb(fields)
    flags = _REACHES if head.reaches else 0
    if compress and len(sealed) > _WORTH and len(small := WORDS.deflate(sealed)) < len(sealed) * 0.9:
        sealed, flags = small, flags | _COMPRESSED
    bound = aad(head.key, head.seq)
    start = bytes((FORMAT, CODEC, flags, NO_KEY))
    link = head.more.get(EMPTIED) or check(b"".join((bound, start, plain, sealed)))
    return _checked(bound, start, check(body), plain + sealed), link


def _checked(bound: bytes, start: bytes, body_check: bytes, rest: bytes) -> bytes:
    return b"".join((start, check(b"".join((bound, start, body_check, rest))), body_check, rest))


def with_body(key: Key, seq: int, head: bytes, body: bytes) -> bytes:
    """The same head over a body some slots of which were emptied; its link stays."""
    return _checked(aad(key, seq), head[:4], check(body), head[_FIXED:])


def open_head(key: Key, seq: int, data: bytes) -> Head:
    """The head, checked against its checksum and its place."""
    what = f"record {seq} of agent {key.agent!r}"
    if type(data) is not bytes or len(data) < _FIXED + 2:
        raise CorruptDataError("bad-record", f"{what} is cut off", hint="run `rekindle verify`")
    bound = aad(key, seq)
    if check(b"".join((bound, data[:4], data[12:]))) != data[4:12]:
        raise CorruptDataError("bad-record", f"{what} is not what was written", hint="run `rekindle verify`")
    if data[0] > FORMAT or data[1] > CODEC or data[2] > 3 or data[3] != NO_KEY:
        raise UnsupportedError(
            "newer-format", f"{what} is of format {data[0]}, codec {data[1]}, key {data[3]}; this reads {FORMAT}",
            hint="upgrade rekindle; nothing was changed",
        )  # fmt: skip
    try:
        plain: Any = ormsgpack.unpackb(data[_FIXED:])
        parent, kind, time, size = plain
        sealed = data[_FIXED + len(ormsgpack.packb([parent, kind, time, size])) :]
        fields: Any = ormsgpack.unpackb(WORDS.inflate(sealed, _LIMIT) if data[2] & _COMPRESSED else sealed)
        more, told = (fields[11] if len(fields) > 11 else {}), dict(zip(_SEALED, fields[:11], strict=True))
        _check_fields(seq, (parent, kind, time, size, *told.values()), more)
        told["alias"] = long_id(told["alias"])
        link = more.get(EMPTIED) or check(b"".join((bound, data[:4], data[_FIXED:])))
        return Head(
            key, seq, parent, kind, time, size, **told,
            link=link, body_check=data[12:20], more=more, reaches=bool(data[2] & _REACHES),
        )  # fmt: skip
    except (ValueError, TypeError, IndexError) as e:
        raise CorruptDataError("bad-record", f"{what} does not read: {e}", hint="run `rekindle verify`") from e


def _check_fields(seq: int, fields: tuple[Any, ...], more: Any) -> None:
    """ValueError where these are no fields of a record `seq`. A checksum is none against somebody who made one."""
    if tuple(map(type, fields)) not in _TYPES or type(more) is not dict:
        raise ValueError("a field of it is of another type")
    parent, time, size, heads = fields[0], fields[2], fields[3], fields[-2]
    if not 0 <= parent < seq or size < 0 or not FIRST_TIME <= time <= LAST_TIME:
        raise ValueError("its parent, its time or its size cannot be")
    alias = more.get("parent_alias")
    if alias is not None and type(alias) is not str and not (type(alias) is bytes and len(alias) == _SHORT):
        raise ValueError("what it calls its parent is no id")
    if heads and not set(map(type, heads.values())) <= {int}:
        raise ValueError("its heads are none")


def glimpse(data: bytes) -> tuple[int, bool]:
    """(parent, reaches) of a head, without opening or checking it."""
    try:
        return ormsgpack.unpackb(data[_FIXED:])[0], bool(data[2] & _REACHES)
    except (ValueError, TypeError, IndexError) as e:
        raise CorruptDataError("bad-record", f"a record does not read: {e}", hint="run `rekindle verify`") from e


def emptied(head: Head, body: bytes) -> bytes:
    """The head of a collected record whose body still holds slots that others name: nothing of what it said is left."""
    bare = replace(
        head, size=0, digest=b"", root=None, label=None, agent_type="", status="", metadata=b"", alias=None, heads={},
        more={EMPTIED: head.link},
    )  # fmt: skip
    return seal(bare, body)[0]


def check_body(head: Head, body: bytes) -> None:
    if type(body) is not bytes or check(body) != head.body_check:
        raise CorruptDataError(
            "bad-record", f"the body of record {head.seq} of agent {head.key.agent!r} is not what was written",
            hint="run `rekindle verify`",
        )  # fmt: skip
