"""The reference grammar: what each form means, that it is read back, and what is refused."""

import contextlib
import unicodedata
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle import open_store
from rekindle.errors import InvalidInputError, NotFoundError
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
from rekindle.state.shown import path as state_path

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


@pytest.mark.parametrize("own", ["run-42/turn-7", "a b", "a@b.c", 'say "hi"', "tag\u202e"])
def test_an_id_of_the_callers_is_found_bare_in_quotes_and_with_a_path(own: str) -> None:
    with open_store("memory://") as store:
        saved = store.save("planner", {"step": 1}, id=own)
        store.save("planner", {"step": 2})
        for ref in (own, quote_agent(own), f"{quote_agent(own)}:step", parse_ref(quote_agent(own))):
            assert store.get(ref).id == saved.id
        with pytest.raises(NotFoundError):
            store.get(quote_agent(own + "x"))


def test_an_id_comes_before_an_agent_of_that_name() -> None:
    with open_store("memory://") as store:
        store.save("planner", 1, id="writer")
        store.save("writer", 2)
        assert store.get("writer").agent_id == store.get(parse_ref("writer")).agent_id == "planner"
        assert store.get("writer@1").agent_id == "writer"


def test_the_beginning_of_an_id_has_to_be_of_one() -> None:
    with open_store("memory://") as store:
        ids = [store.save(agent, 1).id for agent in ("planner", "writer")]
        assert [store.get(each[:10]).id for each in ids] == ids
        with pytest.raises(InvalidInputError) as caught:
            store.get("chk_1-")
        assert caught.value.hint == "write more of the id, or AGENT@SEQ"
        with pytest.raises(NotFoundError):
            store.get("chk_0-")
