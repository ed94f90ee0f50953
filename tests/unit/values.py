"""Values of every type a state may hold, for tests that take any."""

from __future__ import annotations

import datetime as dt
from collections import Counter, OrderedDict, deque
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
from hypothesis import strategies as st

BERLIN = ZoneInfo("Europe/Berlin")
NAMED = dt.timezone(dt.timedelta(hours=-3, seconds=1), "here")

EVERY_TYPE = [
    None, True, False, 0, -1, 2**63 - 1, -(2**63), 2**64 - 1, 2**64, -(2**63) - 1, 10**5000, -(10**40),
    0.0, -0.0, 1e308, 5e-324, 0.1, float("nan"), float("inf"), float("-inf"),
    "", "text", "é\u2028\U0001f600", "\0", "a\0b", "\ud800", "\ud83d\ude00", "\\ud800", "$ref", '"',
    b"", b"\0\xff",
    [], [1, [2, [3]]], (), (1, (2, ("\ud800",))), set(), {1, "a", (2, 3), None}, frozenset({1, frozenset({2})}),
    {}, {"a": 1, "": 2}, {"b": 1, "a": 2}, {1: "int", "1": "str", None: 0, (1, 2): [], b"k": b"v"},
    {True: 1, 2: 2}, {1.5: 1, frozenset({1}): 2}, {"\ud800": 1}, {"$type": "x", "data": 1}, {"$tuple": [1]}, {"$": 0},
    dt.datetime(2024, 2, 29, 23, 59, 59, 999999), dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, tzinfo=dt.UTC),
    dt.datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=BERLIN), dt.datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN),
    dt.datetime(2024, 1, 1, tzinfo=NAMED),
    dt.datetime(2024, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=5, minutes=30))),
    dt.datetime(2024, 1, 1, tzinfo=dt.timezone(dt.timedelta(microseconds=1))), dt.date(2024, 2, 29), dt.date.min,
    dt.time(1, 2, 3, 4), dt.time(1, 2, fold=1), dt.time(1, tzinfo=dt.UTC), dt.time(1, tzinfo=NAMED),
    dt.timedelta(days=-1, microseconds=1), dt.timedelta.max,
    UUID(int=0), UUID("12345678-1234-5678-1234-567812345678"), Decimal("1.10"), Decimal("NaN"), Decimal("-Infinity"),
    Decimal("1E+1000"), Decimal("-0"), Path("/a/b"), Path("rel/\udcff"), PurePosixPath("x"), PureWindowsPath("c:\\x"),
    complex(1, -0.0), OrderedDict([("b", 1), ("a", 2)]), deque([1, 2]), deque([1], maxlen=3), Counter("hello"),
    range(1, 10, 2), Fraction(1, 3), ...,
    np.arange(6).reshape(2, 3), np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.zeros((0, 3)), np.array(5),
    np.array([0.1, 1e30], dtype="f4"), np.array([1, 2], dtype=">i2"), np.array([np.nan, np.inf, -0.0]),
    np.array(["a", "bb"]), np.array([b"x"]), np.array(["2024-01-01"], dtype="M8[D]"), np.array([1 + 2j]),
    np.zeros(2, dtype=[("a", "<f4", (2,)), ("b", "i1")]), np.zeros(2, dtype=[("a", [("x", ">i2"), ("y", "S3", (2,))])]),
    np.zeros(2, dtype=np.dtype([("a", "i1"), ("b", "i4", (2,))], align=True)), np.zeros(2, dtype=[(("title", "a"), "i4")]),
    np.ones(3, dtype=[("a", "i4"), ("b", "i4"), ("c", "i1")])[["a", "c"]], np.zeros(2, dtype=[]),
    np.ones(2, dtype={"names": ["b", "a"], "formats": ["i4", "i1"], "offsets": [4, 0]}),
    np.ones(2, dtype={"names": ["b"], "formats": ["i4"], "offsets": [2], "itemsize": 16})[0],
    np.str_(""), np.bytes_(b""), np.array(["", ""], dtype="U0"), np.void(b"ab"), np.zeros(3, "V0"), np.zeros((3, 0), "F"), np.arange(1000, dtype="u1"), np.array([True, False]),
    np.arange(10)[::3], np.float32(0.1), np.float64(2.5), np.int8(-1), np.bool_(True), np.str_("s"),
    np.datetime64("2024-01-01T00:00:01"), np.timedelta64(5, "s"), np.float16(1.5), np.longdouble(1) / 3,
]  # fmt: skip


def name_of(value: Any) -> str:
    """A short name for a test with this value."""
    if type(value) is int:
        return f"int of {value.bit_length()} bits"
    if isinstance(value, (set, frozenset)):
        return f"{type(value).__name__} of {len(value)}"  # its order is another in every process
    return repr(value)[:40].encode("ascii", "backslashreplace").decode()


_zones = st.sampled_from([None, dt.UTC, BERLIN, NAMED, dt.timezone(dt.timedelta(hours=2))])
_wild = st.text(st.characters(), max_size=8) | st.sampled_from(["\ud800", "\udfff\ud800", "\0", "$x", "$tuple"])
_plain = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**200), 2**200)
    | st.floats()
    | _wild
    | st.binary(max_size=20)
)
_hashable = st.recursive(
    _plain.filter(lambda x: x == x)
    | st.dates()
    | st.uuids()
    | st.fractions()
    | st.datetimes(timezones=_zones.filter(bool) | st.none()),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3),
    max_leaves=4,
)
_scalars = (
    _hashable
    | _plain
    | st.times()
    | st.timedeltas()
    | st.decimals()
    | st.complex_numbers()
    | st.sampled_from([x for x in EVERY_TYPE if isinstance(x, (np.ndarray, np.generic, Path))])
)
trees = st.recursive(
    _scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(_wild, inner, max_size=4)
        | st.dictionaries(_hashable, inner, max_size=3)
        | st.dictionaries(_hashable, inner, max_size=3).map(OrderedDict)
        | st.lists(inner, max_size=3).map(lambda items: deque(items, 7))
        | st.sets(_hashable, max_size=4)
    ),
    max_leaves=25,
)
