"""A script run on a simulated disk, and the judge of what a power cut in the middle of it may leave."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.crash.stores_on_disk import (
    Open,
    Picture,
    essence,
    let_go,
    opened,
    picture,
    picture_of,
    records_of,
    store_on,
)
from tests.crash.verbs import Step

from rekindle.errors import RekindleError
from rekindle.storage.base import Storage
from rekindle.store.store import Store
from rekindle.testing.crash import CrashState, Recording, SimDisk

Records = dict[tuple[str, int], bytes]


@dataclass(frozen=True)
class View:
    """What may be seen after a call: the picture, and every record's head."""

    picture: Picture
    records: Records


_EMPTY = View(Picture(policy="None"), {})


@dataclass(frozen=True)
class Recorded:
    """`seen[n]` is what may be seen while call n is under way or just done; the last of it is the call's outcome."""

    open_it: Open
    steps: Sequence[Step]
    recording: Recording
    before: View
    seen: Sequence[Sequence[View]]

    def allowed(self, marks: int) -> list[View]:
        """What a power cut may leave after so many calls were acknowledged."""
        done = [self.seen[marks - 1][-1]] if marks else [self.before]
        return done + list(self.seen[marks] if marks < len(self.seen) else ())


def record(open_it: Open, steps: Sequence[Step], disk: SimDisk | None = None) -> Recorded:
    """Open a store, on what the disk holds, run the script, mark every call that returned. Opening is call 0."""
    before = _EMPTY
    if disk is None:
        disk = SimDisk()
    else:
        with opened(open_it, SimDisk(disk.image())) as store:
            before = _view(store._engine.storage)
    storage = open_it(disk)
    commits: list[View] = []
    _watch(storage, lambda: commits.append(_view(storage)))
    store = store_on(storage)
    seen: list[list[View]] = [[_view(storage)]]
    disk.mark(0)
    for n, step in enumerate(steps, 1):
        commits.clear()
        step.act(store)
        disk.mark(n)
        outcome = _view(storage)
        if not step.gradual:
            assert all(between == outcome for between in commits), f"{step.name} is seen half done"
        if step.unseen:
            ends = (_shown(seen[-1][-1]), _shown(outcome))
            assert all(_shown(between) in ends for between in commits), f"{step.name} is seen half done"
        seen.append([*commits, outcome])
    recording = disk.recording()
    let_go(storage)
    return Recorded(open_it, steps, recording, before, seen)


def _view(storage: Storage) -> View:
    return View(picture_of(storage), records_of(storage))


def _shown(view: View) -> tuple[Any, ...]:
    return view.picture.checkpoints, view.picture.names, view.picture.threads


def _watch(storage: Storage, look: Callable[[], None]) -> None:
    """Look after each commit."""

    def watched(write: Callable[..., Any]) -> Callable[..., Any]:
        def go(*args: Any) -> Any:
            answer = write(*args)
            look()
            return answer

        return go

    for name in ("append", "sweep"):
        vars(storage)[name] = watched(getattr(storage, name))


@dataclass
class Judge:
    """Opens the store again on what a power cut left. `problems` holds what was wrong, a line each.

    Every state is opened. Those that differ from all before in what is stored are listed and restored whole; these,
    and one in `sample` of the others, are verified, undone, saved to and collected as well.
    """

    recorded: Recorded
    sample: int = 16
    most: int = 5
    problems: list[str] = field(default_factory=list)
    checked: int = 0
    thorough: int = 0
    _known: dict[bytes, str | View] = field(default_factory=dict)
    _views: dict[bytes, View] = field(default_factory=dict)
    _outcomes: set[int] = field(default_factory=set)

    def all(self, states: Iterator[CrashState]) -> None:
        for state in states:
            self.one(state)
            if len(self.problems) >= self.most:
                return

    def one(self, state: CrashState) -> None:
        self.checked += 1
        seen = self._known.get(state.digest)
        if seen is None:
            seen = self._known[state.digest] = self._look(state)
        wrong = seen if isinstance(seen, str) else self._compare(seen, state)
        if wrong is None and (id(seen) not in self._outcomes or self.checked % self.sample == 0):
            wrong = self._try_all(state)
            self._outcomes.add(id(seen))
        if wrong is not None:
            under = len(state.marks)
            steps = self.recorded.steps
            call = steps[under - 1].name if 0 < under <= len(steps) else "open" if not under else "nothing"
            self.problems.append(f"during {call!r}: {wrong}\n{state}")

    def _look(self, state: CrashState) -> str | View:
        try:
            with opened(self.recorded.open_it, state.disk()) as store:
                storage = store._engine.storage
                what = essence(storage, state.image)
                found = self._views.get(what) or View(picture(store), records_of(storage))
                self._views[what] = found
        except RekindleError as e:
            return f"{type(e).__name__} {e.code}: {e.message}"
        return _EMPTY if found == _EMPTY else found  # a store made anew has a secret of its own

    def _compare(self, found: View, state: CrashState) -> str | None:
        allowed = self.recorded.allowed(len(state.marks))
        if any(found is view or found == view for view in allowed):
            return None
        if all(found.picture != view.picture for view in allowed):
            return "what it shows: " + found.picture.what_differs(allowed[-1].picture)
        return f"its records are {sorted(found.records)}, not {[sorted(v.records) for v in allowed]}"

    def _try_all(self, state: CrashState) -> str | None:
        self.thorough += 1
        try:
            with opened(self.recorded.open_it, state.disk()) as store:
                return self._go_on(store, state)
        except RekindleError as e:
            return f"going on from there: {type(e).__name__} {e.code}: {e.message}"

    def _go_on(self, store: Store, state: CrashState) -> str | None:
        """Everything a user would do next works, and takes nothing away."""
        before = picture(store)
        if problems := store.verify().problems:
            return f"verify: {problems}"
        last = self._last(before, state)
        if last is not None:
            store.undo()
            undone, wanted = picture(store), self.recorded.seen[last - 1][-1].picture
            if _shown(View(undone, {})) != _shown(View(wanted, {})):
                return "undo: " + undone.what_differs(wanted)
            before = undone
        saved = store.save("afterwards", {"after": [1, 2, 3]})
        if store.restore(saved.id) != {"after": [1, 2, 3]}:
            return "a save afterwards does not come back"
        store.collect()
        if problems := store.verify().problems:
            return f"verify after a collect: {problems}"
        after = picture_of(store._engine.storage)
        kept = tuple(c for c in after.checkpoints if c[0] != "afterwards")
        return (
            None
            if (kept, after.threads) == (before.checkpoints, before.threads)
            else "a save and a collect afterwards changed what was there"
        )

    def _last(self, found: Picture, state: CrashState) -> int | None:
        """The newest call whose outcome is what is there, if it can be undone."""
        marks = len(state.marks)
        for n in (marks, marks - 1):
            if 0 < n < len(self.recorded.seen) and self.recorded.seen[n][-1].picture == found:
                return n if self.recorded.steps[n - 1].undoable else None
        return None
