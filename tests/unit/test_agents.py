"""An agent is taken apart and put together again, as it was."""

from __future__ import annotations

import dataclasses
import enum
import threading
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, PrivateAttr

import rekindle
from rekindle import Checkpoint, CheckpointManager, InMemoryCheckpointStorage, InvalidInputError
from rekindle.agents import capture, revive


@rekindle.register(name="agents.Plain")
class Plain:
    def __init__(self, agent_id: str = "a") -> None:
        self.agent_id = agent_id
        self.user_id = "u"
        self.status = "RUNNING"
        self.collected_fields = {"name": "Ada"}
        self.required_fields = ["name", "email"]
        self.context_summary = "asked for the name"
        self.turns = [("hello", 1)]
        self._private = {1, 2}


@rekindle.register(name="agents.Bare")
class Bare:
    def __init__(self, agent_id: str) -> None:
        self.agent_id = agent_id
        self.n = 0


@rekindle.register(name="agents.Mood")
class Mood(enum.Enum):
    CALM = "CALM"


@rekindle.register(name="agents.Record")
@dataclasses.dataclass(slots=True)
class Record:
    agent_id: str
    status: Mood = Mood.CALM
    required_fields: tuple[str, ...] = ("x",)
    notes: list[str] = dataclasses.field(default_factory=list)


@rekindle.register(name="agents.Model")
class Model(BaseModel):
    agent_id: str
    status: str = "PENDING"
    collected_fields: dict[str, int] = {}
    tries: int = 0
    _cache: dict[str, int] = PrivateAttr(default_factory=dict)


@rekindle.register(name="agents.Hooked")
class Hooked:
    """It holds what cannot be stored, and says itself what can."""

    def __init__(self, agent_id: str) -> None:
        self.agent_id, self.status, self.client, self.n = agent_id, "NEW", threading.Lock(), 0

    def to_state(self) -> dict[str, Any]:
        return {"n": self.n}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Hooked:
        made = cls("nobody")
        made.n = state["n"]
        return made


@rekindle.register(name="agents.HookedInPlace")
class HookedInPlace(Hooked):
    def from_state(self, state: dict[str, Any]) -> None:  # type: ignore[override]
        self.n, self.client = state["n"], threading.Lock()


def through_a_checkpoint(agent: Any) -> Any:
    """Saved, and restored from JSON."""
    captured = capture(agent)
    fields = {field.name: getattr(captured, field.name) for field in dataclasses.fields(captured)}
    return revive(Checkpoint.from_dict(Checkpoint(id="chk_1", **fields).to_dict()))


def test_an_agent_comes_back_with_all_its_attributes_and_no_others() -> None:
    for agent in (Plain(), Bare("b")):
        back = through_a_checkpoint(agent)
        assert type(back) is type(agent)
        assert vars(back) == vars(agent)


def test_what_a_checkpoint_shows_by_itself_is_not_in_the_state_again() -> None:
    captured = capture(Plain())
    assert captured.state == {"turns": [("hello", 1)], "_private": {1, 2}}
    assert (captured.user_id, captured.status, captured.collected_fields) == ("u", "RUNNING", {"name": "Ada"})
    assert captured.required_fields == ["name", "email"]
    assert captured.context_summary == "asked for the name"


def test_what_an_agent_does_not_have_is_shown_empty_and_not_given_to_it() -> None:
    captured = capture(Bare("b"))
    assert (captured.user_id, captured.status, captured.collected_fields) == ("local", "", {})
    assert not hasattr(through_a_checkpoint(Bare("b")), "collected_fields")


def test_init_is_not_run() -> None:
    ran = []

    @rekindle.register(name="agents.Careful")
    class Careful:
        def __init__(self, agent_id: str) -> None:
            ran.append(agent_id)
            self.agent_id = agent_id

    through_a_checkpoint(Careful("c"))
    assert ran == ["c"]


def test_a_status_that_is_no_text_is_shown_as_text_and_comes_back_as_it_was() -> None:
    agent = Record("r", notes=["n"])
    assert capture(agent).status == "CALM"
    assert capture(agent).required_fields == ["x"]
    assert through_a_checkpoint(agent) == agent


