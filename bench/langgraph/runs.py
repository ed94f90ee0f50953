"""A chat run with one saver, beside the same chat with others, and what was measured of it."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.langgraph.chat import CONFIG, HISTORY, Chat
from bench.measure import p50, timed
from bench.peers import GraphSaver, Opener

LAST = 30  # turns whose calls are "at the end"
_WATCHED = ("put", "put_writes", "get_tuple", "get_delta_channel_history")


class Run:
    """The first `turns` turns of a chat. Its saver's calls are timed while they are played, and not afterwards."""

    def __init__(self, opener: Opener[GraphSaver], chat: Chat, place: Path, turns: int) -> None:
        place.mkdir()
        self.chat = chat
        self.turns = turns
        self.walls: list[float] = []
        self.grown: dict[int, int] = {}  # turns -> bytes, at a third and at two thirds of them
        self.held = 0
        self._open: Callable[[], GraphSaver] = lambda: opener(place)
        self._calls: dict[str, list[tuple[int, float]]] = {name: [] for name in _WATCHED}
        self._reopen()
        for name in _WATCHED:
            self._watch(name)

    def _reopen(self) -> None:
        self.peer = self._open()
        self.saver = self.peer.saver
        self._graph = self.chat.graph(self.saver, delta=self.peer.delta)

    def _watch(self, name: str) -> None:
        call = getattr(self.saver, name)
        calls = self._calls[name]

        @functools.wraps(call)  # LangGraph looks at its signature
        def watched(*args: Any, **options: Any) -> Any:
            answers: list[Any] = []
            calls.append((len(self.walls), timed(lambda: answers.append(call(*args, **options)))))
            return answers[0]

        setattr(self.saver, name, watched)

    def play(self) -> None:
        """The next turn."""
        turn = len(self.walls)
        question = self.chat.question(turn)
        self.walls.append(timed(lambda: self._graph.invoke(question, CONFIG, durability="sync")))
        if len(self.walls) in (self.turns // 3, 2 * self.turns // 3):
            self.grown[len(self.walls)] = self.peer.bytes_now()

    def at_end(self, name: str) -> float:
        """Median of a call in the last turns; 0 if there was none."""
        first = self.turns - LAST
        return p50([seconds for turn, seconds in self._calls[name] if first <= turn < self.turns] or [0.0])

    @property
    def wall(self) -> float:
        return sum(self.walls)

    def check(self) -> None:
        if self._graph.get_state(CONFIG).values != self.chat.values(self.turns):
            raise AssertionError(f"{self.peer.name} gave back something else than was saved: {self.chat}")

    def close_and_reopen(self) -> None:
        """Everything must be there again, from the disk alone."""
        self.peer.close()
        self.held = self.peer.bytes_held()
        self._reopen()
        self.check()

    def bytes_after(self, turns: int) -> float:
        """What it would hold after more turns: on the parabola through three sizes that it had."""
        if turns == self.turns:
            return self.held
        points = self.grown | {self.turns: self.held}
        return sum(
            held * math.prod((turns - other) / (at - other) for other in points if other != at)
            for at, held in points.items()
        )


@dataclass(frozen=True)
class Listing:
    """The newest checkpoints of a thread: seconds for the tuples, and with every value touched."""

    tuples: float
    touched: float
    messages: int


def listing(run: Run, limit: int) -> Listing:
    found: list[Any] = []
    counts: list[int] = []
    tuples = timed(lambda: found.extend(run.saver.list(HISTORY, limit=limit)))
    touch = timed(lambda: counts.extend(_messages_in(dict(each.checkpoint["channel_values"])) for each in found))
    if found[0].checkpoint["channel_values"]["messages"] != run.chat.values(run.turns)["messages"]:
        raise AssertionError(f"{run.peer.name} listed something else than was saved")
    return Listing(tuples, tuples + touch, sum(counts))


def _messages_in(values: dict[str, Any]) -> int:
    return len(values.get("messages", ()))


def play(runs: Iterable[Run]) -> None:
    """All their turns, each turn in a new order of savers: noise is for all."""
    shuffle = random.Random(2).shuffle
    left = list(runs)
    while left := [run for run in left if len(run.walls) < run.turns]:
        shuffle(left)
        for run in left:
            run.play()
    for run in runs:
        run.check()
