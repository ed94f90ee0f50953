"""A storage of the user's, with three methods and no more, works with the manager."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import rekindle
from rekindle import (
    Checkpoint,
    CheckpointManager,
    CheckpointStorage,
    InvalidInputError,
    NotFoundError,
    UnsupportedError,
)


class KeepsObjects(CheckpointStorage):
    """As simple as can be: what was handed over is what is got back, the very object."""

    def __init__(self) -> None:
        self.kept: dict[str, Checkpoint] = {}

    async def save(self, checkpoint: Checkpoint) -> str:
        self.kept[checkpoint.id] = checkpoint
        return checkpoint.id

    async def load(self, checkpoint_id: str) -> Checkpoint | None:
        return self.kept.get(checkpoint_id)

    async def list_by_user(self, user_id: str, limit: int = 50, offset: int = 0) -> list[Checkpoint]:
        mine = [c for c in reversed(self.kept.values()) if c.user_id == user_id]
        return mine[offset : offset + limit]


class KeepsJson(CheckpointStorage):
    """Texts in a folder; it really awaits."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def save(self, checkpoint: Checkpoint) -> str:
        await asyncio.sleep(0)
        text = json.dumps(checkpoint.to_dict(), allow_nan=False)
        number = len(list(self._folder.iterdir()))
        (self._folder / f"{number:06} {checkpoint.id}").write_text(text)
        return checkpoint.id

    def _read(self, path: Path) -> Checkpoint:
        return Checkpoint.from_dict(json.loads(path.read_text()))

    async def load(self, checkpoint_id: str) -> Checkpoint | None:
        await asyncio.sleep(0)
        return next((self._read(p) for p in self._folder.iterdir() if p.name[7:] == checkpoint_id), None)

    async def list_by_user(self, user_id: str, limit: int = 50, offset: int = 0) -> list[Checkpoint]:
        found = [self._read(p) for p in sorted(self._folder.iterdir(), reverse=True)]
        return [c for c in found if c.user_id == user_id][offset : offset + limit]


class GivesIds(KeepsObjects):
    """It has ids of its own."""

    async def save(self, checkpoint: Checkpoint) -> str:
        checkpoint.id = f"chk_row_{len(self.kept) + 1}"
        return await super().save(checkpoint)


class DeletesToo(KeepsObjects):
    """A fourth method."""

    async def delete(self, checkpoint_id: str) -> bool:
        return self.kept.pop(checkpoint_id, None) is not None


@rekindle.register(name="three.Point")
class Point:
    def __init__(self) -> None:
        self.x = [1]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and other.x == self.x

    __hash__ = None  # type: ignore[assignment]


@rekindle.register(name="three.Bot")
class Bot:
    def __init__(self, agent_id: str = "bot") -> None:
        self.agent_id, self.user_id, self.status = agent_id, "ada", "PENDING"
        self.collected_fields: dict[str, Any] = {}
        self.turns: list[Any] = []
        self.at = Point()


MADE: dict[str, Callable[[Path], CheckpointStorage]] = {
    "objects": lambda folder: KeepsObjects(),
    "json": KeepsJson,
    "ids": lambda folder: GivesIds(),
}


@pytest.fixture(params=MADE)
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> CheckpointManager:
    return CheckpointManager(storage=MADE[request.param](tmp_path))


def run(body: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(body, 30))


def test_agents_are_saved_and_come_back(manager: CheckpointManager) -> None:
    async def body() -> None:
        bot = Bot()
        bot.turns.append(("a tuple", {1, 2}, b"\0", datetime(2026, 1, 2, tzinfo=UTC)))
        saved = await manager.save(bot, metadata={"why": "test"}, kind="step", label="first")
        assert saved.startswith("chk_")
        back = await manager.restore(saved)
        assert type(back) is Bot
        assert vars(back) == vars(bot)
        (listed,) = await manager.list_by_user("ada")
        assert (listed.id, listed.kind, listed.label, listed.metadata) == (saved, "step", "first", {"why": "test"})
        assert (listed.agent_type, listed.status, listed.state["turns"]) == ("three.Bot", "PENDING", bot.turns)

    run(body())


