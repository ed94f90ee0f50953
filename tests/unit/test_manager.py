"""The manager's contract, on every storage that comes with rekindle."""

from __future__ import annotations

import asyncio
import gc
import inspect
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import rekindle
from rekindle import (
    Checkpoint,
    CheckpointDiff,
    CheckpointManager,
    CheckpointStorage,
    ConflictError,
    FileCheckpointStorage,
    History,
    InMemoryCheckpointStorage,
    InvalidInputError,
    NotFoundError,
    SQLiteCheckpointStorage,
    StoreCheckpointStorage,
)

STORAGES: dict[str, Callable[[Path], StoreCheckpointStorage]] = {
    "memory": lambda folder: InMemoryCheckpointStorage(),
    "sqlite": lambda folder: SQLiteCheckpointStorage(db_path=str(folder / "checkpoints.db")),
    "files": lambda folder: FileCheckpointStorage(path=str(folder / "checkpoints")),
}


@rekindle.register(name="manager.Point")
@dataclass
class Point:
    x: int
    y: int


@rekindle.register(name="manager.Bot")
class Bot:
    def __init__(self, agent_id: str = "bot", user_id: str = "ada") -> None:
        self.agent_id = agent_id
        self.user_id = user_id
        self.status = "PENDING"
        self.collected_fields: dict[str, Any] = {}
        self.required_fields = ["email"]
        self.context_summary = ""
        self.turns: list[Any] = []
        self.at = Point(0, 0)


@pytest.fixture(params=STORAGES)
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StoreCheckpointStorage]:
    made = STORAGES[request.param](tmp_path)
    yield made
    made.close_now()


@pytest.fixture
def manager(storage: StoreCheckpointStorage) -> CheckpointManager:
    return CheckpointManager(storage=storage)


def next_millisecond() -> None:
    now = time.time_ns() // 1_000_000
    while time.time_ns() // 1_000_000 <= now:
        pass


def run(body: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(body, 30))


# Save and restore


def test_save_answers_an_id_and_restore_a_live_agent_of_the_same_class(manager: CheckpointManager) -> None:
    async def body() -> None:
        bot = Bot()
        bot.status, bot.collected_fields["email"] = "RUNNING", "ada@example.org"
        bot.turns.append({"role": "user", "content": "hello", "when": datetime(2026, 1, 2, tzinfo=UTC)})
        bot.at.x = 3
        saved = await manager.save(bot, metadata={"why": ("test",)}, kind="step", label="first")
        assert saved.startswith("chk_")
        back = await manager.restore(saved)
        assert type(back) is Bot
        assert vars(back) == vars(bot)
        back.turns.append("more")
        assert await manager.restore(saved) is not back
        assert (await manager.restore(saved)).turns == bot.turns

    run(body())


def test_a_checkpoint_says_what_is_known_about_the_moment(manager: CheckpointManager) -> None:
    bot = Bot()
    bot.status, bot.collected_fields, bot.context_summary = "RUNNING", {"email": "e"}, "so far"
    saved = manager.save_sync(bot, metadata={"why": "test"}, kind="step", label="first")
    found = manager.get_sync(saved)
    assert (found.id, found.agent_id, found.agent_type, found.user_id) == (saved, "bot", "manager.Bot", "ada")
    assert (found.status, found.kind, found.label, found.metadata) == ("RUNNING", "step", "first", {"why": "test"})
    assert type(found.status) is str
    assert (found.collected_fields, found.required_fields, found.context_summary) == (
        {"email": "e"},
        ["email"],
        "so far",
    )
    assert found.state == {"turns": [], "at": Point(0, 0)}
    assert found.parent_checkpoint_id is None
    assert found.timestamp.utcoffset() == timedelta(0)
    assert Checkpoint.from_dict(found.to_dict()) == found


def test_the_parent_is_what_this_agent_last_saved(manager: CheckpointManager) -> None:
    bot = Bot()
    ids = [manager.save_sync(bot) for _ in range(3)]
    parents = [manager.get_sync(each).parent_checkpoint_id for each in ids]
    assert parents == [None, ids[0], ids[1]]


def test_the_parent_is_what_this_agent_was_restored_from_and_an_older_one_makes_a_branch(
    manager: CheckpointManager,
) -> None:
    bot = Bot()
    first, second = manager.save_sync(bot), manager.save_sync(bot)
    old = manager.restore_sync(first)
    aside = manager.get_sync(manager.save_sync(old))
    assert (aside.parent_checkpoint_id, aside.branch) == (first, "main-2")
    further = manager.get_sync(manager.save_sync(old))
    assert (further.parent_checkpoint_id, further.branch) == (aside.id, "main-2")
    third = manager.get_sync(manager.save_sync(bot))
    assert (third.parent_checkpoint_id, third.branch) == (second, "main")
    assert set(manager.branches_sync("bot", "ada")) == {"main", "main-2"}


