"""A portable file brings an agent whole into any store, or it brings nothing."""

import io
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rekindle import ConflictError, InvalidInputError, NotFoundError, Store, open_store, register, tracked
from rekindle.errors import CorruptDataError, RekindleError
from rekindle.state.tracked import TrackedList
from rekindle.state.values import registry
from rekindle.state.values.canon import same
from rekindle.storage.memory import MemoryStorage
from rekindle.store.engine import Engine
from rekindle.store.portable import bringing
from rekindle.store.saving import filling


@register(name="portable.Note")
@dataclass
class Note:
    text: str
    parts: list[Any] = field(default_factory=list)


KINDS = ["sqlite", "memory", "files"]


def opened(kind: str, folder: Path, name: str = "s") -> Store:
    urls = {"sqlite": str(folder / f"{name}.db"), "memory": "memory://", "files": f"file://{folder / name}"}
    return open_store(urls[kind], durability="relaxed")


@pytest.fixture(params=KINDS)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with opened(request.param, tmp_path, "target") as store:
        yield store


def live(store: Store, count: int, agent: str = "a", seed: int = 0) -> None:
    """An agent with all that an agent can have."""
    rng = random.Random(seed)
    state: dict[str, Any] = {
        "step": 0,
        "messages": tracked([]),
        "table": {f"k{i}": f"value {i} " * 3 for i in range(120)},
        "note": Note("n" * 2000, [1, 2]),
        "text": "\n".join(f"line {i}" for i in range(400)),
        "numbers": list(range(300)),
        "blob": rng.randbytes(6000),
        "keyed": {1: "x" * 5000, (1, 2): None},
    }
    for n in range(count):
        state["step"] = n
        state["messages"].append({"role": "user", "content": f"message {n} {rng.random()} " * 5})
        state["table"][f"k{rng.randrange(120)}"] = f"edited {rng.random()}"
        state["numbers"][rng.randrange(300)] += 1
        if n % 4 == 0:
            state["text"] = (
                state["text"].replace(f"line {n} ", f"line number {n} ").replace(f"line {n}\n", f"new {n}\n")
            )
            state["note"].parts.append(n)
        if n % 7 == 0:
            state["messages"].insert(0, {"role": "system", "content": "first"})
        store.save(
            agent, state, kind="manual" if n % 3 else "step", label=f"label {n}" if n % 5 == 0 else None,
            metadata={"n": n} if n % 2 else None, id=f"{agent}-own-{n}" if n % 6 == 5 else None,
        )  # fmt: skip
    if count > 4:
        store.fork(f"{agent}@{count // 2}", "other")
        for n in range(3):
            store.save(agent, {"step": n, "messages": state["messages"]}, branch="other")
        store.tag(f"{agent}@2", "good")
        store.label(f"{agent}@3", "relabelled")


def exported(store: Store, ref: str = "a", **options: Any) -> bytes:
    out = io.BytesIO()
    store.export(ref, out, **options)
    return out.getvalue()


def take(store: Store, data: bytes, **options: Any) -> list[Any]:
    return store.import_(io.BytesIO(data), **options)


def everything(store: Store, agent: str = "a") -> list[Any]:
    """All there is to see of an agent, newest first; ids are told by what they are the ids of."""
    seqs = {c.id: n for n, c in enumerate(store.list(agent, limit=None)[::-1])}
    return [
        [
            (
                c.state,
                c.kind,
                c.label,
                c.metadata,
                c.branch,
                c.timestamp,
                c.size,
                seqs.get(c.parent_checkpoint_id or ""),
            )
            for c in store.list(agent, limit=None)
        ],
        {name: seqs[c.id] for name, c in store.branches(agent).items()},
        {name: seqs[c.id] for name, c in store.tags(agent).items()},
    ]


def test_an_agent_comes_over_whole(tmp_path: Path, target: Store) -> None:
    for kind in KINDS:
        with opened(kind, tmp_path, f"from-{kind}") as source:
            live(source, 20)
            data = exported(source)
            brought = take(target, data, agent_id=kind)
            assert len(brought) == 23
            assert same(everything(target, kind), everything(source))
            for c in source.list("a", limit=None):
                assert same(target.restore(f"{kind}@{c.seq}"), source.restore(c))
            assert isinstance(target.restore(kind)["messages"], TrackedList)
    assert target.verify()