def test_what_was_saved_does_not_change_with_the_agent_nor_with_one_restored_from_it(
    manager: CheckpointManager,
) -> None:
    bot = Bot()
    saved = manager.save_sync(bot)
    bot.turns.append("later")
    bot.at.x.append(2)
    back = manager.restore_sync(saved)
    assert (back.turns, back.at) == ([], Point())
    back.turns.append("restored")
    back.at.x.append(3)
    assert (manager.restore_sync(saved).turns, manager.restore_sync(saved).at) == ([], Point())


def test_parents_follow_the_object(manager: CheckpointManager) -> None:
    bot = Bot()
    first, second = manager.save_sync(bot), manager.save_sync(bot)
    aside = manager.save_sync(manager.restore_sync(first))
    other = manager.save_sync(Bot())
    parents = [manager.get_sync(each).parent_checkpoint_id for each in (first, second, aside, other)]
    assert parents == [None, first, first, aside]
    assert [c.id for c in manager.history_sync(aside)] == [aside, first]
    (tree,) = manager.tree_sync("bot", "ada")
    assert [branch.checkpoint.id for branch in tree.children] == [second, aside]


def test_an_agent_is_found_among_many_of_its_user(manager: CheckpointManager) -> None:
    first = manager.save_sync(Bot("old"))
    bot = Bot("busy")
    for _ in range(120):
        manager.save_sync(bot)
    assert manager.get_sync(manager.save_sync(Bot("old"))).parent_checkpoint_id == first
    assert len(manager.list_by_user_sync("ada", limit=None)) == 122
    assert len(manager.list_by_user_sync("ada", limit=7, offset=3)) == 7


@pytest.mark.parametrize("most", [7, 1000])
def test_a_storage_may_hand_out_fewer_than_it_was_asked_for_or_all(most: int) -> None:
    class Stubborn(KeepsObjects):
        async def list_by_user(self, user_id: str, limit: int = 50, offset: int = 0) -> list[Checkpoint]:
            return await super().list_by_user(user_id, most, 0 if most > limit else offset)

    manager = CheckpointManager(Stubborn())
    first, bot = manager.save_sync(Bot("old")), Bot("busy")
    for _ in range(110):
        manager.save_sync(bot)
    assert len(manager.list_by_user_sync("ada", limit=None)) == 111
    assert manager.get_sync(manager.save_sync(Bot("old"))).parent_checkpoint_id == first


def test_two_checkpoints_are_compared(manager: CheckpointManager) -> None:
    bot = Bot()
    old = manager.save_sync(bot)
    bot.status = "RUNNING"
    bot.collected_fields["email"] = "a@b.c"
    bot.at.x.append(2)
    diff = manager.compare_sync(old, manager.save_sync(bot))
    assert (diff.old_status, diff.new_status, diff.changed_fields) == ("PENDING", "RUNNING", ["email", "at"])
    assert [change["path"] for change in diff.to_dict()["changes"]] == [
        "status", "collected_fields.email", "state.at.x[1]",
    ]  # fmt: skip


def test_bisect_works_by_the_parents(manager: CheckpointManager) -> None:
    bot, ids = Bot(), []
    for n in range(9):
        bot.turns.append(n)
        ids.append(manager.save_sync(bot))
    assert manager.bisect_sync(ids[0], ids[-1], lambda agent: 5 in agent.turns).id == ids[5]


def test_events_are_told(manager: CheckpointManager) -> None:
    async def body() -> None:
        told: list[Any] = []

        @manager.on("checkpoint_saved")
        def broken(checkpoint: Checkpoint) -> None:
            raise ValueError("no")

        @manager.on("checkpoint_saved")
        async def saved_too(checkpoint: Checkpoint) -> None:
            told.append(checkpoint.id)

        @manager.on("checkpoint_restored")
        async def restored(checkpoint: Checkpoint, agent: Bot) -> None:
            told.append((checkpoint.id, agent))

        saved = await manager.save(Bot())
        back = await manager.restore(saved)
        assert told == [saved, (saved, back)]

    run(body())


