"""What is packed comes back equal and of the same type, and no bytes can do harm."""

from __future__ import annotations

import dataclasses
import enum
import os
import random
import sys
import time
from collections import OrderedDict, defaultdict, deque
from typing import Any, NamedTuple

import msgspec
import numpy as np
import ormsgpack
import pydantic
import pytest
from hypothesis import given, settings
from tests.unit.values import EVERY_TYPE, name_of, trees

from rekindle.errors import CorruptDataError, InvalidInputError, RekindleError
from rekindle.state.tracked import TrackedDict, TrackedList, tracked
from rekindle.state.values import codec
from rekindle.state.values.canon import same
from rekindle.state.values.registry import Opaque, register

TORTURE = 20 if os.environ.get("REKINDLE_TORTURE") else 1


# -- types of users -------------------------------------------------------------------------------------------


@register
@dataclasses.dataclass
class Note:
    text: str
    tags: set[str] = dataclasses.field(default_factory=set)

    def __post_init__(self) -> None:
        self.beside = "set after init"


@register
@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    x: int
    y: tuple[int, ...] = ()


@register
class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    name: str
    count: int = 0
    _private: int = pydantic.PrivateAttr(default=1)


@register
class Struct(msgspec.Struct, frozen=True):
    a: int
    b: list[int] = []


@register
class Color(enum.Enum):
    RED = 1
    CRIMSON = 1  # noqa: PIE796 - an alias
    BLUE = (1, 2)


@register
class Level(enum.IntEnum):
    LOW = 1


@register
class Status(enum.StrEnum):
    RUNNING = "running"


@register
class Phase(str, enum.Enum):  # noqa: UP042 - as many programs still write it
    FIRST = "first"


@register
class Root(pydantic.RootModel[list[int]]):
    pass


@register
@pydantic.dataclasses.dataclass
class Checked:
    x: int
    y: str = "y"


@register
class Partly(msgspec.Struct):
    a: int
    b: int | msgspec.UnsetType = msgspec.UNSET
    c: int = 3


@register
class Flags(enum.Flag):
    A = 1
    B = 2


@register
class Pair(NamedTuple):
    left: Any
    right: Any


@register
class Slotted:
    __slots__ = ("__secret", "a", "unset")

    def __init__(self) -> None:
        self.a = 1
        self.__secret = 2

    def secret(self) -> int:
        return self.__secret


@register
class Attributes:
    """As attrs makes them: a plain class with fields and an __init__ that demands them."""

    def __init__(self, name: str, *, size: int) -> None:
        self.name = name
        self.size = size


@register
class Names(dict[str, Any]):
    pass


@register
class Stack(list[Any]):
    pass


@register
class Word(str):
    __slots__ = ("seen",)


@register
class Count(int):
    pass


def the_word() -> Word:
    word = Word("w")
    word.seen = 3
    return word


USERS_VALUES = [
    Note("n", {"a"}), Frozen(1, (2,)), Model(name="m", count=2, other=[1]), Model(name="m"), Struct(1, [2]),
    Color.RED, Color.CRIMSON, Color.BLUE, Level.LOW, Flags.A | Flags.B, Flags(0), Pair(1, (2,)), Slotted(),
    Status.RUNNING, {Phase.FIRST: Status.RUNNING}, Root([1, 2]), Checked(1), Partly(1), Partly(1, 2, 4),
    Attributes("a", size=2), Names(a=1), Stack([1, (2,)]), the_word(), Count(5),
]  # fmt: skip


@pytest.mark.parametrize("value", [*EVERY_TYPE, *USERS_VALUES], ids=name_of)
def test_every_type_comes_back_equal_and_of_the_same_type(value: Any) -> None:
    packed = codec.pack(value)
    again = codec.unpack(packed)
    assert type(again) is type(value)
    assert same(again, value)
    assert codec.pack(again) == packed
    nested = {"a": [value], "\ud800": (value, {"b": value})}
    assert same(codec.unpack(codec.pack(nested)), nested)


