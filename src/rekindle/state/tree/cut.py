"""Where a sequence is cut. Cuts follow the content, so that an insertion moves the cuts near it and no others."""

from __future__ import annotations

from collections.abc import Iterator
from zlib import crc32

BIG = 4096
"""An element larger than this is a node of its own: shared, compared and rewritten by itself."""
RUN_BYTES = 65536
_LEAST_BYTES = 4096
_TEXT_LINE = 8192
_ODD_KEY = 64


def closes_list(element: bytes, count: int, size: int) -> bool:
    """Whether a run of a list ends with this element: after about 64 elements or 64 KB."""
    if size < _LEAST_BYTES or count < 16:
        return size >= RUN_BYTES
    return size >= 2 * RUN_BYTES or count >= 256 or crc32(element) & 31 == 0


def closes_map(key: bytes, count: int, size: int) -> bool:
    """The same for a map: by its keys, so that a changed value moves no cut."""
    if size < 2 * _LEAST_BYTES:
        return False
    return size >= RUN_BYTES or count >= 512 or (count >= 64 and crc32(key) & 255 == 0)


def closes_entry(entry: bytes, count: int, size: int) -> bool:
    """The same, of an entry: a packed key with its packed value. The key alone decides."""
    return closes_map(_key_of(entry), count, size)


def _key_of(entry: bytes) -> bytes:
    first = entry[0]
    if 0xA0 <= first <= 0xBF:
        return entry[: 1 + (first & 0x1F)]
    return entry[: 2 + entry[1]] if first == 0xD9 else entry[:_ODD_KEY]


def fold_closes(digest: bytes, count: int) -> bool:
    """Whether an index ends with the item of this digest: after three or four."""
    return count >= 4 or (count >= 3 and digest[0] & 1 == 0)


def chunks(data: bytes) -> Iterator[bytes]:
    """A long text or byte string in pieces of about 16 KB that end at lines where there are any."""
    start, size = 0, 0
    for end in _lines(data):
        size = end - start
        line = data[max(start, end - 64) : end]
        if size >= RUN_BYTES or (size >= _LEAST_BYTES and crc32(line) & 127 == 0):
            yield data[start:end]
            start = end
    if start < len(data) or not data:
        yield data[start:]


def _lines(data: bytes) -> Iterator[int]:
    """Ends of lines; a line longer than 8 KB ends at a space near its 8th KB, or right there."""
    at, end = 0, len(data)
    while at < end:
        cut = data.find(b"\n", at, at + _TEXT_LINE) + 1
        if not cut:
            cut = min(at + _TEXT_LINE, end)
            if cut < end:
                space = data.rfind(b" ", at + _TEXT_LINE - 512, cut) + 1
                cut = space or cut
        at = cut
        yield at


def common_ends(a: bytes, b: bytes) -> tuple[int, int]:
    """How long the common beginning and the common end of two byte strings are; they do not overlap in either."""
    front, high = 0, min(len(a), len(b))
    while front < high:
        middle = (front + high + 1) // 2
        if a[front:middle] == b[front:middle]:
            front = middle
        else:
            high = middle - 1
    back, high = 0, min(len(a), len(b)) - front
    while back < high:
        middle = (back + high + 1) // 2
        if a[len(a) - middle : len(a) - back] == b[len(b) - middle : len(b) - back]:
            back = middle
        else:
            high = middle - 1
    return front, back
