"""Tracked lists and dicts behave like plain ones, and never report less than what changed."""

import copy
import pickle  # noqa: TID251 - users pickle; we don't
import sys
import threading
import weakref
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from types import FrameType
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from rekindle.errors import InvalidInputError
from rekindle.state.tracked import TrackedDict, TrackedList, is_frozen, now, owners, stamps, tracked
from rekindle.state.tracked import dicts as tracked_dict
from rekindle.state.tracked import lists as tracked_list

Tracked = TrackedList | TrackedDict


# --- what was, against what is reported -------------------------------------------------------------------


def reachable(root: Tracked) -> list[Tracked]:
    """`root` and all tracked containers in it, each once."""
    found = {id(root): root}
    pending = [root]
    while pending:
        node = pending.pop()
        for value in node.values() if isinstance(node, TrackedDict) else node:
            if isinstance(value, Tracked) and id(value) not in found:
                found[id(value)] = value
                pending.append(value)
    return list(found.values())


class Then:
    """What some containers were at a stamp."""

    def __init__(self, nodes: list[Tracked]) -> None:
        self.since = now()
        self.nodes = [(node, repr(node), self.shallow(node)) for node in nodes]

    @staticmethod
    def shallow(node: Tracked) -> Any:
        """A plain copy, with each value beside its text: the same child may look different later."""
        if isinstance(node, TrackedDict):
            return {key: (value, repr(value)) for key, value in node.items()}
        return [(value, repr(value)) for value in node]

    def check(self) -> None:
        """Whatever differs from what was is reported."""
        for node, text, held in self.nodes:
            if repr(node) != text:
                assert node.changed_at > self.since
            if isinstance(node, TrackedDict):
                self.check_dict(node, held)
            else:
                self.check_list(node, held)

    def check_list(self, node: TrackedList, held: list[Any]) -> None:
        changes = node.changes(self.since)
        assert changes.low <= len(node)
        assert len(node) == len(held) or changes.low <= min(len(held), len(node))
        assert all(0 <= index < changes.low for index in changes.replaced | changes.inside)
        assert not changes.replaced & changes.inside
        for index in range(changes.low):
            if index not in changes.replaced:
                self.check_value(held[index], node[index], index in changes.inside)

    def check_dict(self, node: TrackedDict, held: dict[Any, Any]) -> None:
        changes = node.changes(self.since)
        if changes.all:
            return
        assert not changes.replaced & changes.inside
        assert changes.replaced | changes.inside <= set(node)
        rebuilt = {key: entry for key, entry in held.items() if key not in changes.removed}
        rebuilt |= {key: (value, repr(value)) for key, value in node.items() if key in changes.replaced}
        assert list(map(repr, rebuilt)) == list(map(repr, node))
        for key, entry in rebuilt.items():
            self.check_value(entry, node[key], key in changes.inside)

    @staticmethod
    def check_value(then: tuple[Any, str], value: Any, changed_inside: bool) -> None:
        held, text = then
        if isinstance(value, Tracked) or changed_inside:
            assert held is value
        assert changed_inside or repr(value) == text or untrusted(value)


def untrusted(value: Any) -> bool:
    return value.has_untrusted if isinstance(value, Tracked) else not is_frozen(value)


# --- a state machine against plain containers -------------------------------------------------------------

scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", 1.0, (1, "x"), b"b"])
keys = st.sampled_from(["a", "b", "c", "d", 0, 1, True, (1,)])
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=8,
)
indexes = st.integers(-7, 7)
slices = st.builds(slice, st.none() | indexes, st.none() | indexes, st.sampled_from([None, 1, 2, -1, -2]))
which = st.integers(0, 1000)

