"""Blame names exactly the checkpoints that changed a value, whatever the value is and wherever it lies."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rekindle import NotFoundError, Store, open_store, register, tracked
from rekindle.errors import CorruptDataError, InvalidInputError
from rekindle.state.shown.path import ABSENT, find, parse
from rekindle.state.tree.read import Reader
from rekindle.state.values import codec


@register(name="blame.Profile")
@dataclass
class Profile:
    name: str
    notes: list[str] = field(default_factory=list)


@pytest.fixture(params=["sqlite", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    url = tmp_path / "s.db" if request.param == "sqlite" else "memory://"
    with open_store(url, durability="relaxed") as opened:
        yield opened


def seqs(store: Store, ref: str, path: str) -> list[int]:
    return [checkpoint.seq for checkpoint in store.blame(ref, path)]


class Truth:
    """What comparing a value with what it was before says, save by save. Paths are those of the newest state."""

    def __init__(self, paths: dict[str, tuple[Any, ...]]) -> None:
        self.paths = paths
        self.changed: dict[str, list[int]] = {text: [] for text in paths}
        self.before: dict[str, bytes | None] = dict.fromkeys(paths)

    def saved(self, seq: int, state: Any) -> None:
        for text, path in self.paths.items():
            value = find(state, path)
            packed = None if value is ABSENT else codec.pack(value, tracks=False)
            if packed != self.before[text]:
                self.changed[text].insert(0, seq)
            self.before[text] = packed


def absolute(state: Any, text: str) -> tuple[Any, ...]:
    made: list[Any] = []
    for step in parse(text):
        if isinstance(step, int) and step < 0:
            value = find(state, tuple(made))
            made.append(len(value) + step)
        else:
            made.append(step)
    return tuple(made)


PATHS = [
    "", "step", "vars", "vars.x", "vars.late", 'vars["odd key"]', "messages", "messages[0]", "messages[10].content",
    "messages[70].content", "messages[-1].content", "messages[-20].role", "table", "table.field7", "table.field299",
    "table.field150", "queue", "queue[0]", "queue[-1]", "queue[3]", "queue[3][0]", "numbers", "numbers[5]",
    "numbers[700]", "text", "keyed", "keyed{3}", "keyed{140}", "keyed{(1, 2)}", "profile", "profile.name",
    "profile.notes[-1]", "profile.notes[2]", "pair[1]", "documents[2]", "documents[2].body", "documents[2].title",
    "documents[1].parts[30]", "growing.key5", "growing.key40", "growing", "gone_and_back",
]  # fmt: skip


class Life:
    """A state that lives on: everything an agent does to its state, at random."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.state: dict[str, Any] = {
            "step": 0,
            "vars": {"x": 0, "odd key": 1},
            "messages": tracked([]),
            "table": {f"field{i}": self.text(6) for i in range(300)},
            "queue": [[self.text(3), i] for i in range(150)],
            "numbers": list(range(900)),
            "text": "\n".join(self.text(12) for _ in range(60)),
            "keyed": {i: self.text(4) for i in range(150)} | {(1, 2): "pair"},
            "profile": Profile("Ada", [self.text(10) for _ in range(70)]),
            "pair": (1, [self.text(2)]),
            "documents": [
                {"title": self.text(2), "body": self.text(600), "parts": [self.text(8) for _ in range(60)]}
                for _ in range(3)
            ],
            "growing": {},
            "gone_and_back": 1,
        }

    def text(self, words: int) -> str:
        return " ".join("".join(self.rng.choices("abcdefgh", k=6)) for _ in range(words))

    def live(self, n: int) -> None:
        state, rng = self.state, self.rng
        state["step"] = n
        if n % 2:
            state["messages"].append({"role": "user", "content": self.text(8)})
        if rng.random() < 0.02:
            state["messages"][rng.randrange(len(state["messages"]) or 1)]["content"] = self.text(5)
        if n % 97 == 0:
            state["vars"]["x"] = n
        if n == 70:
            state["vars"]["late"] = True
        for i in rng.sample(range(300), 3):
            state["table"][f"field{i}"] = self.text(6)
        if rng.random() < 0.2:
            state["queue"].insert(rng.randrange(len(state["queue"]) + 1), [self.text(3), n])
            state["queue"].pop(rng.randrange(len(state["queue"])))
        if rng.random() < 0.1:
            state["numbers"][rng.randrange(900)] += 1
        if rng.random() < 0.05:
            lines = state["text"].split("\n")
            lines[rng.randrange(len(lines))] = self.text(12)
            state["text"] = "\n".join(lines)
        if rng.random() < 0.3:
            state["keyed"][rng.randrange(150)] = self.text(4)
        if rng.random() < 0.02:
            state["profile"].name = self.text(1)
        if rng.random() < 0.1:
            state["profile"].notes.append(self.text(10))
        if rng.random() < 0.02:
            state["pair"] = (n, [self.text(2)])
        if rng.random() < 0.1:
            document = rng.choice(state["documents"])
            document["parts"][rng.randrange(60)] = self.text(8)
            if rng.random() < 0.3:
                document["body"] += self.text(3)
        if n % 2 and n > 60:
            state["growing"][f"key{len(state['growing'])}"] = self.text(3)
        if rng.random() < 0.05 and state["growing"]:
            state["growing"][rng.choice(list(state["growing"]))] = self.text(3)
        if n in (50, 90):
            if "gone_and_back" in state:
                del state["gone_and_back"]
            else:
                state["gone_and_back"] = 1
        if rng.random() < 0.01:
            state["vars"] = dict(reversed(state["vars"].items()))


