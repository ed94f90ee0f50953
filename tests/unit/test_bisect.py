"""Bisect finds the first checkpoint a predicate holds for, with few restores."""

from typing import Any

import pytest

from rekindle import InvalidInputError, NotFoundError, Store, open_store


@pytest.fixture
def store() -> Store:
    store = open_store("memory://")
    for n in range(1, 101):
        store.save("a", {"n": n})
    return store


@pytest.mark.parametrize("first", [2, 3, 50, 99, 100])
def test_it_finds_the_first(store: Store, first: int) -> None:
    assert store.bisect("a@1", "a", lambda state: state["n"] >= first).seq == first


def test_it_restores_few(store: Store) -> None:
    asked: list[Any] = []

    def holds(state: Any) -> bool:
        asked.append(state["n"])
        return bool(state["n"] >= 37)

    assert store.bisect("a@1", "a", holds).seq == 37
    assert len(asked) <= 2 + 7


def test_pruned_checkpoints_are_stepped_over(store: Store) -> None:
    store.tag("a@1", "first")
    store.prune("keep-last=20")
    assert store.bisect("a@1", "a", lambda state: state["n"] >= 40).seq == 81


def test_it_follows_the_history_of_bad(store: Store) -> None:
    store.fork("a@10", "other")
    for n in (200, 201):
        store.save("a", {"n": n}, branch="other")
    assert store.bisect("a@5", "a@other", lambda state: state["n"] >= 200).seq == 101
    with pytest.raises(InvalidInputError) as caught:
        store.bisect("a@11", "a@other", lambda state: True)
    assert caught.value.code == "not-an-ancestor"


def test_good_and_bad_must_be_what_they_are_called(store: Store) -> None:
    with pytest.raises(InvalidInputError, match="a@100, named as bad, is good") as caught:
        store.bisect("a@1", "a", lambda state: False)
    assert caught.value.code == "bad-is-good"
    with pytest.raises(InvalidInputError, match="a@1, named as good, is bad already") as caught:
        store.bisect("a@1", "a", lambda state: True)
    assert caught.value.code == "good-is-bad"
    for good, bad in (("a@100", "a@1"), ("a@7", "a@7")):
        with pytest.raises(InvalidInputError) as caught:
            store.bisect(good, bad, lambda state: True)
        assert caught.value.code == "not-an-ancestor"
    store.save("b", {"n": 1})
    with pytest.raises(InvalidInputError):
        store.bisect("b", "a", lambda state: True)
    with pytest.raises(NotFoundError):
        store.bisect("a@1000", "a", lambda state: True)


def test_an_error_of_the_predicate_is_the_callers(store: Store) -> None:
    with pytest.raises(ZeroDivisionError):
        store.bisect("a@1", "a", lambda state: 1 / 0 > 0)