LIST_OPERATIONS = {
    "append": lambda node, at, cut, value, some: node.append(value),
    "insert": lambda node, at, cut, value, some: node.insert(at, value),
    "extend": lambda node, at, cut, value, some: node.extend(some),
    "add": lambda node, at, cut, value, some: node.__iadd__(some),
    "set": lambda node, at, cut, value, some: node.__setitem__(at, value),
    "set again": lambda node, at, cut, value, some: node.__setitem__(at, node[at]),
    "set slice": lambda node, at, cut, value, some: node.__setitem__(cut, some),
    "permute": lambda node, at, cut, value, some: node.__setitem__(cut, node[cut][::-1]),
    "swap": lambda node, at, cut, value, some: node.__setitem__(at, node[0]),
    "delete": lambda node, at, cut, value, some: node.__delitem__(at),
    "delete slice": lambda node, at, cut, value, some: node.__delitem__(cut),
    "pop": lambda node, at, cut, value, some: node.pop(at),
    "pop last": lambda node, at, cut, value, some: node.pop(),
    "remove": lambda node, at, cut, value, some: node.remove(value),
    "multiply": lambda node, at, cut, value, some: node.__imul__(at % 4 if len(node) < 9 else 1),
    "sort": lambda node, at, cut, value, some: node.sort(key=repr, reverse=at > 0),
    "sort badly": lambda node, at, cut, value, some: node.sort(key=lambda x: 1 / len(repr(x)[at % 3 :])),
    "reverse": lambda node, at, cut, value, some: node.reverse(),
    "clear": lambda node, at, cut, value, some: node.clear(),
    "begin again": lambda node, at, cut, value, some: node.__init__(some),
}
DICT_OPERATIONS = {
    "set": lambda node, key, value, some: node.__setitem__(key, value),
    "set again": lambda node, key, value, some: node.__setitem__(key, node[key]),
    "delete": lambda node, key, value, some: node.__delitem__(key),
    "pop": lambda node, key, value, some: node.pop(key),
    "pop or default": lambda node, key, value, some: node.pop(key, 0),
    "pop last": lambda node, key, value, some: node.popitem(),
    "to the end": lambda node, key, value, some: node.__setitem__(key, node.pop(key)),
    "default": lambda node, key, value, some: node.setdefault(key, value),
    "update": lambda node, key, value, some: node.update(some),
    "update pairs": lambda node, key, value, some: node.update(list(some.items()), z=value),
    "or": lambda node, key, value, some: node.__ior__(some),
    "clear": lambda node, key, value, some: node.clear(),
    "begin again": lambda node, key, value, some: node.__init__(some),
}