def test_an_object_not_met_before_follows_its_agents_last(manager: CheckpointManager) -> None:
    first = manager.save_sync(Bot())
    assert manager.get_sync(manager.save_sync(Bot())).parent_checkpoint_id == first
    assert manager.get_sync(manager.save_sync(Bot("other"))).parent_checkpoint_id is None
    assert manager.get_sync(manager.save_sync(Bot(user_id="eve"))).parent_checkpoint_id is None


def test_an_object_that_is_gone_is_not_taken_for_another_in_its_place(manager: CheckpointManager) -> None:
    bot = Bot()
    first = manager.save_sync(bot)
    last = manager.save_sync(Bot())
    old = manager.restore_sync(first)
    del old
    gc.collect()
    for _ in range(50):
        assert manager.get_sync(manager.save_sync(Bot())).branch == "main", last


def test_agents_that_cannot_be_referred_to_weakly_have_a_line_too(manager: CheckpointManager) -> None:
    @rekindle.register(name="manager.Slotted")
    @dataclass(slots=True)
    class Slotted:
        agent_id: str
        turns: list[int] = field(default_factory=list)

    agent = Slotted("s")
    first = manager.save_sync(agent)
    manager.save_sync(agent)
    old = manager.restore_sync(first)
    assert manager.get_sync(manager.save_sync(old)).parent_checkpoint_id == first


def test_saves_of_one_object_at_the_same_time_follow_each_other(manager: CheckpointManager) -> None:
    async def body() -> None:
        bot = Bot()
        await manager.save(bot)
        ids = await asyncio.gather(*(manager.save(bot) for _ in range(10)))
        history = await manager.history(ids[-1])
        assert {c.branch for c in await manager.list_by_user("ada")} == {"main"}
        assert len(history) == 11

    run(body())


def test_an_unknown_id_is_a_clear_error(manager: CheckpointManager) -> None:
    manager.save_sync(Bot())
    for unknown in ("chk_nothing", "chk_7-0123456789abcdef", "bot"):
        with pytest.raises(NotFoundError, match=unknown) as caught:
            manager.restore_sync(unknown)
        assert caught.value.code == "checkpoint-not-found"


def test_a_state_that_is_no_agent_is_not_restored_as_one(storage: StoreCheckpointStorage) -> None:
    saved = storage.store.save("plain", {"n": 1})
    with pytest.raises(InvalidInputError) as caught:
        CheckpointManager(storage).restore_sync(saved.id)
    assert caught.value.code == "not-an-agent"


def test_a_bad_kind_or_metadata_is_refused_and_nothing_is_kept(manager: CheckpointManager) -> None:
    for bad in ({"kind": "whim"}, {"metadata": [1]}, {"metadata": {"x": object()}}):
        with pytest.raises(InvalidInputError):
            manager.save_sync(Bot(), **bad)
    assert manager.list_by_user_sync("ada") == []
    with pytest.raises(InvalidInputError):
        CheckpointManager(InMemoryCheckpointStorage(), changes="sometimes")
    with pytest.raises(InvalidInputError):
        CheckpointManager(storage={})  # type: ignore[arg-type]


def test_trusted_changes_take_tracked_attributes_at_their_word_also_after_a_restore(
    storage: StoreCheckpointStorage,
) -> None:
    manager = CheckpointManager(storage, changes="trusted")
    bot = Bot()
    bot.turns = rekindle.tracked([{"n": n, "text": "x" * 50} for n in range(300)])
    manager.save_sync(bot)
    bot.turns[7]["n"] = -7
    saved = manager.save_sync(bot)
    back = manager.restore_sync(saved)
    assert type(back.turns) is type(bot.turns)
    assert back.turns == bot.turns
    back.turns.append({"n": 300})
    del back.turns[0]
    assert manager.restore_sync(manager.save_sync(back)).turns == back.turns


def test_verified_changes_see_every_mutation(manager: CheckpointManager) -> None:
    bot = Bot()
    bot.turns = [{"deep": [[n]]} for n in range(500)]
    manager.save_sync(bot)
    bot.turns[250]["deep"][0][0] = "changed"
    assert manager.restore_sync(manager.save_sync(bot)).turns == bot.turns


# Looking back