def test_ids_stay_what_they_were(tmp_path: Path, target: Store) -> None:
    with opened("sqlite", tmp_path) as source:
        live(source, 12)
        take(target, exported(source))
        for c in source.list("a", limit=None):
            assert target.get(c.id).seq == c.seq
            assert target.get(c.id).parent_checkpoint_id == c.parent_checkpoint_id


def test_the_agent_lives_on_where_it_came(tmp_path: Path, target: Store) -> None:
    with opened("sqlite", tmp_path) as source:
        live(source, 30)
        take(target, exported(source))
        for store in (source, target):
            for n in range(5):
                state = store.restore("a")
                state["messages"].append({"content": n})
                assert store.save("a", state).branch == "main"
        assert same(target.restore("a"), source.restore("a"))
        assert target.verify()


def test_another_user_and_another_name_in_the_same_store(tmp_path: Path, target: Store) -> None:
    live(target, 20)
    data = exported(target)
    other = target.for_user("other")
    assert len(take(other, data)) == len(take(target, data, agent_id="copy")) == 23
    assert same(everything(other), everything(target))
    assert same(everything(target, "copy"), everything(target))
    ids = [c.id for c in target.list(limit=None)]
    assert len(set(ids)) == len(ids)
    assert take(target, data, agent_id="copy") == take(other, data) == take(target, data) == []
    assert target.verify()
    assert other.verify()


def test_a_file_is_no_larger_than_what_is_new_in_it(tmp_path: Path) -> None:
    with opened("sqlite", tmp_path) as source:
        rng = random.Random(1)
        messages: list[Any] = []
        for _ in range(300):
            messages += [rng.randbytes(500), rng.randbytes(500)]
            source.save("a", {"messages": messages})
        assert len(exported(source)) < 1.15 * 300 * 1000


