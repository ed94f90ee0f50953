"""A state as JSON is readable, and comes back exactly."""

from __future__ import annotations

import base64
import datetime as dt
import enum
import json
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from tests.unit.values import BERLIN, EVERY_TYPE, name_of, trees

from rekindle.errors import InvalidInputError
from rekindle.state.shown.plain import from_plain, packed_of, plain_of, to_plain
from rekindle.state.tracked import tracked
from rekindle.state.values import codec, registry
from rekindle.state.values.canon import same
from rekindle.state.values.registry import Opaque, register


@register(name="plain.Point", version=3)
@dataclass
class Point:
    x: int
    y: Any


@register(name="plain.Color")
class Color(enum.Enum):
    RED = "r"


def through_json(value: Any, *, opaque: bool = False) -> Any:
    return from_plain(json.loads(json.dumps(to_plain(value), allow_nan=False)), opaque=opaque)


@pytest.mark.parametrize("value", EVERY_TYPE, ids=name_of)
def test_every_type_comes_back_the_same(value: Any) -> None:
    again = through_json(value)
    assert same(again, value)
    assert codec.pack(again) == codec.pack(value)
    assert same(through_json({"in": [value, (value,)]}), {"in": [value, (value,)]})


@settings(max_examples=300, deadline=None)
@given(trees)
def test_any_tree_comes_back_the_same(value: Any) -> None:
    packed = codec.pack(value)
    shown = json.loads(json.dumps(plain_of(packed), allow_nan=False, ensure_ascii=False))
    assert packed_of(shown) == packed
    assert same(from_plain(shown), value)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"a": [1, 2.5, "x", None]}, {"a": [1, 2.5, "x", None]}),
        ((1, {2}), {"$tuple": [1, {"$set": [2]}]}),
        (b"\0", {"$bytes": "AA=="}),
        (float("-inf"), {"$float": "-inf"}),
        (10**20, 10**20),
        ({1: 2}, {"$map": [[1, 2]]}),
        ({"$ref": 1, "a": (2,)}, {"$dict": {"$ref": 1, "a": {"$tuple": [2]}}}),
        ("a\ud800", {"$str": '"a\\ud800"'}),
        (dt.datetime(2024, 5, 6, 7, tzinfo=dt.UTC), {"$datetime": "2024-05-06T07:00:00+00:00"}),
        (dt.datetime(2024, 5, 6, 7, tzinfo=BERLIN), {"$datetime": "2024-05-06T07:00:00", "zone": "Europe/Berlin"}),
        (np.array([[1, 2], [3, 4]]), {"$array": [[1, 2], [3, 4]], "dtype": "<i8", "shape": [2, 2]}),
        (np.float32(0.1), {"$scalar": 0.1, "dtype": "<f4"}),
        (Point(1, (2,)), {"$type": "plain.Point", "version": 3, "data": {"x": 1, "y": {"$tuple": [2]}}}),
        (Color.RED, {"$type": "plain.Color", "version": 1, "data": "RED"}),
        (tracked([1, {"a": 2}]), {"$tracked": [1, {"a": 2}]}),
    ],
)
def test_it_reads_as_a_person_would_write_it(value: Any, shown: Any) -> None:
    assert to_plain(value) == shown
    assert same(from_plain(shown), value)


def test_objects_come_back_as_data_where_that_is_asked_for_or_the_type_is_not_here() -> None:
    shown = to_plain([Point(1, Color.RED)])
    expected = [Opaque("plain.Point", 3, {"x": 1, "y": Opaque("plain.Color", 1, "RED")})]
    assert from_plain(shown, opaque=True) == expected
    assert to_plain(expected) == shown
    assert from_plain(shown) == [Point(1, Color.RED)]
    with pytest.raises(InvalidInputError) as raised:
        from_plain({"$type": "plain.Nowhere", "version": 1, "data": {}})
    assert raised.value.code == "type-unregistered"
    assert registry.entry_named("plain.Nowhere") is None


def test_nothing_the_data_names_is_imported() -> None:
    before = set(sys.modules)
    for name in ("os.system", "antigravity", "antigravity:geohash", "builtins.eval"):
        with pytest.raises(InvalidInputError):
            from_plain({"$type": name, "version": 1, "data": ["true"]})
    assert set(sys.modules) == before


def test_what_is_nested_deep_stays_packed_inside() -> None:
    value: Any = "core"
    for _ in range(90):
        value = [{"k": (value,)}]
    shown = to_plain(value)
    assert "$packed" in json.dumps(shown)
    assert same(through_json(value), value)


def test_a_tag_may_stand_anywhere_in_its_object() -> None:
    assert from_plain({"dtype": "<f4", "$scalar": 0.1}) == np.float32(0.1)


@pytest.mark.parametrize(
    "data",
    [
        {"$nonsense": 1}, {"$tuple": 1}, {"$tuple": [], "more": 1}, {"$bytes": "no base64!"}, {"$bytes": 1},
        {"$float": "1.5"}, {"$datetime": "yesterday"}, {"$datetime": 5},
        {"$datetime": "2024-01-01", "zone": "No/Where"},
        {"$uuid": "x"}, {"$map": [[1]]}, {"$map": [[[], 1]]}, {"$set": [[]]}, {"$type": "x"}, {"$str": "unquoted"},
        {"$array": [1, 2], "dtype": "<i8", "shape": [3]}, {"$array": [1], "dtype": "|O", "shape": [1]},
        {"$array": "", "dtype": "O", "shape": [0]}, {"$int": "zz"}, {"$packed": base64.b64encode(b"\xc1").decode()},
        {"$packed": ""}, {"$a": 1, "$b": 2}, {"$range": 1}, {"$decimal": "x"}, {"$path": 1}, {1: 2}, object(), (1,),
    ],
    ids=lambda data: repr(data).split(" at 0x")[0],
)  # fmt: skip
def test_what_is_no_state_is_refused(data: Any) -> None:
    with pytest.raises(InvalidInputError):
        from_plain({"in": [data]})


def test_json_from_elsewhere_is_taken_as_it_is() -> None:
    assert same(
        from_plain(json.loads('{"a": "\\ud800", "\\udfff": [1e999]}')), {"a": "\ud800", "\udfff": [float("inf")]}
    )


def test_a_state_that_cannot_be_saved_is_refused_in_the_same_words() -> None:
    class Stranger:
        pass

    cycle: list[Any] = []
    cycle.append(cycle)
    for value, code in ((Stranger(), "type-unregistered"), (cycle, "too-deep")):
        with pytest.raises(InvalidInputError) as raised:
            to_plain(value)
        assert raised.value.code == code


def test_data_nested_beyond_all_reason_is_refused() -> None:
    data: Any = 1
    for _ in range(5000):
        data = [data]
    with pytest.raises(InvalidInputError):
        from_plain(data)
