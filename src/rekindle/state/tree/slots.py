"""Slots: the pieces of state that one record carries, and how their bytes are laid out and compressed.

A slot is `flags | header length (u16) | header | payload`. A run that grows by appending is one zstd stream, cut
where each save ended: its pieces, joined, are decompressed in one go, and a piece of 2 KB costs what it would cost
in the middle of 64 KB.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ormsgpack

from ...errors import CorruptDataError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

RAW, FRAME, STREAM, CONTINUED = 0, 1, 2, 3
_COMPRESSION = 3
SPLICE = 4
AGAINST = 8
"""See `against`."""
_LEAST_WORTH = 128
_SIZE_LIMIT = 1 << 31
_STREAM_OPTIONS: dict[int, int] = {
    zstd.CompressionParameter.compression_level: 1,
    zstd.CompressionParameter.window_log: 17,
}
_KEPT = 8
_SHORT_OPTIONS: dict[int, int] = {
    zstd.CompressionParameter.compression_level: 3,
    zstd.CompressionParameter.content_size_flag: 0,
    zstd.CompressionParameter.dict_id_flag: 0,
}

Splice = tuple[int, int, int]
"""(start, removed, added): replace so many elements from there by so many of the payload's next ones."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot taken apart. `lengths` of its elements (None where they were not kept), splices where it edits."""

    compression: int
    splices: Sequence[Splice] | None
    lengths: list[int] | None
    payload: bytes


class Stream:
    """The live compressor of a run that still grows."""

    __slots__ = ("_compressor",)

    def __init__(self) -> None:
        self._compressor = zstd.ZstdCompressor(options=_STREAM_OPTIONS)

    def add(self, data: bytes) -> bytes:
        return self._compressor.compress(data, zstd.ZstdCompressor.FLUSH_BLOCK)


def made(flags: int, header: bytes, payload: bytes) -> bytes:
    return b"".join((bytes((flags,)), len(header).to_bytes(2, "little"), header, payload))


def plain_slot(data: bytes, lengths: list[int] | None, *, compress: bool) -> bytes:
    """A whole run, or whatever else is bytes, on its own."""
    header = ormsgpack.packb(lengths) if lengths is not None else b""
    flags, payload = _frame(data, compress)
    return made(flags, header, payload)


def splice_slot(data: bytes, lengths: list[int] | None, splices: list[Splice], *, compress: bool) -> bytes:
    header = ormsgpack.packb([lengths, [x for s in splices for x in s]])
    flags, payload = _frame(data, compress)
    return made(flags | SPLICE, header, payload)


def stream_slot(data: bytes, lengths: list[int] | None, stream: Stream, *, first: bool) -> bytes | None:
    """The next piece of a stream; None (and the stream is spent) where compressing does not pay."""
    payload = stream.add(data)
    if len(payload) > len(data) * 0.97:
        return None
    header = ormsgpack.packb(lengths) if lengths is not None else b""
    return made(STREAM if first else CONTINUED, header, payload)


def _frame(data: bytes, compress: bool) -> tuple[int, bytes]:
    if compress and len(data) >= _LEAST_WORTH:
        small = deflate(data)
        if len(small) < len(data) * 0.97:
            return FRAME, small
    return RAW, data


def parse(slot: bytes) -> Slot:
    if len(slot) < 3:
        raise CorruptDataError("slot-missing", "a part of a state is not where its record says")
    flags, size = slot[0], slot[1] | slot[2] << 8
    if flags > 7 or size > len(slot) - 3:
        raise CorruptDataError("bad-slot", "a part of a state is not one")
    header, payload = slot[3 : 3 + size], slot[3 + size :]
    try:
        stored: Any = ormsgpack.unpackb(header) if header else None
        if not flags & SPLICE:
            return Slot(flags, None, _numbers(stored), payload)
        lengths, flat = _numbers(stored[0]), _numbers(stored[1])
        splices = [(flat[i], flat[i + 1], flat[i + 2]) for i in range(0, len(flat), 3)]
    except (ValueError, TypeError, IndexError) as e:
        raise CorruptDataError("bad-slot", f"a part of a state is not one: {e}") from e
    return Slot(flags & _COMPRESSION, splices, lengths, payload)


def _numbers(stored: Any) -> Any:
    if stored is not None and (
        type(stored) is not list or not set(map(type, stored)) <= {int} or min(stored, default=0) < 0
    ):
        raise ValueError("its lengths are none")
    return stored


def expand(pieces: Sequence[tuple[int, bytes]], limit: int = _SIZE_LIMIT) -> bytes:
    """The bytes of pieces (compression, payload) in order, each stream decompressed in one go.

    `limit` is what the record says they come to: a bomb is refused before it is inflated.
    """
    if all(compression == RAW for compression, _ in pieces):
        return b"".join(payload for _, payload in pieces) if len(pieces) != 1 else pieces[0][1]
    out: list[bytes] = []
    group: list[bytes] = []
    for compression, payload in pieces:
        if compression != CONTINUED and group:
            out.append(_inflate(b"".join(group), limit))
            group = []
        if compression == RAW:
            out.append(payload)
        else:
            group.append(payload)
    if group:
        out.append(_inflate(b"".join(group), limit))
    return b"".join(out)