def test_types_that_nobody_registered_come_through(
    tmp_path: Path, target: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened("sqlite", tmp_path) as source:
        live(source, 5)
        held = dict(registry._by_type), dict(registry._by_name)
        monkeypatch.setattr(registry, "_by_type", {})
        monkeypatch.setattr(registry, "_by_name", {})
        take(target, exported(source))
        with pytest.raises(InvalidInputError, match="not registered"):
            target.restore("a@main")
        monkeypatch.setattr(registry, "_by_type", held[0])
        monkeypatch.setattr(registry, "_by_name", held[1])
        assert target.restore("a@2") == source.restore("a@2")


def test_one_branch_alone(tmp_path: Path, target: Store) -> None:
    with opened("sqlite", tmp_path) as source:
        live(source, 10)
        brought = take(target, exported(source, "a@other", branch_only=True))
        history = source.history("a@other")
        assert [c.id for c in brought] == [c.id for c in history[::-1]]
        assert [c.id for c in target.history("a@other")] == [c.id for c in history]
        assert list(target.branches("a")) == ["other"]
        assert same(target.restore("a@other"), source.restore("a@other"))
        # the rest can follow
        assert len(take(target, exported(source))) == 13 - len(history)
        assert {name: c.id for name, c in target.branches("a").items()} == {
            name: c.id for name, c in source.branches("a").items()
        }


def test_a_checkpoint_in_the_middle_of_its_branch_is_that_branch_head(tmp_path: Path, target: Store) -> None:
    with opened("sqlite", tmp_path) as source:
        live(source, 10)
        take(target, exported(source, "a@4", branch_only=True))
        assert target.get("a").id == source.get("a@4").id


def test_what_was_pruned_stays_behind_and_what_it_wrote_comes_along(tmp_path: Path, target: Store) -> None:
    with opened("sqlite", tmp_path) as source:
        live(source, 60)
        source.prune("keep-last=5")
        for collected in (False, True):
            if collected:
                source.collect()
            agent = f"copy-{collected}"
            take(target, exported(source), agent_id=agent)
            for ref in ("main", "other", "good"):
                brought, history = target.history(f"{agent}@{ref}"), source.history(f"a@{ref}")
                assert same([c.state for c in brought], [c.state for c in history])
                assert same([c.label for c in brought], [c.label for c in history])
            assert len(target.list(agent, limit=None)) == len(source.list("a", limit=None))
        assert target.verify()


def test_parts_that_lie_with_other_agents_and_in_packs_come_along(
    tmp_path: Path, target: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filling, "SPILL", 20_000)
    document = "\n".join(f"line {n} {random.Random(n).random()}" for n in range(4000))
    with opened("sqlite", tmp_path) as source:
        source.save("first", {"document": document})
        source.save("a", {"document": document, "own": random.Random(2).randbytes(60_000)})
        take(target, exported(source))
        assert target.restore("a") == source.restore("a")
        assert target.agents() == ["a"]
    assert target.verify()
    target.collect()
    assert target.restore("a")["document"] == document


def test_it_is_written_once(tmp_path: Path, target: Store) -> None:
    with opened("sqlite", tmp_path) as source:
        live(source, 20)
        data = exported(source)
        take(target, data)
        operations = len(target.operations())
        assert take(target, data) == []
        assert len(target.operations()) == operations
        state = source.restore("a")
        for n in range(10):
            state["messages"].append(n)
            source.save("a", state)
        source.save("a", state, branch="other")
        source.tag("a@5", "later")
        assert len(take(target, exported(source))) == 11
        assert same(everything(target), everything(source))
        assert target.verify()


def test_a_branch_that_went_on_here_keeps_its_place(tmp_path: Path, target: Store) -> None:
    with opened("sqlite", tmp_path) as source:
        live(source, 3)
        take(target, exported(source))
        target.save("a", "went on here")
        assert take(target, exported(source)) == []
        source.save("a", "went on there")
        take(target, exported(source))
        assert target.restore("a@main") == "went on here"
        assert target.restore("a@main-2") == "went on there"
        assert take(target, exported(source)) == []


def test_another_agent_of_that_name_is_a_conflict(tmp_path: Path, target: Store) -> None:
    with opened("sqlite", tmp_path) as source:
        live(source, 3)
        target.save("a", "something else")
        before = everything(target)
        with pytest.raises(ConflictError, match="'a'") as caught:
            take(target, exported(source))
        assert caught.value.code == "agent-exists"
        assert "agent_id" in str(caught.value)
        assert same(everything(target), before)
        take(target, exported(source), agent_id="b")
        assert sorted(target.agents()) == ["a", "b"]


def test_another_checkpoint_of_that_id_is_a_conflict(tmp_path: Path, target: Store) -> None:
    with opened("sqlite", tmp_path) as source:
        source.save("a", {"x": 1}, id="mine")
        target.save("a", {"x": 2}, id="mine")
        with pytest.raises(ConflictError, match="mine") as caught:
            take(target, exported(source))
        assert caught.value.code == "other-content"
        take(target, exported(source), agent_id="b")
        assert target.restore("b") == {"x": 1}
        assert target.restore("mine") == {"x": 2}


def test_a_deleted_agent_is_not_brought_back_by_the_way(tmp_path: Path, target: Store) -> None:
    with opened("sqlite", tmp_path) as source:
        live(source, 3)
        take(target, exported(source))
        target.delete("a")
        with pytest.raises(ConflictError):
            take(target, exported(source))


@pytest.mark.parametrize("at_once", [2000, 7])
def test_an_import_is_undone_in_one(
    tmp_path: Path, target: Store, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bringing, "RECORDS_AT_ONCE", at_once)
    with opened("sqlite", tmp_path) as source:
        live(source, 10)
        target.save("b", 1)
        take(target, exported(source))
        assert sorted(target.agents()) == ["a", "b"]
        assert [op.verb for op in target.operations() if op.undoable] == ["import"]
        assert target.undo().undoes
        assert target.agents() == ["b"]
        assert target.list("a") == []
        assert target.verify()
        # a longer one on top of what is here: undone, that is as it was
        take(target, exported(source, "a@4", branch_only=True), agent_id="c")
        before = everything(target, "c")
        take(target, exported(source), agent_id="c")
        assert len(target.list("c")) == 13
        target.undo()
        assert same(everything(target, "c"), before)
        # and again
        take(target, exported(source))
        assert same(everything(target), everything(source))
        target.undo()
        target.collect()
        assert target.verify()
        assert sorted(target.agents()) == ["b", "c"]
        take(target, exported(source))
        assert same(everything(target), everything(source))


def test_what_was_saved_on_an_import_stays_in_sight_when_it_is_undone(tmp_path: Path, target: Store) -> None:
    with opened("sqlite", tmp_path) as source:
        live(source, 3)
        take(target, exported(source))
        target.save("a", "mine")
        target.save("a", "mine too")
        source.save("a", "theirs")
        take(target, exported(source))
        target.save("a", "mine at last")
        target.undo()
        assert target.restore("a") == "mine at last"
        assert list(target.branches("a")) == ["main"]
        target.undo(next(op.seq for op in target.operations() if op.verb == "import"))
        assert [c.state for c in target.history("a")] == ["mine at last", "mine too", "mine"]
        assert target.verify()


def test_collect_keeps_what_imported_checkpoints_share(tmp_path: Path, target: Store) -> None:
    with opened("sqlite", tmp_path) as source:
        live(source, 30)
        take(target, exported(source, "a@20", branch_only=True))
        state = source.restore("a")
        for n in range(20):
            state["messages"].append(f"message {n} " * 20)
            state["numbers"][n] += 1
            source.save("a", state)
        take(target, exported(source))
        kept = {c.id: c.state for c in target.list("a", limit=None)[::9]}
        for n, name in enumerate(kept):
            target.tag(name, f"kept-{n}")
        target.prune("keep-last=2")
        target.collect()
        assert target.verify()
        assert all(same(target.restore(name), state) for name, state in kept.items())


class Cut(Exception):
    """The process ends here."""


@pytest.mark.parametrize("batches", range(4))
def test_cut_short_nothing_is_seen_and_the_next_one_goes_on(
    tmp_path: Path, target: Store, batches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bringing, "RECORDS_AT_ONCE", 5)
    with opened("sqlite", tmp_path) as source:
        live(source, 12)
        data = exported(source)
        target.save("b", 1)
        commit = target._engine.committer.commit
        left = batches

        def until_cut(append: Any) -> Any:
            nonlocal left
            if left == 0:
                raise Cut
            left -= 1
            return commit(append)

        with monkeypatch.context() as patch:
            patch.setattr(target._engine.committer, "commit", until_cut)
            if batches < 4:
                with pytest.raises(Cut):
                    take(target, data)
        again = Store(Engine(target._engine.storage), target.user)
        assert again.agents() == ["b"]
        assert again.list("a") == []
        assert again.verify()
        with pytest.raises(NotFoundError):
            again.undo()
        records = len(target._engine.storage.heads(again._refs.key("a")))
        assert len(take(again, data)) == 15
        assert len(target._engine.storage.heads(again._refs.key("a"))) == 15 >= records
        assert same(everything(again), everything(source))
        assert again.verify()


def test_what_was_cut_short_is_collected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bringing, "RECORDS_AT_ONCE", 5)
    with opened("sqlite", tmp_path) as source, open_store("memory://") as target:
        live(source, 12)
        data = exported(source)
        with monkeypatch.context() as patch:
            patch.setattr(bringing.Bringing, "_finish", lambda *_: (_ for _ in ()).throw(Cut()))
            with pytest.raises(Cut):
                take(target, data)
        target.collect()
        assert target.verify()
        take(target, data)
        assert same(everything(target), everything(source))


