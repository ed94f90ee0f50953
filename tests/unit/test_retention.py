import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.errors import InvalidInputError
from rekindle.retention import Candidate, Plan, Policy, duration, plan, size

HOUR = 3600.0
DAY = 24 * HOUR
NOW = datetime(2026, 3, 18, 12, 30, tzinfo=UTC).timestamp()


def checkpoint(seq: int, *, age: float = 0.0, **more: Any) -> Candidate:
    facts = {"kind": "manual", "size": 100, "branch": "main", "parent": seq - 1 or None}
    return Candidate(seq=seq, id=f"chk_{seq}", time=NOW - age, **(facts | more))


def hourly(count: int, **more: Any) -> list[Candidate]:
    """seq 1 is the oldest; the newest is from now."""
    return [checkpoint(seq, age=(count - seq) * HOUR, **more) for seq in range(1, count + 1)]


def kept(history: list[Candidate], policy: str) -> list[int]:
    return [each.candidate.seq for each in plan(history, Policy.parse(policy), now=NOW).keep]


def reasons(found: Plan) -> dict[int, tuple[str, ...]]:
    return {each.candidate.seq: each.reasons for each in (*found.keep, *found.drop)}


# Keep rules


def test_keep_last_keeps_the_newest() -> None:
    assert kept(hourly(10), "keep-last=3") == [8, 9, 10]


def test_keep_rules_are_a_union() -> None:
    assert kept(hourly(30), "keep-last=2,keep-daily=2") == [17, 29, 30]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("keep-hourly=3", [2182, 2183, 2184]),
        ("keep-daily=3", [2147, 2171, 2184]),  # 12:30 now, 23:30 the days before
        ("keep-weekly=3", [1955, 2123, 2184]),  # weeks end on Sunday night, UTC
        ("keep-monthly=3", [1091, 1763, 2184]),  # 31 January, 28 February
    ],
)
def test_a_bucket_keeps_its_newest(policy: str, expected: list[int]) -> None:
    assert kept(hourly(2184), policy) == expected


def test_a_bucket_rule_counts_only_buckets_that_have_a_checkpoint() -> None:
    history = [checkpoint(1, age=300 * DAY), checkpoint(2, age=90 * DAY), checkpoint(3)]
    assert kept(history, "keep-daily=2") == [2, 3]


def test_keep_within_keeps_what_is_younger() -> None:
    assert kept(hourly(10), "keep-within=3h") == [7, 8, 9, 10]


def test_the_newest_is_by_seq_when_the_clock_jumped_back() -> None:
    history = [checkpoint(1, age=1 * HOUR), checkpoint(2, age=2 * HOUR), checkpoint(3, age=3 * HOUR)]
    assert kept(history, "keep-last=1") == [3]
    assert kept(history, "keep-daily=5") == [3]


def test_a_clock_that_jumped_back_makes_nothing_old() -> None:
    history = [checkpoint(1, age=40 * DAY), checkpoint(2, age=DAY), checkpoint(3, age=20_000 * DAY)]
    assert kept(history, "max-age=30d") == [2, 3]
    assert kept(history, "keep-within=30d") == [2, 3]


def test_a_clock_that_jumped_ahead_makes_nothing_young_for_ever() -> None:
    history = [checkpoint(1, age=50 * DAY), checkpoint(2, age=-9_000 * DAY), checkpoint(3, age=40 * DAY)]
    assert kept([*history, checkpoint(4)], "max-age=30d") == [4]


def test_times_far_off_still_name_a_bucket() -> None:
    history = [checkpoint(1, age=1e15), checkpoint(2, age=-1e15)]
    assert kept(history, "keep-monthly=5") == [1, 2]


# Limits


def test_with_limits_only_everything_within_them_is_kept() -> None:
    assert kept(hourly(10), "max-age=2h") == [8, 9, 10]
    assert kept(hourly(10), "max-count=4") == [7, 8, 9, 10]
    assert kept(hourly(10), "max-bytes=350") == [8, 9, 10]


