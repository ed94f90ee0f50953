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

    def __init__(
        self, place: Path, source: Iterator[Message], count: int, *, trusted: bool, step: int = 2
    ) -> None:
        self.source = source
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
    small, large = dose.messages, dose.many_messages
    chats = {
        (kind, count): Chat(
            _sub(place, f"{kind}-{count}"),
            _source("random bytes"),
            count,
            trusted=kind == "trusted",
            step=2 if count == small else max(2, large // 500),
        )
        for kind in ("trusted", "verified")
        for count in (small, large)
    }
    acts: dict[str, Callable[[], object]] = {
        f"{kind} {count}": chat.save for (kind, count), chat in chats.items()
    }
    for count in (small, large):
        state = chats["verified", count].state
        acts[f"encode {count}"] = partial(encode_and_hash, state)
    taken = _rounds(dose.heavy_saves, acts, tuple(chats.values()))
    for chat in chats.values():
        chat.close()
    for kind, reach in (("trusted", 2.0), ("verified", large / small)):
        least, most = taken[f"{kind} {small}"], taken[f"{kind} {large}"]
        encode = report.times(taken[f"encode {large}"] / taken[f"encode {small}"])
        yield Figure(
            f"growth of a save, {kind}",
            f"{large} against {small} messages of 1 KB random bytes, + 2 a save, p50 of {dose.heavy_saves}",
            _SYNCED,
            report.duration(most),
            f"{report.duration(least)} (encode + blake3 alone grows {encode})",
            report.times(most / least),
            f"<= {reach:g} x" + ("" if kind == "trusted" else ": proportional"),
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
