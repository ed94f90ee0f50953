"""The bytes of a portable file (docs/design/004-portable-file.md): parts in a row, each checked, none left out.

`magic | part ...`, a part `kind (1) | size (4) | stored size (4) | check (8) | stored bytes`. The check covers the
part and the check of the one before. The first part is a header, then come blocks of entries, the last is the end.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, BinaryIO

from ...errors import CorruptDataError, InvalidInputError, UnavailableError, UnsupportedError
from ...state.tree.nodes import check
from ...state.tree.slots import deflate, inflate
from ...state.values import codec

MAGIC = b"rekindle export\n"
FORMAT = 1
HEADER, BLOCK, END = b"H", b"B", b"E"
_FIXED = 17
_BLOCK_BYTES = 256 << 10
_KEPT_BLOCKS = 8


class PortableWriter:
    """Entries are numbered by the caller; `close` makes it a whole file."""

    def __init__(self, file: BinaryIO, header: dict[str, Any]) -> None:
        self._file = file
        self._check = b""
        self._entries: list[bytes] = []
        self._size = 0
        self._write(MAGIC)
        self._part(HEADER, codec.pack({"format": FORMAT, **header}))

    def add(self, entry: list[Any]) -> None:
        data = codec.pack(entry)
        self._entries.append(data)
        self._size += len(data)
        if self._size >= _BLOCK_BYTES:
            self._flush()

    def close(self, end: dict[str, Any]) -> None:
        self._flush()
        self._part(END, codec.pack(end))

    def _flush(self) -> None:
        if self._entries:
            self._part(BLOCK, codec.array_header(len(self._entries)) + b"".join(self._entries))
            self._entries, self._size = [], 0

    def _part(self, kind: bytes, data: bytes) -> None:
        stored = deflate(data)
        start = kind + len(data).to_bytes(4, "little") + len(stored).to_bytes(4, "little")
        self._check = check(b"".join((self._check, start, stored)))
        self._write(b"".join((start, self._check, stored)))

    def _write(self, data: bytes) -> None:
        try:
            self._file.write(data)
        except OSError as e:
            raise UnavailableError("export-failed", f"the export cannot be written: {e.strerror}") from e


class PortableFile:
    """A portable file being read, which can seek. Every part read is checked."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._start = file.tell()
        self._blocks: list[tuple[int, bytes]] = []
        self._open: OrderedDict[int, list[Any]] = OrderedDict()
        self.end: dict[str, Any] = {}
        self._seek(self._start)
        _check_magic(self._read(len(MAGIC)))
        kind, data, self._first = self._part(self._start + len(MAGIC), b"")
        if kind != HEADER:
            raise damaged("it begins with no header")
        self.header = _dict(data)
        if self.header.get("format") != FORMAT:
            raise UnsupportedError(
                "newer-format", f"the file is of format {self.header.get('format')}; this version reads {FORMAT}",
                hint="upgrade rekindle; nothing was changed",
            )  # fmt: skip

    def scan(self) -> Iterator[tuple[int, list[Any]]]:
        """(block, entries) of the whole file, to its end, where it must end. Then `block` answers any of them."""
        at, before = self._first
        self._blocks = []
        while True:
            place = at, before
            kind, data, (at, before) = self._part(at, before)
            if kind == END:
                break
            if kind != BLOCK:
                raise damaged("a part of it is of no known kind")
            self._blocks.append(place)
            yield len(self._blocks) - 1, _entries(data)
        if self._read(1):
            raise damaged("there is more after its end")
        self.end = _dict(data)

    def block(self, number: int) -> list[Any]:
        held = self._open.get(number)
        if held is None:
            held = self._open[number] = _entries(self._part(*self._blocks[number])[1])
            while len(self._open) > _KEPT_BLOCKS:
                self._open.popitem(last=False)
        else:
            self._open.move_to_end(number)
        return held

    @property
    def blocks(self) -> int:
        return len(self._blocks)

    def _part(self, at: int, before: bytes) -> tuple[bytes, bytes, tuple[int, bytes]]:
        """(kind, data, where the next part is and the check it follows)."""
        self._seek(at)
        start = self._read(_FIXED)
        if len(start) < _FIXED:
            raise damaged("it is cut off")
        size, stored_size = int.from_bytes(start[1:5], "little"), int.from_bytes(start[5:9], "little")
        stored = self._read(stored_size)
        if len(stored) < stored_size:
            raise damaged("it is cut off, or its sizes are wrong")
        if check(b"".join((before, start[:9], stored))) != start[9:]:
            raise damaged("a part of it is not what was written")
        data = inflate(stored, size)
        if len(data) != size:
            raise damaged("a part of it is not as long as it says")
        return start[:1], data, (at + _FIXED + stored_size, start[9:])

    def _seek(self, at: int) -> None:
        try:
            self._file.seek(at)
        except OSError as e:
            raise UnavailableError("import-failed", f"the file cannot be read: {e.strerror}") from e

    def _read(self, size: int) -> bytes:
        try:
            return self._file.read(size)
        except OSError as e:
            raise UnavailableError("import-failed", f"the file cannot be read: {e.strerror}") from e


def _check_magic(start: bytes) -> None:
    if start == MAGIC:
        return
    alike = sum(a == b for a, b in zip(start, MAGIC, strict=False))
    if alike >= 12 or MAGIC.startswith(start):
        raise damaged("its beginning is not that of an export")
    raise InvalidInputError(
        "not-an-export", "the file is not a rekindle export", hint="make one with `rekindle export`"
    )


def _entries(data: bytes) -> list[Any]:
    entries = codec.unpack(data, opaque=True)
    if not isinstance(entries, list) or not all(isinstance(entry, list) and entry for entry in entries):
        raise damaged("a part of it holds no entries")
    return entries


def _dict(data: bytes) -> dict[str, Any]:
    value = codec.unpack(data, opaque=True)
    if not isinstance(value, dict):
        raise damaged("a part of it is not one")
    return value


def damaged(why: str) -> CorruptDataError:
    return CorruptDataError(
        "bad-export", f"the file is damaged: {why}", hint="nothing was imported; make or copy it again"
    )
