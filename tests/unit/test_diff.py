"""The diff of two states: what it says, that it applies, and that hostile text stays text."""

import copy
import datetime
import enum
import functools
import json
import math
import threading
import time
import uuid
from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rekindle.errors import ConflictError, InvalidInputError
from rekindle.state.diff.states import Change, apply, diff, page, render, summary, to_json
from rekindle.state.shown.path import Key, parse
from rekindle.state.shown.path import render as render_path
from rekindle.state.tracked import TrackedDict, TrackedList
from rekindle.state.values.canon import same
from rekindle.state.values.registry import Opaque


class Color(enum.Enum):
    RED = 1
    BLUE = 2


@dataclass(frozen=True, slots=True)
class Frozen:
    left: int
    notes: list[str] = field(default_factory=list)


class Plain:
    def __init__(self, **fields: object) -> None:
        self.__dict__.update(fields)


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow", frozen=True)
    name: str
    size: int = 0
    _hidden: int = pydantic.PrivateAttr(default=1)


class Struct(msgspec.Struct, frozen=True):
    size: int
    tags: list[str]


class Point(NamedTuple):
    x: float
    y: float


class Tagged(list[Any]):
    tag: str = ""


def said(old: object, new: object) -> list[str]:
    """The diff in short, after proof that it applies and leaves the old state alone."""
    before = copy.deepcopy(old)
    changes = diff(old, new)
    assert same(apply(old, changes), new)
    assert same(old, before)
    json.dumps([to_json(change, full=full) for change in changes for full in (False, True)], allow_nan=False)
    return [
        f"{c.op} {render_path(c.path)}" + (f" from {render_path(c.from_path)}" if c.from_path is not None else "")
        for c in changes
    ]


ONE_OF_EACH = [
    None, True, False, 1, 0, 1.0, 0.0, -0.0, math.inf, "1", b"1", bytearray(b"1"), (1,), [1], {1},
    frozenset({1}),
    {1: 1}, {"1": 1}, {True: 1}, (True,), [1.0], Color.RED, Color.BLUE, 2**70, 1j, Decimal(1), Decimal("1.0"),
    datetime.date(2026, 1, 2), datetime.datetime(2026, 1, 2), datetime.datetime(2026, 1, 2,
    tzinfo=datetime.UTC),
    datetime.datetime(2026, 1, 2, fold=1), datetime.timedelta(1), uuid.UUID(int=1), Frozen(1), Frozen(True),
    Plain(left=1), Model(name="a"), Model(name="a", size=0), Struct(1, []), Point(1, 2), Point(1, 2.0), (1,
    2),
    np.array([1, 2]), np.array([1.0, 2.0]), np.array([[1, 2]]), np.array([1, 2], dtype="int32"),
    np.float64(1),
    np.int64(1), np.array([1, None], dtype=object), Opaque("A", 1, 1), Opaque("A", 2, 1), Opaque("A", 1, 1.0),
    OrderedDict(a=1), {"a": 1}, {"a": 1, "b": 2}, {"b": 2, "a": 1}, Tagged([1]), range(3), len, print,
    Plain, Model,
    functools.partial(int, "1"), functools.partial(int, "2"), ValueError("a"), ValueError("b"),
    TrackedList([1]),
]  # fmt: skip


@pytest.mark.parametrize("index", range(len(ONE_OF_EACH)), ids=lambda i: f"{i}-{type(ONE_OF_EACH[i]).__name__}")
def test_sameness_is_strict(index: int) -> None:
    value = ONE_OF_EACH[index]
    assert [i for i, other in enumerate(ONE_OF_EACH) if same(value, other)] == [index]
    assert [i for i, other in enumerate(ONE_OF_EACH) if not diff([value], [other])] == [index]
    assert same(value, copy.deepcopy(value))
    assert diff(value, copy.deepcopy(value)) == ()


