"""What may go: a history and a policy in, a plan out with a reason for every checkpoint. No I/O, no clock.

Order is always seq. Times only name a bucket (UTC hour, day, ISO week, month) or an age, so a clock that
jumped back cannot make an old checkpoint the newest, nor a new one old.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, Literal

from .errors import InvalidInputError

BUCKETS: Mapping[str, str] = {
    "keep_hourly": "%Y-%m-%d %H:00",
    "keep_daily": "%Y-%m-%d",
    "keep_weekly": "%G-W%V",
    "keep_monthly": "%Y-%m",
}
COUNTS = ("keep_last", *BUCKETS, "max_count")
DURATIONS = ("keep_within", "max_age")
KINDS = ("keep_kinds", "drop_kinds")
KEEP_RULES = ("keep_last", *BUCKETS, "keep_within")
RULES = (*KEEP_RULES, "max_age", "max_bytes", "max_count")

SIZE_UNITS = {"GiB": 1 << 30, "GB": 10**9, "MiB": 1 << 20, "MB": 10**6, "KiB": 1 << 10, "KB": 1000, "B": 1}
DURATION_UNITS = {"w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1}
LAST_SECOND = 253_402_300_799.0  # of the year 9999: later times name no bucket


@dataclass(frozen=True, slots=True)
class Candidate:
    """A checkpoint as retention sees it. `protected` says why it may not go: "head of main", "tag v1"."""

    seq: int
    id: str
    time: float
    kind: str
    size: int
    branch: str
    parent: int | None = None
    protected: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What to keep, and what may not be exceeded.

    The keep rules are a union: what one of them keeps is kept, the rest goes. `keep_daily=7` keeps the newest
    checkpoint of each of the last 7 days that have any. With no keep rule everything is kept.
    The max rules are limits on what is left, and the oldest go first: no keep rule outranks them, only
    `keep_kinds` do. `drop_kinds` go at once. `kinds` replaces the rules for one kind, while `max_bytes` and
    `max_count` of the policy itself are over all kinds together. Nothing outranks a protected checkpoint.
    """

    keep_last: int | None = None
    keep_hourly: int | None = None
    keep_daily: int | None = None
    keep_weekly: int | None = None
    keep_monthly: int | None = None
    keep_within: timedelta | None = None
    max_age: timedelta | None = None
    kinds: Mapping[str, Policy] = field(default_factory=dict)
    keep_kinds: tuple[str, ...] = ()
    drop_kinds: tuple[str, ...] = ()
    max_bytes: int | None = None
    max_count: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "kinds", MappingProxyType(dict(self.kinds)))
        for name in (*COUNTS, "max_bytes"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 1):
                raise _invalid(f"{_spelled(name)} is a whole number of at least 1, not {value!r}")
        for name in DURATIONS:
            value = getattr(self, name)
            if value is not None and (not isinstance(value, timedelta) or value <= timedelta(0)):
                raise _invalid(f"{_spelled(name)} is a time longer than nothing, not {value!r}")
        _check_kinds(self)
        if not (self._rules or self.kinds or self.drop_kinds):
            raise InvalidInputError(
                "policy-empty",
                "a policy without a rule would drop everything or nothing",
                hint="name at least one, for example keep-last=10 or max-age=30d",
            )

    @property
    def _rules(self) -> list[str]:
        return [name for name in RULES if getattr(self, name) is not None]

    def __str__(self) -> str:
        """The policy as `parse` reads it."""
        parts = [_rule_text(self, name) for name in self._rules]
        parts += [f"keep-kind={kind}" for kind in self.keep_kinds]
        parts += [f"drop-kind={kind}" for kind in self.drop_kinds]
        for kind, rules in self.kinds.items():
            parts += [f"kind.{kind}.{_rule_text(rules, name)}" for name in rules._rules]
        return ",".join(parts)

    @classmethod
    def parse(cls, text: str) -> Policy:
        """Read `keep-last=10,max-age=30d,max-bytes=500MB,keep-kind=manual,kind.routine.keep-last=3`."""
        found: dict[str, Any] = {}
        kinds: dict[str, dict[str, Any]] = {}
        for part in filter(None, (each.strip() for each in text.split(","))):
            key, equals, value = (each.strip() for each in part.partition("="))
            if not equals or not value:
                raise _invalid(f"{part!r} is not a rule")
            if override := re.fullmatch(r"kind\.(.+)\.([^.]+)", key):
                _read_rule(kinds.setdefault(override[1], {}), override[2], value)
            elif key in ("keep-kind", "drop-kind"):
                name = f"{key.replace('-', '_')}s"
                found[name] = (*found.get(name, ()), value)
            else:
                _read_rule(found, key, value)
        return cls(**found, kinds={kind: cls(**rules) for kind, rules in kinds.items()})

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe; durations in seconds, only what is set."""
        out: dict[str, Any] = {name: getattr(self, name) for name in self._rules}
        out |= {name: out[name].total_seconds() for name in DURATIONS if name in out}
        out |= {name: list(getattr(self, name)) for name in KINDS if getattr(self, name)}
        if self.kinds:
            out["kinds"] = {kind: rules.to_dict() for kind, rules in self.kinds.items()}
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Policy:
        """The policy of `to_dict`; "30d" and "500MB" are read too. A key it does not know is refused."""
        if not isinstance(data, Mapping):
            raise _invalid(f"a policy is a mapping of rules, not {data!r}")
        allowed = [each.name for each in fields(cls)]
        if unknown := sorted(map(str, data.keys() - set(allowed))):
            raise _invalid(f"a policy has no {unknown[0]!r}", hint=f"it may have {', '.join(allowed)}")
        return cls(**{name: _from_json(name, value) for name, value in data.items()})


@dataclass(frozen=True, slots=True)
class Decision:
    candidate: Candidate
    action: Literal["keep", "drop"]
    reasons: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        c = self.candidate
        facts = {"id": c.id, "seq": c.seq, "time": c.time, "kind": c.kind, "branch": c.branch, "size": c.size}
        return facts | {"action": self.action, "reasons": list(self.reasons)}


@dataclass(frozen=True, slots=True)
class Plan:
    """Every checkpoint of a history, once: in `keep` or in `drop`, oldest first."""

    keep: tuple[Decision, ...]
    drop: tuple[Decision, ...]

    @property
    def freed(self) -> int:
        """Bytes of the dropped checkpoints; what others share with them stays on disk."""
        return sum(each.candidate.size for each in self.drop)

    def to_dict(self) -> dict[str, Any]:
        keep, drop = [each.to_dict() for each in self.keep], [each.to_dict() for each in self.drop]
        return {"keep": keep, "drop": drop, "freed": self.freed}


def plan(history: Iterable[Candidate], policy: Policy, *, now: float) -> Plan:
    """Decide about every checkpoint of ONE agent's history. `now` is in unix seconds."""
    ordered = sorted(history, key=lambda c: c.seq)
    if len({c.seq for c in ordered}) < len(ordered):
        raise InvalidInputError("history-mixed", "two checkpoints have one seq", hint="plan for one agent at a time")
    ages = _ages(ordered, now)
    decided: dict[int, Decision] = {}
    for kind in dict.fromkeys(c.kind for c in ordered if c.kind in policy.kinds):
        rules = policy.kinds[kind]
        group = [c for c in ordered if c.kind == kind]
        decided |= _limit(_judge(group, rules, ages), rules)
    decided |= _judge([c for c in ordered if c.kind not in policy.kinds], policy, ages)
    decided = _limit({c.seq: decided[c.seq] for c in ordered}, policy)
    verdicts = tuple(decided.values())
    return Plan(
        keep=tuple(each for each in verdicts if each.action == "keep"),
        drop=tuple(each for each in verdicts if each.action == "drop"),
    )