def apart(found: Sequence[bytes]) -> list[Slot]:
    """Slots taken apart, and nothing of them compressed any more; what a stream continues must be among them."""
    pieces = []
    stream = None
    for slot in map(parse, found):
        payload = slot.payload
        try:
            if slot.compression in (FRAME, STREAM):
                stream = zstd.ZstdDecompressor()
            if slot.compression != RAW:
                if stream is None:
                    raise CorruptDataError("bad-slot", "a part of a state continues one that is not there")
                payload = stream.decompress(payload, max_length=_SIZE_LIMIT)
        except (zstd.ZstdError, EOFError) as e:
            raise CorruptDataError("bad-compression", f"a part of a state does not decompress: {e}") from e
        pieces.append(Slot(RAW, slot.splices, slot.lengths, payload))
    return pieces


def _inflate(data: bytes, limit: int) -> bytes:
    try:
        return zstd.ZstdDecompressor().decompress(data, max_length=limit + 1)
    except (zstd.ZstdError, EOFError) as e:
        raise CorruptDataError("bad-compression", f"a part of a state does not decompress: {e}") from e


class _Frames:
    """Whole frames. Compressors are kept: making one costs twenty times what it mostly has to do. Whoever needs one
    takes one, in whatever thread: a program may have new threads all the time."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._idle: list[Any] = []

    def deflate(self, data: bytes) -> bytes:
        try:
            compressor = self._idle.pop()
        except IndexError:
            compressor = self._make()
        frame: bytes = compressor.compress(data, zstd.ZstdCompressor.FLUSH_FRAME)
        if len(self._idle) < _KEPT:
            self._idle.append(compressor)
        return frame


class Words:
    """What short pieces have in common: they are compressed as if it stood before them. It is a part of the format."""

    def __init__(self, words: bytes) -> None:
        self._dict = zstd.ZstdDict(words, is_raw=True)
        self._frames = _Frames(lambda: zstd.ZstdCompressor(options=_SHORT_OPTIONS, zstd_dict=self._dict))

    def deflate(self, data: bytes) -> bytes:
        return self._frames.deflate(data)

    def inflate(self, data: bytes, limit: int) -> bytes:
        try:
            return zstd.ZstdDecompressor(zstd_dict=self._dict).decompress(data, max_length=limit + 1)
        except (zstd.ZstdError, EOFError) as e:
            raise CorruptDataError("bad-compression", f"a part of a record does not decompress: {e}") from e


_frames = _Frames(lambda: zstd.ZstdCompressor(level=1))


def deflate(data: bytes) -> bytes:
    """One frame."""
    return _frames.deflate(data)


def inflate(data: bytes, limit: int) -> bytes:
    return _inflate(data, limit)


def deflate_after(data: bytes, before: bytes) -> bytes:
    """One frame of what follows `before`, which is not in it."""
    return zstd.compress(data, level=1, zstd_dict=zstd.ZstdDict(before, is_raw=True).as_prefix)


def inflate_after(data: bytes, before: bytes, limit: int) -> bytes:
    try:
        prefix = zstd.ZstdDict(before, is_raw=True).as_prefix
        return zstd.ZstdDecompressor(zstd_dict=prefix).decompress(data, max_length=limit + 1)
    except (zstd.ZstdError, EOFError, ValueError) as e:
        raise CorruptDataError("bad-compression", f"a part of a state does not decompress: {e}") from e


# A record's body: how many slots, their lengths, the slots. Emptied slots keep their number with length 0.


def pack_body(slots: Sequence[bytes]) -> bytes:
    lengths = b"".join(len(s).to_bytes(4, "little") for s in slots)
    return b"".join((len(slots).to_bytes(4, "little"), lengths, *slots))


def unpack_body(body: bytes) -> list[bytes]:
    if type(body) is not bytes or (at := 4 + 4 * (n := int.from_bytes(body[:4], "little"))) > len(body):
        raise CorruptDataError("bad-body", "a record's body is not one")
    slots = []
    for i in range(n):
        size = int.from_bytes(body[4 + 4 * i : 8 + 4 * i], "little")
        slots.append(body[at : at + size])
        at += size
    if at != len(body):
        raise CorruptDataError("bad-body", "a record's body is not as long as its slots")
    return slots


NOTHING = b"\0\1\0\x90"
"""A slot that holds no elements."""


def slot_in(body: bytes | None, number: int) -> bytes:
    """The slot of that number; NOTHING where there is no such record, or it has no such slot."""
    slots = () if body is None else unpack_body(body)
    return (slots[number] if number < len(slots) else b"") or NOTHING


def slots_of(bodies: Sequence[bytes], number: int) -> list[bytes]:
    """The slot of that number of each body."""
    try:
        return _slots_of(bodies, number)
    except TypeError as e:  # a damaged row may hold another type
        raise CorruptDataError("bad-body", "a record's body is not one") from e


def _slots_of(bodies: Sequence[bytes], number: int) -> list[bytes]:
    if number or any(b[1:4] != b"\0\0\0" for b in bodies):
        return [_slot_of(b, number) for b in bodies]
    # fewer than 256 slots each, the first one wanted: the hot path of a restore
    return [b[(at := 4 + 4 * b[0]) : at + int.from_bytes(b[4:8], "little")] for b in bodies]


def _slot_of(body: bytes, number: int) -> bytes:
    slots = unpack_body(body)
    if number >= len(slots):
        raise CorruptDataError("slot-missing", "a part of a state is not where its record says")
    return slots[number]
