"""Slots of a journal that say again, a little otherwise, what others of it say: only what differs is stored.

Such a slot is a frame that follows the contents of its bases, slots of entries of the same checkpoint: they are
dropped together. A base stands by itself, so nothing is a chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ormsgpack

from ...errors import CorruptDataError
from .slots import AGAINST, FRAME, RAW, deflate_after, expand, inflate_after, made, parse

MOST = 32 << 10
"""Bytes of what is written so, and of what it is written against."""
_LEAST = 8
_MOST_SEQ = 1 << 32
_FIXED = 3

Base = tuple[int, int, bytes]
"""(seq, slot, content) of a slot that stands by itself."""


def against_slot(data: bytes, lengths: list[int] | None, bases: Sequence[Base]) -> bytes | None:
    """What differs from the bases; None where that is not much less than all."""
    before = b"".join([content for _, _, content in bases])
    if len(before) < _LEAST or len(data) > MOST:
        return None
    payload = deflate_after(data, before)
    if len(payload) > len(data) // 2:
        return None
    return made(AGAINST | FRAME, ormsgpack.packb([lengths, [x for base in bases for x in base[:2]]]), payload)


def bases_of(slot: bytes) -> list[tuple[int, int]]:
    """(seq, slot) of what a slot was written against, in order; nothing where it stands by itself."""
    if len(slot) < _FIXED or not slot[0] & AGAINST:
        return []
    flat = _header(slot)[1]
    if type(flat) is not list or len(flat) % 2 or not flat or set(map(type, flat)) != {int}:
        raise _bad()
    if min(flat) < 0 or max(flat) >= _MOST_SEQ or 0 in flat[::2]:
        raise _bad()
    return list(zip(flat[::2], flat[1::2], strict=True))


def by_itself(slot: bytes, bases: Sequence[bytes]) -> bytes:
    """The same content as a slot that stands by itself. `bases` are the slots it was written against."""
    before = b""
    for base in map(parse, bases):
        before += expand([(base.compression, base.payload)], MOST)
        if len(before) > MOST:
            raise _bad()
    if len(before) < _LEAST:
        raise _bad()
    lengths = _header(slot)[0]
    size = slot[1] | slot[2] << 8
    data = inflate_after(slot[_FIXED + size :], before, MOST)
    return made(RAW, ormsgpack.packb(lengths) if lengths is not None else b"", data)


def _header(slot: bytes) -> list[Any]:
    size = slot[1] | slot[2] << 8
    try:
        header: Any = ormsgpack.unpackb(slot[_FIXED : _FIXED + size])
    except ValueError as e:
        raise _bad() from e
    if type(header) is not list or len(header) != 2:
        raise _bad()
    return header


def _bad() -> CorruptDataError:
    return CorruptDataError("bad-slot", "a part of a state is not one")
