"""Restore, list, fork and blame, on states and histories of every size."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from blake3 import blake3
from msgspec import msgpack

from bench import payloads, report
from bench.latency import Chat
from bench.measure import Dose, Floor, folder, folder_bytes, interleaved, p50, timed
from bench.peers import SQLITE_SAVER, NotInstalled, ours
from bench.report import Figure

_SYNCED = "durable: WAL, synchronous=FULL"
_READS = "reads only"


@dataclass(frozen=True)
class Chat1KB:
    """A chat to restore: its messages, how they were saved, and what the restore must reach."""

    content: str
    count: int
    step: int
    reach: float
    rounds: int
    annotated: bool = False

    def messages(self) -> Iterator[payloads.Message]:
        source = payloads.messages(payloads.CONTENTS[self.content], self.count)
        return payloads.annotated(source) if self.annotated else source

    def __str__(self) -> str:
        what = "role, content, id, usage and metadata" if self.annotated else "role and content"
        return (
            f"{self.count} messages of 1 KB {self.content} ({what}), saved {self.step} at a time;"
            f" the last time in plain containers; store reopened, p50 of {self.rounds}"
        )


def run(dose: Dose, scratch: Path) -> Iterator[Figure]:
    for content in ("random bytes", "random text"):
        for annotated in (False, True):
            with folder(scratch, "restore") as place:
                chat = Chat1KB(content, dose.messages, 2, 2.0, 10 * dose.heavy_saves, annotated)
                yield _restore(chat, place)
    step, rounds = max(2, dose.many_messages // 500), max(3, dose.heavy_saves // 3)
    for annotated in (True, False):
        with folder(scratch, "large") as place:
            yield _restore(Chat1KB("random bytes", dose.many_messages, step, 1.2, rounds, annotated), place)
            if not annotated:
                yield from _fork(dose, place)
    with folder(scratch, "list") as place:
        yield _list(dose, place)
    with folder(scratch, "blame") as place:
        yield _blame(dose, place)


def _restore(what: Chat1KB, place: Path) -> Figure:
    chat = Chat(place, what.messages(), what.count, trusted=True, step=what.step)
    chat.close()
    encoded = msgpack.encode(chat.state)
    plain = msgpack.decode(encoded)
    file = place.parent / "encoded"
    file.write_bytes(encoded)
    store = ours.open_store(place)
    store.save("chat", plain)  # the same elements in plain containers: what a decoder makes, and no more
    ref = ours.latest(store, "chat")
    first = timed(lambda: store.restore(ref))
    if store.restore(ref) != plain:
        raise AssertionError("restored something else than was saved")
    acts = {
        "ours": lambda: store.restore(ref),
        "decode": lambda: msgpack.decode(encoded),
        "read": lambda: _read_and_check(file),
    }
    taken = {name: p50(seconds) for name, seconds in interleaved(acts, what.rounds).items()}
    store.close()
    file.unlink()
    return Figure(
        "restore latest",
        str(what),
        _READS,
        f"{report.duration(taken['ours'])} (the first after opening {report.duration(first)})",
        f"msgspec decode {report.duration(taken['decode'])}"
        f" (file read + blake3 + decode {report.duration(taken['read'])})",
        report.times(taken["ours"] / taken["decode"]),
        f"<= {what.reach} x",
        taken["ours"] <= what.reach * taken["decode"],
    )


def _read_and_check(file: Path) -> object:
    """The least that any restore from a disk pays which checks what it read."""
    data = file.read_bytes()
    blake3(data).digest()
    return msgpack.decode(data)


def _fork(dose: Dose, place: Path) -> Iterator[Figure]:
    """In the store that `_restore` left: a chat of many messages."""
    before = folder_bytes(place)
    store = ours.open_store(place)
    ref = ours.latest(store, "chat")
    names = iter(f"branch-{n}" for n in range(10**6))
    with folder(place.parent, "floor") as beside, Floor(beside / "floor", 512) as floor:
        taken = interleaved({"fork": lambda: store.fork(ref, next(names)), "floor": floor}, dose.saves)
    store.close()
    rows = (folder_bytes(place) - before) / dose.saves
    fork, least = p50(taken["fork"]), p50(taken["floor"])
    state = f"{dose.many_messages} messages of 1 KB random bytes, p50 of {dose.saves}"
    yield Figure(
        "fork",
        state,
        _SYNCED,
        report.duration(fork),
        f"append + fdatasync of 512 B: {report.duration(least)}",
        report.times(fork / least),
        "<= 4 x",
        fork <= 4 * least,
    )
    yield Figure("fork: growth of the file", state, _SYNCED, report.size(rows), "-", "-", "< 1 KB", rows < 1024)


def _list(dose: Dose, place: Path) -> Figure:
    store = ours.open_store(place, durability=ours.FASTEST)
    for n in range(dose.checkpoints):
        store.save("agent", _small_state(n))
    store.close()
    store = ours.open_store(place)
    taken = [timed(lambda: store.list("agent", limit=100)) for _ in range(11)]
    found = len(store.list("agent", limit=100))
    store.close()
    if found != min(100, dose.checkpoints):
        raise AssertionError(f"list answered {found} checkpoints")
    return Figure(
        "list the latest 100",
        f"one agent of {dose.checkpoints} checkpoints of 0.1 KB random bytes; p50 of 11",
        _READS,
        report.duration(p50(taken)),
        _saver_list(dose, place),
        "-",
        "< 10 ms",
        p50(taken) < 0.010,
    )


def _saver_list(dose: Dose, place: Path) -> str:
    """SqliteSaver listing the same; its whole states make the time grow with them, ours are not read."""
    try:
        saver = SQLITE_SAVER.load()(place)
    except NotInstalled as error:
        return f"SqliteSaver not run: {error}"
    db: sqlite3.Connection = saver.saver.conn  # type: ignore[attr-defined]
    db.execute("PRAGMA synchronous = OFF")
    for n in range(dose.checkpoints):
        saver.save("agent", _small_state(n))
    config = {"configurable": {"thread_id": "agent", "checkpoint_ns": ""}}
    taken = [timed(lambda: list(saver.saver.list(config, limit=100))) for _ in range(11)]  # type: ignore[attr-defined]
    saver.close()
    return f"SqliteSaver on the same {report.duration(p50(taken))}"


def _small_state(n: int) -> payloads.State:
    return {"step": n, "content": n.to_bytes(4, "big") * 25}


def _blame(dose: Dose, place: Path) -> Figure:
    """The path changes every 100 checkpoints, in a state of 20 KB that changes elsewhere each time."""
    pieces = payloads.random_bytes(100)
    state: payloads.State = {
        "fields": {f"field_{n}": next(pieces) for n in range(200)},
        "customer": {"city": ""},
    }
    store = ours.open_store(place, durability=ours.FASTEST)
    for n in range(dose.blamed):
        state["fields"][f"field_{n % 200}"] = next(pieces)
        if n % 100 == 0:
            state["customer"]["city"] = f"city {n}"
        store.save("agent", state)
    store.close()
    store = ours.open_store(place)
    found = ours.blame(store, "agent", "customer.city")
    taken = [timed(lambda: ours.blame(store, "agent", "customer.city")) for _ in range(3)]
    whole = timed(lambda: [store.restore(c.id) for c in store.list("agent", limit=min(100, dose.blamed))])
    store.close()
    if found != -(-dose.blamed // 100):
        raise AssertionError(f"blame found {found} changes")
    every = whole * dose.blamed / min(100, dose.blamed)
    return Figure(
        "blame of a path",
        f"{dose.blamed} checkpoints of a 20 KB dict of random bytes that changes each time; the path changes"
        f" {found} times; p50 of 3",
        _READS,
        report.duration(p50(taken)),
        f"restoring every checkpoint {report.duration(every)} (from 100 of them)",
        report.times(p50(taken) / every),
        "< 1 s",
        p50(taken) < 1.0,
    )