def test_a_limit_drops_the_oldest_until_the_rest_fits_and_no_further() -> None:
    history = [
        checkpoint(1, size=10),
        checkpoint(2, size=500),
        checkpoint(3, size=40),
        checkpoint(4, size=50),
    ]
    assert kept(history, "max-bytes=90") == [3, 4]
    assert kept(history, "max-bytes=590") == [2, 3, 4]
    assert kept(history, "max-bytes=600") == [1, 2, 3, 4]


def test_limits_outrank_keep_rules() -> None:
    assert kept(hourly(10), "keep-last=5,max-age=2h") == [8, 9, 10]
    assert kept(hourly(10), "keep-last=5,max-count=2") == [9, 10]


def test_a_protected_checkpoint_stays_and_counts() -> None:
    history = hourly(10)
    history[0] = checkpoint(1, age=9 * DAY, protected=("head of main", "tag v1"))
    found = plan(history, Policy(keep_last=5, max_age=timedelta(hours=8), max_count=3), now=NOW)
    assert [each.candidate.seq for each in found.keep] == [1, 9, 10]
    assert reasons(found)[1] == ("head of main", "tag v1")


def test_protected_checkpoints_stay_though_they_exceed_every_limit() -> None:
    history = [checkpoint(seq, age=99 * DAY, protected=("head of main",)) for seq in range(1, 5)]
    assert kept(history, "max-age=1d,max-count=1,max-bytes=1,drop-kind=manual") == [1, 2, 3, 4]


# Kinds


def mixed() -> list[Candidate]:
    return [checkpoint(seq, age=(12 - seq) * HOUR, kind="routine" if seq % 3 else "manual") for seq in range(1, 13)]


def test_a_kind_may_have_rules_of_its_own() -> None:
    assert kept(mixed(), "keep-last=3,kind.routine.keep-last=1") == [6, 9, 11, 12]


def test_a_kind_without_a_rule_is_left_alone() -> None:
    assert kept(mixed(), "kind.routine.keep-last=1") == [3, 6, 9, 11, 12]
    assert kept(mixed(), "drop-kind=routine") == [3, 6, 9, 12]


def test_a_kind_that_is_always_kept_takes_no_place_of_another() -> None:
    assert kept(mixed(), "keep-kind=manual,keep-last=2") == [3, 6, 9, 10, 11, 12]
    assert kept(mixed(), "keep-kind=manual,max-count=5") == [3, 6, 9, 11, 12]


def test_the_limits_of_a_policy_are_over_all_kinds_together() -> None:
    assert kept(mixed(), "max-count=3,kind.routine.keep-last=4") == [10, 11, 12]
    assert kept(mixed(), "max-count=9,kind.routine.max-count=2") == [3, 6, 9, 10, 11, 12]


# Plans


def test_every_reason_says_which_rule_it_was() -> None:
    history = [checkpoint(1, age=40 * DAY), *(checkpoint(seq, age=(9 - seq) * HOUR) for seq in range(2, 10))]
    history.append(checkpoint(10, kind="scratch"))
    policy = Policy.parse("keep-last=3,keep-daily=2,keep-within=2h,max-age=30d,max-count=2,drop-kind=scratch")
    assert reasons(plan(history, policy, now=NOW)) == {
        1: ("older than max-age=30d",),
        **dict.fromkeys(range(2, 7), ("kept by none of keep-last=3, keep-daily=2, keep-within=2h",)),
        7: ("the oldest beyond max-count=2",),
        8: ("one of the last 3", "younger than keep-within=2h"),
        9: ("one of the last 3", "newest of 2026-03-18 (keep-daily=2)", "younger than keep-within=2h"),
        10: ("kind scratch is not kept",),
    }


def test_a_plan_says_what_it_frees_and_is_json_safe() -> None:
    found = plan(hourly(3), Policy(keep_last=1), now=NOW)
    assert found.freed == 200
    told = json.loads(json.dumps(found.to_dict()))
    assert told["freed"] == 200
    assert [each["id"] for each in told["drop"]] == ["chk_1", "chk_2"]
    assert told["keep"][0]["reasons"] == ["one of the last 1"]


def test_an_empty_history_needs_no_decision() -> None:
    assert plan([], Policy(keep_last=1), now=NOW) == Plan(keep=(), drop=())


