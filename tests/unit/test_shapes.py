"""Registered classes of every family come back as they were, or are refused when they are registered."""

from __future__ import annotations

import array
import copy
import dataclasses
import datetime as dt
import enum
import functools
import io
import re
from collections import Counter, OrderedDict, defaultdict, deque
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pydantic
import pytest

from rekindle import Store, open_store, register
from rekindle.errors import InvalidInputError
from rekindle.state.values import codec

BERLIN_ISH = dt.timezone(dt.timedelta(hours=2))


@register(name="shapes.Mood")
class Mood(enum.StrEnum):
    CALM = "calm"
    CROSS = "cross"


@register(name="shapes.Word")
class Word(str, enum.Enum):  # noqa: UP042 - the way it was written before there was a StrEnum
    YES = "y"


@register(name="shapes.Corner")
class Corner(tuple, enum.Enum):  # type: ignore[misc]
    TOP = (0, 1)


@pytest.mark.parametrize("member", [Mood.CROSS, Word.YES, Corner.TOP])
def test_a_member_of_an_enum_that_is_also_text_or_a_tuple_comes_back_itself(member: Any) -> None:
    assert codec.unpack(codec.pack({"v": member, "k": {member: 1}})) == {"v": member, "k": {member: 1}}
    assert codec.unpack(codec.pack(member)) is member


def _subclass(base: type) -> Any:
    return register(type(f"Own{base.__name__}", (base,), {}), name=f"shapes.Own{base.__name__}")