def test_all_nans_are_the_same() -> None:
    assert diff([math.nan, {"a": math.nan}], [float("nan"), {"a": -math.nan}]) == ()


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ({"a": 1}, {"a": 2}, ["replace a"]),
        (1, 2, ["replace "]),
        ({"a": 1}, {"a": True}, ["replace a"]),
        ({"a": [1]}, {"a": (1,)}, ["replace a"]),
        ({"a": 1}, {"a": 1, "b": 2}, ["add b"]),
        ({"a": 1, "b": 2}, {"b": 2}, ["remove a"]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, ["reorder "]),
        ({"a": 1, "b": 2}, {"c": 3, "a": 1, "b": 2}, ["add c", "reorder "]),
        ({1: "a"}, {True: "a"}, ["remove {1}", "add {True}"]),
        ({"old": [1, 2]}, {"new": [1, 2]}, ["move new from old"]),
        ({"old": 1}, {"new": 1}, ["remove old", "add new"]),
        ([1, 2, 3], [0, 1, 2, 3], ["add [0]"]),
        ([1, 2, 3], [1, 3], ["remove [1]"]),
        ([1, 2, 3], [1, 5, 3], ["replace [1]"]),
        ([1, 2, 3, 4], [2, 3, 4, 1], ["move [3] from [0]"]),
        ([{"id": 1, "x": [1]}, 2, 3], [2, 3, {"id": 1, "x": [1, 2]}], ["move [2] from [0]", "add [2].x[1]"]),
        ([{"id": 1, "x": 1}], [{"id": 2, "x": 1}], ["remove [0]", "add [0]"]),
        ({1, 2}, {2, 3}, ["set_remove ", "set_add "]),
        ({1}, {True}, ["set_remove ", "set_add "]),
        ({"s": frozenset({1})}, {"s": frozenset()}, ["set_remove s"]),
        ("a\nb\nc", "a\nx\nc", ["text "]),
        ("a word " * 50, "a word " * 49 + "at last", ["text "]),
        ("a\nb", "c\nd", ["replace "]),
        ("short", "text", ["replace "]),
        (Frozen(1, ["a"]), Frozen(2, ["a", "b"]), ["replace left", "add notes[1]"]),
        (Plain(a=1, b=2), Plain(b=2, c=3), ["remove a", "add c"]),
        (Model(name="a"), Model(name="b"), ["replace name"]),
        (Model(name="a", size=1), Model(name="a", size=1, more=2), ["add more"]),  # type: ignore[call-arg]
        (Model(name="a"), Model(name="a", size=0), ["replace "]),  # size counts as set: no field shows it
        (Struct(1, ["a"]), Struct(1, ["b"]), ["replace tags[0]"]),
        ([Point(1, 2)], [Point(1, 3)], ["replace [0].y"]),
        (Opaque("A", 1, {"x": [1, 2]}), Opaque("A", 1, {"x": [1, 2, 3]}), ["add x[2]"]),
        (Opaque("A", 1, {"x": 1, "y": 2}), Opaque("A", 1, {"y": 2, "x": 1}), ["reorder "]),
        ({"o": Opaque("A", 1, 1)}, {"o": Opaque("A", 1, 2)}, ["replace o"]),
        ({"o": Opaque("A", 1, {})}, {"o": Opaque("A", 2, {})}, ["replace o"]),
        ({"a": np.zeros(3)}, {"a": np.ones(3)}, ["replace a"]),
        ({math.nan: 1, float("nan"): 2}, {math.nan: 1}, ["replace "]),
        (OrderedDict(a=1), OrderedDict(a=2), ["replace a"]),
        (defaultdict(list, a=[1]), defaultdict(list, a=[1, 2]), ["add a[1]"]),
        (defaultdict(list, a=[1]), defaultdict(int, a=[1]), ["replace "]),
        (TrackedDict(a=[1]), TrackedDict(a=[1, 2]), ["add a[1]"]),
    ],
)
def test_what_changed_is_said(old: object, new: object, changes: list[str]) -> None:
    assert said(old, new) == changes


def test_paths_are_of_the_new_state_but_what_went_is_of_the_old_one() -> None:
    old = [{"id": 1, "x": ["a", "b"], "y": 1}, {"id": 2}]
    new = [{"id": 0}, {"id": 1, "x": ["b"], "y": 2}, {"id": 2}]
    assert said(old, new) == ["add [0]", "remove [0].x[0]", "replace [1].y"]