class TrackedMachine(RuleBasedStateMachine):
    """The same operations on a tracked and a plain structure, with savers that look at several moments."""

    limits = (stamps.MARKS, stamps.PENDING)

    def __init__(self) -> None:
        super().__init__()
        self.usual = (stamps.MARKS, stamps.PENDING)
        stamps.MARKS, stamps.PENDING = self.limits
        self.pairs: list[tuple[Any, Any]] = []
        self.savers: list[Then] = []

    def teardown(self) -> None:
        stamps.MARKS, stamps.PENDING = self.usual

    @initialize(value=st.lists(values, max_size=5) | st.dictionaries(keys, values, max_size=5))
    def begin(self, value: Any) -> None:
        self.root = tracked(value)
        self.pairs = [(self.root, copy.deepcopy(value))]
        self.meet()

    def meet(self) -> None:
        """All containers ever met stay in play, also those that were taken out."""
        known = {id(node) for node, _ in self.pairs}
        for node, plain in self.pairs:
            assert type(plain) is list or type(plain) is dict
            children, others = (node.values(), plain.values()) if type(plain) is dict else (node, plain)
            for child, other in zip(children, others, strict=True):
                if isinstance(child, Tracked) and id(child) not in known:
                    known.add(id(child))
                    self.pairs.append((child, other))

    def both(self, operation: Any, node: Any, plain: Any, *arguments: tuple[Any, ...]) -> None:
        outcomes = []
        for target, of in ((node, 0), (plain, 1)):
            try:
                outcomes.append(repr(operation(target, *(pair[of] for pair in arguments))))
            except (LookupError, ValueError, TypeError, ZeroDivisionError) as error:
                outcomes.append(type(error).__name__)
        assert outcomes[0] == outcomes[1]
        self.meet()

    def fresh_or_met(self, value: Any, met: int | None, into: Any) -> list[tuple[Any, Any]]:
        """Twice two copies of the value, or a container that is elsewhere already, if that makes no cycle."""
        if met is not None:
            node, plain = self.pairs[met % len(self.pairs)]
            if not any(each is into for each in reachable(node)) and len(repr(node)) < 200:
                return [(node, plain)] * 2
        return [(copy.deepcopy(value), copy.deepcopy(value)) for _ in range(2)]

    @rule(n=which, name=st.sampled_from(sorted(LIST_OPERATIONS)), at=indexes, cut=slices, value=values,
          some=st.lists(values, max_size=3), met=st.none() | which)  # fmt: skip
    def change_a_list(
        self, n: int, name: str, at: int, cut: slice, value: Any, some: list[Any], met: int | None
    ) -> None:
        lists = [pair for pair in self.pairs if type(pair[1]) is list and len(repr(pair[1])) < 500]
        if lists:
            node, plain = lists[n % len(lists)]
            new, other = self.fresh_or_met(value, met, node)
            more = tuple([*copy.deepcopy(some), each] for each in other)
            self.both(LIST_OPERATIONS[name], node, plain, (at, at), (cut, cut), new, more)

    @rule(n=which, name=st.sampled_from(sorted(DICT_OPERATIONS)), key=keys, value=values,
          some=st.dictionaries(keys, values, max_size=3), met=st.none() | which)  # fmt: skip
    def change_a_dict(self, n: int, name: str, key: Any, value: Any, some: dict[Any, Any], met: int | None) -> None:
        dicts = [pair for pair in self.pairs if type(pair[1]) is dict and len(repr(pair[1])) < 500]
        if dicts:
            node, plain = dicts[n % len(dicts)]
            new, other = self.fresh_or_met(value, met, node)
            more = tuple(copy.deepcopy(some) | {"met": each} for each in other)
            self.both(DICT_OPERATIONS[name], node, plain, (key, key), new, more)

    @rule(n=which)
    def put_in_what_changes_unseen(self, n: int) -> None:
        node, plain = self.pairs[n % len(self.pairs)]
        for target in (node, plain):
            if isinstance(target, list):
                target.append({1})
            else:
                target["unseen"] = {1}

    @rule()
    def save(self) -> None:
        self.savers.append(Then([node for node, _ in self.pairs]))
        if len(self.savers) > 6:
            del self.savers[3]

    @invariant()
    def equals_the_plain_ones(self) -> None:
        for node, plain in self.pairs:
            assert repr(node) == repr(plain)
            assert node == plain

    @invariant()
    def all_is_tracked_and_what_cannot_be_is_known(self) -> None:
        for node, _ in self.pairs:
            for value in node.values() if isinstance(node, TrackedDict) else node:
                assert type(value) not in (list, dict)
                assert node.has_untrusted or not untrusted(value)

    @invariant()
    def reports_all_that_changed(self) -> None:
        for then in self.savers:
            then.check()


class TrackedMachineInLittleRoom(TrackedMachine):
    """Records are folded after a few changes."""

    limits = (4, 2)


TestTracked = TrackedMachine.TestCase
TestTrackedInLittleRoom = TrackedMachineInLittleRoom.TestCase
TestTracked.settings = TestTrackedInLittleRoom.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None
)


# --- every way to change one ------------------------------------------------------------------------------

READING = {
    "__class_getitem__", "__contains__", "__doc__", "__eq__", "__ge__", "__getattribute__", "__getitem__",
    "__gt__", "__hash__", "__iter__", "__le__", "__len__", "__lt__", "__ne__", "__repr__", "__reversed__",
    "__sizeof__", "copy",
}  # fmt: skip
READING_LISTS = READING | {"__add__", "__mul__", "__rmul__", "count", "index"}
READING_DICTS = READING | {"__or__", "__ror__", "fromkeys", "get", "items", "keys", "values"}


@pytest.mark.parametrize(
    ("plain", "ours", "reading"), [(list, TrackedList, READING_LISTS), (dict, TrackedDict, READING_DICTS)]
)
def test_every_method_that_could_change_one_is_ours(plain: type, ours: type, reading: set[str]) -> None:
    unknown = set(vars(plain)) - set(vars(ours)) - reading
    assert not unknown, f"does {plain.__name__}.{unknown} change it? Then override it, else name it above"


# --- what a saver is told ---------------------------------------------------------------------------------


def conversation(n: int = 5) -> Any:
    return tracked({"messages": [{"n": i, "tags": ["t"]} for i in range(n)], "step": 0})


