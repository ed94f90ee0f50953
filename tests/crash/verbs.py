"""Scripts of every write verb, on small states; and the same verbs in an order that a seed decides."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from io import BytesIO
from typing import Any

from rekindle.adapters.langgraph import RekindleSaver
from rekindle.errors import ConflictError, NotFoundError
from rekindle.store import open_store
from rekindle.store.portable import bringing
from rekindle.store.store import Store

Act = Callable[[Store], object]


@dataclass(frozen=True)
class Step:
    """One call. `gradual`: it is made of several commits; `unseen`: which show nothing, or all."""

    name: str
    act: Act
    gradual: bool = False
    unseen: bool = False
    undoable: bool = False
    """Undoing it brings back all checkpoints and names as they were before."""


@dataclass
class Script:
    steps: list[Step] = field(default_factory=list)

    def add(self, name: str, act: Act, **how: bool) -> None:
        self.steps.append(Step(name, act, **how))

    def save(self, agent: str, state: Any, **how: Any) -> None:
        self.add(f"save {agent}", lambda store: store.save(agent, state, **how))

    def undoable(self, name: str, act: Act) -> None:
        self.add(name, act, undoable=True)

    def collect(self) -> None:
        self.add("collect", lambda store: store.collect(), gradual=True, unseen=True)


def chat(turns: int, *, salt: str = "") -> dict[str, Any]:
    """A state that grows by a message a turn."""
    messages = [{"role": "user", "text": f"{salt}message {n} " + "so it goes " * 4, "n": n} for n in range(turns)]
    return {"messages": messages, "turn": turns, "odd": (True, 1, 1.0, None, b"\0\xff", {"a": {1, 2}})}


def noise(size: int, seed: int) -> bytes:
    return random.Random(seed).randbytes(size)


def bulky(seed: int, size: int = 9_000) -> dict[str, Any]:
    """More than a record takes: its rest goes into a pack."""
    return {"log": [noise(700, seed * 100 + n) for n in range(size // 700)], "seed": seed}


@cache
def _exported() -> bytes:
    with open_store("memory://", user="somebody else") as store:
        store.save("there", chat(1))
        store.save("there", {**chat(2), "page": noise(5_000, 11)}, id="theirs")
        store.fork("there@1", "try")
        out = BytesIO()
        store.export("there", out)
        return out.getvalue()


def exported() -> BytesIO:
    """An agent of another store, as a file."""
    return BytesIO(_exported())


def in_parts(file: Callable[[], BytesIO], agent: str) -> Act:
    """An import that takes a commit for every checkpoint, as one of many thousands does for every few hundred."""

    def act(store: Store) -> object:
        whole, bringing.RECORDS_AT_ONCE = bringing.RECORDS_AT_ONCE, 1
        try:
            return store.import_(file(), agent_id=agent)
        finally:
            bringing.RECORDS_AT_ONCE = whole

    return act


# -- scripts ---------------------------------------------------------------------------------------------------


def saves() -> list[Step]:
    script = Script()
    script.save("chat", chat(1))
    script.save("chat", chat(2), label="second", metadata={"why": "test", "n": 2})
    script.save("chat", chat(3), id="brought", kind="step")
    script.save("chat", chat(4), id="brought")  # known: nothing is kept
    script.save("tool", {"n": 1}, id="other")
    script.save("chat", chat(4))
    script.save("chat", chat(5), parent="chat@2")  # becomes a branch of its own
    return script.steps


def names() -> list[Step]:
    script = Script()
    script.save("chat", chat(2))
    script.save("chat", chat(3))
    script.undoable("fork", lambda store: store.fork("chat@1", "try"))
    script.save("chat", chat(4, salt="try "), branch="try")
    script.undoable("tag", lambda store: store.tag("chat@2", "good"))
    script.undoable("tag --move", lambda store: store.tag("chat@1", "good", move=True))
    script.undoable("label", lambda store: store.label("chat@2", "looked at"))
    script.undoable("untag", lambda store: store.untag("chat", "good"))
    script.undoable("delete branch", lambda store: store.delete_branch("chat", "try"))
    script.add("undo", lambda store: store.undo())
    script.save("chat", chat(5, salt="try "), branch="try")
    return script.steps


def large() -> list[Step]:
    """Packs, runs that agents share, an alias on a save with a pack, and packs that a collect takes away."""
    script = Script()
    script.save("big", bulky(1))
    script.save("big", {**bulky(1), "more": 1}, id="named")
    script.save("big", bulky(7), id="named")  # known: its pack is taken away again
    script.save("big", {"text": noise(5_000, 3).hex(), "page": noise(6_000, 4)})
    script.save("twin", {"page": noise(6_000, 4), "mine": 1})
    script.save("big", bulky(2))
    script.undoable("prune", lambda store: store.prune("keep-last=1", agent_id="big"))
    script.collect()
    script.save("big", bulky(2, size=12_000))
    return script.steps


def drops() -> list[Step]:
    script = Script()
    for turns in (1, 2, 3, 4):
        script.save("chat", chat(turns))
    script.save("tool", {"page": noise(5_000, 9)})
    script.undoable("prune", lambda store: store.prune("keep-last=2"))
    script.add("undo", lambda store: store.undo())
    script.undoable("prune", lambda store: store.prune("keep-last=2", agent_id="chat"))
    script.collect()
    script.save("chat", chat(5))
    script.undoable("delete", lambda store: store.delete("tool"))
    script.add("undo", lambda store: store.undo())
    script.undoable("clear", lambda store: store.clear(["chat"]))
    script.undoable("delete", lambda store: store.delete("tool"))
    script.collect()
    script.save("chat", chat(2, salt="anew "))
    return script.steps


def policy() -> list[Step]:
    """A store that prunes by itself: the save is durable first, its prune follows."""
    script = Script()
    script.undoable("policy", lambda store: store.set_policy("keep-last=2", every=3))
    for turns in range(1, 8):
        script.add("save chat", lambda store, n=turns: store.save("chat", chat(n)), gradual=True)  # type: ignore[misc]
    script.collect()
    return script.steps


def brought_in() -> list[Step]:
    """An agent moved from one place to another, and again."""
    held: list[bytes] = []

    def export(store: Store) -> None:
        out = BytesIO()
        store.export("chat", out)
        held.append(out.getvalue())

    script = Script()
    script.save("chat", chat(1))
    script.save("chat", chat(2), id="mine")
    script.undoable("fork", lambda store: store.fork("chat@1", "try"))
    script.save("chat", {**chat(3), "page": noise(5_000, 5)}, branch="try")
    script.add("export", export)
    script.undoable("delete", lambda store: store.delete("chat"))
    script.collect()
    script.undoable("import", lambda store: store.import_(BytesIO(held[-1]), agent_id="moved"))
    script.add("undo", lambda store: store.undo())
    script.add(
        "import in parts", in_parts(lambda: BytesIO(held[-1]), "parts"), gradual=True, unseen=True, undoable=True
    )
    script.undoable("import again", lambda store: store.import_(BytesIO(held[-1]), agent_id="moved"))
    script.save("moved", chat(4))
    return script.steps


def told(n: int, *, salt: str = "") -> dict[str, Any]:
    """A message of a thread, before it has an id."""
    return {"role": "user", "text": f"{salt}message {n} " + "so it goes, and on and on " * 12, "id": None}


def ident(n: int) -> str:
    return f"00000000-0000-0000-0000-{n:012}"


def put(n: int, parent: int | None, run: str = "r", **values: Any) -> Act:
    """A checkpoint of thread `t`; `__start__` in its values is the input it was put with."""
    place = {"thread_id": "t", "checkpoint_ns": ""} | ({"checkpoint_id": ident(parent)} if parent else {})
    checkpoint: Any = {
        "v": 4, "id": ident(n), "ts": "2026-01-01T00:00:00+00:00", "channel_values": {"page": chat(6), **values},
        "channel_versions": {}, "versions_seen": {},
    }  # fmt: skip
    return lambda store: RekindleSaver(store).put(
        {"configurable": place}, checkpoint, {"run_id": run}, dict.fromkeys(values, 1)
    )


def writes(n: int, *values: Any, channel: str = "messages", task: str = "task") -> Act:
    place: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": ident(n)}}
    return lambda store: RekindleSaver(store).put_writes(place, [(channel, value) for value in values], task)


def threads() -> list[Step]:
    """Checkpoints with the input they were put with, and what tasks have written on them."""
    first, second, page = told(1), told(2), noise(5_000, 21)
    script = Script()
    script.add("put with input", put(1, None, __start__={"messages": [first]}))
    script.add("put_writes", writes(1, [first], None))
    script.add("put_writes again", writes(1, [first], None))
    script.add("put after writes", put(2, 1, messages=[{**first, "id": ident(1)}]))
    script.add("put_writes of much", writes(2, [page, first], {"messages": [told(3)], "n": 1}))
    script.add("special writes", writes(2, "no", channel="__error__"))
    script.add("put known", put(2, 1, messages=[{**first, "id": ident(1)}]))
    script.add("put with much input", put(3, 2, "gone", messages=[first, second, page], __start__=[page, told(4)]))
    script.add("early put_writes", writes(4, [second, told(5)], task="early"))
    script.add("put after early writes", put(4, 3, messages=[first, second, told(5), {**told(6), "n": page}]))
    script.add("put on an older one", put(5, 1, messages=[second, first], __start__=[told(7)]))
    script.undoable("delete for runs", lambda store: RekindleSaver(store).delete_for_runs(["gone"]))
    script.add("undo", lambda store: store.undo())
    script.undoable("prune", lambda store: RekindleSaver(store).prune(["t"]))
    script.collect()
    script.add("put_writes after collect", writes(5, [second, {**told(7), "id": ident(7)}]))
    script.add("put after collect", put(6, 5, messages=[second, first, {**told(7), "id": ident(7)}]))
    script.add("copy", lambda store: RekindleSaver(store).copy_thread("t", "copy"), gradual=True, unseen=True)
    script.undoable("delete thread", lambda store: RekindleSaver(store).delete_thread("t"))
    script.collect()
    script.add("put anew", put(7, None, __start__=[first, page]))
    return script.steps


SCRIPTS: dict[str, Callable[[], list[Step]]] = {
    "saves": saves,
    "names": names,
    "large": large,
    "drops": drops,
    "policy": policy,
    "import": brought_in,
    "threads": threads,
}


# -- chance ----------------------------------------------------------------------------------------------------


def by_chance(seed: int, length: int = 12) -> list[Step]:
    """Verbs in an order that the seed decides; what a verb concerns is decided on the store as it is then."""
    rng = random.Random(seed)
    script = Script()
    script.save("a", chat(1))
    for n in range(length):
        name, act, gradual = rng.choices(_CHANCES, weights=_WEIGHTS)[0]
        script.add(name, _decided(act, rng.randrange(1 << 30), n), gradual=gradual, unseen=gradual)
    return script.steps


def _decided(act: Callable[[Store, random.Random, int], object], seed: int, n: int) -> Act:
    def go(store: Store) -> object:
        try:
            return act(store, random.Random(seed), n)
        except (ConflictError, NotFoundError):
            return None  # refused: nothing was to be done

    return go


def _some(store: Store, rng: random.Random) -> Any:
    found = store.list(limit=None)
    if not found:
        raise NotFoundError("empty", "nothing to choose from")
    return rng.choice(found)


def _save(store: Store, rng: random.Random, n: int) -> object:
    agent = rng.choice("ab")
    state = rng.choice((chat(n + 1), chat(rng.randrange(8)), bulky(rng.randrange(3)), {"page": noise(5_000, n % 3)}))
    branches = [b for b in (store.branches(agent) if agent in store.agents() else {}) if b != "main"]
    branch = rng.choice([None, *branches])
    return store.save(agent, state, branch=branch, id=rng.choice([None, None, f"id-{n}", "id-1"]))


def _fork(store: Store, rng: random.Random, n: int) -> object:
    return store.fork(_some(store, rng), rng.choice((f"try-{n}", "try")))


def _tag(store: Store, rng: random.Random, n: int) -> object:
    return store.tag(_some(store, rng), rng.choice(("good", "bad")), move=rng.random() < 0.5)


def _label(store: Store, rng: random.Random, n: int) -> object:
    return store.label(_some(store, rng), rng.choice((None, f"label {n}")))


def _prune(store: Store, rng: random.Random, n: int) -> object:
    return store.prune(f"keep-last={rng.randrange(1, 4)}")


def _delete(store: Store, rng: random.Random, n: int) -> object:
    agent = rng.choice("ab")
    return rng.choice((store.delete, lambda agent: store.clear([agent])))(agent)


def _undo(store: Store, rng: random.Random, n: int) -> object:
    return store.undo()


def _collect(store: Store, rng: random.Random, n: int) -> object:
    return store.collect()


def _import(store: Store, rng: random.Random, n: int) -> object:
    return store.import_(exported(), agent_id=rng.choice(("a", "c")))


def _put(store: Store, rng: random.Random, n: int) -> object:
    found = [int(c.id[-12:]) for c in store.list("t", limit=None)] if "t" in store.agents() else []
    parent = rng.choice([*found, None]) if found else None
    messages = [told(rng.randrange(9)) for _ in range(rng.randrange(5))]
    started = {"__start__": rng.choice((messages, bulky(n), None))} if rng.random() < 0.5 else {}
    return put(n + 1, parent, messages=messages, **started)(store)


def _put_writes(store: Store, rng: random.Random, n: int) -> object:
    on = rng.randrange(1, n + 3)
    return writes(on, rng.choice(([told(rng.randrange(9))], bulky(n), None)), task=f"task {rng.randrange(3)}")(store)


def _delete_thread(store: Store, rng: random.Random, n: int) -> object:
    return RekindleSaver(store).delete_thread("t")


_CHANCES = [
    ("save", _save, False), ("fork", _fork, False), ("tag", _tag, False), ("label", _label, False),
    ("prune", _prune, False), ("delete", _delete, False), ("undo", _undo, False), ("collect", _collect, True),
    ("import", _import, False), ("put", _put, False), ("put_writes", _put_writes, False),
    ("delete thread", _delete_thread, False),
]  # fmt: skip
_WEIGHTS = [8, 2, 1, 1, 2, 1, 2, 2, 1, 5, 5, 1]