def test_a_changed_message_is_changed_inside_though_others_came_around_it() -> None:
    old = [{"role": "user", "content": f"question {n}, said at length"} for n in range(4)]
    new = copy.deepcopy(old)
    new[2]["content"] += " indeed"
    new.insert(2, {"role": "system", "content": "be brief"})
    new.insert(4, {"role": "tool", "content": "42"})
    assert said(old, new) == ["add [2]", "replace [3].content", "add [4]"]


def test_a_message_of_another_role_took_the_place() -> None:
    old, new = [{"role": "user", "content": "hi"}, 1], [{"role": "tool", "content": "42"}, 1]
    assert said(old, new * 1) in (["replace [0]"], ["replace [0].role", "replace [0].content"])


def test_a_zero_among_zeros_has_not_moved() -> None:
    assert said([0, 0, 1, 1], [1, 1, 0, 0]) == ["remove [0]", "remove [1]", "add [2]", "add [3]"]


def test_a_list_of_a_class_of_its_own_keeps_what_it_has_beside() -> None:
    old, new = Tagged([1, 2]), Tagged([1, 2, 3])
    old.tag = new.tag = "kept"
    assert said(old, new) == ["add [2]"]
    assert apply(old, diff(old, new)).tag == "kept"
    new.tag = "other"
    assert said(old, new) == ["replace "]


def test_what_cannot_be_copied_is_the_same_only_as_itself() -> None:
    lock, other = threading.Lock(), threading.Lock()
    assert diff([lock], [lock]) == ()
    assert [change.op for change in diff([lock], [other])] == ["replace"]


def test_a_base_is_put_before_every_path() -> None:
    base = parse("agents.main")
    old, new = {"a": [1, 2]}, {"a": [2, 1], "b": 1}
    changes = diff(old, new, base=base)
    assert {change.path[:2] for change in changes} == {base}
    assert same(apply(old, changes, base=base), new)


def test_a_state_that_contains_itself_is_refused() -> None:
    loop: list[Any] = [1]
    loop.append(loop)
    other: list[Any] = [2]
    other.append(other)
    with pytest.raises(InvalidInputError):
        diff(loop, other)
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(InvalidInputError):
        diff([deep], [[deep, 1]])


@pytest.mark.parametrize(
    "state", [{}, [], {"a": 1}, {"a": []}, {"a": [1]}, {"a": "x"}, {"a": {1}}, {"a": Frozen(1)}, 5, "a\nb"]
)
def test_changes_of_another_state_are_refused(state: object) -> None:
    old = {"a": [1, {"x": "l\nm", "s": {1, 2}}, 3], "b": Frozen(1)}
    new = {"a": [3, {"x": "l\nn", "s": {1, 3}}, 5], "b": Frozen(2)}
    with pytest.raises(ConflictError) as caught:
        apply(state, diff(old, new))
    assert caught.value.code == "change-does-not-fit"


# texts


@given(st.text("ab \n", max_size=60), st.text("ab \n", max_size=60))
def test_a_text_is_made_of_the_old_one_by_its_hunks(old: str, new: str) -> None:
    old, new = old + "\n" + "x" * 200, new + "\n" + "x" * 200
    assert apply(old, diff(old, new)) == new
    for change in diff(old, new):
        assert all(old[h.at : h.at + len(h.old)] == h.old and h.old != h.new for h in change.hunks)
        assert all(h.line == old.count("\n", 0, h.at) + 1 for h in change.hunks)


def test_a_text_changes_by_lines() -> None:
    (change,) = diff("one\ntwo\nthree\nfour", "zero\none\nthree\n4")
    assert [(h.line, h.old, h.new) for h in change.hunks] == [
        (1, "", "zero\n"),
        (2, "two\n", ""),
        (4, "four", "4"),
    ]


def test_a_long_line_changes_by_words() -> None:
    words = [f"word{n}" for n in range(200)]
    new = [*words[:50], "changed", *words[51:120], *words[121:]]
    (change,) = diff(" ".join(words), " ".join(new))
    assert [(h.old, h.new) for h in change.hunks] == [("word50", "changed"), (" word120", "")]