def test_nothing_changed_is_reported_as_nothing() -> None:
    state = conversation()
    since = now()
    messages = state["messages"].changes(since)
    assert (messages.low, messages.replaced, messages.inside) == (5, frozenset(), frozenset())
    changes = state.changes(since)
    assert not changes.all
    assert not changes.replaced | changes.inside | changes.removed
    assert state.changed_at <= since


def test_an_append_leaves_all_before_it() -> None:
    messages = conversation()["messages"]
    since = now()
    messages.append({"n": 5})
    messages[5]["n"] = 6
    assert messages.changes(since).low == 5
    assert not messages.changes(since).inside


def test_a_change_deep_inside_is_told_all_the_way_up() -> None:
    state = conversation()
    since = now()
    state["messages"][3]["tags"].append("u")
    assert state.changes(since).inside == {"messages"}
    assert state["messages"].changes(since).inside == {3}
    assert state["messages"][3].changes(since).inside == {"tags"}
    assert state["messages"][3]["tags"].changes(since).low == 1
    assert state["messages"][2].changed_at <= since < state.changed_at


def test_a_replaced_element_is_told_from_one_that_changed_inside() -> None:
    messages = conversation()["messages"]
    since = now()
    messages[1] = {"n": 1}
    messages[2]["n"] = 7
    changes = messages.changes(since)
    assert (changes.low, changes.replaced, changes.inside) == (5, {1}, {2})


def test_a_key_deleted_and_added_again_is_in_both_sets() -> None:
    state = tracked({"a": 1, "b": 2})
    since = now()
    state["a"] = state.pop("a")
    changes = state.changes(since)
    assert (changes.removed, changes.replaced, changes.all) == ({"a"}, {"a"}, False)


def test_a_regular_saver_is_told_no_more_than_what_changed() -> None:
    state = conversation(2000)
    messages = state["messages"]
    for turn in range(600):
        since, before = now(), len(messages)
        touched = {(turn * 7 + i * 31) % before for i in range(5)}
        for index in touched:
            messages[index]["n"] = turn
        messages[turn] = {"n": 0, "tags": []}
        for _ in range(100 if turn == 300 else 3):
            messages.append({"n": turn})
        state["step"] = turn
        changes = messages.changes(since)
        assert (changes.low, changes.replaced, changes.inside) == (before, {turn}, touched - {turn})
        assert state.changes(since).replaced == {"step"}
        assert state.changes(since).inside == {"messages"}


def test_one_element_that_sits_twice_is_reported_twice() -> None:
    shared = tracked({"n": 0})
    messages = tracked([shared, 1, shared, 2])
    since = now()
    shared["n"] = 1
    assert messages.changes(since).inside == {0, 2}
    del messages[2]
    since = now()
    shared["n"] = 2
    assert messages.changes(since).inside == {0}


def test_an_element_in_several_owners_is_reported_by_each() -> None:
    shared = tracked({"n": 0})
    owners = [tracked([shared]) for _ in range(20)]
    since = now()
    shared["n"] = 1
    assert all(owner.changes(since).inside == {0} for owner in owners)


def test_one_that_sits_in_itself_is_tracked_too() -> None:
    plain: list[Any] = [{}]
    plain[0]["up"] = plain
    node = tracked(plain)
    assert node[0]["up"] is node
    since = now()
    node[0]["n"] = 1
    assert node.changes(since).inside == {0}
    node[0]["unseen"] = set()
    assert node.has_untrusted


# --- what it costs ----------------------------------------------------------------------------------------


class Unscannable(TrackedList[Any]):
    """Refuses to be walked."""

    def _refuse(self, *_: Any) -> Any:
        raise AssertionError("walked the list")

    __iter__ = __getitem__ = __reversed__ = __contains__ = index = _refuse  # type: ignore[assignment]


def test_append_and_a_change_in_an_element_do_not_walk_the_list() -> None:
    messages, last = Unscannable(), tracked({"n": 0})
    messages.extend([{"n": 0}, last])
    since = now()
    messages.append({"n": 1})
    last["n"] = 2
    assert messages.changed_at > since