def test_checkpoints_of_a_user_are_listed_newest_first_in_pages(manager: CheckpointManager) -> None:
    ids = []
    for n in range(6):
        ids.append(manager.save_sync(Bot(f"bot-{n % 2}")))
    manager.save_sync(Bot(user_id="eve"))
    listed = manager.list_by_user_sync("ada")
    assert isinstance(listed, History)
    assert {c.id for c in listed} == set(ids)
    assert [c.id for c in listed if c.agent_id == "bot-0"] == ids[0::2][::-1]
    pages = [c.id for at in range(0, 8, 2) for c in manager.list_by_user_sync("ada", limit=2, offset=at)]
    assert pages == [c.id for c in listed]
    assert manager.list_by_user_sync("nobody") == []
    assert manager.list_by_user_sync("ada", limit=0) == []
    with pytest.raises(InvalidInputError):
        manager.list_by_user_sync("ada", limit=-1)


def test_a_list_loads_no_state_before_it_is_asked_for(manager: CheckpointManager) -> None:
    manager.save_sync(Bot())
    listed = manager.list_by_user_sync("ada")
    assert "state" not in vars(listed[0])
    assert listed[0].state["turns"] == []
    assert "state" in vars(listed[0])


def test_compare_tells_the_old_and_new_value_at_every_changed_path(manager: CheckpointManager) -> None:
    bot = Bot()
    bot.collected_fields["name"] = "Ada"
    bot.turns = [f"turn {n}" for n in range(10)]
    old = manager.save_sync(bot)
    bot.status = "RUNNING"
    bot.collected_fields.update(name="Ada L.", email="a@b.c")
    bot.turns.insert(3, "inserted")
    bot.at.y = 9
    bot.context_summary = "more"
    new = manager.save_sync(bot)
    diff = manager.compare_sync(old, new)
    assert isinstance(diff, CheckpointDiff)
    assert (diff.old_status, diff.new_status) == ("PENDING", "RUNNING")
    assert diff.changed_fields == ["name", "email", "context_summary", "turns", "at"]
    values = {change["path"]: (change.get("old"), change.get("new")) for change in diff.to_dict()["changes"]}
    assert values == {
        "status": ("PENDING", "RUNNING"),
        "context_summary": ("", "more"),
        "collected_fields.name": ("Ada", "Ada L."),
        "collected_fields.email": (None, "a@b.c"),
        "state.turns[3]": (None, "inserted"),
        "state.at.y": (0, 9),
    }
    assert [change.new for change in diff.at("collected_fields")] == ["Ada L.", "a@b.c"]
    assert (len(diff.page(2).items), diff.page(2).total) == (2, 6)
    assert not manager.compare_sync(new, new)
    assert "+ collected_fields.email" in str(diff)
    with pytest.raises(NotFoundError):
        manager.compare_sync(old, "chk_none")


def test_history_children_and_tree_follow_the_parents(manager: CheckpointManager) -> None:
    bot = Bot()
    first, second = manager.save_sync(bot), manager.save_sync(bot)
    aside = manager.save_sync(manager.restore_sync(first))
    assert [c.id for c in manager.history_sync(second)] == [second, first]
    assert [c.id for c in manager.history_sync(aside, limit=1)] == [aside]
    assert [c.id for c in manager.children_sync(first)] == [second, aside]
    (tree,) = manager.tree_sync("bot", "ada")
    assert (tree.checkpoint.id, [branch.checkpoint.id for branch in tree.children]) == (first, [second, aside])
    assert [c.id for c in tree] == [first, second, aside]
    assert repr(tree).count("\n") == 2


def test_bisect_finds_the_first_checkpoint_that_is_bad(manager: CheckpointManager) -> None:
    bot, ids, asked = Bot(), [], []
    for n in range(20):
        bot.turns.append(n)
        ids.append(manager.save_sync(bot))

    def bad(agent: Bot) -> bool:
        asked.append(agent)
        return 13 in agent.turns

    async def bad_too(agent: Bot) -> bool:
        return bad(agent)

    assert manager.bisect_sync(ids[0], ids[-1], bad).id == ids[13]
    assert len(asked) <= 8
    assert all(type(agent) is Bot and agent is not bot for agent in asked)
    assert manager.bisect_sync(ids[0], ids[-1], bad_too).id == ids[13]
    assert asyncio.run(manager.bisect(ids[12], ids[13], bad_too)).id == ids[13]
    for good, worse in ((ids[15], ids[-1]), (ids[0], ids[5])):
        with pytest.raises(InvalidInputError):
            manager.bisect_sync(good, worse, bad)
    with pytest.raises(NotFoundError):
        manager.bisect_sync(ids[-1], ids[0], bad)


