"""Which chats are run with which savers, and for how long. Theirs runs once to the end; that alone is 3.6 GB."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench import report
from bench.langgraph import figures
from bench.langgraph.chat import Chat
from bench.langgraph.runs import Listing, Run, listing, play
from bench.measure import Dose, folder, p50
from bench.peers import NOTHING, THEIRS, THEIRS_DELTA, TRUSTED, VERIFIED, GraphSaver, NotInstalled, PeerName
from bench.report import Figure, PeerCost

Saver = PeerName[GraphSaver]
Runs = dict[Saver, Run]

_LISTED = 100
_ROUNDS = 3  # of a list: theirs takes seconds


def run(dose: Dose, scratch: Path) -> Iterator[Figure | PeerCost]:
    yield from _long_chat(Chat("random text", dose.turns), scratch)
    for content in ("real text", "random bytes"):
        chat = Chat(content, dose.turns)
        yield from _disk_alone(chat, scratch, theirs_turns=max(4, dose.turns // 4), at_most=5)
    chat = Chat("random text", dose.turns, document=dose.document)
    yield from _disk_alone(chat, scratch, theirs_turns=max(4, dose.turns // 10), at_most=7)


def _long_chat(chat: Chat, scratch: Path) -> Iterator[Figure | PeerCost]:
    _check_room(scratch, chat)
    with folder(scratch, "langgraph") as place:
        savers = (THEIRS, THEIRS_DELTA, NOTHING, VERIFIED, TRUSTED)
        runs, missing = _opened(dict.fromkeys(savers, chat.turns), chat, place)
        play(list(runs.values()))
        nothing = runs.pop(NOTHING)
        for each in runs.values():
            each.close_and_reopen()
        yield from _of_the_run(chat, runs, nothing)
        yield from missing
        theirs, ours = runs.get(THEIRS), runs.get(VERIFIED)
        state = f"{chat.turns} turns of {chat}"
        mine, other = _listed((ours, theirs))
        yield from figures.lists(mine, other, state, _ROUNDS)
        yield from figures.deletion(ours, theirs, state)
        for name in (THEIRS_DELTA, TRUSTED):
            if name in runs:
                runs[name].peer.close()


def _of_the_run(chat: Chat, runs: Runs, nothing: Run) -> Iterator[Figure | PeerCost]:
    """What was measured while the runs took turns."""
    theirs, ours = runs.get(THEIRS), runs.get(VERIFIED)
    state = f"{chat.turns} turns of {chat}"
    yield figures.disk(ours, theirs, state, chat.turns, 5)
    yield figures.disk_against_delta(ours, runs.get(THEIRS_DELTA), state)
    yield figures.put("verified (default)", ours, theirs, state, 6)
    yield figures.put("trusted", runs.get(TRUSTED), theirs, state, 30)
    yield from figures.other_calls(ours, theirs, state)
    for kind, name in (("verified (default)", VERIFIED), ("trusted", TRUSTED)):
        yield figures.wall(kind, runs.get(name), theirs, state)
        yield from figures.shares(kind, runs.get(name), theirs, nothing, state)
    yield from map(figures.cost, runs.values())


def _disk_alone(chat: Chat, scratch: Path, *, theirs_turns: int, at_most: int) -> Iterator[Figure | PeerCost]:
    with folder(scratch, "langgraph") as place:
        runs, missing = _opened({THEIRS: theirs_turns, VERIFIED: chat.turns}, chat, place)
        play(list(runs.values()))
        for each in runs.values():
            each.close_and_reopen()
            each.peer.close()
        state = f"{chat.turns} turns of {chat}"
        yield figures.disk(runs.get(VERIFIED), runs.get(THEIRS), state, chat.turns, at_most)
        yield from map(figures.cost, runs.values())
        yield from missing


def _opened(turns: Mapping[Saver, int], chat: Chat, place: Path) -> tuple[Runs, list[PeerCost]]:
    """A run for each that is installed, and a line for each that is not."""
    runs: Runs = {}
    missing: list[PeerCost] = []
    for name, count in turns.items():
        try:
            opener = name.load()
        except NotInstalled as error:
            missing.append(figures.missing(chat, str(error)))
        else:
            runs[name] = Run(opener, chat, place / name.factory, count)
    return runs, missing


def _listed(runs: Sequence[Run | None]) -> list[Listing | None]:
    """Medians of interleaved rounds."""
    found: dict[int, list[Listing]] = {n: [] for n, run in enumerate(runs) if run}
    shuffle = random.Random(2).shuffle
    order = list(found)
    for _ in range(_ROUNDS):
        shuffle(order)
        for n in order:
            found[n].append(listing(runs[n], _LISTED))  # type: ignore[arg-type]
    if len({each.messages for rounds in found.values() for each in rounds}) > 1:
        raise AssertionError("the savers list different messages")
    return [_median(found[n]) if n in found else None for n in range(len(runs))]


def _median(rounds: list[Listing]) -> Listing:
    return Listing(p50([r.tuples for r in rounds]), p50([r.touched for r in rounds]), rounds[0].messages)


def _check_room(scratch: Path, chat: Chat) -> None:
    """Theirs keeps three whole states a turn: 3.6 KB x turns^2, and as much again is left free."""
    needed = 2 * 3600 * chat.turns**2
    free = shutil.disk_usage(scratch).free
    if free < needed:
        raise OSError(f"{scratch} has {report.size(free)} free, LangGraph's saver needs {report.size(needed)}")