def test_a_collect_meanwhile_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bringing, "RECORDS_AT_ONCE", 5)
    with opened("sqlite", tmp_path) as source, open_store("memory://") as target:
        live(source, 12)
        data = exported(source)
        appended = bringing.Bringing._append

        def collecting(self: Any, todo: Any, at: int) -> int:
            end = appended(self, todo, at)
            if at == 0:
                target.collect()
            return end

        with monkeypatch.context() as patch:
            patch.setattr(bringing.Bringing, "_append", collecting)
            with pytest.raises(ConflictError) as caught:
                take(target, data)
        assert caught.value.code == "collected-meanwhile"
        assert target.agents() == []
        take(target, data)
        assert same(everything(target), everything(source))


def test_savers_and_an_import_get_past_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bringing, "RECORDS_AT_ONCE", 5)
    storage = MemoryStorage()
    target, saver = Store(Engine(storage), "local"), Store(Engine(storage), "local")
    with opened("sqlite", tmp_path) as source:
        live(source, 3)
        take(target, exported(source))
        for n in range(30):
            source.save("a", {"theirs": n})
        commit, saved = target._engine.committer.commit, []

        def after_somebody_else(append: Any) -> Any:
            if len(saved) < 4:
                saved.append(saver.save("a", {"saved": len(saved)}, branch="main").id)
            return commit(append)

        monkeypatch.setattr(target._engine.committer, "commit", after_somebody_else)
        take(target, exported(source))
        assert len(saved) == 4
        assert [saver.restore(name)["saved"] for name in saved] == [0, 1, 2, 3]
        assert target.get("a@main").id == saved[-1]
        assert same(target.restore("a@main-2"), source.restore("a@main"))
        assert target.verify()