def test_two_histories_at_once_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="one agent at a time") as refused:
        plan([*hourly(2), checkpoint(2)], Policy(keep_last=1), now=NOW)
    assert refused.value.code == "history-mixed"


# Policies


def test_a_policy_is_read_from_text() -> None:
    limits, kinds = "max-age=30d,max-bytes=500MB", "kind.routine.keep-last=3,keep-kind=a,keep-kind=b"
    assert Policy.parse(f"keep-last=10, keep-daily=7,{limits},{kinds}") == Policy(
        keep_last=10, keep_daily=7, max_age=timedelta(days=30), max_bytes=500_000_000,
        kinds={"routine": Policy(keep_last=3)}, keep_kinds=("a", "b"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        ("", "policy-empty", "keep-last=10"),
        (" , ", "policy-empty", "keep-last=10"),
        ("keep-kind=manual", "policy-empty", "keep-last=10"),
        ("kind.routine.keep-kind=a", "policy-invalid", "there is no rule 'keep-kind'"),
        ("keep-lost=3", "policy-invalid", "a rule is NAME=VALUE: keep-last, keep-hourly"),
        ("keep_last=3", "policy-invalid", "there is no rule 'keep_last'"),
        ("keep-last", "policy-invalid", "'keep-last' is not a rule"),
        ("keep-last=", "policy-invalid", "'keep-last=' is not a rule"),
        ("keep-last=0", "policy-invalid", "at least 1, not 0"),
        ("keep-last=-1", "policy-invalid", "at least 1, not '-1'"),
        ("keep-last=ten", "policy-invalid", "at least 1, not 'ten'"),
        ("keep-last=1,keep-last=2", "policy-invalid", "keep-last is given twice"),
        ("max-age=30", "policy-invalid", "30d, 12h"),
        ("max-age=0d", "policy-invalid", "longer than nothing"),
        ("max-age=99999999999d", "policy-invalid", "longer than any time span"),
        ("max-bytes=5XB", "policy-invalid", "GiB, GB, MiB, MB"),
        ("max-bytes=0", "policy-invalid", "at least 1, not 0"),
        ("max-bytes=0.3B", "policy-invalid", "whole number of bytes"),
        ("keep-kind=a,drop-kind=a", "policy-invalid", "kind a is named twice"),
        ("drop-kind=a b", "policy-invalid", "'a b' is not a kind"),
        ("kind.a.b.keep-last=1", "policy-invalid", "'a.b' is not a kind"),
    ],
)
def test_a_wrong_policy_is_refused_with_what_is_allowed(text: str, code: str, told: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        Policy.parse(text)
    assert refused.value.code == code
    assert told in str(refused.value)


@pytest.mark.parametrize(
    "data",
    [
        {"keep_last": 1, "keep_lots": 2},
        {"keep_last": True},
        {"keep_last": "3"},
        {"keep_last": 1.0},
        {"max_age": -5},
        {"max_age": float("nan")},
        {"max_age": float("inf")},
        {"max_age": [1]},
        {"keep_last": 1, "keep_kinds": "manual"},
        {"keep_last": 1, "drop_kinds": [1]},
        {"kinds": {"a": {}}},
        {"kinds": ["a"]},
        {"kinds": {"a": {"keep_kinds": ["b"], "keep_last": 1}}},
        [],
    ],
)
def test_a_wrong_mapping_is_refused(data: Any) -> None:
    with pytest.raises(InvalidInputError):
        Policy.from_dict(data)


def test_a_mapping_may_say_spans_and_sizes_in_words() -> None:
    assert Policy.from_dict({"max_age": "30d", "max_bytes": "2KiB"}) == Policy.parse("max-age=30d,max-bytes=2048")


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("800", 800), ("800B", 800), ("1KB", 1000), ("1KiB", 1024), ("500 mb", 500_000_000),
        ("500MB", 500_000_000),
        ("3MiB", 3 << 20), ("1.5GiB", 3 << 29), ("2GB", 2_000_000_000), ("0.1KB", 100),
    ],
)  # fmt: skip
def test_sizes(text: str, count: int) -> None:
    assert size(text) == count