def test_verify_says_that_all_is_well_of_all_users(manager: CheckpointManager) -> None:
    for user in ("ada", "eve"):
        manager.save_sync(Bot(user_id=user))
    report = manager.verify_sync()
    assert report
    assert report.checkpoints == 2


# Forks, tags, labels


def test_a_fork_is_gone_on_with_by_restoring_on_its_branch(manager: CheckpointManager) -> None:
    bot = Bot()
    saved = manager.save_sync(bot)
    assert manager.fork_sync(saved, "exp").id == saved
    with pytest.raises(ConflictError):
        manager.fork_sync(saved, "exp")
    exp = manager.restore_sync(saved, branch="exp")
    assert manager.get_sync(manager.save_sync(exp)).branch == "exp"
    assert manager.get_sync(manager.save_sync(bot)).branch == "main"


def test_a_branch_there_is_not_is_no_place_to_go_on(manager: CheckpointManager) -> None:
    saved = manager.save_sync(Bot())
    with pytest.raises(NotFoundError) as raised:
        manager.restore_sync(saved, branch="nowhere")
    assert raised.value.code == "branch-not-found"


def test_labels_and_tags_are_changed_and_undone(manager: CheckpointManager) -> None:
    saved = manager.save_sync(Bot(), label="was")
    assert manager.label_sync(saved, "is").label == "is"
    manager.undo_sync("ada")
    assert manager.get_sync(saved).label == "was"
    manager.tag_sync(saved, "v1")
    with pytest.raises(ConflictError):
        manager.fork_sync(saved, "v1")
    manager.untag_sync("bot", "v1", "ada")


# Dropping


def test_clearing_a_user_drops_heads_and_tags_too_and_nobody_elses(manager: CheckpointManager) -> None:
    bot = Bot()
    ids = [manager.save_sync(bot) for _ in range(3)]
    manager.tag_sync(ids[0], "v1")
    kept = manager.save_sync(Bot(user_id="eve"))
    assert manager.clear_user_history_sync("ada") == 3
    assert manager.list_by_user_sync("ada") == []
    with pytest.raises(NotFoundError):
        manager.restore_sync(ids[0])
    assert manager.restore_sync(kept).user_id == "eve"
    assert manager.clear_user_history_sync("ada") == 0
    assert manager.get_sync(manager.save_sync(bot)).parent_checkpoint_id is None
    assert manager.clear_user_history_sync("nobody") == 0


def test_dropping_is_undone(manager: CheckpointManager) -> None:
    ids = [manager.save_sync(bot) for bot in [Bot()] for _ in range(3)]
    manager.clear_user_history_sync("ada")
    manager.undo_sync()
    assert [c.id for c in manager.list_by_user_sync("ada")] == ids[::-1]
    assert manager.delete_sync("bot", "ada") == 3
    with pytest.raises(ConflictError):
        manager.save_sync(Bot())
    manager.undo_sync("ada")
    assert manager.restore_sync(ids[-1]).agent_id == "bot"


def test_cleanup_drops_what_is_old_and_keeps_heads_and_tags(storage: StoreCheckpointStorage) -> None:
    async def body() -> None:
        manager = CheckpointManager(storage)
        old = datetime.now(UTC) - timedelta(days=55)
        parent = None
        for n in range(5):
            given = Checkpoint(
                f"chk_{n}", "bot", agent_type="manager.Bot", user_id="ada", parent_checkpoint_id=parent,
                timestamp=old + timedelta(days=13 * n),
            )  # fmt: skip
            parent = await storage.save(given)
        await storage.save(Checkpoint("chk_only", "other", user_id="eve", timestamp=old))
        await manager.tag("chk_1", "kept")
        assert await manager.cleanup_old_checkpoints(max_age_days=30) == 1  # not the tagged one, not eve's head
        assert {c.id for c in await manager.list_by_user("ada")} == {"chk_1", "chk_2", "chk_3", "chk_4"}
        assert await manager.cleanup_old_checkpoints(0) == 2
        assert {c.id for c in await manager.list_by_user("ada")} == {"chk_1", "chk_4"}
        assert [c.id for c in await manager.list_by_user("eve")] == ["chk_only"]
        for wrong in (-1, float("nan")):
            with pytest.raises(InvalidInputError):
                await manager.cleanup_old_checkpoints(wrong)
        for beyond in (10**6, 1e12, float("inf")):
            assert await manager.cleanup_old_checkpoints(beyond) == 0

    run(body())


