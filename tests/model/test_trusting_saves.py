"""Saves that take the caller's word, or an object's identity, keep what saves that look at everything keep.

Random states, changed as the word allows: lists and dicts reached through dicts in place, elements of lists by new ones;
the keys whose values differ from the parent's are said to the save. Saved from many parents, forgotten, restored, bound.
"""

import copy
import os
import random
from dataclasses import dataclass
from typing import Any

import pytest

from rekindle import Checkpoint, Store, register
from rekindle.state.tree.binding import bind
from rekindle.state.values.canon import same
from rekindle.storage.base import Key
from rekindle.storage.memory import MemoryStorage
from rekindle.store.engine import Engine

DOSE = 100 if os.environ.get("REKINDLE_TORTURE") == "1" else 2
SEED = int(os.environ.get("REKINDLE_SEED", "20261119"))
STEPS = 80
KEY = Key("local", "a")


@register(name="trusting.Note")
@dataclass
class Note:
    text: str
    tags: Any = ()


class Maker:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def scalar(self) -> Any:
        rng = self.rng
        text = "xyz \0é"[rng.randrange(6)] * rng.choice((0, 3, 300, 1200, 4090, 9000))
        return rng.choice(
            [
                None,
                True,
                1,
                1.0,
                -0.0,
                2**70,
                text,
                text.encode(),
                Note(text),
                Note("n", [1]),
                {1, 2},
                (1, [2]),
                "\ud800",
            ]
        )

    def value(self, depth: int = 0) -> Any:
        rng = self.rng
        if depth > 2 or rng.random() < 0.4:
            return self.scalar()
        count = rng.choice((0, 2, 17, 40))
        if rng.random() < 0.5:
            return [self.value(depth + 1) for _ in range(count)]
        return {self.key(): self.value(depth + 1) for _ in range(count)}

    def key(self) -> Any:
        rng = self.rng
        return rng.choice([f"k{rng.randrange(30)}"] * 12 + [1, True, 1.0, "\ud800", (1,), None])

    def state(self) -> dict[Any, Any]:
        messages = [Note("m" * 900, n) for n in range(self.rng.choice((5, 200)))]
        return {"messages": messages, "map": {"a": {"b": [self.value()]}}, "doc": "d" * 9000, "n": 0, "v": self.value()}

    def change(self, at: dict[Any, Any]) -> None:
        """Somewhere in a dict, or in what is reached from it through dicts."""
        rng = self.rng
        roll, keys = rng.random(), list(at)
        if roll < 0.2 or not keys:
            at[self.key()] = self.value(1)
            return
        key = rng.choice(keys)
        value = at[key]
        if roll < 0.3:
            del at[key]
        elif roll < 0.4:
            at[key] = at.pop(key)
        elif type(value) is dict:
            self.change(value)
        elif type(value) is list:
            self.change_list(value)
        elif type(value) is set:
            value.add(rng.randrange(9))
        else:
            at[key] = self.value(1)

    def change_list(self, at: list[Any]) -> None:
        rng = self.rng
        roll, i = rng.random(), rng.randrange(len(at) + 1)
        if roll < 0.5 or not at:
            at += [self.value(2) for _ in range(rng.choice((1, 1, 20)))]
        elif roll < 0.6:
            at.insert(i, self.value(2))
        elif roll < 0.7:
            del at[i - 1 : i + rng.choice((0, 5))]
        elif roll < 0.8:
            at[i - 1] = copy.deepcopy(at[i - 1])  # equal, and another object
        elif roll < 0.85:
            at.reverse()
        else:
            at[i - 1] = self.value(2)


def restored(store: Store, checkpoint: Checkpoint) -> Any:
    """As a store does that keeps the tree of what it restores."""
    engine = store._engine
    tip = engine.tip(KEY)
    tree = tip.trees.get(checkpoint.seq) or engine.root(engine.head(KEY, checkpoint.seq))
    value = engine.reader(KEY).value(tree)
    bind(tree, value)
    tip.keep_tree(checkpoint.seq, tree)
    return value


@pytest.mark.parametrize("how", ["changed", "identity", "both"])
@pytest.mark.parametrize("dose", range(DOSE))
def test_every_checkpoint_comes_back_as_it_was(how: str, dose: int) -> None:
    seed = f"{SEED} {how} {dose}"
    print(f"REKINDLE_SEED={SEED} ({seed!r})")
    rng = random.Random(seed)
    storage = MemoryStorage()
    store, maker = Store(Engine(storage), "local"), Maker(rng)
    made: list[tuple[Checkpoint | None, Any]] = [(None, {})]
    parent, state = None, maker.state()
    for _ in range(STEPS):
        was = made[-1][1] if parent is None else next(s for c, s in made if c is parent)
        word = frozenset(key for key in state if key not in was or not same(was[key], state[key]))
        request = store._request(
            "a", state, parent, None, "step", None, None, None, strict=False,
            changes="trusted" if rng.random() < 0.2 else "verified", identity=how != "changed",
            changed=None if how == "identity" else word | {"k1"},
        )  # fmt: skip
        parent = store._answer(store._save(request))
        made.append((parent, copy.deepcopy(state)))
        assert same(store.restore(parent), state)
        roll = rng.random()
        if roll < 0.1:
            store._engine.forget()
        if roll < 0.15:
            parent, _ = rng.choice(made[1:])
            assert parent is not None
            state = restored(store, parent)
        elif roll < 0.2:
            parent, state = rng.choice(made[1:])
            state = copy.deepcopy(state)
        for _ in range(rng.choice((0, 1, 1, 3))):
            maker.change(state)
        if len(repr(state)) > 300_000:
            state = maker.state()
    fresh = Store(Engine(storage), "local")
    for checkpoint, meant in made[1:]:
        assert checkpoint is not None
        assert same(fresh.restore(checkpoint), meant)
    assert fresh.verify().problems == []
