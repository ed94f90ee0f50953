"""What histories cost on disk, and what the last saves and a restore of the newest state cost in time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench import payloads, report
from bench.measure import Dose, folder, p50, timed
from bench.payloads import Workload
from bench.peers import LANGGRAPH, OURS, PEERS, SQLITE_SAVER, NotInstalled, Peer, PeerName
from bench.report import Figure, PeerCost

_LAST = 50  # saves whose median is "at the end"


@dataclass(frozen=True)
class Goal:
    """A workload and what it must reach: x the new data, or x the disk of SqliteSaver."""

    workload: Workload
    times_new: float | None = None
    times_saver: float | None = None


def goals(dose: Dose) -> Iterator[Goal]:
    yield Goal(payloads.chat("random text", dose.turns))
    for document in (0, dose.document):
        yield Goal(payloads.chat("random bytes", dose.turns, document=document), times_new=1.25)
        yield Goal(payloads.chat("real text", dose.turns, document=document), times_new=0.7)
    yield Goal(payloads.conversation_replay(dose.conversations), times_saver=1 / 18)
    for fields, size in ((200, 100), (20, 1024)):
        for content, reach in (("random bytes", 2.5), ("real text", 1.5)):
            yield Goal(
                payloads.changing_dict(content, fields=fields, size=size, steps=dose.dict_steps),
                times_new=reach,
            )


def run(dose: Dose, scratch: Path) -> Iterator[Figure | PeerCost]:
    for goal in goals(dose):
        ours, held = _pay(goal.workload, OURS, scratch)
        costs = [ours]
        against: dict[PeerName[Peer], int] = {}
        for peer in _peers(goal):
            try:
                cost, against[peer] = _pay(goal.workload, peer, scratch)
            except NotInstalled as error:
                cost = PeerCost(_title(goal.workload), f"not installed ({error})", "-", "-", "-", "-", "-")
            costs.append(cost)
        yield _figure(goal, held, against.get(SQLITE_SAVER))
        yield from costs


def _peers(goal: Goal) -> tuple[PeerName[Peer], ...]:
    """All of them once on the long chat; elsewhere that would be GBs a peer, and only LangGraph's are run."""
    chats = goal.workload.what.startswith("chat")
    once = goal.times_new == 1.25 and "document" not in goal.workload.what
    return PEERS if once or not chats else LANGGRAPH


def _pay(workload: Workload, who: PeerName[Peer], scratch: Path) -> tuple[PeerCost, int]:
    with folder(scratch, who.factory) as place:
        peer = who.load()(place)
        taken: list[float] = []
        for thread, state in workload.steps():
            taken.append(timed(partial(peer.save, thread, state)))
        restores = [timed(partial(peer.restore_latest, thread)) for _ in range(3)]
        intact = peer.restore_latest(thread) == state
        peer.close()
        held = peer.bytes_held()
    if not intact:
        raise AssertionError(f"{peer.name} restored something else than was saved: {workload.what}")
    cost = PeerCost(
        _title(workload),
        peer.name,
        peer.durability,
        report.size(held),
        report.times(held / workload.new_bytes),
        report.duration(p50(taken[-_LAST:])),
        report.duration(p50(restores)),
    )
    return cost, held


def _title(workload: Workload) -> str:
    return f"{workload.what}: {workload.state}"


def _figure(goal: Goal, held: int, saver: int | None) -> Figure:
    work = goal.workload
    of_new = held / work.new_bytes
    of_saver = held / saver if saver else None
    ratio, target, reached = report.times(of_new), "-", None
    if goal.times_new:
        target, reached = f"<= {goal.times_new} x", of_new <= goal.times_new
    if goal.times_saver:
        target = f"<= 1/{1 / goal.times_saver:.0f} of SqliteSaver"
        ratio = f"1/{1 / of_saver:.1f}" if of_saver else "-"
        reached = of_saver <= goal.times_saver if of_saver else None
    other = f"SqliteSaver {report.size(saver)}" if saver else "SqliteSaver not installed"
    against = f"{work.new} {report.size(work.new_bytes)}; {other}"
    durability = "both: WAL, synchronous=FULL"
    return Figure(f"disk: {work.what}", work.state, durability, report.size(held), against, ratio, target, reached)