@settings(max_examples=300 * TORTURE, deadline=None)
@given(trees)
def test_any_tree_comes_back_the_same(value: Any) -> None:
    packed = codec.pack(value)
    assert same(codec.unpack(packed), value)
    assert codec.pack(codec.unpack(packed)) == packed


def test_what_a_class_keeps_beside_its_fields_comes_back() -> None:
    note = codec.unpack(codec.pack(Note("n")))
    assert note.beside == "set after init"
    model = Model(name="m", other=1)
    model._private = 7
    again = codec.unpack(codec.pack(model))
    assert (again._private, again.model_extra, again.model_fields_set) == (7, {"other": 1}, {"name", "other"})
    slotted = codec.unpack(codec.pack(Slotted()))
    assert (slotted.a, slotted.secret(), hasattr(slotted, "unset")) == (1, 2, False)
    assert codec.unpack(codec.pack(the_word())).seen == 3
    assert codec.unpack(codec.pack(Attributes("a", size=2))).size == 2


def test_equal_sets_pack_to_equal_bytes_and_dict_order_counts() -> None:
    words = [f"word {n}" for n in range(200)]
    backwards = words[::-1]
    assert codec.pack(set(words)) == codec.pack(set(backwards))
    assert codec.pack({"a": 1, "b": 2}) != codec.pack({"b": 2, "a": 1})


def test_tracked_containers_come_back_tracked() -> None:
    again = codec.unpack(codec.pack({"t": tracked({"a": [1, {"b": 2}]}), "p": [1]}))
    assert type(again["t"]) is TrackedDict
    assert type(again["t"]["a"]) is TrackedList
    assert type(again["t"]["a"][1]) is TrackedDict
    assert type(again["p"]) is list


# -- the registry ----------------------------------------------------------------------------------------------


def test_an_unregistered_type_is_refused_and_the_error_says_where_and_what_to_do() -> None:
    class Stranger:
        pass

    stranger = {"a": [1, {"b": Stranger()}]}
    for value in (stranger, {1: stranger}, {"x\ud800": stranger}):
        with pytest.raises(InvalidInputError) as raised:
            codec.pack(value)
        assert raised.value.code == "type-unregistered"
        assert "Stranger" in raised.value.message
        assert "a[1].b" in raised.value.message
        assert "register(Stranger)" in str(raised.value)
    records = np.rec.array([(1, 2)], dtype=[("a", "i4"), ("b", "i4")])
    for odd in (defaultdict(list), lambda: 1, object(), os, type, np.add, np.poly1d([1]), records, records[0]):
        with pytest.raises(InvalidInputError):
            codec.pack([odd])


def test_a_record_of_a_type_that_is_not_here_is_an_error_or_data_as_the_reader_asks() -> None:
    packed = codec.pack([Opaque("codec.Nowhere", 2, {"a": (1,)})])
    with pytest.raises(InvalidInputError) as raised:
        codec.unpack(packed)
    assert raised.value.code == "type-unregistered"
    assert "codec.Nowhere" in str(raised.value)
    assert codec.unpack(packed, opaque=True) == [Opaque("codec.Nowhere", 2, {"a": (1,)})]
    assert codec.pack(codec.unpack(packed, opaque=True)) == packed


def test_an_old_state_is_upgraded_step_by_step() -> None:
    old = codec.pack(Opaque("codec.Grown", 1, {"first": "Ada"}))
    steps: list[int] = []

    def to_2(data: Any) -> Any:
        steps.append(2)
        return {"name": data["first"]}

    def to_3(data: Any) -> Any:
        steps.append(3)
        return {"name": data["name"], "age": 0}

    @register(name="codec.Grown", version=3, upgrade={1: to_2, 2: to_3})
    @dataclasses.dataclass
    class Grown:
        name: str
        age: int

    assert codec.unpack(old) == Grown("Ada", 0)
    assert steps == [2, 3]
    assert codec.unpack(codec.pack(Opaque("codec.Grown", 2, {"name": "Bo"}))) == Grown("Bo", 0)
    assert codec.unpack(codec.pack(Grown("Cy", 1))) == Grown("Cy", 1)
    assert steps == [2, 3, 3]