def test_one_checkpoint_is_deleted_and_its_branch_ends_before_it(manager: CheckpointManager) -> None:
    bot = Bot()
    first, second, third = (manager.save_sync(bot) for _ in range(3))
    assert manager.delete_checkpoint_sync(third)
    assert manager.branches_sync("bot", "ada")["main"].id == second
    after = manager.get_sync(manager.save_sync(bot))
    assert after.parent_checkpoint_id == second
    assert manager.delete_checkpoint_sync(second)
    assert [c.id for c in manager.history_sync(after.id)] == [after.id, first]
    manager.undo_sync("ada")
    assert [c.id for c in manager.history_sync(after.id)] == [after.id, second, first]
    assert manager.verify_sync()


# Caps


def capped(name: str, folder: Path, cap: int) -> StoreCheckpointStorage:
    if name == "memory":
        return InMemoryCheckpointStorage(max_checkpoints=cap)
    return SQLiteCheckpointStorage(folder / "checkpoints.db", max_checkpoints_per_user=cap)


@pytest.mark.parametrize("name", ["memory", "sqlite"])
@pytest.mark.parametrize("cap", [1, 3, 20])
def test_past_a_cap_the_oldest_go_first(name: str, cap: int, tmp_path: Path) -> None:
    with CheckpointManager(capped(name, tmp_path, cap)) as manager:
        bot = Bot()
        ids = [manager.save_sync(bot) for _ in range(cap + 30)]
        assert [c.id for c in manager.list_by_user_sync("ada", limit=None)] == ids[-cap:][::-1]
        with pytest.raises(NotFoundError):
            manager.restore_sync(ids[0])
        ids.append(manager.save_sync(bot))
        assert [c.id for c in manager.list_by_user_sync("ada", limit=None)] == ids[-cap:][::-1]
        assert manager.restore_sync(ids[-1]).agent_id == "bot"
        assert manager.verify_sync()


def test_the_memory_cap_is_over_all_users_and_the_sqlite_cap_for_each(tmp_path: Path) -> None:
    for storage, expected in (
        (InMemoryCheckpointStorage(max_checkpoints=4), [1, 3]),
        (SQLiteCheckpointStorage(tmp_path / "c.db", max_checkpoints_per_user=4), [4, 3]),
    ):
        with CheckpointManager(storage) as manager:
            ada, eve = Bot(), Bot(user_id="eve")
            for _ in range(9):
                manager.save_sync(ada)
            next_millisecond()  # two agents' saves of one millisecond have no order
            for _ in range(3):
                manager.save_sync(eve)
            assert [len(manager.list_by_user_sync(user)) for user in ("ada", "eve")] == expected


def test_a_cap_takes_no_head_no_tag_and_no_open_operation(tmp_path: Path) -> None:
    with CheckpointManager(SQLiteCheckpointStorage(tmp_path / "c.db", max_checkpoints_per_user=3)) as manager:
        bot = Bot()
        opened = manager.save_sync(bot, kind="pre_operation")
        tagged = manager.save_sync(bot)
        manager.tag_sync(tagged, "v1")
        other = manager.save_sync(Bot("other"))
        ids = [manager.save_sync(bot) for _ in range(10)]
        assert {c.id for c in manager.list_by_user_sync("ada")} == {opened, tagged, other, ids[-1]}
        manager.complete_operation_sync(opened)
        manager.untag_sync("bot", "v1", "ada")
        ids.append(manager.save_sync(bot))
        assert {c.id for c in manager.list_by_user_sync("ada")} == {other, *ids[-2:]}
        with pytest.raises(InvalidInputError):
            manager.complete_operation_sync(ids[-1])


def test_a_save_is_answered_though_its_cap_could_not_be_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "c.db"
    with CheckpointManager(SQLiteCheckpointStorage(path, max_checkpoints_per_user=9)) as manager:
        bot = Bot()
        ids = [manager.save_sync(bot) for _ in range(6)]
    db = sqlite3.connect(path)
    with db:
        db.execute("DELETE FROM records WHERE key = (SELECT key FROM records ORDER BY key LIMIT 1 OFFSET 1)")
    db.close()
    with CheckpointManager(SQLiteCheckpointStorage(path, max_checkpoints_per_user=2)) as manager:
        saved = manager.save_sync(Bot())
        assert [record.message for record in caplog.records] == ["eviction_failed"]
        assert manager.restore_sync(saved).agent_id == "bot"
        assert manager.restore_sync(ids[0]).agent_id == "bot"


def test_eviction_is_logged_and_undone(tmp_path: Path) -> None:
    storage = SQLiteCheckpointStorage(tmp_path / "c.db", max_checkpoints_per_user=2)
    with CheckpointManager(storage) as manager:
        bot = Bot()
        ids = [manager.save_sync(bot) for _ in range(3)]
        assert len(manager.list_by_user_sync("ada")) == 2
        (operation,) = storage.store.for_user("ada").operations()
        assert operation.verb == "evict"
        manager.undo_sync("ada")
        assert manager.restore_sync(ids[0]).agent_id == "bot"
        assert len(manager.list_by_user_sync("ada")) == 3


