"""What runs of one chat say, as lines of the result. A run that is None is of a saver that is not installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter, methodcaller
from typing import TypeVar

from bench import report
from bench.langgraph.chat import Chat
from bench.langgraph.runs import LAST, Listing, Run
from bench.measure import timed
from bench.report import Figure, PeerCost

_SYNCED = "both: WAL, synchronous=FULL"
_READS = "reads only"
_MISSING = "not installed"
Measured = TypeVar("Measured")
_MODEL = 0.1  # seconds a model would take for its answer


def missing(chat: Chat, why: str) -> PeerCost:
    return PeerCost(_title(chat), f"{_MISSING} ({why})", "-", "-", "-", "-", "-")


def _title(chat: Chat) -> str:
    return f"LangGraph graph of {chat.turns} turns: {chat}"


def cost(run: Run) -> PeerCost:
    chat = run.chat
    short = "" if run.turns == chat.turns else f", {run.turns} turns only"
    restore = report.duration(run.at_end("get_tuple"))
    if run.peer.delta:
        restore += f" + {report.duration(run.at_end('get_delta_channel_history'))} for the writes it is made of"
    return PeerCost(
        _title(chat),
        run.peer.name + short,
        run.peer.durability,
        report.size(run.held),
        report.times(run.held / chat.new_bytes(run.turns)),
        report.duration(run.at_end("put")),
        restore,
    )


def disk(ours: Run | None, theirs: Run | None, state: str, turns: int, at_most: int) -> Figure:
    """In MB of 10^6 bytes; theirs, where it ran fewer turns, is carried on and said to be."""
    reached, ratio, held = None, "-", _MISSING
    if ours:
        held, reached = report.size(ours.held), ours.held <= at_most * 1e6
        ratio = part(ours.held, theirs.bytes_after(turns)) if theirs else "-"
    return Figure("langgraph: disk", state, _SYNCED, held, _bytes_of(theirs, turns), ratio, f"<= {at_most} MB", reached)


def _bytes_of(theirs: Run | None, turns: int) -> str:
    if theirs is None:
        return f"SqliteSaver {_MISSING}"
    carried = report.size(theirs.bytes_after(turns))
    if theirs.turns == turns:
        return f"SqliteSaver {carried}"
    grown = ", ".join(f"{report.size(held)} after {at}" for at, held in theirs.grown.items())
    return (
        f"SqliteSaver {carried}: not run so far, but carried on along the parabola through {grown}"
        f" and {report.size(theirs.held)} after {theirs.turns} turns"
    )


def disk_against_delta(ours: Run | None, theirs: Run | None, state: str) -> Figure:
    what = "langgraph: disk, our graph unchanged, theirs with a DeltaChannel"
    mine, other = (_of(run, lambda run: run.held) for run in (ours, theirs))
    return _compared(what, state, mine, other, report.size, 5, who="SqliteSaver + DeltaChannel")


def put(kind: str, ours: Run | None, theirs: Run | None, state: str, divisor: int) -> Figure:
    mine, other = (_of(run, lambda run: run.at_end("put")) for run in (ours, theirs))
    return _compared(f"langgraph: put, {kind}", _last(state), mine, other, report.duration, divisor)


def other_calls(ours: Run | None, theirs: Run | None, state: str) -> Iterator[Figure]:
    for name in ("put_writes", "get_tuple"):
        mine, other = (_of(run, methodcaller("at_end", name)) for run in (ours, theirs))
        yield _compared(f"langgraph: {name}", _last(state), mine, other, report.duration)


def _last(state: str) -> str:
    return f"{state}; p50 of the last {LAST} turns"


def wall(kind: str, ours: Run | None, theirs: Run | None, state: str) -> Figure:
    what = f"langgraph: whole run, {kind}"
    return _compared(
        what, state, _of(ours, lambda run: run.wall), _of(theirs, lambda run: run.wall), report.duration, 4
    )


def shares(kind: str, ours: Run | None, theirs: Run | None, nothing: Run, state: str) -> Iterator[Figure]:
    """Of the run's time: what is left when the same run with a saver that does nothing is taken off."""

    def bare(run: Run) -> float:
        return 1 - nothing.wall / run.wall

    def with_model(run: Run) -> float:
        each = (run.wall - nothing.wall) / run.turns
        return each / (each + _MODEL)

    a_turn = report.duration(nothing.wall / nothing.turns)
    least = f"a turn of the same run with a saver that does nothing is {a_turn}"
    yield _share(f"langgraph: share of the run, {kind}", f"{state}; {least}", bare, 0.15, ours, theirs)
    worked_out = f"{state}; worked out, not slept: saving a turn / (saving a turn + {_MODEL * 1e3:.0f} ms)"
    what = f"langgraph: share of the run if a model took {_MODEL * 1e3:.0f} ms a turn, {kind}"
    yield _share(what, worked_out, with_model, None, ours, theirs)