# -- files that are not what was written ------------------------------------------------------------------


@pytest.fixture(scope="module")
def small() -> bytes:
    with open_store("memory://") as source:
        live(source, 2)
        source.tag("a@1", "t")
        source.save("tiny", {"x": 1})
        source.save("tiny", {"x": [1, "two"]}, label="l")
        return exported(source, "tiny")


def test_every_flipped_byte_is_refused(small: bytes) -> None:
    with open_store("memory://") as target:
        for at in range(len(small)):
            for bit in (1, 128):
                damaged = bytearray(small)
                damaged[at] ^= bit
                with pytest.raises(CorruptDataError):
                    take(target, bytes(damaged))
        assert target.operations() == []
        assert target.agents() == []
        assert len(take(target, small)) == 2


def test_every_truncation_is_refused_and_so_is_more(small: bytes) -> None:
    with open_store("memory://") as target:
        for length in range(len(small)):
            with pytest.raises(CorruptDataError):
                take(target, small[:length])
        with pytest.raises(CorruptDataError):
            take(target, small + b"x")
        with pytest.raises(CorruptDataError):
            take(target, small + small)
        assert target.operations() == []


def test_bytes_changed_in_a_large_file_are_refused(tmp_path: Path) -> None:
    rng = random.Random(4)
    with opened("sqlite", tmp_path) as source, open_store("memory://") as target:
        live(source, 30)
        data = exported(source)
        for _ in range(60):
            damaged = bytearray(data)
            damaged[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            with pytest.raises(CorruptDataError):
                take(target, bytes(damaged))
        assert target.agents() == []


def test_what_is_no_export_is_said_to_be_none(tmp_path: Path) -> None:
    with open_store("memory://") as target:
        with pytest.raises(InvalidInputError) as caught:
            take(target, b"SQLite format 3\0" + bytes(100))
        assert caught.value.code == "not-an-export"
        with pytest.raises(NotFoundError):
            target.import_(str(tmp_path / "nowhere"))
        with pytest.raises(RekindleError):
            target.import_(str(tmp_path))


def test_a_path_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.rekindle"
    path.write_bytes(b"before")
    with open_store("memory://") as source:
        live(source, 5)
        with monkeypatch.context() as patch:
            patch.setattr("rekindle.store.portable.outgoing.Outgoing.head", lambda *_: (_ for _ in ()).throw(Cut()))
            with pytest.raises(Cut):
                source.export("a", str(path))
        assert path.read_bytes() == b"before"
        assert [p.name for p in tmp_path.iterdir()] == ["a.rekindle"]
        assert source.export("a", str(path)) == 8
        with open_store("memory://") as target:
            assert len(target.import_(str(path))) == 8
        with pytest.raises(RekindleError):
            source.export("a", str(tmp_path / "no" / "folder"))


def test_a_stream_that_cannot_seek_will_do(small: bytes) -> None:
    class Pipe(io.RawIOBase):
        def __init__(self) -> None:
            self._inner = io.BytesIO(small)

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            return self._inner.readinto(buffer)

    with open_store("memory://") as target:
        assert len(target.import_(io.BufferedReader(Pipe()))) == 2


def test_damaged_states_are_not_handed_on() -> None:
    storage = MemoryStorage()
    source = Store(Engine(storage), "local")
    live(source, 10)
    key = source._refs.key("a")
    head, body = storage._records[key][7]
    storage._records[key][7] = (head, body[:-30] + bytes(30))
    with pytest.raises(CorruptDataError):
        exported(source)