def test_records_stay_short_however_long_nobody_asks_or_how_often() -> None:
    messages, state = tracked([{} for _ in range(1000)]), TrackedDict()
    for turn in range(3000):
        now()
        messages.append(turn)
        messages[turn % 900] = {}
        messages[-turn % 90 + 900] = state[turn % 700] = {"n": turn}
        state[turn % 700]["n"] = 1
        del state[turn % 700]
    for node, names in ((messages, ["_marks", "_replaced", "_inside"]), (state, ["_replaced", "_removed"])):
        for name in names:
            assert len(getattr(node, name) or ()) <= stamps.PENDING + 1


def test_one_that_asks_about_long_ago_is_told_enough() -> None:
    changed, replaced = tracked([{"n": 0} for _ in range(4000)]), tracked([0] * 4000)
    state = tracked({i: {"n": 0} for i in range(1000)})
    savers = []
    for turn in range(1, 900):
        if turn % 60 == 0:
            savers.append(Then([changed, replaced, state]))
        now()
        changed[turn * 37 % 3000 + 900]["n"] = turn
        replaced[turn * 53 % 3000 + 900] = state[turn * 7 % 800] = turn
        state[999 - turn % 100]["n"] = turn
    for saver in savers:
        saver.check()
    for node in (changed, replaced):
        assert 900 <= node.changes(savers[0].since).low < 4000


@given(st.lists(st.tuples(st.integers(1, 500), st.integers(1, 50)), min_size=1, max_size=200), st.booleans())
def test_marks_answer_the_lowest_index_since_a_stamp(entries: list[stamps.Mark], in_order: bool) -> None:
    marks: tuple[stamps.Mark, ...] = ()
    entries = sorted(entries) if in_order else entries
    for entry in entries:
        marks = stamps.lowered(marks, *entry)
    assert len(marks) <= stamps.MARKS
    assert list(marks) == sorted(marks)
    for since in range(501):
        told = next((index for stamp, index in marks if stamp > since), 99)
        assert told == min((index for stamp, index in entries if stamp > since), default=99)


def test_marks_past_their_number_tell_too_much_about_the_oldest_only() -> None:
    marks: tuple[stamps.Mark, ...] = ()
    for stamp in range(1, 201):
        marks = stamps.lowered(marks, stamp, stamp)
    assert len(marks) <= stamps.MARKS
    told = [next(index for stamp, index in marks if stamp > since) for since in range(200)]
    assert all(index <= since + 1 for since, index in enumerate(told))
    assert told[-30:] == list(range(171, 201))


def test_a_child_that_is_put_back_where_it_was_sits_there_once() -> None:
    node, mapping = tracked([[1]]), tracked({"a": [1]})
    node[0] += [2]
    mapping["a"] += [2]
    node[:] = node[:]
    mapping["a"] = mapping.pop("a")
    assert not node._repeats
    assert not mapping._repeats


def test_a_child_that_comes_and_goes_does_not_pile_up_owners() -> None:
    child = tracked({"n": 0})
    living = [TrackedList[Any]() for _ in range(5)]
    for _ in range(1000):
        for owner in living:
            owner.append(child)
            owner.pop()
        tracked([child])
        TrackedDict(child=child)
    assert len(child._others or ()) < 20


def test_a_child_does_not_keep_its_owner_alive() -> None:
    owner = tracked([{"n": 0}])
    child, gone = owner[0], weakref.ref(owner)
    del owner
    assert gone() is None
    child["n"] = 1


def test_what_was_taken_out_is_not_kept_alive() -> None:
    owner = tracked([{"n": 0}, {"n": 1}])
    now()
    owner[0]["n"] = 2
    gone = weakref.ref(owner[0])
    del owner[0]
    assert gone() is None


# --- at any moment ----------------------------------------------------------------------------------------

MOMENTS: dict[str, Any] = {
    "append": lambda state: state["messages"].append({"n": [9]}),
    "set item": lambda state: state["messages"].__setitem__(1, {"n": 9}),
    "set slice": lambda state: state["messages"].__setitem__(slice(0, 2), [state["messages"][1], {"n": 9}]),
    "delete": lambda state: state["messages"].__delitem__(0),
    "sort": lambda state: state["messages"].sort(key=lambda message: -message["n"]),
    "set key": lambda state: state["messages"][0].__setitem__("n", {1}),
    "deep": lambda state: state["messages"][1]["tags"].append("u"),
    "to the end": lambda state: state.__setitem__("messages", state.pop("messages")),
    "clear": lambda state: state["messages"][1].clear(),
    "update": lambda state: state.update(step={}, messages=[]),
}