def test_a_cap_writes_fewer_operations_than_it_drops_checkpoints(tmp_path: Path) -> None:
    storage = SQLiteCheckpointStorage(tmp_path / "c.db", max_checkpoints_per_user=40)
    with CheckpointManager(storage) as manager:
        bot = Bot()
        for _ in range(90):
            manager.save_sync(bot)
        assert len(storage.store.for_user("ada").operations()) <= 10
        assert len(manager.list_by_user_sync("ada", limit=None)) == 40


def test_a_cap_of_nothing_is_refused(tmp_path: Path) -> None:
    for bad in (0, -1, True, 1.5):
        with pytest.raises(InvalidInputError):
            InMemoryCheckpointStorage(max_checkpoints=bad)  # type: ignore[arg-type]


# Storages by themselves


def test_a_checkpoint_of_the_callers_own_comes_back_equal(storage: StoreCheckpointStorage) -> None:
    async def body() -> None:
        given = Checkpoint(
            id="chk_mine", agent_id="bot", agent_type="Unknown", user_id="ada", status="RUNNING",
            collected_fields={"at": Point(1, 2), 3: {4}}, required_fields=["x"], context_summary="so far",
            parent_checkpoint_id="chk_elsewhere", timestamp=datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
            metadata={"t": (1, 2)}, state={"nan": float("inf"), "bytes": b"\0"}, kind="step", label="mine",
        )  # fmt: skip
        assert await storage.save(given) == "chk_mine"
        back = await storage.load("chk_mine")
        assert back is not None
        assert back == given
        assert back.to_dict() == given.to_dict()
        assert back.collected_fields == given.collected_fields
        assert Checkpoint.from_dict(back.to_dict()) == given
        assert [c.to_dict() for c in await storage.list_by_user("ada", 10, 0)] == [given.to_dict()]
        assert await storage.load("chk_other") is None

    run(body())


def test_a_checkpoint_is_found_whoever_its_user_is_and_saved_once(storage: StoreCheckpointStorage) -> None:
    async def body() -> None:
        given = Checkpoint(id="chk_mine", agent_id="bot", user_id="ada", state={"n": 1})
        await storage.save(given)
        await storage.save(given)
        assert len(await storage.list_by_user("ada")) == 1
        with pytest.raises(ConflictError):
            await storage.save(Checkpoint(id="chk_mine", agent_id="bot", user_id="ada", state={"n": 2}))
        await storage.save(Checkpoint(id="chk_hers", agent_id="bot", user_id="eve"))
        found = await storage.load("chk_hers")
        assert found is not None
        assert found.user_id == "eve"
        with pytest.raises(InvalidInputError):
            await storage.save(Checkpoint(id="chk_naive", agent_id="a", timestamp=datetime(2026, 1, 2)))

    run(body())


def test_parents_given_by_the_caller_make_the_history(storage: StoreCheckpointStorage) -> None:
    async def body() -> None:
        for name, parent in (("chk_a", None), ("chk_b", "chk_a"), ("chk_c", "chk_a"), ("chk_d", "chk_b")):
            await storage.save(Checkpoint(id=name, agent_id="bot", parent_checkpoint_id=parent))
        manager = CheckpointManager(storage)
        assert [c.id for c in await manager.history("chk_d")] == ["chk_d", "chk_b", "chk_a"]
        assert [c.id for c in await storage.children("chk_a")] == ["chk_b", "chk_c"]
        assert await storage.delete("chk_c")
        assert not await storage.delete("chk_c")
        assert [c.id for c in await storage.children("chk_a")] == ["chk_b"]

    run(body())


def test_a_cap_takes_callers_own_checkpoints_without_parents_too(tmp_path: Path) -> None:
    async def body() -> None:
        storage = InMemoryCheckpointStorage(max_checkpoints=3)
        for n in range(6):
            await storage.save(Checkpoint(id=f"chk_{n}", agent_id="bot", state={"n": n}))
        assert [c.id for c in await storage.list_by_user("local")] == ["chk_5", "chk_4", "chk_3"]
        assert await storage.load("chk_0") is None

    run(body())


def test_what_a_manager_saved_outlives_the_process(tmp_path: Path) -> None:
    for name in ("sqlite", "files"):
        with CheckpointManager(STORAGES[name](tmp_path)) as manager:
            saved = manager.save_sync(Bot())
        with CheckpointManager(STORAGES[name](tmp_path)) as again:
            assert vars(again.restore_sync(saved)) == vars(Bot())