def test_an_upgrade_is_given_what_its_kind_of_class_stores() -> None:
    given: dict[str, Any] = {}

    def keep(name: str) -> Any:
        return {1: lambda data: given.setdefault(name, data)}

    stored = [codec.pack(value) for value in (Model(name="m", other=1), Pair(1, 2), Stack([1]), Color.RED, Struct(1))]
    classes = (Model, Pair, Stack, Color, Struct)
    try:
        for cls in classes:
            register(cls, version=2, upgrade=keep(cls.__name__))
        for packed in stored:
            codec.unpack(packed)
    finally:
        for cls in classes:
            register(cls)
    assert given == {
        "Model": [{"name": "m", "count": 0}, ["name", "other"], {"other": 1}, {"_private": 1}],
        "Pair": [[1, 2], {}], "Stack": [[1], {}], "Color": "RED", "Struct": {"a": 1, "b": []},
    }  # fmt: skip


def test_what_cannot_be_upgraded_says_so() -> None:
    @register(name="codec.Stuck", version=2)
    class Stuck:
        pass

    @register(name="codec.Breaks", version=2, upgrade=lambda data, old: data["gone"])
    class Breaks:
        pass

    @register(name="codec.Hole", version=3, upgrade={2: lambda data: data})
    class Hole:
        pass

    for name, version, code in (
        ("codec.Stuck", 1, "no-upgrade"),
        ("codec.Hole", 1, "no-upgrade"),
        ("codec.Stuck", 3, "type-too-new"),
        ("codec.Breaks", 1, "type-load-failed"),
    ):
        with pytest.raises(InvalidInputError) as raised:
            codec.unpack(codec.pack(Opaque(name, version, {})))
        assert raised.value.code == code
        assert name in raised.value.message


def test_a_type_may_say_itself_what_it_holds() -> None:
    @register(name="codec.Own")
    class Own:
        def __init__(self, value: int) -> None:
            self.value = value

        def to_state(self) -> Any:
            return {"v": self.value}

        @classmethod
        def from_state(cls, data: Any) -> Own:
            return cls(data["v"])

    assert codec.unpack(codec.pack(Own(5))).value == 5
    assert codec.unpack(codec.pack(Own(5)), opaque=True) == Opaque("codec.Own", 1, {"v": 5})


# -- hostile bytes -----------------------------------------------------------------------------------------------


def unpacks_or_is_refused(data: bytes, *kinds: type[RekindleError]) -> None:
    """Nothing but a value or one of ours comes of these bytes."""
    try:
        codec.unpack(data)
    except (CorruptDataError, *kinds):
        pass


def test_random_and_truncated_and_changed_bytes_are_refused_or_read() -> None:
    rng = random.Random(5)
    before, start = set(sys.modules), time.monotonic()
    good = [codec.pack(value) for value in (*EVERY_TYPE, *USERS_VALUES) if len(codec.pack(value)) < 500]
    good.append(codec.pack({"all": [codec.unpack(data) for data in good]}))
    for _ in range(4000 * TORTURE):
        # a changed byte may name a type that is not registered, or data that its type does not take
        data = bytearray(rng.choice(good))
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        unpacks_or_is_refused(bytes(data), InvalidInputError)
        unpacks_or_is_refused(bytes(data[: rng.randrange(len(data))]), InvalidInputError)
        unpacks_or_is_refused(rng.randbytes(rng.randrange(1, 60)))
    assert set(sys.modules) - before == set()
    assert time.monotonic() - start < 60 * TORTURE


def test_every_extension_with_junk_in_it_is_refused_or_read() -> None:
    rng = random.Random(6)
    for code in range(128):
        if code == codec.OBJECT:
            continue
        for junk in (
            b"",
            b"\x90",
            b"\xc0",
            b"\x80",
            b"\x93\x01\x02\x03",
            b"\x92\xa1x\xa1y",
            b"\xc1",
            *(rng.randbytes(9) for _ in range(20)),
        ):
            unpacks_or_is_refused(ormsgpack.packb(ormsgpack.Ext(code, junk)))


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\xc1", b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff", b"\xdb\xff\xff\xff\xff",
        b"\xc6\xff\xff\xff\xff",        b"\xc9\xff\xff\xff\xff\x01", b"\xdd\x7f\xff\xff\xff" + b"\xc0" * 50,
        b"\x91" * 100_000, b"\x81\xa1a" * 100_000,
    ],
    ids=lambda data: data[:8].hex(),
)  # fmt: skip
def test_huge_lengths_and_deep_nesting_are_refused_at_once(data: bytes) -> None:
    start = time.monotonic()
    with pytest.raises(CorruptDataError):
        codec.unpack(data)
    assert time.monotonic() - start < 2


