"""Whatever is done to a state between saves, every checkpoint ever made comes back exactly as it was.

Random states, mutated in place at random and saved step by step: with what the process remembers and without,
on branches that go on from one parent, from older parents, after saves that failed, from restored states.
"""

import copy
import datetime as dt
import os
import random
from collections import OrderedDict
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest

from rekindle import Checkpoint, InvalidInputError, Store, register, tracked
from rekindle.state.tracked import TrackedDict, TrackedList
from rekindle.state.values.canon import same
from rekindle.storage.memory import MemoryStorage
from rekindle.store.engine import Engine
from rekindle.store.saving import filling

DOSE = 100 if os.environ.get("REKINDLE_TORTURE") == "1" else 1
SEED = int(os.environ.get("REKINDLE_SEED", "20261118"))
STEPS = 70
MOST = 120_000
"""A state is cut down when it takes more bytes than about that."""

SIZES = (0, 1, 3, 15, 16, 40, 200, 1270, 1280, 1290, 4090, 4096, 4103, 9_000)
"""Lengths on both sides of every threshold: an array's header, a whole root, an element that stands alone."""


@register(name="trees.Colour")
class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@register(name="trees.Note")
@dataclass
class Note:
    text: str = ""
    parts: Any = field(default_factory=list)


class Unknown:
    """A type nobody registered: a state that holds one is refused."""