class LockOfOneThread:
    """Knows whether it is held. `with` isn't interrupted in its midst by Python; it would be by us."""

    held = 0

    def __enter__(self) -> None:
        self.held += 1

    def __exit__(self, *_: object) -> None:
        self.held -= 1


@pytest.fixture
def lock(monkeypatch: pytest.MonkeyPatch) -> LockOfOneThread:
    lock = LockOfOneThread()
    for module in (stamps, owners, tracked_dict, tracked_list):
        monkeypatch.setattr(module, "lock", lock)
    return lock


def at_bytecode(after: int, act: Callable[[], bool], operation: Callable[[], None]) -> bool:
    """Run the operation; at the nth bytecode of ours, act: answers whether it came so far and acted."""
    ours, left, acted = str(Path(stamps.__file__).parent), after, False

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left, acted
        if acted or not frame.f_code.co_filename.startswith(ours):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            if left < 0:
                acted = act()
        return trace

    before = sys.gettrace()
    sys._getframe().f_trace_opcodes = True  # Python 3.12 hears of it before settrace only
    sys.settrace(trace)
    try:
        operation()
    finally:
        sys.settrace(before)
    return acted


@pytest.mark.parametrize("name", MOMENTS)
@pytest.mark.usefixtures("lock")
def test_an_interrupt_at_any_moment_hides_no_change(name: str) -> None:
    def interrupt() -> bool:
        sys.settrace(None)
        raise KeyboardInterrupt

    after, happened = 0, True
    while happened:
        state, happened = conversation(2), False
        then = Then(reachable(state))
        try:
            at_bytecode(after, interrupt, lambda state=state: MOMENTS[name](state))
        except KeyboardInterrupt:
            happened = True
        then.check()
        for key in list(state):  # nor those that follow
            state[key] = state[key] and tracked([])
            then.check()
        after += 1
    assert after > 20


@pytest.mark.parametrize("name", MOMENTS)
def test_a_saver_that_comes_at_any_moment_misses_no_change(name: str, lock: LockOfOneThread) -> None:
    after, happened = 0, True
    while happened:
        state, meanwhile = conversation(2), []
        then = Then(reachable(state))

        def save() -> bool:
            if lock.held:
                return False
            then.check()  # noqa: B023 - called in this turn only
            meanwhile.append(Then(reachable(state)))  # noqa: B023
            return True

        happened = at_bytecode(after, save, lambda state=state: MOMENTS[name](state))
        for saver in (then, *meanwhile):
            saver.check()
        after += 1
    assert after > 20


def test_a_saver_in_another_thread_misses_nothing() -> None:
    state = tracked({"items": list(range(50)), "deep": [{"n": 0} for _ in range(50)]})
    items, deep = state["items"], state["deep"]

    def write_items() -> None:
        for i in range(4000):
            items[i % 50] = i
            if i % 7 == 0:
                items.append(i)
            if i % 11 == 0:
                items.pop()

    def write_deep() -> None:
        for i in range(4000):
            deep[i % 50]["n"] = i

    def saved(previous: int, mirror: dict[str, list[Any]]) -> int:
        since = now()
        for name, node in (("items", items), ("deep", deep)):
            changes, held = node.changes(previous), mirror[name]
            for index in [i for i in changes.replaced | changes.inside if i < len(held)]:
                held[index] = copy.copy((node[index : index + 1] or [None])[0])
            held[changes.low :] = map(copy.copy, node[changes.low :])
        return since

    mirror: dict[str, list[Any]] = {"items": [], "deep": []}
    previous, interval = 0, sys.getswitchinterval()
    threads = [threading.Thread(target=write) for write in (write_items, write_deep)]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            previous = saved(previous, mirror)
    finally:
        sys.setswitchinterval(interval)
    saved(previous, mirror)
    assert mirror == state


# --- like the plain ones ----------------------------------------------------------------------------------