def test_a_pydantic_agent_comes_back_with_its_private_attributes_and_what_was_set() -> None:
    agent = Model(agent_id="m", tries=2)
    agent._cache["k"] = 1
    agent.collected_fields["x"] = 1
    back = through_a_checkpoint(agent)
    assert back == agent
    assert back._cache == {"k": 1}
    assert back.model_fields_set == {"agent_id", "tries"}
    assert capture(agent).collected_fields == {"x": 1}


@pytest.mark.parametrize("cls", [Hooked, HookedInPlace])
def test_to_state_and_from_state_say_what_the_state_is(cls: type[Hooked]) -> None:
    agent = cls("h")
    agent.n, agent.status = 3, "DONE"
    assert capture(agent).state == {"n": 3}
    back = through_a_checkpoint(agent)
    assert (back.agent_id, back.status, back.n) == ("h", "DONE", 3)


def test_tracked_collected_fields_stay_tracked() -> None:
    agent = Plain()
    agent.collected_fields = rekindle.tracked({"a": [1]})
    agent.required_fields = rekindle.tracked(["a"])
    back = through_a_checkpoint(agent)
    assert type(back.collected_fields) is type(agent.collected_fields)
    assert type(back.required_fields) is type(agent.required_fields)


def test_an_object_of_no_registered_type_is_refused_saying_how_to_register() -> None:
    class Stranger:
        agent_id = "s"

    with pytest.raises(InvalidInputError, match="register") as caught:
        capture(Stranger())
    assert caught.value.code == "agent-unregistered"


@pytest.mark.parametrize("agent_id", [None, "", 7, "a\nb"])
def test_an_object_without_a_usable_id_is_refused(agent_id: Any) -> None:
    with pytest.raises(InvalidInputError) as caught:
        capture(Bare(agent_id))
    assert caught.value.code == "bad-name"
    assert "agent_id of a Bare" in caught.value.message


def test_a_checkpoint_of_a_type_that_is_not_registered_says_how_to_register() -> None:
    with pytest.raises(InvalidInputError, match=r"rekindle\.register\(YourClass, name='Gone'\)") as caught:
        revive(Checkpoint(id="chk_1", agent_id="a", agent_type="Gone"))
    assert caught.value.code == "agent-unregistered"


def test_an_attribute_that_cannot_be_stored_is_named() -> None:
    agent = Bare("b")
    agent.client = threading.Lock()  # type: ignore[attr-defined]
    manager = CheckpointManager(InMemoryCheckpointStorage())
    with pytest.raises(InvalidInputError, match=r"Bare\.client cannot be saved") as caught:
        manager.save_sync(agent)
    assert caught.value.code == "attribute-unsavable"
    assert "to_state" in (caught.value.hint or "")
    del agent.client  # type: ignore[attr-defined]
    assert manager.restore_sync(manager.save_sync(agent)).n == 0


def test_an_agent_of_an_older_version_is_upgraded_step_by_step(tmp_path: Path) -> None:
    def define(version: int, **more: Any) -> type:
        @rekindle.register(name="agents.Grown", version=version, **more)
        class Grown:
            def __init__(self, agent_id: str) -> None:
                self.agent_id, self.status, self.count = agent_id, "A", 1

        return Grown

    manager = CheckpointManager(rekindle.SQLiteCheckpointStorage(tmp_path / "c.db"))
    saved = manager.save_sync(define(1)("g"))

    def two(data: dict[str, Any]) -> dict[str, Any]:
        return {**data, "total": data["count"]}

    def three(data: dict[str, Any]) -> dict[str, Any]:
        del data["count"]
        return {**data, "status": data["status"].lower()}

    define(3, upgrade={1: two, 2: three})
    assert vars(manager.restore_sync(saved)) == {"agent_id": "g", "status": "a", "total": 1}
    again = manager.save_sync(manager.restore_sync(saved))
    assert manager.get_sync(again).agent_version == 3
    assert vars(manager.restore_sync(again)) == {"agent_id": "g", "status": "a", "total": 1}
    define(2, upgrade={1: two})
    with pytest.raises(InvalidInputError) as caught:
        manager.restore_sync(again)
    assert caught.value.code == "type-too-new"
    manager.close_sync()


def test_a_checkpoint_made_by_hand_becomes_an_agent() -> None:
    back = revive(Checkpoint(id="chk_1", agent_id="x", agent_type="agents.Bare", user_id="u", state={"n": 5}))
    assert (back.agent_id, back.user_id, back.n) == ("x", "u", 5)