scalars = st.none() | st.booleans() | st.integers(0, 3) | st.floats(width=16) | st.text("ab\n", max_size=3)
keys = st.booleans() | st.integers(0, 3) | st.floats(0, 3, width=16) | st.text("ab", max_size=2)


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists = st.lists(inner, max_size=5)
    objects = st.builds(Frozen, inner, lists) | st.builds(lambda a, b: Plain(a=a, b=b), inner, inner)
    records = st.builds(Opaque, st.sampled_from("AB"), st.integers(1, 2), inner)
    sets = st.sets(keys, max_size=4)
    return lists | lists.map(tuple) | st.dictionaries(keys, inner, max_size=4) | sets | objects | records


values = st.recursive(scalars, containers, max_leaves=20)


@settings(max_examples=150, deadline=None)
@given(values, values)
def test_any_two_values_have_a_diff_that_applies(old: Any, new: Any) -> None:
    assert same(apply(old, diff(old, new)), new)
    assert diff(new, copy.deepcopy(new)) == ()


# size


def messages(count: int) -> list[dict[str, object]]:
    return [{"role": "user", "content": f"message {n}", "id": f"m{n}", "n": n} for n in range(count)]


def test_one_message_before_many_is_found_at_once() -> None:
    old, new = messages(100_000), [{"role": "system", "content": "new"}, *messages(100_000)]
    start = time.perf_counter()
    changes = diff(old, new)
    assert time.perf_counter() - start < 2  # 0.2 s on a small machine
    assert [(change.op, change.path) for change in changes] == [("add", (0,))]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (list(range(20_000)), list(range(20_000, 0, -1))),
        ([n * n % 10 for n in range(20_000)], [n * n * n % 10 for n in range(20_001)]),
        (messages(5_000), [{"text": n} for n in range(6_000)]),
        ("\n".join(str(n) for n in range(50_000)), "\n".join(str(n * 7 % 50_000) for n in range(50_000))),
        ("ab" * 500_000, "ba" * 499_999),
        (" ".join(str(n) for n in range(50_000)), " ".join(str(n * 7 % 50_000) for n in range(50_000))),
    ],
    ids=["reversed", "digits", "all-other", "lines", "one-word", "words"],
)
def test_large_and_different_does_not_blow_up(old: object, new: object) -> None:
    start = time.perf_counter()
    assert same(apply(old, diff(old, new)), new)
    assert time.perf_counter() - start < 10


# showing

HOSTILE = "\x1b[2J\x1b]0;owned\x07\r\u202e\x9b31m\ud800"


def test_nothing_a_terminal_would_obey_is_shown() -> None:
    old: dict[Any, Any] = {
        HOSTILE: 1,
        "s": set(),
        "t": "a\nb",
        "l": [1],
        "o": Plain(**{HOSTILE: 1}),
        "e": None,
        1: 2,
    }
    new: dict[Any, Any] = {
        "s": {HOSTILE}, "t": f"a\n{HOSTILE}\n", "l": [{HOSTILE: HOSTILE}], "o": Plain(**{HOSTILE: HOSTILE}),
        "e": HOSTILE,
        HOSTILE + "new": [HOSTILE], (HOSTILE,): Opaque(HOSTILE, 1, HOSTILE),
        1: HOSTILE.encode("utf-8", "replace"),
    }  # fmt: skip
    changes = diff(old, new)
    assert all(line.isprintable() for line in render(changes).split("\n"))
    assert str(summary(changes)).isprintable()
    json.dumps([to_json(change) for change in changes]).encode()
    json.dumps([to_json(change, full=True) for change in changes], ensure_ascii=False).encode()  # no lone surrogate


def test_a_diff_reads_like_this() -> None:
    old = {
        "messages": [
            {"role": "user", "content": "hello"},
            {"role": "tool", "content": "one\ntwo\nthree"},
            [1],
            [2],
        ],
        "vars": {"tmp": 1},
    }
    new = {
        "messages": [[2], {"role": "user", "content": "hello!"},
                     {"role": "tool", "content": "one\n2\nthree"}, [1], {"a": None}],
        "vars": {},
    }  # fmt: skip
    assert render(diff(old, new)).split("\n") == [
        "> messages[3] -> messages[0]",
        '~ messages[1].content      "hello" -> "hello!"',
        '~ messages[2].content      "one\\n2\\nthree" (13 -> 11 characters)',
        "  @ line 2",
        "  - two",
        "  + 2",
        '+ messages[4]              {"a": null}',
        "- vars.tmp                 1",
    ]


