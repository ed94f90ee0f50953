"""Grep tells where texts came to be: once, where they were new."""

import random
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from rekindle import InvalidInputError, Store, open_store, register
from rekindle.state.shown.path import render
from rekindle.store.grep import _texts


@register(name="grep.Note")
@dataclass
class Note:
    text: str


@pytest.fixture
def store() -> Store:
    return open_store("memory://")


def found(store: Store, pattern: str, ref: str | None = None, **options: Any) -> list[tuple[str, str, str]]:
    return [
        (f"{checkpoint.agent_id}@{checkpoint.seq}", path, text)
        for checkpoint, path, text in store.grep(pattern, ref, **options)
    ]


def test_a_text_is_told_where_it_came_and_not_again(store: Store) -> None:
    messages = []
    for word in ("hello", "the refund", "again", "a refund too"):
        messages.append({"role": "user", "content": word})
        store.save("a", {"messages": messages})
    assert found(store, "refund", "a") == [
        ("a@4", "messages[3].content", "a refund too"),
        ("a@2", "messages[1].content", "the refund"),
    ]
    assert found(store, "refund", "a@3") == [("a@2", "messages[1].content", "the refund")]
    assert found(store, "REFUND", "a") == []
    assert len(found(store, "(?i)REFUND", "a")) == 2


def test_a_text_that_changed_elsewhere_is_not_new(store: Store) -> None:
    long = "\n".join(f"line {n}" for n in range(100))
    for text in (long, long.replace("line 50", "other"), long + "\nline 100", long + "\nline 12 again"):
        store.save("a", {"text": text})
    assert [where for where, _, _ in found(store, "line 12", "a")] == ["a@4", "a@1"]


def test_keys_and_everything_inside_are_searched(store: Store) -> None:
    store.save("a", {"x": 1})
    store.save("a", {"x": 1, "needle": 1, "t": ("needle one", {"needle two"}), 5: Note("needle three")})
    assert found(store, "needle", "a") == [
        ("a@2", "needle", "needle"),
        ("a@2", "t[0]", "needle one"),
        ("a@2", "t[1]", "needle two"),
        ("a@2", "{5}.text", "needle three"),
    ]


def test_what_moved_is_not_new(store: Store) -> None:
    store.save("a", {"list": ["a needle in the hay", "b", "c"]})
    store.save("a", {"list": ["b", "c", "a needle in the hay"]})
    assert [where for where, _, _ in found(store, "needle", "a")] == ["a@1"]


def test_a_renamed_key_is_new_and_its_value_is_not(store: Store) -> None:
    store.save("a", {"old": "a needle in the hay"})
    store.save("a", {"needle": "a needle in the hay"})
    assert found(store, "needle", "a") == [("a@2", "needle", "needle"), ("a@1", "old", "a needle in the hay")]


def test_all_agents_newest_first_and_no_more_than_asked_for() -> None:
    times = iter(range(1, 100))
    store = open_store("memory://", clock=lambda: float(next(times)))
    for n in range(4):
        store.save("ab"[n % 2], {"x": f"word {n}"})
    assert [where for where, _, _ in found(store, "word")] == ["b@2", "a@2", "b@1", "a@1"]
    assert len(found(store, "word", limit=3)) == 3
    assert len(list(islice(store.grep("word"), 2))) == 2


def test_a_pruned_parent_is_stepped_over(store: Store) -> None:
    for text in ("needle", "needle", "needle two"):
        store.save("a", {"x": text})
    store.tag("a@1", "first")
    store.prune("keep-last=1")
    assert [where for where, _, _ in found(store, "needle", "a")] == ["a@3", "a@1"]
    assert [where for where, _, _ in found(store, "two", "a")] == ["a@3"]


def test_a_bad_pattern_is_refused_at_once(store: Store) -> None:
    store.save("a", {"x": 1})
    with pytest.raises(InvalidInputError) as caught:
        list(store.grep("(unclosed"))
    assert caught.value.code == "bad-regex"


def test_it_finds_what_reading_every_state_finds(tmp_path: Path) -> None:
    rng = random.Random(3)
    words = [f"word{n}" for n in range(40)]
    state: dict[str, Any] = {"list": [], "table": {f"k{i}": "none" for i in range(200)}, "step": 0}
    with open_store(tmp_path / "s.db", durability="relaxed") as store:
        for n in range(150):
            state["step"] = n
            state["list"].append(" ".join(rng.choices(words, k=6)))
            state["table"][f"k{rng.randrange(200)}"] = " ".join(rng.choices(words, k=3))
            store.save("a", state)
        expected = []
        before: dict[str, str] = {}
        for n in range(1, 151):
            texts = {render(path): text for path, text, key in _texts(store.restore(f"a@{n}"), ()) if not key}
            expected += [
                (f"a@{n}", path, text) for path, text in texts.items() if "word7 " in text and text != before.get(path)
            ]
            before = texts
        assert sorted(found(store, "word7 ", "a")) == sorted(expected)
        assert len(expected) > 10
