"""What is not encoded again: what the caller says has not changed, and what is the very object it was."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rekindle import Checkpoint, Store, open_store, register, tracked
from rekindle.state.tree.binding import bind
from rekindle.state.values.canon import same
from rekindle.storage.base import Key


@register(name="unchanged.Counted")
class Counted:
    """Counts how often it is looked at."""

    dumped = 0

    def __init__(self, text: str) -> None:
        self.text = text

    def to_state(self) -> Any:
        Counted.dumped += 1
        return {"text": self.text}

    @classmethod
    def from_state(cls, data: Any) -> Counted:
        return cls(data["text"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Counted) and other.text == self.text

    __hash__ = None  # type: ignore[assignment]


@pytest.fixture
def store() -> Iterator[Store]:
    with open_store("memory://") as store:
        Counted.dumped = 0
        yield store


def save(store: Store, state: Any, parent: Checkpoint | None, **how: Any) -> Checkpoint:
    """As an adapter does that knows more than it can say to `save`."""
    request = store._request(
        "a", state, parent, None, "step", None, None, None, strict=False, changes="verified", **how
    )
    return store._answer(store._save(request))


# -- what the caller says ----------------------------------------------------------------------------------------


def large(name: str, tmp: int = 0) -> list[Any]:
    """A value that stands alone, of parts that count when they are looked at."""
    return [Counted(f"{name} {n} {tmp} " + "x" * 200) for n in range(100)]


def test_what_cannot_have_changed_is_not_looked_at(store: Store) -> None:
    state = {"doc": large("doc"), "count": 0, "other": large("other")}
    parent = store.save("a", state)
    Counted.dumped = 0
    state["count"] = 1
    parent = save(store, state, parent, changed=frozenset(["count"]))
    assert Counted.dumped == 0
    assert store.restore(parent) == state
    state["other"][3] = Counted("new")
    parent = save(store, state, parent, changed=frozenset(["other", "count"]))
    assert 0 < Counted.dumped < 350  # not those of doc
    assert store.restore(parent) == state


@pytest.mark.parametrize("where", ["before", "between", "gone", "reordered", "other keys"])
def test_it_is_taken_over_wherever_its_key_stands_now(store: Store, where: str) -> None:
    state: dict[Any, Any] = {"first": 1, "doc": large("doc"), "middle": "m" * 3000, "list": large("list"), "last": 2}
    parent = store.save("a", state)
    changed = {"new"}
    if where == "before":
        state = {"new": large("new"), **state}
    elif where == "between":
        state = {"first": 1, "doc": state["doc"], "new": 1, "middle": state["middle"], "list": state["list"], "last": 2}
    elif where == "gone":
        del state["first"], state["middle"]
    elif where == "reordered":
        state = dict(reversed(state.items()))
    else:
        state = {"\ud800": 1, **state}  # a map that is written in another way
        changed = {"\ud800"}
    Counted.dumped = 0
    parent = save(store, state, parent, changed=frozenset(changed))
    if where != "other keys":
        assert Counted.dumped <= (200 if where == "before" else 0)
    again = store.restore(parent)
    assert again == state
    assert list(again) == list(state)
    # and as well against a tree that has to be read
    store._engine.forget()
    Counted.dumped = 0
    state["n"] = 1
    parent = save(store, state, parent, changed=frozenset(["n"]))
    assert Counted.dumped == 0
    assert store.restore(parent) == state
    assert store.verify()


def test_it_says_nothing_where_the_state_is_not_written_against_the_parent_that_was_named(store: Store) -> None:
    first = store.save("a", {"doc": large("old"), "n": 0})
    store.save("a", {"doc": large("newer"), "n": 0})
    state = {"doc": large("mine"), "n": 1}
    onto_the_head = save(store, state, None, changed=frozenset(["n"]))
    assert store.restore(onto_the_head) == state
    state = {"doc": large("old"), "n": 2}
    Counted.dumped = 0
    beside = save(store, state, first, changed=frozenset(["n"]))
    assert Counted.dumped == 0
    assert store.restore(beside) == state


def test_a_state_that_is_no_plain_dict_or_was_none_is_written_whole(store: Store) -> None:
    before: list[Any] = [tracked({"doc": large("a"), "n": [1] * 2000}), large("a"), {"doc": "small"}]
    for state in before:
        parent = store.save("a", state)
        for now in ({"doc": large("b"), "n": tracked([1] * 2000)}, large("b"), tracked({"doc": large("b")})):
            if type(now) is dict and type(state) is dict:
                continue  # there the promise would count
            done = save(store, now, parent, changed=frozenset(["x"]))
            assert same(store.restore(done), now)


# -- by identity -------------------------------------------------------------------------------------------------


def test_of_a_list_that_grew_only_what_is_new_is_looked_at(store: Store) -> None:
    state = {"messages": [*large("a"), *large("b")], "n": 0}
    parent = save(store, state, None, identity=True)
    for n in range(5):
        state = {"messages": [*state["messages"], Counted(f"new {n} " + "x" * 200)], "n": n}
        Counted.dumped = 0
        parent = save(store, state, parent, identity=True)
        assert Counted.dumped <= 2
        state["messages"].append(Counted("in place"))
        parent = save(store, state, parent, identity=True)
        assert Counted.dumped <= 4
        assert store.restore(parent) == state
    assert store.verify()


def test_of_a_list_of_which_one_was_replaced_only_its_run_is_looked_at(store: Store) -> None:
    state = {"messages": [Counted(f"{n} " + "x" * 400) for n in range(2000)]}
    parent = save(store, state, None, identity=True)
    state["messages"][700] = Counted("other")
    Counted.dumped = 0
    parent = save(store, state, parent, identity=True)
    assert 0 < Counted.dumped < 800
    assert store.restore(parent) == state
    del state["messages"][1500:]
    parent = save(store, state, parent, identity=True)
    state["messages"].insert(0, Counted("first"))
    parent = save(store, state, parent, identity=True)
    assert store.restore(parent) == state


def test_of_a_dict_only_values_that_are_other_objects_are_looked_at(store: Store) -> None:
    state: Any = {"notes": {f"k{n}": Counted(f"{n} " + "x" * 200) for n in range(300)}}
    parent = save(store, state, None, identity=True)
    Counted.dumped = 0
    parent = save(store, state, parent, identity=True)
    assert Counted.dumped == 0
    state["notes"] = {**state["notes"], "k299": Counted("other"), "new": Counted("new")}
    parent = save(store, state, parent, identity=True)
    assert 0 < Counted.dumped < 300
    assert store.restore(parent) == state


def test_a_key_that_took_the_place_of_another_is_seen_though_its_value_stayed(store: Store) -> None:
    values = [Counted(f"{n} " + "x" * 200) for n in range(100)]
    state: Any = {"notes": dict(enumerate(values)), "large": {"a": "x" * 9000, "b": "y" * 9000}}
    parent = save(store, state, None, identity=True)
    state["notes"] = {True if n == 1 else float(n) if n == 2 else n: value for n, value in enumerate(values)}
    state["large"] = {"a": state["large"]["a"], "c": state["large"]["b"]}
    parent = save(store, state, parent, identity=True)
    assert same(store.restore(parent), state)


def test_lists_and_dicts_are_looked_into_however_small_and_whatever_else_can_change(store: Store) -> None:
    state: dict[str, Any] = {
        "inner": {"list": [1, 2], "set": {1}, "texts": ["x" * 300] * 50, "dict": {"deep": {"a": ["y" * 5000]}}},
        "lists": [["x" * 6000, 1], {"k": "y" * 6000, "n": [1]}], "bytes": "b" * 5000, "tuple": ([1], 2), "pad": "p" * 3000,
        "tracked": [tracked([1]), tracked({"a": "z" * 6000})],
    }  # fmt: skip
    parent = save(store, state, None, identity=True)
    for change in (
        lambda: state["inner"]["list"].append(3),
        lambda: state["inner"]["set"].add(2),
        lambda: state["inner"]["texts"].append("x"),
        lambda: state["inner"]["dict"]["deep"]["a"].append("more"),
        lambda: state["lists"][0].append("more"),
        lambda: state["lists"][1].update(n=2),
        lambda: state["tuple"][0].append(2),
        lambda: state["tracked"][0].append(2),
        lambda: state["tracked"][1].update(a=1),
        lambda: state.update(bytes="c" * 5000),
    ):
        change()
        parent = save(store, state, parent, identity=True)
        assert same(store.restore(parent), state)


def test_an_object_that_changed_in_place_is_what_the_caller_answers_for(store: Store) -> None:
    """The price of trust, and that it is paid only where it was asked for."""
    state = {"messages": large("a")}
    parent = save(store, state, None, identity=True)
    state["messages"][0].text = "changed"
    trusting = save(store, state, parent, identity=True)
    assert store.restore(trusting)["messages"][0].text != "changed"
    verified = save(store, state, parent)
    assert store.restore(verified) == state


def test_what_was_saved_otherwise_meanwhile_is_no_hindrance(store: Store) -> None:
    state: Any = {"messages": large("a"), "n": {"k": "v" * 5000}}
    parent = save(store, state, None, identity=True)
    state["messages"][0].text = "changed"
    parent = store.save("a", state, parent=parent)
    state["messages"].append(1)
    parent = save(store, state, parent, identity=True)
    assert store.restore(parent) == state
    for other in (
        tracked({"messages": large("a")}),
        {"messages": tracked([1] * 3000), "n": tracked({"k": "v" * 5000})},
        [1] * 3000,
        state,
    ):
        parent = save(store, other, parent, identity=True)
        assert same(store.restore(parent), other)


def test_a_save_that_was_refused_leaves_nothing_behind(store: Store) -> None:
    state: Any = {"messages": large("a"), "bad": 1}
    parent = save(store, state, None, identity=True)
    state["messages"].append(Counted("new"))
    state["bad"] = object()
    with pytest.raises(Exception, match="not registered"):
        save(store, state, parent, identity=True)
    state["bad"] = 1
    parent = save(store, state, parent, identity=True)
    assert store.restore(parent) == state


def test_a_restored_state_that_was_bound_is_not_looked_at_again(store: Store) -> None:
    state = {"messages": large("a"), "deep": {"docs": {"one": large("b"), "text": "t" * 9000}}, "n": 0}
    parent = store.save("a", state)
    store._engine.forget()
    head = store._engine.head(Key("local", "a"), 1)
    tree = store._engine.root(head)
    again = store._engine.reader(head.key).value(tree)
    bind(tree, again)
    store._engine.tip(head.key).keep_tree(1, tree)
    again["messages"].append(Counted("new"))
    again["deep"]["docs"]["one"][5] = Counted("replaced")
    Counted.dumped = 0
    parent = save(store, again, parent, identity=True)
    assert 0 < Counted.dumped < 150
    assert store.restore(parent) == again
    assert store.restore("a@1") == state


def test_binding_another_value_than_was_read_is_harmless_where_it_can_be_told(store: Store) -> None:
    store.save("a", {"messages": large("a"), "t": "t" * 5000})
    tree = store._engine.tip(Key("local", "a")).trees[1]
    for other in ([1], {"messages": [1]}, {"messages": 5, "t": b"x"}, None, tracked({"messages": [1], "t": ""})):
        bind(tree, other)
    state = {"messages": large("b"), "t": "u" * 5000}
    assert store.restore(save(store, state, None, identity=True)) == state