class Gardener:
    """Makes values, and changes them in place."""

    def __init__(self, rng: random.Random, *, tracks: bool) -> None:
        self.rng = rng
        self.tracks = tracks
        self.pool: list[Any] = []  # large immutable values that come again, here and in other agents

    # values

    def scalar(self) -> Any:
        rng = self.rng
        return rng.choice(
            [
                None, True, False, 0, 1, 1.0, 0.0, -0.0, -1, float("nan"), float("inf"), 2**63, 2**64, -(2**70),
                rng.randrange(1 << 20), rng.random(), "", "\0", "\ud800wild", "é\u2028\U0001f600", b"", b"\xff\0",
                (), (1, True), frozenset({1, "a"}), {3, 1, 2}, Decimal("1.10"), Colour.RED, Colour.BLUE,
                dt.datetime(2026, 1, 2, 3, 4, 5, 6, dt.UTC), dt.timedelta(1, 2, 3), OrderedDict(b=1, a=2),
                f"word {rng.randrange(1000)}", complex(1, -0.0), range(3), dt.date(2026, 1, 2),
            ]
        )  # fmt: skip

    def text(self, size: int | None = None) -> str:
        rng = self.rng
        size = rng.choice(SIZES) if size is None else size
        if rng.random() < 0.3:
            return rng.choice("xyz") * size
        letters = rng.choice(["abcdefgh \n", "0123456789abcdef", "aé\ud801\0\n "])
        return "".join(rng.choices(letters, k=size))

    def large(self) -> Any:
        rng = self.rng
        if self.pool and rng.random() < 0.5:
            return rng.choice(self.pool)
        made = rng.choice([self.text, lambda n: self.rng.randbytes(n), lambda n: (self.text(n), 1, ())])(
            rng.choice([5_000, 20_000, 70_000])
        )
        self.pool.append(made)
        return made

    def key(self) -> Any:
        rng = self.rng
        if rng.random() < 0.8:
            return f"k{rng.randrange(60)}"
        return rng.choice(
            [None, 0, 7, -5, 2**70, 1.5, "", "\ud800", b"b", (1, ("a", 2)), frozenset({1}), Colour.RED, "x" * 5000]
        )

    def value(self, depth: int = 0) -> Any:
        rng = self.rng
        roll = rng.random()
        if depth > 3 or roll < 0.4:
            return self.scalar()
        if roll < 0.6:
            return self.text()
        if roll < 0.66:
            return self.large()
        if roll < 0.7:
            return rng.randbytes(rng.choice(SIZES))
        if roll < 0.76:
            return Note(self.text(rng.choice((3, 200, 4090))), [self.value(depth + 1) for _ in range(3)])
        if roll < 0.8:
            return tuple(self.value(depth + 1) for _ in range(rng.choice((2, 17))))
        made: Any
        if roll < 0.9:
            made = [self.value(depth + 1) for _ in range(rng.choice((0, 2, 5, 15, 16, 20)))]
        else:
            made = {self.key(): self.value(depth + 1) for _ in range(rng.choice((0, 2, 5, 16, 20)))}
        return tracked(made) if self.tracks and rng.random() < 0.7 else made

    def root(self) -> Any:
        messages = [{"role": "user", "content": self.text(1000)} for _ in range(self.rng.choice((3, 300)))]
        state = {"messages": messages, "notes": self.value(), "doc": self.large(), "n": 0, "map": self.many()}
        return tracked(state) if self.tracks else state

    def many(self) -> dict[Any, Any]:
        return {f"field {i}": self.rng.randrange(1 << 30) for i in range(self.rng.choice((10, 200, 1000)))}

    # changes

    def change(self, state: Any) -> Any:
        """The state, changed in place somewhere; now and then another one in its place."""
        rng = self.rng
        if rng.random() < 0.01:
            return self.value()
        found = containers(state)
        for _ in range(rng.choice((0, 1, 1, 2, 5))):
            if not found:
                return self.root()
            # the root and the long lists of it are where most programs write
            target = found[0] if rng.random() < 0.2 else rng.choice(found)
            self.change_one(target)
        return state

    def change_one(self, target: Any) -> None:
        if isinstance(target, Note):
            if self.rng.random() < 0.5:
                target.text = self.edited(target.text)
            else:
                target.parts = self.value(1)
        elif isinstance(target, list | TrackedList):
            self.change_list(target)
        else:
            self.change_dict(target)

    def change_list(self, target: Any) -> None:
        rng = self.rng
        roll = rng.random()
        at = rng.randrange(len(target) + 1)
        if roll < 0.35 or not target:
            for _ in range(rng.choice((1, 2, 17))):
                target.append(self.value(2) if rng.random() < 0.5 else {"role": "a", "content": self.text(1000)})
        elif roll < 0.5:
            target.insert(at, self.value(2))
        elif roll < 0.6:
            del target[at - 1]
        elif roll < 0.65:
            del target[at : at + rng.randrange(1, 40)]
        elif roll < 0.85:
            target[at - 1] = self.edited(target[at - 1])
        elif roll < 0.9:
            target.extend([self.text(1000) for _ in range(300)] if len(target) < 100 else [at])
        elif roll < 0.94:
            target[at - 1 :] = [*target[at - 1 :], *target[:3]]
        elif roll < 0.97:
            target.reverse()
        else:
            target[:] = target[len(target) // 2 :]

    def change_dict(self, target: Any) -> None:
        rng = self.rng
        roll = rng.random()
        if roll < 0.3 or not target:
            target[self.key()] = self.value(2)
            return
        key = rng.choice(list(target))
        if roll < 0.45:
            del target[key]
        elif roll < 0.55:
            target[key] = target.pop(key)  # to the end
        elif roll < 0.9:
            target[key] = self.edited(target[key])
        elif roll < 0.97:
            target.update(self.many())
        else:
            target.clear()

    def edited(self, value: Any) -> Any:
        rng = self.rng
        if type(value) in (str, bytes) and rng.random() < 0.8:
            at = rng.randrange(len(value) + 1)
            new = self.text(rng.choice((1, 30, 3000)))
            piece = new if isinstance(value, str) else new.encode("utf-8", "surrogatepass")
            gone = rng.choice((0, 0, 1, 500))
            return rng.choice([value[:at] + piece + value[at + gone :], value + piece, value[: len(value) // 2]])
        if type(value) in (int, float, bool):
            return rng.choice([int(value), float(value), bool(value)]) if abs(value) < 1e300 else 0
        if type(value) is tuple and value:
            at = rng.randrange(len(value))
            return (*value[:at], self.edited(value[at]), *value[at + 1 :])
        return self.value(2)

    def cut_down(self, state: Any) -> Any:
        """A state small enough to go on with."""
        for target in containers(state):
            if not isinstance(target, Note) and len(target) > 20:
                if isinstance(target, dict):
                    for key in list(target)[: len(target) // 2]:
                        del target[key]
                else:
                    del target[: len(target) // 2]
        return state


def containers(state: Any) -> list[Any]:
    """Everything mutable in a state, outermost first."""
    found: list[Any] = []
    todo = [state]
    while todo:
        value = todo.pop(0)
        if isinstance(value, Note):
            found.append(value)
            todo += [value.parts]
        elif type(value) in (list, TrackedList):
            found.append(value)
            todo += value[:40]
        elif type(value) in (dict, TrackedDict):
            found.append(value)
            todo += list(value.values())[:40]
        elif type(value) is tuple:
            todo += value
    return found


class Garden:
    """One store, two agents, and what every checkpoint of theirs has to be."""

    def __init__(self, seed: str, *, mode: str, compresses: bool) -> None:
        self.rng = random.Random(seed)
        self.engine = Engine(memory(compresses=compresses))
        self.store = Store(self.engine, "local")
        self.changes = "trusted" if mode == "trusted" else "verified"
        self.gardener = Gardener(self.rng, tracks=mode != "plain")
        self.made: dict[tuple[str, int], Any] = {}
        self.ids: dict[str, tuple[str, int]] = {}
        self.tips: dict[str, list[tuple[Checkpoint | None, Any]]] = {}
        for agent in ("a", "b"):
            self.tips[agent] = [(None, self.gardener.root())]

    def step(self) -> None:
        rng = self.rng
        agent = rng.choice("aab")
        tips = self.tips[agent]
        at = rng.randrange(len(tips))
        parent, state = tips[at]
        if rng.random() < 0.25:
            self.engine.forget()
        state = self.gardener.change(state)
        if len(repr(state)) > MOST:
            state = self.gardener.cut_down(state)
        if parent is not None and rng.random() < 0.1:
            self.fail(agent, state, parent)
        done = self.save(agent, state, parent)
        tips[at] = (done, state)
        if parent is not None:
            self.turn(agent, tips, parent, done)

    def turn(self, agent: str, tips: list[Any], parent: Checkpoint, done: Checkpoint) -> None:
        """Now and then the agent goes on elsewhere: beside this checkpoint, from an older one, from one restored."""
        rng = self.rng
        roll = rng.random()
        if roll < 0.1:
            # a second line from the same parent, whose live compressor the first has taken on
            tips.append((parent, copy.deepcopy(self.made[agent, parent.seq])))
        elif roll < 0.16:
            tips.append((done, self.store.restore(done)))
        elif roll < 0.22:
            # the very same object, saved on an older checkpoint
            tips[-1] = (parent, tips[-1][1]) if tips[-1][0] is done else tips[-1]
        if len(tips) > 3:
            del tips[rng.randrange(3)]

    def fail(self, agent: str, state: Any, parent: Checkpoint) -> None:
        """A save that is refused half way, and leaves nothing behind."""
        with pytest.raises(InvalidInputError):
            self.store.save(agent, {"state": state, "bad": [state, Unknown()]}, parent=parent, changes=self.changes)
        if isinstance(state, list | TrackedList):
            state.append(Unknown())
            with pytest.raises(InvalidInputError):
                self.store.save(agent, state, parent=parent, changes=self.changes)
            del state[-1]

    def save(self, agent: str, state: Any, parent: Checkpoint | None) -> Checkpoint:
        done = self.store.save(agent, state, parent=parent, changes=self.changes)
        self.made[agent, done.seq] = copy.deepcopy(state)
        self.ids[done.id] = (agent, done.seq)
        return done

    def check(self, store: Store) -> None:
        for (agent, seq), meant in self.made.items():
            got = store.restore(f"{agent}@{seq}")
            assert same(got, meant), f"{agent}@{seq} came back as something else"
        assert store.verify().problems == []

    def collect(self) -> None:
        """Let most of it go; what is kept is scattered, and names parts of what went."""
        for n, (agent, seq) in enumerate(self.rng.sample(sorted(self.made), 5)):
            self.store.tag(f"{agent}@{seq}", f"t{n}-{len(self.made)}")
        for decision in self.store.prune("keep-last=4").drop:
            del self.made[self.ids[decision.candidate.id]]
        for agent, tips in self.tips.items():
            self.tips[agent] = [tip for tip in tips if tip[0] is None or (agent, tip[0].seq) in self.made]
            self.tips[agent] = self.tips[agent] or [(None, self.gardener.root())]
        self.store.collect()


def memory(*, compresses: bool) -> MemoryStorage:
    storage = MemoryStorage()
    storage.compresses = compresses  # type: ignore[misc]  # as the storages do that nobody reads with an editor
    return storage


MODES = [(mode, compresses) for mode in ("plain", "verified", "trusted") for compresses in (True, False)]


@pytest.mark.parametrize("dose", range(DOSE))
@pytest.mark.parametrize(("mode", "compresses"), MODES)
def test_every_checkpoint_ever_made_comes_back_as_it_was(
    mode: str, compresses: bool, dose: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed = f"{SEED} {mode} {compresses} {dose}"
    print(f"REKINDLE_SEED={SEED} ({seed!r})")
    if dose % 2:
        monkeypatch.setattr(filling, "SPILL", 20_000)  # what is written beyond that goes into packs
    garden = Garden(seed, mode=mode, compresses=compresses)
    for _ in range(STEPS):
        garden.step()
    garden.check(Store(Engine(garden.engine.storage), "local"))
    for _ in range(2):
        garden.collect()
        garden.check(garden.store)
        for _ in range(STEPS // 4):
            garden.step()
    garden.check(Store(Engine(garden.engine.storage), "local"))