def test_checkpoints_of_a_manager_share_what_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    with CheckpointManager(SQLiteCheckpointStorage(path)) as manager:
        bot = Bot()
        bot.turns = [{"n": n, "text": f"turn {n} " * 20} for n in range(1000)]
        for n in range(50):
            bot.turns.append({"n": n})
            manager.save_sync(bot)
    assert path.stat().st_size < 500_000


def test_a_manager_stands_on_an_open_store_too(tmp_path: Path) -> None:
    with rekindle.open_store(tmp_path / "store.db") as store:
        manager = CheckpointManager(store)
        saved = manager.save_sync(Bot(user_id="local"))
        assert store.get("bot").id == saved
        del manager
        gc.collect()
        assert store.restore(saved)["status"] == "PENDING"


# Events


def test_listeners_are_told_in_order_plain_ones_and_async_ones(manager: CheckpointManager) -> None:
    async def body() -> None:
        told: list[Any] = []

        @manager.on("checkpoint_saved")
        async def first(checkpoint: Checkpoint) -> None:
            await asyncio.sleep(0)
            told.append(("async", checkpoint.id, checkpoint.state["turns"]))

        @manager.on("checkpoint_saved")
        def second(checkpoint: Checkpoint) -> None:
            told.append(("plain", checkpoint.id, checkpoint.status))

        @manager.on("checkpoint_restored")
        async def third(checkpoint: Checkpoint, agent: Bot) -> None:
            told.append((checkpoint.id, agent))

        bot = Bot()
        saved = await manager.save(bot)
        back = await manager.restore(saved)
        assert told == [("async", saved, []), ("plain", saved, "PENDING"), (saved, back)]
        assert inspect.iscoroutinefunction(first)

    run(body())


def test_a_listener_that_raises_loses_nothing_and_is_logged_once(
    manager: CheckpointManager, caplog: pytest.LogCaptureFixture
) -> None:
    told = []

    @manager.on("checkpoint_saved")
    async def broken(checkpoint: Checkpoint) -> None:
        raise ValueError("no")

    manager.on("checkpoint_saved", lambda checkpoint: told.append(checkpoint.id))
    with caplog.at_level(logging.DEBUG):
        saved = asyncio.run(manager.save(Bot()))
    assert told == [saved]
    assert manager.restore_sync(saved).agent_id == "bot"
    (record,) = [r for r in caplog.records if r.name.startswith("rekindle")]
    assert (record.message, record.levelname, record.event) == ("listener_failed", "ERROR", "checkpoint_saved")  # type: ignore[attr-defined]
    assert "broken" in record.listener  # type: ignore[attr-defined]


def test_what_a_listener_does_to_the_restored_agent_or_sees_of_the_checkpoint_are_two_things(
    manager: CheckpointManager,
) -> None:
    shown = []

    @manager.on("checkpoint_restored")
    def change(checkpoint: Checkpoint, agent: Bot) -> None:
        agent.turns.append("listener")
        shown.append(checkpoint.state["turns"])

    back = manager.restore_sync(manager.save_sync(Bot()))
    assert back.turns == ["listener"]
    assert shown == [[]]


def test_an_event_there_is_not_is_refused(manager: CheckpointManager) -> None:
    with pytest.raises(InvalidInputError, match="checkpoint_saved"):
        manager.on("saved", print)
    with pytest.raises(InvalidInputError):
        manager.on("checkpoint_saved", "no function")  # type: ignore[type-var]


# Sync twins


def test_every_call_that_awaits_has_a_twin_that_blocks() -> None:
    awaited = {n for n, f in inspect.getmembers(CheckpointManager, inspect.iscoroutinefunction) if n[0] != "_"}
    assert {"save", "restore", "list_by_user", "compare", "clear_user_history", "cleanup_old_checkpoints"} < awaited
    for name in awaited:
        twin = getattr(CheckpointManager, f"{name}_sync")
        assert not inspect.iscoroutinefunction(twin)
        call = getattr(CheckpointManager, name)
        assert inspect.signature(twin).parameters.keys() == inspect.signature(call).parameters.keys()
        assert "door" not in inspect.signature(twin).parameters
        assert (twin.__name__, twin.__doc__) == (f"{name}_sync", call.__doc__)


def test_sync_calls_work_inside_a_running_loop(manager: CheckpointManager) -> None:
    async def body() -> None:
        threads = []

        @manager.on("checkpoint_saved")
        async def told(checkpoint: Checkpoint) -> None:
            await asyncio.sleep(0.001)
            threads.append(threading.current_thread())

        bot = Bot()
        saved = manager.save_sync(bot)
        await manager.save(bot)
        assert manager.restore_sync(saved).agent_id == "bot"
        assert len(manager.list_by_user_sync("ada")) == 2
        assert threads[0] is not threading.main_thread()
        assert threads[1] is threading.main_thread()

    run(body())