def _share(
    what: str, state: str, take: Callable[[Run], float], at_most: float | None, ours: Run | None, theirs: Run | None
) -> Figure:
    mine = take(ours) if ours else None
    return Figure(
        what,
        state,
        _SYNCED,
        _MISSING if mine is None else f"{mine:.1%}",
        f"SqliteSaver {take(theirs):.1%}" if theirs else f"SqliteSaver {_MISSING}",
        "-",
        "-" if at_most is None else f"<= {at_most:.0%}",
        None if mine is None or at_most is None else mine <= at_most,
    )


def lists(ours: Listing | None, theirs: Listing | None, state: str, rounds: int) -> Iterator[Figure]:
    state = f"{state}; store reopened, the newest 100 checkpoints, asked for as get_state_history does; p50 of {rounds}"
    for what, take, divisor in (
        ("langgraph: list, tuples only", attrgetter("tuples"), 50),
        ("langgraph: list, every value touched", attrgetter("touched"), 5),
    ):
        yield _compared(what, state, _of(ours, take), _of(theirs, take), report.duration, divisor, durability=_READS)


def deletion(ours: Run | None, theirs: Run | None, state: str) -> Iterator[Figure]:
    """Deletes the thread and closes both."""
    mine, other = (_Deleted(run) if run else None for run in (ours, theirs))
    against = f"SqliteSaver {report.duration(other.seconds)}" if other else f"SqliteSaver {_MISSING}"
    yield Figure(
        "langgraph: delete_thread",
        state,
        _SYNCED,
        report.duration(mine.seconds) if mine else _MISSING,
        against,
        part(mine.seconds, other.seconds) if mine and other else "-",
        "<= 1 s",
        mine.seconds <= 1 if mine else None,
    )
    yield Figure(
        "langgraph: the file after delete_thread",
        f"{state}; ours after collect() too, theirs has no such call",
        _SYNCED,
        f"{mine}, collect {report.duration(mine.collect)}" if mine else _MISSING,
        f"SqliteSaver {other}" if other else f"SqliteSaver {_MISSING}",
        part(mine.after, mine.before) if mine else "-",
        "shrinks",
        mine.after < mine.before if mine else None,
    )


class _Deleted:
    """What it took to delete the thread of a run, and what its closed store held before and after."""

    def __init__(self, run: Run) -> None:
        self.before = run.held
        self.seconds = timed(lambda: run.saver.delete_thread("chat"))
        self.collect = timed(run.peer.collect)
        run.peer.close()
        self.after = run.peer.bytes_held()

    def __str__(self) -> str:
        return f"{report.size(self.before)} -> {report.size(self.after)}"


def _of(found: Measured | None, take: Callable[[Measured], float]) -> float | None:
    return None if found is None else take(found)


def _compared(
    what: str,
    state: str,
    ours: float | None,
    theirs: float | None,
    shown: Callable[[float], str],
    divisor: int | None = None,
    *,
    who: str = "SqliteSaver",
    durability: str = _SYNCED,
) -> Figure:
    """Ours has to be at most 1/divisor of theirs; without a divisor both are shown."""
    ratio, reached = "-", None
    if ours is not None and theirs is not None:
        ratio = part(ours, theirs)
        reached = ours * divisor <= theirs if divisor else None
    return Figure(
        what,
        state,
        durability,
        _MISSING if ours is None else shown(ours),
        f"{who} {_MISSING if theirs is None else shown(theirs)}",
        ratio,
        f"<= 1/{divisor} of theirs" if divisor else "-",
        reached,
    )


def part(ours: float, theirs: float) -> str:
    return f"1/{theirs / ours:.1f}" if theirs > ours else report.times(ours / theirs)