def size(text: str) -> int:
    """Bytes: `800`, `500MB` (powers of ten) or `1.5GiB` (powers of two)."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMG]i?B|B)?", text.strip(), re.IGNORECASE)
    if found is None:
        raise _invalid(f"{text!r} is not a size", hint=f"a number and one of {', '.join(SIZE_UNITS)}: 500MB")
    units = {name.lower(): factor for name, factor in SIZE_UNITS.items()}
    return int(_exact(found[1], units[(found[2] or "B").lower()], text))


def duration(text: str) -> timedelta:
    """A time span: `30d`, `12h`, `1d12h`; the units are w, d, h, m (minutes) and s."""
    hint = "a number and one of w, d, h, m (minutes), s: 30d, 12h, 1d12h"
    if not re.fullmatch(r"(\d+(\.\d+)?[wdhms])+", text.strip()):
        raise _invalid(f"{text!r} is not a time span", hint=hint)
    parts = re.findall(r"(\d+(?:\.\d+)?)([wdhms])", text)
    try:
        return sum((timedelta(seconds=float(n)) * DURATION_UNITS[unit] for n, unit in parts), timedelta(0))
    except OverflowError as e:
        raise _invalid(f"{text!r} is longer than any time span", hint=hint) from e


# Deciding


def _ages(ordered: Sequence[Candidate], now: float) -> dict[int, float]:
    """Seconds since each was saved: none is older than one before it; times after `now` tell nothing."""
    ages: dict[int, float] = {}
    youngest: float | None = None
    for c in ordered:
        if c.time <= now:
            age = now - c.time
            youngest = age if youngest is None else min(youngest, age)
        ages[c.seq] = 0.0 if youngest is None else youngest
    return ages


def _judge(group: Sequence[Candidate], rules: Policy, ages: Mapping[int, float]) -> dict[int, Decision]:
    """Keep rules, kinds and age; what the rules together may hold comes after."""
    ruled = [c for c in group if c.kind not in (*rules.keep_kinds, *rules.drop_kinds)]
    kept = _kept(ruled, rules, ages)
    asked = ", ".join(_rule_text(rules, name) for name in KEEP_RULES if getattr(rules, name) is not None)
    return {c.seq: _verdict(c, rules, ages[c.seq], kept.get(c.seq, []), asked) for c in group}


def _verdict(c: Candidate, rules: Policy, age: float, kept: list[str], asked: str) -> Decision:
    if c.kind in rules.keep_kinds:
        return Decision(c, "keep", (*c.protected, f"kind {c.kind} is always kept"))
    if c.protected:
        return Decision(c, "keep", (*c.protected, *kept))
    if c.kind in rules.drop_kinds:
        return Decision(c, "drop", (f"kind {c.kind} is not kept",))
    if rules.max_age is not None and age > rules.max_age.total_seconds():
        return Decision(c, "drop", (f"older than {_rule_text(rules, 'max_age')}",))
    if asked and not kept:
        return Decision(c, "drop", (f"kept by none of {asked}",))
    return Decision(c, "keep", tuple(kept) or ("no rule asks for it to go",))


def _kept(group: Sequence[Candidate], rules: Policy, ages: Mapping[int, float]) -> dict[int, list[str]]:
    """By seq, the keep rules that speak for a checkpoint."""
    kept: dict[int, list[str]] = {c.seq: [] for c in group}
    for c in group[-rules.keep_last :] if rules.keep_last else ():
        kept[c.seq].append(f"one of the last {rules.keep_last}")
    for name, form in BUCKETS.items():
        limit = getattr(rules, name)
        buckets: dict[str, int] = {}
        for c in reversed(group) if limit else ():
            buckets.setdefault(_bucket(c.time, form), c.seq)
            if len(buckets) == limit:
                break
        for bucket, seq in buckets.items():
            kept[seq].append(f"newest of {bucket} ({_rule_text(rules, name)})")
    if rules.keep_within is not None:
        for c in group:
            if ages[c.seq] <= rules.keep_within.total_seconds():
                kept[c.seq].append(f"younger than {_rule_text(rules, 'keep_within')}")
    return kept


def _bucket(time: float, form: str) -> str:
    return datetime.fromtimestamp(min(max(time, 0.0), LAST_SECOND), UTC).strftime(form)


def _limit(decided: dict[int, Decision], rules: Policy) -> dict[int, Decision]:
    """Drop the oldest that may go until the kept ones fit; the others count too."""
    weights: dict[str, Callable[[Candidate], int]] = {"max_count": lambda c: 1, "max_bytes": lambda c: c.size}
    for name, weight in weights.items():
        limit = getattr(rules, name)
        if limit is None:
            continue
        kept = [each for each in decided.values() if each.action == "keep"]
        excess = sum(weight(each.candidate) for each in kept) - limit
        for each in kept:
            c = each.candidate
            if excess > 0 and weight(c) and not c.protected and c.kind not in rules.keep_kinds:
                reason = f"the oldest beyond {_rule_text(rules, name)}"
                decided[c.seq] = replace(each, action="drop", reasons=(reason,))
                excess -= weight(c)
    return decided


# Reading and writing policies


def _invalid(message: str, *, hint: str | None = None) -> InvalidInputError:
    rules = f"{', '.join(map(_spelled, RULES))}, keep-kind, drop-kind or kind.KIND.RULE"
    return InvalidInputError("policy-invalid", message, hint=hint or f"a rule is NAME=VALUE: {rules}")


def _check_kinds(policy: Policy) -> None:
    named = [*policy.keep_kinds, *policy.drop_kinds, *policy.kinds]
    for kind in named:
        if not re.fullmatch(r"[\w-]+", kind):
            raise _invalid(f"{kind!r} is not a kind", hint="a kind has letters, digits, _ and - only")
        if named.count(kind) > 1:
            raise _invalid(f"kind {kind} is named twice", hint="keep it, drop it, or give it rules of its own")
    for kind, rules in policy.kinds.items():
        if rules.kinds or rules.keep_kinds or rules.drop_kinds:
            raise _invalid(f"the rules of kind {kind} name kinds again", hint="name kinds at the top only")


def _read_rule(found: dict[str, Any], key: str, value: str) -> None:
    name = key.replace("-", "_")
    if name not in RULES or key != _spelled(name):
        raise _invalid(f"there is no rule {key!r}")
    if name in found:
        raise _invalid(f"{key} is given twice", hint="give it once")
    if name in COUNTS and not re.fullmatch(r"[0-9]{1,18}", value):
        raise _invalid(f"{key} is a whole number of at least 1, not {value!r}")
    found[name] = int(value) if name in COUNTS else size(value) if name == "max_bytes" else duration(value)


def _from_json(name: str, value: Any) -> Any:
    if name == "kinds" and isinstance(value, Mapping) and _all_text(value):
        return {kind: Policy.from_dict(rules) for kind, rules in value.items()}
    if name in KINDS and isinstance(value, list | tuple) and _all_text(value):
        return tuple(value)
    if name in (*KINDS, "kinds"):
        raise _invalid(f"{name} is a {'mapping' if name == 'kinds' else 'list'} of kinds, not {value!r}")
    if name in DURATIONS and type(value) in (int, float):
        return _seconds(value)
    if isinstance(value, str) and name in (*DURATIONS, "max_bytes"):
        return duration(value) if name in DURATIONS else size(value)
    return value


def _all_text(names: Iterable[object]) -> bool:
    return all(isinstance(name, str) for name in names)


def _seconds(value: float) -> timedelta:
    try:
        return timedelta(seconds=value)
    except (OverflowError, ValueError) as e:
        raise _invalid(f"{value} seconds are no time span", hint="a number of seconds, or text: 30d") from e


def _exact(number: str, factor: int, text: str) -> int:
    whole, _, part = number.partition(".")
    scale = int("1" + "0" * len(part))
    value, rest = divmod(int(whole + part) * factor, scale)
    if rest:
        raise _invalid(f"{text!r} is not a whole number of bytes", hint="round it: 500MB")
    return value


def _spelled(name: str) -> str:
    return name.replace("_", "-")


def _rule_text(rules: Policy, name: str) -> str:
    value: Any = getattr(rules, name)
    text = _duration_text(value) if name in DURATIONS else _size_text(value) if name == "max_bytes" else value
    return f"{_spelled(name)}={text}"


def _duration_text(span: timedelta) -> str:
    for unit, seconds in DURATION_UNITS.items():
        if not span % timedelta(seconds=seconds):
            return f"{span // timedelta(seconds=seconds)}{unit}"
    return f"{span.total_seconds():.6f}s"


def _size_text(count: int) -> str:
    unit = next(unit for unit, factor in SIZE_UNITS.items() if count % factor == 0)
    return f"{count // SIZE_UNITS[unit]}{unit}"