def lived(store: Store, count: int, some: slice = slice(None)) -> dict[str, list[int]]:
    """An agent of so many checkpoints; what changed each of the paths that its last state has."""
    preview = Life(random.Random(count))
    for n in range(count):
        preview.live(n)
    paths = {path: absolute(preview.state, path) for path in PATHS}
    there = [path for path, steps in paths.items() if find(preview.state, steps) is not ABSENT][some]
    truth = Truth({path: paths[path] for path in there})
    life = Life(random.Random(count))
    for n in range(count):
        life.live(n)
        truth.saved(store.save("a", life.state).seq, life.state)
    return truth.changed


def test_it_agrees_with_what_was_saved(store: Store) -> None:
    expected = lived(store, 160)
    assert len(expected) > 30
    assert {path: seqs(store, "a", path) for path in expected} == expected


def test_it_agrees_over_two_thousand_checkpoints(tmp_path: Path) -> None:
    with open_store(tmp_path / "s.db", durability="relaxed") as store:
        expected = lived(store, 2000, slice(2, None, 6))
        assert len(expected) > 5
        assert {path: seqs(store, "a", path) for path in expected} == expected


def test_small_states_that_grow_are_followed_from_one_form_to_the_next(store: Store) -> None:
    rng = random.Random(5)
    state: dict[str, Any] = {"x": 0, "list": [], "deep": {"y": [1, {"z": 0}]}}
    paths = ["", "x", "list", "list[7]", "list[299]", "deep", "deep.y[1].z", "deep.y"]
    truth = Truth({path: parse(path) for path in paths})
    for n in range(300):
        state["list"].append("word " * rng.randrange(12))
        if n % 40 == 0:
            state["deep"]["y"][1]["z"] += 1
        if n % 90 == 0:
            state["x"] = n
        truth.saved(store.save("a", state).seq, state)
    assert {path: seqs(store, "a", path) for path in paths} == truth.changed


def test_a_value_that_went_and_came_back_is_told_twice(store: Store) -> None:
    for state in ({"a": 1}, {"a": 1, "b": 2}, {"a": 1}, {"a": 1, "b": 2}, {"a": 1, "b": 2}):
        store.save("a", state)
    assert seqs(store, "a", "b") == [4, 3, 2]
    assert seqs(store, "a", "a") == [1]


def test_only_the_history_of_the_checkpoint_counts(store: Store) -> None:
    for x in (1, 1, 2):
        store.save("a", {"x": x})
    store.fork("a@2", "other")
    store.save("a", {"x": 1}, branch="other")
    store.save("a", {"x": 3}, branch="other")
    assert seqs(store, "a@other", "x") == [5, 1]
    assert seqs(store, "a@main", "x") == [3, 1]


def test_a_pruned_change_counts_for_the_next_checkpoint_that_is_left(store: Store) -> None:
    for x in (1, 2, 2, 2):
        store.save("a", {"x": x})
    store.tag("a@1", "first")
    store.prune("keep-last=2")
    assert seqs(store, "a", "x") == [3, 1]


def test_an_index_from_the_end_is_the_place_it_means_now(store: Store) -> None:
    for n in range(5):
        store.save("a", {"list": [str(i) for i in range(n + 1)]})
    assert seqs(store, "a", "list[-1]") == [5]
    assert seqs(store, "a", "list[-5]") == [1]


def test_what_is_not_there_is_named_with_what_is(store: Store) -> None:
    store.save("a", {"vars": {"x": 1}})
    with pytest.raises(NotFoundError, match="x") as caught:
        store.blame("a", "vars.y")
    assert caught.value.code == "path-not-found"
    assert "vars exists" in str(caught.value)
    with pytest.raises(InvalidInputError):
        store.blame("a", "vars..y")


def test_an_unrelated_part_is_never_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_store(tmp_path / "s.db", durability="relaxed") as store:
        state = {"x": 1, "big": ["word " * 100 for _ in range(2000)]}
        for n in range(20):
            state["x"] = n // 5
            state["big"][n * 7] = f"changed {n}"
            store.save("a", state)

        def refuse(*_: object) -> None:
            raise AssertionError("a whole value was read")

        monkeypatch.setattr(Reader, "value", refuse)
        assert seqs(store, "a", "x") == [16, 11, 6, 1]


def test_damage_on_the_way_is_an_error_and_no_answer(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(3):
        store.save("a", {"x": n, "pad": "p" * 2000})
    monkeypatch.setattr("rekindle.state.tree.nodes.Hasher.content", lambda self, data: b"x" * 16)
    with pytest.raises(CorruptDataError):
        store.blame("a", "x")
