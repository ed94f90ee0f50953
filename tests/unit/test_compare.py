"""What differs between two checkpoints: the changes make the one of the other, and equal parts are not read."""

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rekindle import Store, open_store, register, tracked
from rekindle.state.diff.states import apply, diff
from rekindle.state.shown.path import render
from rekindle.state.values.canon import same
from rekindle.storage.base import Key


@register(name="compare.Box")
@dataclass
class Box:
    name: str
    items: list[Any] = field(default_factory=list)


@pytest.fixture(params=["sqlite", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    url = tmp_path / "s.db" if request.param == "sqlite" else "memory://"
    with open_store(url, durability="relaxed") as opened:
        yield opened


def opaque(store: Store, ref: str) -> Any:
    return store._engine.state(store._refs.head(ref), opaque=True)


def check(store: Store, a: str, b: str) -> list[str]:
    """The paths of what changed, once it has been seen that the changes are right both ways."""
    for x, y in ((b, a), (a, b)):
        changes = store.diff(x, y)
        assert same(apply(opaque(store, x), changes), opaque(store, y)), (x, y)
    return [f"{change.op} {render(change.path)}" for change in changes]


def big(n: int, seed: int = 0) -> dict[str, Any]:
    rng = random.Random(seed)
    return {
        "step": 0,
        "list": [{"id": i, "text": f"message {i} " * 10} for i in range(n)],
        "table": {f"k{i}": f"value {rng.random()} " * 5 for i in range(n)},
        "keyed": {i: f"value {i} " * 5 for i in range(n)},
        "text": "\n".join(f"line {i} {rng.random()}" for i in range(n)),
        "box": Box("b", [f"thing {i} " * 10 for i in range(n)]),
        "documents": [{"title": f"d{i}", "body": f"word {i} " * 900, "n": 0} for i in range(5)],
        "tuple": tuple(f"part {i} " * 5 for i in range(n)),
    }


def test_changes_deep_inside_have_their_paths(store: Store) -> None:
    state = big(500)
    store.save("a", state)
    state["list"][250]["text"] = "other"
    state["table"]["k77"] = "other"
    state["keyed"][400] = "other"
    state["box"].items[300] = "other"
    state["documents"][3]["n"] = 1
    state["text"] = state["text"].replace("line 100 ", "line one hundred ")
    store.save("a", state)
    assert check(store, "a@1", "a@2") == [
        "replace list[250].text", "replace table.k77", "replace keyed{400}", "text text",
        "replace box.items[300]", "replace documents[3].n",
    ]  # fmt: skip


def test_lists_that_shift_and_move(store: Store) -> None:
    state = big(400)
    store.save("a", state)
    state["list"].insert(0, {"id": "new", "text": "came first"})
    state["list"].append(state["list"].pop(200))
    del state["list"][300]
    state["documents"].append(state["documents"].pop(0))
    store.save("a", state)
    assert check(store, "a@1", "a@2") == [
        "add list[0]", "remove list[300]", "move list[399]", "move documents[4]",
    ]  # fmt: skip


def test_dicts_whose_keys_come_go_and_turn_round(store: Store) -> None:
    state = big(300)
    store.save("a", state)
    state["table"]["late"] = "x"
    del state["table"]["k10"]
    state["table"]["renamed"] = state["table"].pop("k200")
    store.save("a", state)
    assert check(store, "a@1", "a@2") == ["remove table.k10", "add table.late", "move table.renamed"]
    state["table"] = {"first": 1, **state["table"]}
    store.save("a", state)
    assert check(store, "a@2", "a@3") == ["add table.first", "reorder table"]


def test_from_one_form_of_a_value_to_another(store: Store) -> None:
    states = [
        {"x": 1}, {"x": "long " * 2000}, {"x": ["long " * 2000]}, {"x": tracked(["long " * 2000])}, [1], big(50), None,
        {"x": ("long " * 2000,)}, {"x": {1: "long " * 2000}}, {"x": Box("long " * 2000)}, {"x": b"long " * 2000}, "text",
    ]  # fmt: skip
    for state in states:
        store.save("a", state)
    for a in range(1, len(states) + 1):
        for b in range(1, len(states) + 1):
            check(store, f"a@{a}", f"a@{b}")
            assert bool(store.diff(f"a@{a}", f"a@{b}")) == (a != b)


def test_random_edits_of_tracked_and_plain_states(store: Store) -> None:
    rng = random.Random(11)
    for agent, wrap in (("plain", lambda x: x), ("tracked", tracked)):
        state = wrap(big(150))
        state["table"] = wrap({f"k{i}": {"v": [f"value {i} " * 5]} for i in range(150)})
        for _ in range(25):
            for _ in range(rng.randrange(1, 5)):
                edit(state, rng)
            store.save(agent, state, changes="trusted" if agent == "tracked" else "verified")
        for _ in range(15):
            a, b = rng.randrange(1, 26), rng.randrange(1, 26)
            check(store, f"{agent}@{a}", f"{agent}@{b}")


def edit(state: Any, rng: random.Random) -> None:
    match rng.randrange(9):
        case 0:
            state["list"].insert(rng.randrange(len(state["list"])), {"id": rng.random(), "text": "new " * 20})
        case 1:
            del state["list"][rng.randrange(len(state["list"]))]
        case 2:
            state["list"][rng.randrange(len(state["list"]))]["text"] = f"edited {rng.random()}"
        case 3:
            state["table"][rng.choice(list(state["table"]))] = {"v": [rng.random()]}
        case 4:
            state["table"][f"n{rng.random()}"] = state["table"].pop(rng.choice(list(state["table"])))
        case 5:
            state["documents"][rng.randrange(5)]["n"] += 1
        case 6:
            state["documents"].insert(rng.randrange(5), state["documents"].pop(rng.randrange(5)))
        case 7:
            state["box"].items[rng.randrange(len(state["box"].items))] = str(rng.random())
        case 8:
            state["keyed"][rng.randrange(300)] = str(rng.random())


def test_it_says_what_comparing_the_values_says(store: Store) -> None:
    state = big(300)
    store.save("a", state)
    state["list"][7]["text"] = "other"
    state["list"].append({"id": "x", "text": "more"})
    state["table"]["k5"] = "other"
    state["step"] = 1
    store.save("a", state)
    assert store.diff("a@1", "a@2") == diff(opaque(store, "a@1"), opaque(store, "a@2"))


def test_states_of_different_agents_are_compared_too(store: Store) -> None:
    store.save("a", big(100))
    store.save("b", {**big(100), "step": 5})
    assert check(store, "a", "b") == ["replace step"]
    store.save("b", big(100))
    assert store.diff("a", "b") == ()


def test_equal_parts_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_store(tmp_path / "s.db", durability="relaxed") as store:
        state = big(1000)
        store.save("a", state)
        state["list"][500]["text"] = "other"
        state["documents"][2]["n"] = 1
        store.save("a", state)
        read: list[int] = []
        fetch = store._engine.fetch

        def counting(key: Key) -> Any:
            inner = fetch(key)

            def counted(places: Any) -> Any:
                found = inner(places)
                read.append(sum(len(slot) for part in found for slot in part))
                return found

            return counted

        monkeypatch.setattr(store._engine, "fetch", counting)
        assert len(store.diff("a@1", "a@2")) == 2
        assert sum(read) < store.get("a").size // 10
