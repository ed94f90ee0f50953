"""Paths into a state: what their text means, and that it can be read back."""

import enum
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.errors import InvalidInputError, NotFoundError
from rekindle.state.shown.path import Key, children_of, get, parse, render, step_of
from rekindle.state.values.registry import Opaque


class Color(enum.Enum):
    RED = 1


@dataclass(frozen=True)
class Budget:
    left: int = 3
    by_day: dict[str, int] = field(default_factory=lambda: {"mon": 1})


class Point(NamedTuple):
    x: int
    y: int


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    name: str
    tags: list[str] = []


class Struct(msgspec.Struct, frozen=True):
    size: int


literals = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.binary() | st.complex_numbers(),
    lambda inner: st.lists(inner | st.text(), max_size=3).map(tuple),
)
wild_text = st.text(st.characters(codec=None))  # lone surrogates too
steps = wild_text | st.integers(-(10**17), 10**17) | literals.map(Key.of)


@given(st.lists(steps, max_size=6).map(tuple))
def test_a_path_is_read_back_from_its_text(path: Any) -> None:
    assert parse(render(path)) == path
    assert render(path).isprintable()


@given(literals)
def test_a_key_that_is_no_str_is_found_again(key: Any) -> None:
    path = parse(render((Key.of(key),)))
    assert get({key: "here"}, path) == "here"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("", ()),
        ("messages[-1].content", ("messages", -1, "content")),
        ('vars["odd key"]', ("vars", "odd key")),
        ("vars['odd key'].x-y", ("vars", "odd key", "x-y")),
        ("a.b[3]", ("a", "b", 3)),
        ("[0][1]", (0, 1)),
        ('["0"]', ("0",)),
        ("table{1}", ("table", Key.of(1))),
        ("{(1,2)}.x", (Key.of((1, 2)), "x")),
        ("{Color.RED}", (Key.of(Color.RED),)),
        ("größe.名前", ("größe", "名前")),
    ],
)
def test_text_means_a_path(text: str, path: Any) -> None:
    assert parse(text) == path


@pytest.mark.parametrize("key", [1, True, 1.0, -0.0, 0.0, b"1", None, (1,), (True,)])
def test_keys_that_python_takes_for_equal_are_different_steps(key: Any) -> None:
    others = [1, True, 1.0, -0.0, 0.0, b"1", None, (1,), (True,)]
    assert sum(Key.of(key) == Key.of(other) for other in others) == 1


@pytest.mark.parametrize(
    ("text", "position"),
    [(".a", 0), ("a.", 1), ("a..b", 1), ("a[", 1), ("a[x]", 1), ("a[1", 1), ("a b", 1), ("a[1:2]", 1),
    ("x{", 1),
     ("x{'a'}", 1), ('a["b"', 5), ("a.1", 1), ("a[" + "9" * 30 + "]", 1), ("x{}", 1)],
)  # fmt: skip
def test_what_is_no_path_is_refused_with_the_position(text: str, position: int) -> None:
    with pytest.raises(InvalidInputError, match=f"position {position} ") as caught:
        parse(text)
    assert caught.value.code == "bad-path"


@pytest.mark.parametrize("text", ['["open', r'["\q"]', '["\\'])
def test_broken_quotes_are_refused(text: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse(text)
    assert caught.value.code == "bad-quotes"


STATE = {
    "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}],
    "budget": Budget(),
    "point": Point(1, 2),
    "model": Model(name="m", tags=["a"], more=5),  # type: ignore[call-arg]
    "struct": Struct(7),
    "gone": Opaque("Gone", 2, {"left": [1, 2]}),
    "table": {1: "int", "t": "str", (1, 2): "pair", None: "none", Color.RED: "red"},
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("messages[-1].content", "yo"),
        ("messages[0].role", "user"),
        ("budget.left", 3),
        ("budget.by_day.mon", 1),
        ("point.y", 2),
        ("point[0]", 1),
        ("model.tags[0]", "a"),
        ("model.more", 5),
        ("struct.size", 7),
        ("gone.left[1]", 2),
        ("table{1}", "int"),
        ("table{(1, 2)}", "pair"),
        ("table{None}", "none"),
        ("table{Color.RED}", "red"),
    ],
)
def test_a_value_is_reached_through_lists_dicts_and_objects(text: str, value: object) -> None:
    assert get(STATE, parse(text)) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("messages[2].content", "no messages[2]: messages exists and is a list of 2"),
        ("messages[-3]", "no messages[-3]: messages exists and is a list of 2"),
        ("budget.by_day.tue", "budget.by_day exists and is a dict of 1"),
        ("table[1]", "table exists and is a dict of 5"),
        ("table{True}", "table exists"),
        ("messages.content", "messages exists and is a list of 2"),
        ("messages[0].content.x", "messages[0].content exists and is a str"),
        ("nothing", "it is a dict of 7"),
        ("gone.right", "gone exists and is a dict of 1"),
    ],
)
def test_what_is_not_there_is_named_with_the_longest_part_that_is(text: str, message: str) -> None:
    with pytest.raises(NotFoundError) as caught:
        get(STATE, parse(text))
    assert caught.value.code == "path-not-found"
    assert message.split(": ")[-1] in caught.value.message


def test_a_complex_key_keeps_the_signs_of_its_zeros() -> None:
    for key in (complex(-0.0, -0.0), complex(0.0, -0.0), 1j, (complex(-0.0, -0.0), 2)):
        step = step_of(key)
        assert parse(render((step,))) == (step,)
        assert get({key: "here"}, parse(render((step,)))) == "here"


def test_an_index_into_a_dict_of_ints_says_how_to_write_the_key() -> None:
    with pytest.raises(NotFoundError) as caught:
        get(STATE, ("table", 1))
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("{1} is the dict key 1")


def test_an_error_shows_hostile_names_escaped() -> None:
    with pytest.raises(NotFoundError) as caught:
        get({"\x1b]0;x\x07": 1}, ("a\x1b[2J",))
    assert caught.value.hint is not None
    assert (caught.value.message + caught.value.hint).isprintable()


def test_scalars_sets_and_library_values_have_no_insides() -> None:
    import pathlib
    import uuid

    for value in (1, "ab", b"x", {1}, None, Color.RED, uuid.uuid4(), pathlib.Path("/"), len, Color):
        assert children_of(value) == {}