@pytest.mark.parametrize(
    ("text", "seconds"), [("45s", 45), ("90m", 5400), ("12h", 43_200), ("1d12h", 129_600), ("2w", 1_209_600)]
)
def test_durations(text: str, seconds: int) -> None:
    assert duration(text) == timedelta(seconds=seconds)


# Properties

KINDS = st.sampled_from(["manual", "routine", "pre_operation"])
COUNTS = st.none() | st.integers(1, 12)
SPANS = st.none() | st.timedeltas(timedelta(microseconds=1), timedelta(days=400))
COUNTED = ("keep_last", "keep_hourly", "keep_daily", "keep_weekly", "keep_monthly", "max_count")
RULES: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(COUNTED, COUNTS),
    **dict.fromkeys(("keep_within", "max_age"), SPANS),
    "max_bytes": st.none() | st.integers(1, 1 << 40),
}


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    def rules() -> dict[str, Any]:
        found = {name: draw(strategy) for name, strategy in RULES.items()}
        return found if any(found.values()) else found | {"keep_last": 1}

    place = {kind: draw(st.sampled_from(["rules", "own", "keep", "drop"])) for kind in ("manual", "routine")}
    return Policy(
        **rules(),
        kinds={kind: Policy(**rules()) for kind, where in place.items() if where == "own"},
        keep_kinds=tuple(kind for kind, where in place.items() if where == "keep"),
        drop_kinds=tuple(kind for kind, where in place.items() if where == "drop"),
    )


CHECKPOINTS = st.builds(
    Candidate,
    seq=st.integers(1, 10_000),
    id=st.uuids().map(str),
    time=st.floats(NOW - 500 * DAY, NOW + 5 * DAY) | st.floats(-1e12, 1e13),
    kind=KINDS,
    size=st.integers(0, 1 << 36),
    branch=st.sampled_from(["main", "exp"]),
    protected=st.sampled_from([(), (), (), ("head of main",), ("tag v1", "open pre_operation")]),
)
HISTORIES = st.lists(CHECKPOINTS, max_size=40, unique_by=lambda c: c.seq)


@given(HISTORIES, policies())
def test_every_checkpoint_is_decided_once_with_a_reason_and_no_protected_one_goes(
    history: list[Candidate], policy: Policy
) -> None:
    found = plan(history, policy, now=NOW)
    decisions = (*found.keep, *found.drop)
    assert sorted(each.candidate.seq for each in decisions) == sorted(c.seq for c in history)
    assert all(each.reasons and all(each.reasons) for each in decisions)
    assert not any(each.candidate.protected for each in found.drop)
    assert {each.action for each in found.keep} <= {"keep"}
    assert {each.action for each in found.drop} <= {"drop"}


@given(HISTORIES, st.integers(1, 50))
def test_keep_last_keeps_the_newest_by_seq_whatever_the_clock_said(history: list[Candidate], count: int) -> None:
    found = plan(history, Policy(keep_last=count), now=NOW)
    newest = sorted(c.seq for c in history)[-count:]
    protected = [c.seq for c in history if c.protected]
    assert {each.candidate.seq for each in found.keep} == {*newest, *protected}


@given(HISTORIES, policies())
def test_what_a_plan_keeps_fits_the_limits_or_may_not_go(history: list[Candidate], policy: Policy) -> None:
    keep = [each.candidate for each in plan(history, policy, now=NOW).keep]
    free = [c for c in keep if not c.protected and c.kind not in policy.keep_kinds]
    assert policy.max_count is None or len(keep) <= policy.max_count or not free
    assert policy.max_bytes is None or sum(c.size for c in keep) <= policy.max_bytes or not any(c.size for c in free)


@given(HISTORIES, policies(), st.randoms())
def test_a_plan_does_not_depend_on_the_order_it_is_handed(
    history: list[Candidate], policy: Policy, random: Any
) -> None:
    shuffled = random.sample(history, len(history))
    assert plan(shuffled, policy, now=NOW) == plan(history, policy, now=NOW)


@given(policies())
def test_a_policy_comes_back_from_its_text_and_its_mapping(policy: Policy) -> None:
    assert Policy.parse(str(policy)) == policy
    assert Policy.from_dict(json.loads(json.dumps(policy.to_dict()))) == policy