def test_extensions_nested_without_end_are_refused() -> None:
    data = b"\x90"
    for _ in range(1000):
        data = ormsgpack.packb([ormsgpack.Ext(codec.TUPLE, data)])
    with pytest.raises(CorruptDataError):
        codec.unpack(data)


def test_an_array_that_claims_too_much_or_holds_objects_is_refused() -> None:
    for dtype, shape in (
        ("<f8", [10**12]),
        ("|O", [1]),
        ("O", [1]),
        ("<f8", [-1, 2]),
        ("nonsense", [1]),
        ([["a", "|O"]], [1]),
    ):
        data = ormsgpack.packb(ormsgpack.Ext(codec.ARRAY, codec.pack([dtype, shape, "C", b"12345678"])))
        with pytest.raises(CorruptDataError):
            codec.unpack(data)


def test_a_name_is_only_looked_up_never_imported() -> None:
    before = set(sys.modules)
    for name in ("antigravity", "os.system", "builtins.eval", "__import__"):
        with pytest.raises(InvalidInputError):
            codec.unpack(codec.pack(Opaque(name, 1, ["true"])))
    assert set(sys.modules) == before


# -- depth ---------------------------------------------------------------------------------------------------------


def test_tuples_in_tuples_with_surrogates_60_deep_take_no_longer_than_they_should() -> None:
    value: Any = "\ud800"
    for _ in range(60):
        value = (value, {1: "\udfff"})
    start = time.monotonic()
    packed = codec.pack(value)
    assert same(codec.unpack(packed), value)
    assert time.monotonic() - start < 2
    assert len(packed) < 10_000


@pytest.mark.parametrize(
    "wrap", [lambda v: deque([v]), lambda v: Pair(v, 1), lambda v: OrderedDict(k=v), lambda v: {(1,): v}]
)
def test_what_cannot_be_packed_far_inside_is_refused_at_once(wrap: Any) -> None:
    value: Any = {"here": object()}
    for _ in range(60):
        value = wrap(value)
    start = time.monotonic()
    with pytest.raises(InvalidInputError) as raised:
        codec.pack(value)
    assert raised.value.code == "type-unregistered"
    assert "builtins.object" in raised.value.message
    assert ".here, which" in raised.value.message
    assert time.monotonic() - start < 2


def test_a_bytearray_comes_back_as_bytes_wherever_it_is() -> None:
    assert codec.unpack(codec.pack([bytearray(b"x"), ("\ud800", bytearray(b"y"))])) == [b"x", ("\ud800", b"y")]


def test_a_cycle_and_what_is_too_deep_are_refused() -> None:
    cycle: dict[str, Any] = {}
    cycle["self"] = [cycle]
    ring: deque[Any] = deque()
    ring.append(ring)
    selfish = Attributes("a", size=1)
    selfish.me = selfish  # type: ignore[attr-defined]
    deep: Any = 1
    for _ in range(5000):
        deep = (deep,)
    for value in (cycle, deep, ring, selfish):
        with pytest.raises(InvalidInputError) as raised:
            codec.pack(value)
        assert raised.value.code == "too-deep"


@pytest.mark.parametrize(
    "wrap", [lambda v: [v], lambda v: (v,), lambda v: {"k": v}, lambda v: {1: v}, lambda v: [(v,)]]
)
def test_what_can_be_packed_can_be_unpacked(wrap: Any) -> None:
    value: Any = "\ud800"
    for _ in range(400):
        try:
            packed = codec.pack(value)
        except InvalidInputError as e:
            assert e.code == "too-deep"
            break
        assert same(codec.unpack(packed), value)
        value = wrap(value)
