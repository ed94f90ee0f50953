"""A save of two more messages against the least that is durable, and how it grows with the state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from blake3 import blake3
from msgspec import msgpack

from bench import payloads, report
from bench.measure import Dose, Floor, folder, folder_bytes, interleaved, p50
from bench.payloads import CONTENTS, Message, State
from bench.peers import ours
from bench.report import Figure

_SYNCED = "durable: WAL, synchronous=FULL"


def run(dose: Dose, scratch: Path) -> Iterator[Figure]:
    for content in ("random bytes", "real text"):
        with folder(scratch, "latency") as place:
            yield from _against_floor(content, dose, place)
    with folder(scratch, "growth") as place:
        yield from _growth(dose, place)


class Chat:
    """A store with one chat of `count` messages, built `step` messages a save, then two."""

    def __init__(self, place: Path, source: Iterator[Message], count: int, *, trusted: bool, step: int = 2) -> None:
        self.source = source
        self.trusted = trusted
        self.place = place
        self.store: Any = ours.open_store(place)
        plain: State = {"messages": []}
        self.state = ours.tracked(plain) if trusted else plain
        for _ in range(count // step):
            self.add(step)

    def add(self, count: int = 2) -> None:
        self.prepare(count)
        self.save()

    def prepare(self, count: int = 2) -> None:
        self.state["messages"].extend([next(self.source) for _ in range(count)])

    def save(self) -> None:
        if self.trusted:
            ours.save_trusted(self.store, "chat", self.state)
        else:
            self.store.save("chat", self.state)

    def close(self) -> None:
        self.store.close()


def growth_of_a_save(content: str, dose: Dose, place: Path) -> int:
    """Bytes a save adds to the closed store: what its storage is handed, and so what the floor writes."""
    chat = Chat(place, _source(content), dose.messages, trusted=True)
    chat.close()
    before = folder_bytes(place)
    chat.store = ours.open_store(place)
    for _ in range(dose.saves):
        chat.add()
    chat.close()
    return max(1, (folder_bytes(place) - before) // dose.saves)


def _against_floor(content: str, dose: Dose, place: Path) -> Iterator[Figure]:
    handed = growth_of_a_save(content, dose, _sub(place, "handed"))
    trusted = Chat(_sub(place, "trusted"), _source(content), dose.messages, trusted=True)
    verified = Chat(_sub(place, "verified"), _source(content), dose.messages, trusted=False)
    with Floor(place / "floor", handed) as floor:
        taken = _rounds(
            dose.saves,
            {
                "floor": floor,
                "trusted": trusted.save,
                "verified": verified.save,
                "encode": partial(encode_and_hash, verified.state),
            },
            (trusted, verified),
        )
    trusted.close()
    verified.close()
    state = f"chat of {dose.messages} messages of 1 KB {content} + 2 a save, p50 of {dose.saves}"
    least = taken["floor"]
    yield Figure(
        "save, trusted (tracked containers)",
        state,
        _SYNCED,
        report.duration(taken["trusted"]),
        f"append + fdatasync of the same {handed} B: {report.duration(least)}",
        report.times(taken["trusted"] / least),
        "<= 1.5 x",
        taken["trusted"] <= 1.5 * least,
    )
    both = least + taken["encode"]
    yield Figure(
        "save, verified (default)",
        state,
        _SYNCED,
        report.duration(taken["verified"]),
        f"that floor + msgspec encode and blake3 of the state ({report.duration(taken['encode'])})",
        report.times(taken["verified"] / both),
        "<= 1.5 x floor + 1.5 x encode",
        taken["verified"] <= 1.5 * both,
    )


def _growth(dose: Dose, place: Path) -> Iterator[Figure]:
    yield _growth_of("trusted", 2.0, "<= 2 x", dose.saves, dose, _sub(place, "trusted"))
    proportional = dose.many_messages / dose.messages
    target = f"<= {proportional:g} x: proportional"
    yield _growth_of("verified", proportional, target, dose.heavy_saves, dose, _sub(place, "verified"))


def _growth_of(kind: str, reach: float, target: str, saves: int, dose: Dose, place: Path) -> Figure:
    small, large = dose.messages, dose.many_messages
    chats = {
        count: Chat(_sub(place, str(count)), _source("random bytes"), count, trusted=kind == "trusted", step=step)
        for count, step in ((small, 2), (large, max(2, large // 500)))
    }
    acts: dict[str, Callable[[], object]] = {str(count): chat.save for count, chat in chats.items()}
    if kind == "verified":
        acts |= {f"encode {count}": partial(encode_and_hash, chat.state) for count, chat in chats.items()}
    taken = _rounds(saves, acts, tuple(chats.values()))
    for chat in chats.values():
        chat.close()
    least, most = taken[str(small)], taken[str(large)]
    against = f"{small} messages: {report.duration(least)}"
    if kind == "verified":
        alone = (taken[f"encode {small}"], taken[f"encode {large}"])
        against += f" (encode + blake3 alone: {' to '.join(map(report.duration, alone))})"
    return Figure(
        f"growth of a save, {kind}",
        f"{large} against {small} messages of 1 KB random bytes, + 2 a save, p50 of {saves}",
        _SYNCED,
        report.duration(most),
        against,
        report.times(most / least),
        target,
        most <= reach * least,
    )


def encode_and_hash(state: State) -> bytes:
    return blake3(msgpack.encode(state)).digest()


def _rounds(count: int, acts: Mapping[str, Any], chats: tuple[Chat, ...]) -> dict[str, float]:
    """Medians of interleaved rounds; every chat gets two new messages before each, outside the clock."""
    taken: dict[str, list[float]] = {name: [] for name in acts}
    for _ in range(count):
        for chat in chats:
            chat.prepare()
        for name, seconds in interleaved(acts, 1).items():
            taken[name] += seconds
    return {name: p50(seconds) for name, seconds in taken.items()}


def _source(content: str) -> Iterator[Message]:
    return payloads.messages(CONTENTS[content], 10**9)


def _sub(place: Path, name: str) -> Path:
    path = place / name
    path.mkdir()
    return path