@pytest.mark.parametrize(
    "value",
    [
        _subclass(Decimal)("3.50"), _subclass(complex)(1, -0.0), _subclass(Fraction)(1, 3), _subclass(float)(-0.0),
        _subclass(dt.datetime)(2024, 10, 27, 2, 30, tzinfo=BERLIN_ISH, fold=1), _subclass(dt.date)(2024, 2, 29),
        _subclass(dt.time)(1, 2, 3, 4, tzinfo=dt.UTC, fold=1), _subclass(dt.timedelta)(days=-3, microseconds=1),
        _subclass(deque)([1, [2]], maxlen=2), _subclass(OrderedDict)([("b", 1), ("a", 2)]), _subclass(Counter)("aab"),
        _subclass(bytearray)(b"ab"), _subclass(PurePosixPath)("/a/b"), _subclass(frozenset)({1}),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_a_subclass_of_a_builtin_comes_back_with_what_the_builtin_holds(value: Any) -> None:
    if not hasattr(value, "__slots__"):
        value.beside = [1]
    for again in (codec.unpack(codec.pack(value)), codec.unpack(codec.pack({"far": [(value,)]}))["far"][0][0]):
        assert type(again) is type(value)
        assert (again, repr(again)) == (value, repr(value))
        assert getattr(again, "__dict__", None) == getattr(value, "__dict__", None)


def test_an_ordered_dict_of_ones_own_keeps_its_order() -> None:
    own = _subclass(OrderedDict)([("b", 1), ("a", 2)])
    own.move_to_end("b")
    assert list(codec.unpack(codec.pack(own)).items()) == [("a", 2), ("b", 1)]


@register(name="shapes.ToolError")
class ToolError(RuntimeError):
    def __init__(self, tool: str, code: int) -> None:
        super().__init__(f"{tool} failed")
        self.code = code


def test_an_exception_comes_back_with_its_arguments_and_attributes() -> None:
    again = codec.unpack(codec.pack(ToolError("search", 3)))
    assert (type(again), again.args, again.code, str(again)) == (ToolError, ("search failed",), 3, "search failed")


def test_what_a_class_says_of_how_it_is_read_changes_nothing_that_is_kept() -> None:
    @register(name="shapes.Masked")
    class Masked(str):
        __slots__ = ()

        def __str__(self) -> str:
            return "***"

    @register(name="shapes.Rounded")
    class Rounded(float):
        def __float__(self) -> float:
            return 9.0

    @register(name="shapes.Shy")
    class Shy(dict[str, int]):
        def __iter__(self) -> Any:
            return iter(())

        def keys(self) -> Any:
            return ()

    @register(name="shapes.Backwards")
    class Backwards(list[int]):
        def __iter__(self) -> Any:
            return reversed(self)

    again = codec.unpack(codec.pack([Masked("secret"), Rounded(1.5), Shy(a=1), Backwards([1, 2])]))
    assert str.__eq__(again[0], "secret")
    assert float.__eq__(again[1], 1.5)
    assert dict.__eq__(again[2], {"a": 1})
    assert list.__eq__(again[3], [1, 2])


def test_no_code_of_a_class_runs_to_fill_a_value() -> None:
    @register(name="shapes.Guarded")
    class Guarded:
        def __new__(cls, size: int) -> Guarded:
            return super().__new__(cls)

        def __init__(self, size: int) -> None:
            self.__dict__["size"] = size

        @property
        def size(self) -> int:
            return int(self.__dict__["size"])

    assert codec.unpack(codec.pack(Guarded(3))).size == 3


def test_what_only_one_of_is_made_stays_one() -> None:
    @register(name="shapes.Missing")
    class Missing:
        _only: Any = None

        def __new__(cls) -> Missing:
            cls._only = cls._only or super().__new__(cls)
            return cls._only  # type: ignore[no-any-return]

    assert codec.unpack(codec.pack(Missing())) is Missing()


@pytest.mark.parametrize(
    "cls",
    [
        defaultdict, type("Mine", (defaultdict,), {}), array.array, re.Pattern, functools.partial, io.BytesIO,
        np.ndarray, OSError,
    ],
    ids=lambda cls: cls.__name__,
)  # fmt: skip
def test_a_class_whose_values_would_come_back_empty_is_refused_unless_it_says_how(cls: Any) -> None:
    with pytest.raises(InvalidInputError) as raised:
        register(cls, name="shapes.Refused")
    assert raised.value.code == "type-needs-dump"
    assert "dump=" in str(raised.value)


def test_one_that_says_how_is_kept() -> None:
    register(
        re.Pattern, name="shapes.Pattern", dump=lambda p: [p.pattern, p.flags], load=lambda data: re.compile(*data)
    )
    assert codec.unpack(codec.pack(re.compile("a+", re.I))) == re.compile("a+", re.I)
    register(SimpleNamespace, name="shapes.SimpleNamespace")
    assert codec.unpack(codec.pack(SimpleNamespace(a=[1]))) == SimpleNamespace(a=[1])


def test_a_struct_whose_post_init_changes_it_comes_back_as_it_was() -> None:
    @register(name="shapes.Step")
    class Step(msgspec.Struct, frozen=True, dict=True):
        n: int

        def __post_init__(self) -> None:
            msgspec.structs.force_setattr(self, "n", self.n + 1)

    step = Step(3)
    step.__dict__["seen"] = [1]
    again = codec.unpack(codec.pack(step))
    assert (again.n, again.__dict__) == (4, {"seen": [1]})


@register(name="shapes.Names")
class Names(pydantic.RootModel[list[str]]):
    pass


@register(name="shapes.Point")
@pydantic.dataclasses.dataclass
class Point:
    x: int
    more: list[int] = dataclasses.field(default_factory=list)


def test_a_root_model_and_a_dataclass_of_pydantic_come_back() -> None:
    again = codec.unpack(codec.pack(Names(["a"])))
    assert (again, again.__dict__, dict(again)) == (Names(["a"]), {"root": ["a"]}, {"root": ["a"]})
    assert codec.unpack(codec.pack(Point(1, [2]))) == Point(1, [2])


def test_many_families_at_once_come_back_from_a_store() -> None:
    values: dict[str, Any] = {
        "mood": Mood.CALM, "error": [Point(n, [n] * 3) for n in range(400)], "words": [Word.YES] * 300,
        "text": [Mood.CROSS, {"deep": (Mood.CALM,)}],
    }  # fmt: skip
    with open_store("memory://shapes") as store:
        assert isinstance(store, Store)
        store.save("a", values)
        values["error"][7].more.append(1)
        store.save("a", values)
        assert store.restore("a") == copy.deepcopy(values)
        assert store.restore("a@1")["error"][7] == Point(7, [7] * 3)


def old_and_new(kind: str) -> tuple[type, type, type]:
    """A class as it was, with two more fields, and with one more that has no default."""
    if kind == "pydantic":

        class Before(pydantic.BaseModel):
            a: int

        class After(Before):
            notes: list[str] = pydantic.Field(default_factory=list)
            size: int = 7

        class Wants(Before):
            b: int
    elif kind == "msgspec":

        class Before(msgspec.Struct):  # type: ignore[no-redef]
            a: int

        class After(Before):  # type: ignore[no-redef]
            notes: list[str] = msgspec.field(default_factory=list)
            size: int = 7

        class Wants(Before):  # type: ignore[no-redef]
            b: int
    else:
        slots = kind == "slots"

        @dataclasses.dataclass(slots=slots)
        class Before:  # type: ignore[no-redef]
            a: int

        @dataclasses.dataclass(slots=slots)
        class After(Before):  # type: ignore[no-redef]
            notes: list[str] = dataclasses.field(default_factory=list)
            size: int = 7

        @dataclasses.dataclass(slots=slots)
        class Wants(Before):  # type: ignore[no-redef]
            b: int

    for cls in (Before, After, Wants):
        cls.__qualname__ = "Grows"  # one class, as it was and is
    return Before, After, Wants


@pytest.mark.parametrize("kind", ["dataclass", "slots", "pydantic", "msgspec"])
def test_a_field_that_came_since_has_its_default_and_one_without_is_asked_for(kind: str) -> None:
    before, after, wants = old_and_new(kind)
    register(before, name="shapes.Grows")
    stored = codec.pack([before(a=1), before(a=2)])
    register(after, name="shapes.Grows")
    one, two = codec.unpack(stored)
    assert (one, two) == (after(a=1), after(a=2))
    one.notes.append("mine alone")
    assert two.notes == []
    register(wants, name="shapes.Grows")
    with pytest.raises(InvalidInputError) as raised:
        codec.unpack(stored)
    assert raised.value.code == "type-load-failed"
    assert "'b'" in raised.value.message or "`b`" in raised.value.message