def test_what_is_made_of_them_is_plain_or_tracked() -> None:
    node, mapping = tracked([3, [1]]), tracked({"a": [1]})
    for plain in (node[:], node.copy(), node + node, node * 2, sorted(node[:1]), list(node)):
        assert type(plain) is list
    for plain in (mapping.copy(), mapping | {"b": 1}, {"b": 1} | mapping, dict(mapping)):
        assert type(plain) is dict
    for original in (node, mapping):
        for made in (copy.copy(original), copy.deepcopy(original), pickle.loads(pickle.dumps(original))):
            assert type(made) is type(original)
            assert made == original
            assert made is not original
    assert copy.copy(node)[1] is node[1]
    assert copy.deepcopy(node)[1] is not node[1]


def test_a_copy_is_tracked_on_its_own() -> None:
    for made in (copy.deepcopy(conversation()), pickle.loads(pickle.dumps(conversation()))):
        since = now()
        made["messages"][1]["tags"].append("u")
        assert made.changes(since).inside == {"messages"}
        assert made["messages"].changes(since).inside == {1}


def test_tracking_what_is_tracked_answers_it_and_another_type_is_refused() -> None:
    node = tracked([1])
    assert tracked(node) is node
    for value in (OrderedDict(), (1,), None):
        with pytest.raises(InvalidInputError) as caught:
            tracked(value)  # type: ignore[call-overload]
        assert caught.value.code == "cannot-track"


def test_a_shared_plain_container_is_copied_once() -> None:
    shared = [1]
    node = tracked([shared, {"again": shared}])
    assert node[0] is node[1]["again"]


def test_a_value_too_deep_to_recurse_is_tracked() -> None:
    plain: list[Any] = []
    for _ in range(5000):
        plain = [plain]
    node = tracked(plain)
    bottom = node
    while bottom:
        bottom = bottom[0]
    since = now()
    bottom.append(1)
    assert node.changed_at > since


def test_an_iterable_that_raises_changes_nothing() -> None:
    def broken() -> Any:
        yield 1
        raise OSError

    node = tracked([0])
    with pytest.raises(OSError):
        node.extend(broken())
    assert node == [0]


# --- what can be trusted ----------------------------------------------------------------------------------


class Colour(Enum):
    RED = 1


class Text(str):
    """A subclass may have attributes."""


@dataclass
class Point:
    x: int = 0


FROZEN = [None, True, 1, 1.5, 1j, "a", b"a", date(2024, 1, 2), datetime(2024, 1, 2, tzinfo=UTC), timedelta(1),
          UTC, UUID(int=1), Decimal(1), Path("a"), Colour.RED, (1, ("a", None)),
          frozenset([1, (2,)])]  # fmt: skip
NOT_FROZEN = [set(), bytearray(), Point(), Text("a"), object(), ([],), (1, (Point(),)), defaultdict(list), [],
              {}, tracked([]), (tracked({}),), int]  # fmt: skip


@pytest.mark.parametrize("value", FROZEN, ids=repr)
def test_what_cannot_change_is_frozen(value: object) -> None:
    assert is_frozen(value)
    assert not tracked({"a": [value]}).has_untrusted


@pytest.mark.parametrize("value", NOT_FROZEN, ids=lambda value: type(value).__name__)
def test_what_can_change_is_not_frozen(value: object) -> None:
    assert not is_frozen(value)


@pytest.mark.parametrize("value", [set(), Point(), Text("a"), ([],), defaultdict(list)], ids=repr)
def test_a_value_that_changes_unseen_is_known_all_the_way_up_for_good(value: object) -> None:
    for put in (
        lambda state: state["messages"][0]["tags"].append(value),
        lambda state: state["messages"].append({"deep": [value]}),
        lambda state: state["messages"][0].update(n=value),
        lambda state: state["messages"].append(tracked([value])),
    ):
        state = conversation()
        put(state)
        assert state.has_untrusted
        assert state["messages"].has_untrusted
        assert not state["messages"][1].has_untrusted
        state["messages"].clear()
        assert state.has_untrusted


def test_a_key_that_can_change_is_not_trusted() -> None:
    assert tracked({object(): 1}).has_untrusted
    assert tracked([{(1, object()): 1}]).has_untrusted
    state = conversation()
    state["messages"][0][object()] = 1
    assert state.has_untrusted
    assert not tracked({(1, "a"): 1, 2: 3}).has_untrusted
