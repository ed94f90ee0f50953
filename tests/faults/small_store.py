"""A small store with one of everything in it, and every question a reader can put to it."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

from rekindle import Checkpoint, Store, open_store
from rekindle.adapters.langgraph import RekindleSaver
from rekindle.store.saving import filling

Questions = dict[str, Callable[[], Any]]
Ids = list[tuple[str, str, int, str]]

USERS = {"local": ("a", "b", "c", "t"), "other": ("a",)}
_NOON = 1_800_000_000.0


def build(url: str) -> None:
    """Agents that share a large object, branches, tags, ids of callers, a pack, and what a collect has emptied."""
    rng = random.Random("small store")
    with _told_apart(rng), open_store(url, clock=lambda: _NOON) as store:
        document = "a line of it\n" * 400
        for n in range(4):
            store.save("a", {"document": document, "n": n}, metadata={"n": n})
        store.save("b", {"document": document, "mine": True}, id="job-1", label="first", kind="step")
        store.save("b", {"document": document, "mine": None}, id="job-2", metadata={"é": 1.5})
        store.fork("b@1", "side")
        store.save("b", {"side": [1, 2]}, branch="side")
        store.save("c", {"told": "told alone", "alone": rng.randbytes(2100)})
        with mock.patch.object(filling, "SPILL", 0):
            store.save("c", {"spilled": (1, "x" * 40)})
        _thread(RekindleSaver(store))
        store.tag("a@4", "v1")
        store.label("c@1", "told later")
        store.prune("keep-last=2", agent_id="a")
        store.collect()
        store.for_user("other").save("a", ["theirs"], id="job-1")


def _thread(saver: RekindleSaver) -> None:
    """Checkpoints with an input, with writes, with what was written against these, and one that is gone."""
    text = {"content": "so it goes, on and on, " * 14, "id": None}
    _put(saver, 1, __start__={"messages": [text]})
    saver.put_writes(_place(1), [("messages", [text]), ("n", 1)], "task")
    _put(saver, 2, messages=[{**text, "id": "m1"}, "x" * 1000])
    saver.put_writes(_place(2), [("messages", [{**text, "id": "m2"}])], "task")
    _put(saver, 3, messages=[{**text, "id": "m1"}, "x" * 1000, {**text, "id": "m2"}])
    saver.delete_for_runs(["r2"])


def _put(saver: RekindleSaver, n: int, **values: Any) -> None:
    checkpoint: Any = {"v": 4, "id": f"c{n}", "ts": "", "channel_values": values, "channel_versions": {}}
    saver.put(_place(n - 1), checkpoint, {"run_id": f"r{n}"}, dict.fromkeys(values, 1))  # type: ignore[typeddict-unknown-key]


def _place(n: int) -> Any:
    told = {"thread_id": "t", "checkpoint_ns": ""}
    return {"configurable": {**told, "checkpoint_id": f"c{n}"} if n else told}


def _told(saver: RekindleSaver, n: int) -> str:
    found = saver.get_tuple(_place(n))
    return repr(found and (found, sorted(found.checkpoint["channel_values"].items()), list(found.pending_writes or ())))


def _told_apart(rng: random.Random) -> AbstractContextManager[Any]:
    """The same bytes each time: a flip that was found can be found again."""
    return mock.patch.multiple(
        secrets, token_bytes=lambda n=32: rng.randbytes(n), token_hex=lambda n=32: rng.randbytes(n).hex()
    )


def questions(store: Store, ids: Ids) -> Questions:
    """By name, what answers it: asked of the store while it is whole, and again of the damaged one."""
    asked: Questions = {}
    for user in USERS:
        of = store.for_user(user)
        asked[f"{user}: agents"] = of.agents
        asked[f"{user}: list"] = lambda of=of: _facts(of.list(limit=None))
        asked[f"{user}: operations"] = lambda of=of: [(op.seq, op.verb, op.edits) for op in of.operations()]
    for user, agent, seq, ident in ids:
        of = store.for_user(user)
        asked[f"{user}/{agent}: get {seq}"] = lambda of=of, i=ident: _facts([of.get(i)])
        asked[f"{user}/{agent}: restore {seq}"] = lambda of=of, r=f"{agent}@{seq}": repr(of.restore(r))
    asked["local/a: history"] = lambda: _facts(store.history("a"))
    asked["local/a: tags"] = lambda: _named(store.tags("a"))
    asked["local/b: branches"] = lambda: _named(store.branches("b"))
    asked["local/b: children"] = lambda: _facts(store.children("b@1"))
    asked["local/b: diff"] = lambda: store.diff("b@1", "b@2")
    saver = RekindleSaver(store)
    for n in range(4):
        asked[f"local/t: thread {n}"] = lambda n=n: _told(saver, n)
    asked["local/t: threads"] = lambda: repr(list(saver.threads()))
    asked["local/c: newest"] = lambda: _facts([store.get("c")])
    return asked


def checkpoints(store: Store) -> Ids:
    """(user, agent, seq, id) of all there is."""
    return [
        (user, c.agent_id, c.seq, c.id)
        for user, agents in USERS.items()
        for agent in agents
        for c in store.for_user(user).list(agent, limit=None)
    ]


def _facts(found: list[Checkpoint]) -> list[Any]:
    return [
        (
            c.id,
            c.agent_id,
            c.user_id,
            c.parent_checkpoint_id,
            c.timestamp,
            c.metadata,
            c.status,
            c.agent_type,
            c.facts(),
        )
        for c in found
    ]


def _named(found: dict[str, Checkpoint]) -> Any:
    return list(zip(found, _facts(list(found.values())), strict=True))
