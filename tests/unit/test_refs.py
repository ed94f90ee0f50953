"""The reference grammar: what each form means, that it is read back, and what is refused."""

import contextlib
import unicodedata
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.errors import InvalidInputError
from rekindle.refs import (
    Instant,
    Range,
    Ref,
    TimeAgo,
    parse_duration,
    parse_range,
    parse_ref,
    quote_agent,
    render_duration,
)
from rekindle.state import path as state_path

names = st.text(st.characters(codec=None), min_size=1, max_size=60).filter(
    lambda text: not any(unicodedata.category(char) == "Cc" for char in text)
)
zones = st.just(UTC) | st.integers(-23, 23).map(lambda hours: timezone(timedelta(hours=hours)))
moments = st.builds(Instant, st.datetimes(timezones=zones)) | st.builds(
    TimeAgo, st.integers(1, 10**9).map(lambda seconds: timedelta(seconds=seconds))
)
places = st.none() | st.integers(-(10**9), 10**9) | moments | names
paths = st.lists(st.text() | st.integers(-9, 9), max_size=4).map(lambda steps: state_path.render(tuple(steps)))
refs = st.builds(Ref, names, places, st.none() | paths)


@given(refs)
def test_a_reference_is_read_back_from_its_text(ref: Ref) -> None:
    assert parse_ref(str(ref)) == ref


@given(refs, refs)
def test_a_range_is_read_back_from_its_text(a: Ref, b: Ref) -> None:
    assert parse_range(str(Range(a, b))) == Range(a, b)


@given(names)
def test_any_agent_can_be_named(agent: str) -> None:
    assert parse_ref(quote_agent(agent)) == Ref(agent)
    assert quote_agent(agent).isprintable()


@given(st.text())
def test_any_text_is_a_reference_or_refused(text: str) -> None:
    with contextlib.suppress(InvalidInputError):
        parse_range(text)


def moment(text: str) -> Instant:
    return Instant(datetime.fromisoformat(text))


@pytest.mark.parametrize(
    ("text", "ref"),
    [
        ("agent", Ref("agent")),
        ("agent@42", Ref("agent", 42)),
        ("agent@-1", Ref("agent", -1)),
        ("agent@{10m ago}", Ref("agent", TimeAgo(timedelta(minutes=10)))),
        ("agent@{ 1h30m ago }", Ref("agent", TimeAgo(timedelta(minutes=90)))),
        ("agent@{2026-01-02T03:04:05Z}", Ref("agent", moment("2026-01-02T03:04:05+00:00"))),
        ("agent@{2026-01-02 03:04+02:00}", Ref("agent", moment("2026-01-02T03:04:00+02:00"))),
        ("agent@exp", Ref("agent", "exp")),
        ('agent@"42"', Ref("agent", "42")),
        ("chk_42-k3v9t2m8q4dx", Ref("chk_42-k3v9t2m8q4dx")),
        ("chk_42-k3v", Ref("chk_42-k3v")),
        ("team/alice.v2", Ref("team/alice.v2")),
        ('"a@b.c"@-1', Ref("a@b.c", -1)),
        ("'a@b.c'@-1", Ref("a@b.c", -1)),
        ('"my agent"', Ref("my agent")),
        ("agent:messages[-1].content", Ref("agent", None, "messages[-1].content")),
        ('"a:b"@3:x["..:"]', Ref("a:b", 3, 'x["..:"]')),
        ("agent:", Ref("agent", None, "")),
        ("@-1", Ref(None, -1)),
        (":messages", Ref(None, None, "messages")),
    ],
)
def test_text_means_a_reference(text: str, ref: Ref) -> None:
    assert parse_ref(text) == ref


@pytest.mark.parametrize(
    ("text", "a", "b"),
    [
        ("A..B", Ref("A"), Ref("B")),
        ("agent@3..agent@-1", Ref("agent", 3), Ref("agent", -1)),
        ("agent@3..@-1", Ref("agent", 3), Ref("agent", -1)),
        ("agent@{1d ago}..@{1h ago}", Ref("agent", TimeAgo(timedelta(1))), Ref("agent", TimeAgo(timedelta(0,
        3600)))),
        ('a:x["p..q"]..b:y', Ref("a", None, 'x["p..q"]'), Ref("b", None, "y")),
        ('a:x{b\'..\'}..b', Ref("a", None, "x{b'..'}"), Ref("b")),
        ('"x..y"..z', Ref("x..y"), Ref("z")),
        ("v1.2..v1.3", Ref("v1.2"), Ref("v1.3")),
    ],
)  # fmt: skip
def test_two_references_are_a_range(text: str, a: Ref, b: Ref) -> None:
    assert parse_range(text) == Range(a, b)


def test_one_reference_is_a_range_with_an_open_end() -> None:
    assert parse_range("agent@2") == Range(Ref("agent", 2), None)


@pytest.mark.parametrize(
    "text",
    ["", "@", ":a b", "a b", "a@", "a@@1", "a@{", "a@{}", "a@{soon}", "a@{10 ago}", "a@{10m}", "a@-0",
    "a@01x y",
     "a@99999999999999999999", "a..", "..b", "a..b..c", "a...b", 'a"b"', '"a', '""', "a@b.c@1", "-1 ",
     "a:b..",
     "a:x.", "\x1b[31m", '"\\n"', "x" * 513, "é" * 257, "a@{-5m ago}", "a@{0s ago}", "[1]", "{1}"],
)  # fmt: skip
def test_what_is_no_reference_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse_range(text)
    assert caught.value.hint is not None or caught.value.code == "bad-quotes"
    assert caught.value.message.isprintable()


def test_two_references_are_refused_where_one_is_wanted() -> None:
    with pytest.raises(InvalidInputError, match="two references"):
        parse_ref("a..b")


@pytest.mark.parametrize("url", ["sqlite:///x.db", "s3://bucket/p", "postgresql://u@h/db", "file:///tmp"])
def test_a_url_is_never_a_reference(url: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse_ref(url)
    assert caught.value.code == "ref-is-url"


@pytest.mark.parametrize("written", ["2026-01-02T03:04:05", "2026-01-02"])
def test_a_time_must_say_its_zone(written: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse_ref(f"a@{{{written}}}")
    assert caught.value.code == "time-without-zone"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("10m", 600),
        ("1h30m", 5400),
        ("2d", 172800),
        ("1w", 604800),
        ("1w2d3h4m5s", 788645),
        ("0h5m", 300),
    ],
)
def test_durations(text: str, seconds: int) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "10", "m", "1.5h", "30m1h", "1h 30m", "-1h", "0s", "1y", "999999999w", "１m"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError):
        parse_duration(text)


@given(st.integers(1, 10**9))
def test_a_duration_is_read_back(seconds: Any) -> None:
    span = timedelta(seconds=seconds)
    assert parse_duration(render_duration(span)) == span