def test_blocking_calls_work_inside_a_running_loop(manager: CheckpointManager) -> None:
    async def body() -> None:
        saved = manager.save_sync(Bot())
        assert (await manager.restore(saved)).agent_id == "bot"
        assert manager.restore_sync(await manager.save(Bot())).agent_id == "bot"

    run(body())


def test_an_unknown_id_is_a_clear_error(manager: CheckpointManager) -> None:
    with pytest.raises(NotFoundError, match="chk_none"):
        manager.restore_sync("chk_none")


def test_what_three_methods_cannot_do_is_said_clearly(manager: CheckpointManager) -> None:
    saved = manager.save_sync(Bot())
    calls: dict[str, Callable[[], Any]] = {
        "delete": lambda: manager.clear_user_history_sync("ada"),
        "cleanup": lambda: manager.cleanup_old_checkpoints_sync(),
        "children": lambda: manager.children_sync(saved),
        "fork": lambda: manager.fork_sync(saved, "exp"),
        "tag": lambda: manager.tag_sync(saved, "v1"),
        "undo": manager.undo_sync,
        "verify": manager.verify_sync,
        "delete an agent": lambda: manager.delete_sync("bot", "ada"),
    }
    for what, call in calls.items():
        with pytest.raises(UnsupportedError, match=type(manager.storage).__name__) as caught:
            call()
        assert caught.value.code == "storage-cannot"
        assert what.split()[0] in str(caught.value)
    assert manager.restore_sync(saved).agent_id == "bot"


def test_a_fourth_method_is_used() -> None:
    manager = CheckpointManager(DeletesToo())
    bot = Bot()
    for _ in range(150):
        manager.save_sync(bot)
    assert manager.clear_user_history_sync("ada") == 150
    assert manager.list_by_user_sync("ada") == []


def test_a_storage_that_answers_no_id_is_told_so() -> None:
    class Forgetful(KeepsObjects):
        async def save(self, checkpoint: Checkpoint) -> str:
            await super().save(checkpoint)
            return None  # type: ignore[return-value]

    with pytest.raises(InvalidInputError, match="Forgetful"):
        CheckpointManager(Forgetful()).save_sync(Bot())


def test_an_error_of_the_storage_reaches_the_caller_and_the_next_save_follows_what_was_kept() -> None:
    class Breaks(KeepsObjects):
        broken = False

        async def save(self, checkpoint: Checkpoint) -> str:
            if self.broken:
                raise OSError("no space")
            return await super().save(checkpoint)

    storage = Breaks()
    manager, bot = CheckpointManager(storage), Bot()
    first = manager.save_sync(bot)
    storage.broken = True
    with pytest.raises(OSError, match="no space"):
        manager.save_sync(bot)
    storage.broken = False
    assert manager.get_sync(manager.save_sync(bot)).parent_checkpoint_id == first


def test_a_storage_must_have_the_three() -> None:
    class Two(CheckpointStorage):
        async def save(self, checkpoint: Checkpoint) -> str:
            return checkpoint.id

        async def load(self, checkpoint_id: str) -> Checkpoint | None:
            return None

    with pytest.raises(TypeError, match="list_by_user"):
        Two()  # type: ignore[abstract]


def test_cleanup_is_handed_the_moment() -> None:
    class Cleans(KeepsObjects):
        async def cleanup(self, before: datetime) -> int:
            self.before = before
            return 7

    storage = Cleans()
    assert CheckpointManager(storage).cleanup_old_checkpoints_sync(10) == 7
    age = datetime.now(UTC) - storage.before
    assert timedelta(days=10) <= age < timedelta(days=10, minutes=1)