# Views


def test_views_in_a_notebook_are_escaped_and_have_no_scripts(manager: CheckpointManager) -> None:
    evil = "<script>alert(1)</script><img src=x onerror='1'>\x1b[31m"
    bot = Bot()
    old = manager.save_sync(bot, label=evil, metadata={"m<b>": evil})
    bot.status = evil
    bot.collected_fields[evil] = evil
    bot.turns.append({evil: evil})
    new = manager.save_sync(bot)
    views = [
        manager.get_sync(old)._repr_html_(),
        manager.get_sync(new)._repr_html_(),
        manager.compare_sync(old, new)._repr_html_(),
        manager.history_sync(new)._repr_html_(),
        manager.storage.store.for_user("ada").history("bot")._repr_html_(),  # type: ignore[attr-defined]
    ]
    for html in views:
        assert "<script" not in html
        assert "<img" not in html
        assert "<b>" not in html
        assert "\x1b" not in html
        assert "&lt;script&gt;" in html
    assert "collected_fields" in views[2]
    assert old in views[3]
    assert new in views[3]


def test_what_is_shown_in_a_prompt_is_one_line_a_checkpoint(manager: CheckpointManager) -> None:
    bot = Bot()
    old = manager.save_sync(bot, label="first")
    bot.status = "RUNNING"
    new = manager.save_sync(bot)
    assert repr(manager.get_sync(old)).startswith(f"<Checkpoint {old} 'bot'@1 on main, manual 'first'")
    shown = repr(manager.history_sync(new))
    assert shown.startswith("<History of 2>")
    assert shown.count("\n") == 2
    assert repr(manager.compare_sync(old, new)) == (
        f"<CheckpointDiff {old} -> {new}: 1 change (1 replace) in status, status PENDING -> RUNNING>"
    )


def test_what_a_store_answers_shows_itself_too() -> None:
    evil = "<script>alert(1)</script>\x1b[31m"
    with rekindle.open_store("memory://") as store:
        text = "a long text that goes on and on " * 20
        first = store.save("bot", {"n": 1, "prompt": text + "in English", "evil": evil}, label="l" * 500)
        second = store.save("bot", {"n": 2, "prompt": text + "in German", "evil": evil + evil}, id="id \u202e")
        changes = store.diff(first, second)
        assert changes == tuple(changes)
        assert repr(changes).split("\n")[0] == (
            "<Changes bot@1 -> bot@2: 3 changes (2 replace, 1 text) in n, prompt, evil>"
        )
        assert "~ n                        1 -> 2" in repr(changes)
        assert "\x1b" not in repr(changes)
        html = changes._repr_html_()
        assert "bot@1 → bot@2: 3 changes" in html
        assert "English" in html
        assert "German" in html
        assert "<script" not in html
        assert "first" not in store.diff(first, first)._repr_html_()
        assert repr(store.diff(first, first)) == "<Changes bot@1 -> bot@1: no changes>"
        assert "bot" in store.blame("bot", "n")._repr_html_()  # type: ignore[attr-defined]
        assert len(repr(first)) < 200
        assert repr(second).startswith("<Checkpoint id \\u202e 'bot'@2")


def test_a_view_of_a_type_that_is_not_registered_shows_its_data(manager: CheckpointManager) -> None:
    from rekindle.state.values import registry

    saved = manager.save_sync(Bot())
    entry = registry._by_name.pop("manager.Point")
    try:
        found = manager.get_sync(saved)
        assert found.state["at"] == rekindle.Opaque("manager.Point", 1, {"x": 0, "y": 0})
        assert "manager.Point" in found._repr_html_()
        with pytest.raises(InvalidInputError, match=r"manager\.Point"):
            manager.restore_sync(saved)
    finally:
        registry._by_name["manager.Point"] = entry


def test_the_contracts_names_are_exported() -> None:
    assert issubclass(InMemoryCheckpointStorage, CheckpointStorage)
    defaults = {
        InMemoryCheckpointStorage: {"max_checkpoints": 1000},
        SQLiteCheckpointStorage: {"db_path": "checkpoints.db", "max_checkpoints_per_user": 100},
        FileCheckpointStorage: {"path": "./checkpoints"},
    }
    for cls, expected in defaults.items():
        assert {n: p.default for n, p in inspect.signature(cls).parameters.items()} == expected
