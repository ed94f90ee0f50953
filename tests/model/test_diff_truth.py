"""A diff says what was done: random edits, made by a generator that writes down what it did, are found again.

An edit that could have been another one with the same outcome (one or the other of two neighbours swapped,
this or that of equal elements deleted) may be reported as any of them; else path and op must be the
generator's.
"""

import copy
import os
import random
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest

from rekindle.state.diff.states import Change, apply, diff
from rekindle.state.shown.path import Path, render
from rekindle.state.values.canon import same

EDITS = 1_000 * (100 if os.environ.get("REKINDLE_TORTURE") == "1" else 1)
SEED = int(os.environ.get("REKINDLE_SEED", "20261118"))

Fact = tuple[str, str, str | None]
"""(op, path, from path) of one change."""
Edit = list[list[Fact]]
"""One edit: the ways it may be reported, each a list of facts."""


@dataclass
class Budget:
    left: object
    spent: object
    notes: object


class Editor:
    """Makes states in which hardly two values are alike, and edited copies of them; `done` is the truth."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.count = 0
        self.done: list[Edit] = []

    # states

    def scalar(self) -> object:
        self.count += 1
        n = self.count
        return self.rng.choice([n, n + 0.5, f"word {n}", n % 251 * b"x" + b"%d" % n, f"a longer sentence, number {n}"])

    def text(self) -> str:
        self.count += 1
        lines = [f"line {line} of text {self.count}: {self.rng.random()}" for line in range(self.rng.randint(2, 12))]
        return "\n".join(lines)

    def state(self, depth: int) -> Any:
        kind = self.rng.choice(["dict", "dict", "list", "list", "tuple", "set", "object", "text", "same", "scalar"])
        if depth == 0 or kind == "scalar":
            return self.scalar()
        if kind == "text":
            return self.text()
        if kind == "set":
            return {self.scalar() for _ in range(self.rng.randint(0, 5))}
        if kind == "same":
            return [self.rng.randint(0, 2) for _ in range(self.rng.randint(0, 8))]
        inner = [self.state(depth - 1) for _ in range(self.rng.randint(3, 7))]
        if kind == "object":
            return Budget(*inner[:3])
        if kind == "dict":
            return {self.key(): value for value in inner}
        return inner if kind == "list" else tuple(inner)

    def key(self) -> Any:
        self.count += 1
        return self.rng.choice([f"key{self.count}", f"odd key {self.count}", self.count, (self.count, "x")])

    # edits: each answers the edited copy; `was` and `at` are its paths in the old and in the new state

    def edit(self, old: Any, was: Path, at: Path, *, inside_only: bool = False) -> Any:
        if isinstance(old, Budget):
            return self.edit_object(old, was, at)
        if isinstance(old, dict):
            return self.edit_dict(old, was, at, inside_only)
        if isinstance(old, (list, tuple)):
            return type(old)(self.edit_items(list(old), was, at))
        if isinstance(old, set):
            return self.edit_set(old, at)
        if isinstance(old, str) and "\n" in old:
            return self.edit_text(old, at)
        return self.change(old, at)

    def change(self, old: Any, at: Path) -> Any:
        """Another scalar, or the same in another type."""
        others: list[Any] = [self.scalar(), None, [old], repr(old)]
        others += [float(old), complex(old)] if isinstance(old, int) else [old.encode()] if isinstance(old, str) else []
        new = self.rng.choice([other for other in others if not same(other, old)])
        self.note(("replace", at))
        return new

    def edit_text(self, old: str, at: Path) -> str:
        lines = old.split("\n")
        for _ in range(self.rng.randint(1, 3)):
            where = self.rng.randrange(len(lines))
            lines[where : where + self.rng.randint(0, 1)] = [f"edited {self.rng.random()}"]
        if len(lines) == 1:
            lines.append("more")
        stays = set(old.splitlines(keepends=True)) & set("\n".join(lines).splitlines(keepends=True))
        self.note(("text" if stays else "replace", at))
        return "\n".join(lines)

    def edit_set(self, old: set[Any], at: Path) -> set[Any]:
        new = set(old)
        if old and self.rng.random() < 0.5:
            new.remove(self.rng.choice(sorted(old, key=repr)))
            self.note(("set_remove", at))
        else:
            new.add(self.scalar())
            self.note(("set_add", at))
        return new

    def edit_object(self, old: Budget, was: Path, at: Path) -> Budget:
        new = copy.copy(old)
        name = self.rng.choice(["left", "spent", "notes"])
        setattr(new, name, self.edit(getattr(old, name), (*was, name), (*at, name)))
        return new

    def edit_dict(self, old: dict[Any, Any], was: Path, at: Path, inside_only: bool) -> dict[Any, Any]:
        entries = list(old.items())
        what = self.rng.choice(["insert", "delete", "rename", "order", "inside", "inside", "inside", "type"])
        picked = self.rng.randrange(len(entries)) if entries else -1
        if not entries or what == "insert":
            entries.insert(self.rng.randint(0, len(entries)), (self.key(), self.state(1)))
            self.note(("add", (*at, step_in(next(k for k, _ in entries if k not in old)))))
        elif what == "type" and at and not inside_only:
            self.note(("replace", at))
            return self.rng.choice([entries, str(old), None])  # type: ignore[return-value]
        elif what == "delete":
            key, _ = entries.pop(picked)
            self.note(("remove", (*was, step_in(key))))
        elif what == "rename":
            key, value = entries[picked]
            entries[picked] = (self.key(), value)
            self.renamed((*was, step_in(key)), (*at, step_in(entries[picked][0])), value)
        elif what == "order":
            self.rng.shuffle(entries)
        else:
            key, value = entries[picked]
            entries[picked] = (key, self.edit(value, (*was, step_in(key)), (*at, step_in(key))))
        new = dict(entries)
        if list(new) != [key for key in old if key in new] + [key for key in new if key not in old]:
            self.note(("reorder", at))
        return new

    def renamed(self, before: Path, after: Path, value: Any) -> None:
        """Followed when the value is something of its own, as long text and what is not empty are."""
        moved = [("move", render(after), render(before))]
        apart: list[Fact] = [("remove", render(before), None), ("add", render(after), None)]
        follow = isinstance(value, Budget) or (hasattr(value, "__len__") and len(value) >= 16)
        small = hasattr(value, "__len__") and not isinstance(value, (str, bytes)) and len(value) > 0
        self.done.append([moved] if follow or small else [apart])

    def edit_items(self, old: list[Any], was: Path, at: Path) -> list[Any]:
        places = list(range(len(old)))  # what stands where, by its old index; -1 is new
        what = self.rng.choice(["insert", "delete", "move", "inside", "inside"])
        if not old or what == "insert":
            places.insert(self.rng.randint(0, len(old)), -1)
        elif what == "delete":
            places.pop(self.rng.randrange(len(old)))
        elif what == "move":
            places.insert(self.rng.randrange(len(old)), places.pop(self.rng.randrange(len(old))))
        fresh = {self.key(): self.scalar(), "text": self.text()}  # like nothing else
        new = [old[i] if i >= 0 else fresh for i in places]
        if places != list(range(len(old))):
            self.note_places(old, new, was, at)
        of_their_own = len({repr(item) for item in old}) == len(old)
        ripe = [j for j, i in enumerate(places) if i >= 0 and (what == "inside" or is_container(old[i]))]
        if ripe and of_their_own and (what == "inside" or self.rng.random() < 0.3):
            j = self.rng.choice(ripe)
            if what != "inside" and places.count(-1) == 0 and len(places) == len(old):
                return new  # it may be the one that moved: too much at once to be told apart
            new[j] = self.edit(new[j], (*was, places[j]), (*at, j), inside_only=what != "inside")
        elif what == "inside" and ripe:
            j = self.rng.choice(ripe)
            new[j] = self.scalar()
            self.note(("replace", (*at, j)))
        return new

    def note_places(self, old: list[Any], new: list[Any], was: Path, at: Path) -> None:
        """All single insertions, deletions or moves that make `new` of `old`: none can tell which it was."""
        if same(old, new):
            return
        ways: Edit = []
        for i in range(len(old) + 1):
            for j in range(len(new) + 1):
                if len(new) > len(old) and i == 0 and j < len(new) and same([*new[:j], *new[j + 1 :]], old):
                    ways.append([("add", render((*at, j)), None)])
                elif len(new) < len(old) and j == 0 and i < len(old) and same([*old[:i], *old[i + 1 :]], new):
                    ways.append([("remove", render((*was, i)), None)])
                elif len(new) == len(old) and max(i, j) < len(old):
                    rest = [*old[:i], *old[i + 1 :]]
                    if same([*rest[:j], old[i], *rest[j:]], new):
                        ways.append([("move", render((*at, j)), render((*was, i)))])
        if len(new) == len(old) and len({repr(item) for item in old}) < len(old):
            ways += positional(old, new, was, at)
        self.done.append(ways)

    def note(self, *facts: tuple[str, Path]) -> None:
        self.done.append([[(op, render(path), None) for op, path in facts]])


def positional(old: list[Any], new: list[Any], was: Path, at: Path) -> Edit:
    """What else a move among equal scalars may be: one leaves here, an equal one comes there."""
    ways: Edit = []
    for i, gone in enumerate(old):
        for j, come in enumerate(new):
            if same(gone, come) and same([*old[:i], *old[i + 1 :]], [*new[:j], *new[j + 1 :]]):
                ways.append([("remove", render((*was, i)), None), ("add", render((*at, j)), None)])
    ways.append([("replace", render((*at, j)), None) for j in range(len(new)) if not same(old[j], new[j])])
    return ways


def step_in(key: Any) -> Any:
    from rekindle.state.shown.path import step_of

    return step_of(key)


def is_container(value: Any) -> bool:
    """Whether, changed inside, it still is like no other; a list of small numbers may be like anything."""
    if isinstance(value, (list, tuple)):
        return len(value) >= 3 and not all(isinstance(item, int) and item <= 2 for item in value)
    return isinstance(value, Budget) or (isinstance(value, dict) and len(value) >= 3)


def facts_of(changes: tuple[Change, ...]) -> Counter[Fact]:
    return Counter(
        (change.op, render(change.path), None if change.from_path is None else render(change.from_path))
        for change in changes
    )


def unexplained(found: Counter[Fact], done: list[Edit]) -> str | None:
    """What differs between the facts found and the edits done; None when they agree."""
    left = Counter(found)
    for edit in done:
        way = next((way for way in edit if not Counter(way) - left), None)
        if way is None:
            return f"not found: {edit}; left: {left}"
        left -= Counter(way)
    return f"found, but not done: {left}" if left else None


def test_random_edits_are_found_again_and_applied() -> None:
    print(f"REKINDLE_SEED={SEED}")
    rng = random.Random(SEED)
    edits, ops = 0, Counter[str]()
    while edits < EDITS:
        seed = rng.getrandbits(64)
        editor = Editor(random.Random(seed))
        old = {f"part{n}": editor.state(4) for n in range(4)}
        before = copy.deepcopy(old)
        new = dict(old)
        for part in editor.rng.sample(sorted(old), editor.rng.randint(1, 4)):
            new[part] = editor.edit(old[part], (part,), (part,))
        new = copy.deepcopy(new)  # nothing shared: sameness is by content
        changes = diff(old, new)
        wrong = unexplained(facts_of(changes), editor.done)
        assert wrong is None, f"edits of seed {seed}: {wrong}"
        assert same(apply(old, changes), new), f"applying, seed {seed}"
        assert same(old, before), f"the old state was changed, seed {seed}"
        edits += len(editor.done)
        ops.update(change.op for change in changes)
    assert ops.keys() == {"add", "remove", "replace", "move", "text", "reorder", "set_add", "set_remove"}


@pytest.mark.parametrize("seed", range(100 if EDITS == 1_000 else 5_000))
def test_any_two_states_have_a_diff_that_applies(seed: int) -> None:
    """States that have little to do with each other: no truth to compare with, but it must apply."""
    editor = Editor(random.Random(SEED + seed))
    old, new = editor.state(4), editor.state(4)
    editor.count = 0  # the same values again, elsewhere
    third = editor.edit(editor.edit(editor.state(4), (), ()), (), ())
    for a, b in ((old, new), (new, third), (third, old), (old, [third, old, new])):
        assert same(apply(a, diff(a, b)), b)
        assert diff(b, copy.deepcopy(b)) == ()