def test_long_texts_that_begin_alike_are_shown_where_they_differ() -> None:
    same = "the quick brown fox jumps over the lazy dog while the engineers watch and "
    (line,) = render(diff({"a": same * 2 + "cheer"}, {"a": same * 2 + "weep"})).split("\n")
    assert line == '~ a                        ..."engineers watch and cheer" -> ..."engineers watch and weep"'
    (line,) = render(diff({"a": same * 2}, {"a": "now " + same * 2})).split("\n")
    assert '"the quick' in line
    assert '"now the quick' in line


def test_color_is_put_around_whole_lines_and_only_when_asked() -> None:
    changes = diff({"a": 1}, {"a": 2, "b": 3})
    assert "\x1b" not in render(changes)
    assert render(changes, color=True).split("\n")[1] == "\x1b[32m+ b                        3\x1b[0m"


def test_a_summary_counts() -> None:
    made = summary(diff({"a": 1, "b": [1], "c": 3}, {"a": 2, "b": [1, 2], "c": 4}))
    assert (made.total, dict(made.counts), made.touched) == (3, {"replace": 2, "add": 1}, ("a", "b", "c"))
    assert str(made) == "3 changes (2 replace, 1 add) in a, b, c"
    assert str(summary(())) == "no changes"
    many = summary(diff({}, {f"k{n}": n for n in range(1500)}))
    assert str(many) == "1,500 changes (1,500 add) in k0, k1, k2, k3, k4, k5, k6, k7 and 1,492 more"
    assert len(many.touched) == 1500


def test_pages_hold_every_change_once() -> None:
    changes = diff({}, {f"k{n}": n for n in range(25)})
    seen: list[Change] = []
    offset: int | None = 0
    while offset is not None:
        part = page(changes, 10, offset)
        assert part.total == 25
        seen += part.items
        offset = part.next_offset
    assert tuple(seen) == changes
    assert page(changes, 10, 99).next_offset is None


def test_json_cuts_long_values_and_says_their_size() -> None:
    (change,) = diff({}, {"a": {"text": "x" * 5000, "list": list(range(100)), "bytes": b"x" * 999}})
    cut, full = to_json(change)["new"], to_json(change, full=True)["new"]
    assert cut["text"] == {"$cut": "x" * 200, "size": 5000}
    assert (len(cut["list"]["$cut"]), cut["list"]["size"], cut["bytes"]["size"]) == (20, 100, 999)
    assert (full["text"], full["list"]) == ("x" * 5000, list(range(100)))


@pytest.mark.parametrize(
    ("value", "json_value"),
    [
        (math.nan, {"$float": "nan"}),
        (2**60, {"$int": "0x1000000000000000"}),
        (b"\xff", {"$bytes": "/w==", "size": 1}),
        ((1, 2), {"$tuple": [1, 2]}),
        ({3, 1}, {"$set": [1, 3]}),
        ({1: "a", "$x": 2}, {"$map": [[1, "a"], ["$x", 2]]}),
        (Frozen(1), {"$type": "Frozen", "fields": {"left": 1, "notes": []}}),
        (Opaque("A", 2, [1]), {"$type": "A", "version": 2, "data": [1]}),
        (Color.RED, {"$repr": "Color.RED", "type": "Color"}),
        ("\ud800", {"$str": '"\\ud800"', "size": 1}),
        (np.zeros((2, 3)), {"$repr": "array of float64 (2, 3)", "type": "ndarray"}),
    ],
)
def test_what_json_has_no_word_for_is_tagged(value: object, json_value: object) -> None:
    assert to_json(diff({}, {"a": value})[0])["new"] == json_value


def test_a_key_that_is_no_str_keeps_its_type_through_a_path() -> None:
    (change,) = diff({}, {(1, "a"): 1})
    assert change.path == (Key.of((1, "a")),)
    assert parse(render_path(change.path)) == change.path
