"""What changed between two states, by structure.

    changes = diff(old, new)
    apply(old, changes)         # strictly the new state: types, key order and all
    print(render(changes))

Sameness is strict (canon.py says how). Lists know what was inserted, deleted, moved and changed inside.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from ...errors import InvalidInputError
from ..shown.path import Path, Step, step_of
from ..values.canon import Canon, extras_of, same
from ..values.parts import fields_of, with_fields
from ..values.registry import Opaque
from .change import Change, Op
from .likeness import ENOUGH, Likeness
from .patch import apply
from .sequence import Alignment, align
from .show import Page, Summary, page, render, summary, to_json
from .texts import Hunk, text_hunks

__all__ = [
    "Change", "Hunk", "Op", "Page", "Summary", "apply", "diff", "page", "render", "summary", "to_json",
]  # fmt: skip

LONG_TEXT = 200
_WORTH_FOLLOWING = 16


def diff(old: Any, new: Any, *, base: Path = ()) -> tuple[Change, ...]:
    """The changes that make `new` of `old`, in the order a reader meets them; none when they are the same.

    `base` is put before every path. The states must not change meanwhile; the changes hold parts of both.
    Raises InvalidInputError for a state that contains itself or is nested too deep.
    """
    run = Comparison()
    return run.made(lambda: run.compare(old, new, base, base))


class Comparison:
    """One comparison. `was` is the path of a value in the old state, `at` its path in the new one."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.canon = Canon()
        self.likeness = Likeness(self.canon)

    def made(self, compare: Callable[[], None]) -> tuple[Change, ...]:
        """The changes that `compare` finds."""
        try:
            compare()
        except RecursionError as error:
            raise InvalidInputError(
                "state-too-deep", "the state is nested too deep to compare", hint="keep it under 200 levels"
            ) from error
        return tuple(self.changes)

    def compare(self, old: Any, new: Any, was: Path, at: Path) -> None:
        if old is new:
            return
        if type(old) is not type(new):
            self.replace(old, new, at)
        elif type(old) is str:
            self._compare_text(old, new, at)
        elif isinstance(old, Opaque):
            self._compare_opaque(old, new, was, at)
        elif isinstance(old, (dict, list, tuple, set, frozenset)) and self._other_beside(old, new):
            self.replace(old, new, at)
        elif isinstance(old, dict):
            self._compare_dicts(old, new, was, at)
        elif isinstance(old, (set, frozenset)):
            self._compare_sets(old, new, at)
        elif (fields := fields_of(old)) is not None:
            self._compare_objects(old, new, fields, was, at)
        elif isinstance(old, (list, tuple)):
            self._compare_lists(old, new, was, at)
        elif not self.same(old, new):
            self.replace(old, new, at)

    def same(self, old: Any, new: Any) -> bool:
        return self.canon.key(old) == self.canon.key(new)

    def replace(self, old: Any, new: Any, at: Path) -> None:
        self.changes.append(Change("replace", at, old, new))

    def _other_beside(self, old: Any, new: Any) -> bool:
        """Whether two containers of a user's own class differ in what they hold beside their content."""
        if type(old) in (dict, list, tuple, set, frozenset) or hasattr(old, "_fields"):
            return False
        return not same(extras_of(old), extras_of(new))

    def _compare_text(self, old: str, new: str, at: Path) -> None:
        if old == new:
            return
        long = len(old) >= LONG_TEXT or len(new) >= LONG_TEXT or "\n" in old or "\n" in new
        hunks = text_hunks(old, new) if long else ()
        if hunks and (hunks[0].old, hunks[0].new) != (old, new):
            self.changes.append(Change("text", at, old, new, hunks=hunks))
        else:  # short, or nothing of it stayed
            self.replace(old, new, at)

    def _compare_opaque(self, old: Opaque, new: Opaque, was: Path, at: Path) -> None:
        start = len(self.changes)
        alike = (old.name, old.version) == (new.name, new.version)
        if alike and type(old.data) in (dict, list):
            self.compare(old.data, new.data, was, at)
            alike = not any(change.op == "replace" and change.path == at for change in self.changes[start:])
        elif alike:
            alike = self.same(old.data, new.data)
        if not alike:
            del self.changes[start:]
            self.replace(old, new, at)

    def _compare_dicts(self, old: dict[Any, Any], new: dict[Any, Any], was: Path, at: Path) -> None:
        olds: dict[Step, Any] = {step_of(key): key for key in old}
        news: dict[Step, Any] = {step_of(key): key for key in new}
        if len(olds) < len(old) or len(news) < len(new):  # NaN twice: no path can tell them apart
            if not self.same(old, new):
                self.replace(old, new, at)
            return
        if not all(isinstance(step, str) or step not in news or self.same(olds[step], news[step]) for step in olds):
            self.replace(old, new, at)  # keys that are written alike and are not the same
            return
        self.compare_entries(
            {step: old[key] for step, key in olds.items()},
            {step: new[key] for step, key in news.items()},
            was,
            at,
        )
        order = [step for step in olds if step in news] + [step for step in news if step not in olds]
        if order != list(news):
            self.changes.append(Change("reorder", at, tuple(old), tuple(new)))

    def compare_entries(self, old: dict[Any, Any], new: dict[Any, Any], was: Path, at: Path) -> None:
        renamed = self._renamed(old, new)
        gone = set(renamed.values())
        for step, value in old.items():
            if step not in new and step not in gone:
                self.changes.append(Change("remove", (*was, step), old=value))
        for step, value in new.items():
            if step in old:
                self.compare(old[step], value, (*was, step), (*at, step))
            elif step in renamed:
                before = renamed[step]
                self.changes.append(Change("move", (*at, step), old[before], value, from_path=(*was, before)))
            else:
                self.changes.append(Change("add", (*at, step), new=value))

    def _renamed(self, old: dict[Any, Any], new: dict[Any, Any]) -> dict[Any, Any]:
        """New key -> old key of entries whose value went on under another name: one that nothing else has."""
        lost = [step for step, value in old.items() if step not in new and _worth_following(value)]
        come = [step for step, value in new.items() if step not in old and _worth_following(value)]
        if not lost or not come:
            return {}
        counts = Counter(self.canon.key(old[step]) for step in lost)
        counts_new = Counter(self.canon.key(new[step]) for step in come)
        places = {self.canon.key(old[step]): step for step in lost}
        keys = {step: self.canon.key(new[step]) for step in come}
        return {step: places[key] for step, key in keys.items() if counts[key] == 1 == counts_new[key]}

    def _compare_sets(self, old: Any, new: Any, at: Path) -> None:
        olds = {self.canon.key(item): item for item in old}
        news = {self.canon.key(item): item for item in new}
        if len(olds) < len(old) or len(news) < len(new):
            if not self.same(old, new):
                self.replace(old, new, at)
            return
        gone = [item for key, item in olds.items() if key not in news]
        come = [item for key, item in news.items() if key not in olds]
        self.changes += [Change("set_remove", at, old=item) for item in sorted(gone, key=_by_text)]
        self.changes += [Change("set_add", at, new=item) for item in sorted(come, key=_by_text)]

    def _compare_objects(self, old: Any, new: Any, fields: dict[str, Any], was: Path, at: Path) -> None:
        start = len(self.changes)
        others = fields_of(new) or {}
        self.compare_entries(fields, others, was, at)
        if len(self.changes) == start and self.same(old, new):
            return
        mixed = {
            name: fields[name] if name in fields and self.same(fields[name], value) else value
            for name, value in others.items()
        }
        if not self.canon.fresh_is(with_fields(old, mixed), new):  # it holds more than its fields
            del self.changes[start:]
            self.replace(old, new, at)

    def _compare_lists(self, old: Any, new: Any, was: Path, at: Path) -> None:
        self.compare_stretch(old, new, (*was, 0), (*at, 0))

    def compare_stretch(self, old: Any, new: Any, was: Path, at: Path) -> None:
        """Neighbouring elements of two lists, all around which stayed; `was` and `at` lead to the first of each."""
        start, end = _same_ends(old, new)
        olds, news = old[start : len(old) - end], new[start : len(new) - end]
        was, at = _further(was, start), _further(at, start)
        found = self._align(olds, news)
        moved = {j: i for i, j in found.moved}
        gone = {i for i, _ in found.moved}
        last_i = last_j = -1
        for i, j in [*found.kept, (len(olds), len(news))]:
            for lost in range(last_i + 1, i):
                if lost not in gone:
                    self.changes.append(Change("remove", _further(was, lost), old=olds[lost]))
            for come in range(last_j + 1, j):
                self._arrived(olds, news, moved.get(come), come, was, at)
            if i < len(olds):
                self._stayed(olds[i], news[j], _further(was, i), _further(at, j))
            last_i, last_j = i, j

    def _arrived(self, olds: Any, news: Any, i: int | None, j: int, was: Path, at: Path) -> None:
        """An element of the new list that came or moved there; `was` and `at` lead to the first of each."""
        here = _further(at, j)
        if i is None:
            self.changes.append(Change("add", here, new=news[j]))
            return
        there = _further(was, i)
        self.changes.append(Change("move", here, olds[i], news[j], from_path=there))
        self._stayed(olds[i], news[j], there, here)

    def _stayed(self, old: Any, new: Any, was: Path, at: Path) -> None:
        if self.same(old, new):
            return
        if type(old) is str or self.likeness(old, new) >= ENOUGH:
            self.compare(old, new, was, at)
        else:
            self.replace(old, new, at)

    def _align(self, olds: Any, news: Any) -> Alignment:
        if not olds or not news:
            return Alignment()
        like = self.likeness
        return align(
            [self.canon.key(item) for item in olds],
            [self.canon.key(item) for item in news],
            heavy=lambda i: _worth_following(olds[i]),
            identities=(like.identities(olds), like.identities(news)),
            likeness=lambda i, j: like(olds[i], news[j]),
            sketches=(lambda i: like.sketch(olds[i]), lambda j: like.sketch(news[j])),
        )


def _further(path: Path, count: int) -> Path:
    """The path of the element so many places after that of `path`."""
    return (*path[:-1], path[-1] + count)  # type: ignore[operator]


def _same_ends(old: Any, new: Any) -> tuple[int, int]:
    """How many elements are the same at the start, and at the end of the rest."""
    most, start, end = min(len(old), len(new)), 0, 0
    while start < most and same(old[start], new[start]):
        start += 1
    while end < most - start and same(old[-1 - end], new[-1 - end]):
        end += 1
    return start, end


def _worth_following(value: Any) -> bool:
    """Whether a value is so much its own that, found elsewhere, it is the same one moved."""
    if isinstance(value, (str, bytes)):
        return len(value) >= _WORTH_FOLLOWING
    if isinstance(value, (dict, list, tuple, set, frozenset)):
        return len(value) > 0
    return isinstance(value, Opaque) or bool(fields_of(value))


def _by_text(item: Any) -> tuple[str, str]:
    return type(item).__name__, repr(item)
