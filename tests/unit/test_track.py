"""Any agent in three lines: an object or a dict is saved, and put back into itself."""

from __future__ import annotations

import asyncio
import gc
import logging
import subprocess
import sys
import threading
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pydantic
import pytest

import rekindle
from rekindle import AsyncStore, ConflictError, InvalidInputError, NotFoundError, Store, Tracker, open_store, track

URLS: dict[str, Callable[[Path], str]] = {
    "memory": lambda folder: "memory://",
    "sqlite": lambda folder: f"sqlite:///{folder / 'store.db'}",
    "files": lambda folder: f"file://{folder / 'store'}",
}


@pytest.fixture(params=URLS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    with open_store(URLS[request.param](tmp_path)) as store:
        yield store


class Planner:
    """Nobody registered it."""

    def __init__(self, city: str = "Lisbon") -> None:
        self.city = city
        self.notes: list[str] = []
        self.client = threading.Lock()


@dataclass(slots=True)
class Slotted:
    city: str
    notes: list[str] = field(default_factory=list)


# -- dicts and lists -------------------------------------------------------------------------------------------------


def test_a_dict_is_put_back_into_itself(store: Store) -> None:
    state: dict[Any, Any] = {"n": 1, (1, 2): {3}}
    agent = track(state, "a", store=store)
    assert (agent.resumed, agent.checkpoint, agent.branch) == (False, None, "main")
    first = agent.save("one", kind="phase", metadata={"cost": 1.5})
    assert (first.label, first.kind, first.metadata, first.agent_id) == ("one", "phase", {"cost": 1.5}, "a")
    state.update(n=2, more=True)
    second = agent.save()
    assert (second.parent_checkpoint_id, agent.checkpoint) == (first.id, second)
    assert agent.restore("a@1") == first == agent.checkpoint
    assert state == {"n": 1, (1, 2): {3}}
    assert agent.object is state
    assert store.restore("a") == {"n": 2, (1, 2): {3}, "more": True}


def test_another_program_goes_on_from_the_last_checkpoint(tmp_path: Path) -> None:
    program = f"""
import rekindle
state = {{"n": 0}}
with rekindle.track(state, "a", store={str(tmp_path / "store.db")!r}) as agent:
    print(agent.resumed, state, agent.checkpoint and agent.checkpoint.seq)
    state["n"] += 1
    agent.save()
"""
    said = [
        subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
        for _ in range(3)
    ]
    assert said == ["False {'n': 0} None\n", "True {'n': 1} 1\n", "True {'n': 2} 2\n"]


@pytest.mark.parametrize(
    "made",
    [OrderedDict, lambda d: defaultdict(list, d), Counter, rekindle.tracked],
    ids=["ordered", "default", "counter", "tracked"],
)
def test_other_dicts_stay_what_they_are(made: Callable[[Any], dict[str, Any]], store: Store) -> None:
    state = made({"b": 1, "a": 2})
    agent = track(state, "a", store=store, changes="trusted")
    agent.save()
    state["a"] = 7
    state["c"] = 8
    agent.save()
    agent.restore("@1")
    assert dict(state) == {"b": 1, "a": 2}
    assert list(state) == ["b", "a"]
    assert type(state) is type(made({}))
    other = made({})
    assert track(other, "a", store=store).resumed
    assert dict(other) == {"b": 1, "a": 7, "c": 8}


@pytest.mark.parametrize("made", [list, rekindle.tracked], ids=["list", "tracked"])
def test_a_list_is_put_back_into_itself(made: Callable[[Any], list[Any]], store: Store) -> None:
    messages = made([{"role": "user"}])
    agent = track(messages, "chat", store=store)
    agent.save()
    messages.append({"role": "assistant"})
    agent.save()
    agent.restore("@-2")
    assert messages == [{"role": "user"}]
    assert store.restore("chat") == [{"role": "user"}, {"role": "assistant"}]


def test_a_key_that_is_left_out_keeps_what_it_holds(store: Store) -> None:
    lock = threading.Lock()
    state = {"n": 1, "lock": lock, "tmp": 1}
    agent = track(state, "a", store=store, exclude=("lock", "tmp"))
    assert store.restore(agent.save()) == {"n": 1}
    state["n"] = 2
    del state["tmp"]
    agent.restore()
    assert state == {"n": 1, "lock": lock}


# -- objects ---------------------------------------------------------------------------------------------------------


def test_an_object_of_a_class_nobody_registered_is_saved_by_its_attributes(store: Store) -> None:
    planner = Planner()
    agent = track(planner, "a", store=store, exclude="client")
    planner.notes.append("May")
    agent.save()
    assert store.restore("a") == {"city": "Lisbon", "notes": ["May"]}
    lock = planner.client
    planner.notes.append("June")
    planner.late = True  # type: ignore[attr-defined]
    agent.restore()
    assert vars(planner) == {"city": "Lisbon", "notes": ["May"], "client": lock}

    other = Planner("Porto")
    assert track(other, "a", store=store, exclude="client").resumed
    assert (other.city, other.notes) == ("Lisbon", ["May"])


def test_an_attribute_that_the_class_has_got_since_keeps_its_first_value(store: Store) -> None:
    track(Slotted("Lisbon"), "a", store=store, exclude="notes").save()
    newer = Slotted("Porto", ["by default"])
    track(newer, "a", store=store)
    assert newer == Slotted("Lisbon", ["by default"])


def test_slots_are_attributes(store: Store) -> None:
    class Base:
        __slots__ = ("__hidden", "base")

        def __init__(self) -> None:
            self.__hidden = "h"

    class Both(Base):
        def __init__(self) -> None:
            super().__init__()
            self.free = 1

        def __setattr__(self, name: str, value: Any) -> None:
            assert name != "base" or not hasattr(self, "base"), "nobody asks the class"
            super().__setattr__(name, value)

    both = Both()
    agent = track(both, "a", store=store)
    agent.save()
    both.base = [1]  # type: ignore[attr-defined]
    agent.save()
    assert store.restore("a@2") == {"_Base__hidden": "h", "free": 1, "base": [1]}
    agent.restore("@1")
    assert not hasattr(both, "base")
    agent.restore("@2")
    assert both.base == [1]  # type: ignore[attr-defined]


def test_models_and_structs_are_put_back_too(store: Store) -> None:
    class Model(pydantic.BaseModel):
        city: str
        notes: list[str] = []
        _secret: int = pydantic.PrivateAttr(default=1)

    class Struct(msgspec.Struct):
        city: str
        notes: list[str] = []

    for made in (Model(city="Lisbon"), Struct("Lisbon"), Slotted("Lisbon")):
        agent = track(made, type(made).__name__, store=store)
        agent.save()
        made.notes.append("x")
        made.city = "Porto"
        agent.restore()
        assert (made.city, made.notes) == ("Lisbon", [])


def test_to_state_and_from_state_are_asked(store: Store) -> None:
    class ByClass:
        def __init__(self, n: int) -> None:
            self.n, self.socket = n, object()

        def to_state(self) -> list[int]:
            return [self.n]

        @classmethod
        def from_state(cls, state: list[int]) -> ByClass:
            return cls(state[0])

    class BySelf(ByClass):
        def from_state(self, state: list[int]) -> None:  # type: ignore[override]
            self.n = state[0]

    for made in (ByClass(1), BySelf(1)):
        agent = track(made, type(made).__name__, store=store)
        assert store.restore(agent.save()) == [1]
        made.n, socket = 2, made.socket
        agent.restore()
        assert made.n == 1
        assert (made.socket is socket) == (type(made) is BySelf)


def test_two_functions_say_what_is_saved_and_how_it_comes_back(store: Store) -> None:
    queue = deque([1, 2])
    agent = track(queue, "a", store=store, save=list, restore=lambda q, state: (q.clear(), q.extend(state)))
    agent.save()
    queue.append(3)
    agent.restore()
    assert queue == deque([1, 2])
    assert store.restore("a") == [1, 2]


def test_what_cannot_be_saved_is_named_before_the_first_step(store: Store) -> None:
    planner = Planner()
    planner.tool = {"run": [print]}  # type: ignore[attr-defined]
    with pytest.raises(InvalidInputError) as caught:
        track(planner, "a", store=store)
    assert caught.value.code == "attribute-unsavable"
    assert "client" in caught.value.message
    assert "tool.run[0]" in caught.value.message
    assert "exclude=('client', 'tool')" in str(caught.value.hint)
    assert store.agents() == []


def test_what_cannot_be_saved_later_is_named_and_nothing_is_kept(store: Store) -> None:
    planner = Planner()
    agent = track(planner, "a", store=store, exclude=("client",))
    agent.save()
    planner.notes.append(object())  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"notes\[0\]") as caught:
        agent.save()
    assert "exclude=('notes',)" in str(caught.value.hint)
    planner.notes.clear()
    assert agent.save().parent_checkpoint_id == store.get("a@1").id
    with pytest.raises(InvalidInputError) as other:
        agent.save(kind="no-such")
    assert other.value.code == "bad-kind"


class _AndMore(dict[str, int]):
    more = 0


def test_what_holds_nothing_of_its_own_is_refused(store: Store) -> None:
    frozen = msgspec.defstruct("Frozen", [("x", int)], frozen=True)(1)
    beside = _AndMore(x=1)
    beside.more = 2
    for value in (
        None,
        1,
        "text",
        (1,),
        {1},
        deque(),
        Planner,
        len,
        lambda: 1,
        threading,
        threading.Lock(),
        frozen,
        beside,
    ):
        with pytest.raises(InvalidInputError) as caught:
            track(value, "a", store=store)
        assert caught.value.code == "cannot-track"
        assert "save=" in str(caught.value.hint)


def test_options_that_would_do_nothing_are_refused(store: Store) -> None:
    class Hooks(Planner):
        def to_state(self) -> Any: ...
        def from_state(self, state: Any) -> Any: ...

    options: list[tuple[Any, dict[str, Any]]] = [
        ({}, {"save": list}), ({}, {"restore": print}), ([], {"exclude": "x"}), (Hooks(), {"exclude": "x"}),
        ({}, {"exclude": "x", "save": list, "restore": print}),
    ]  # fmt: skip
    for value, given in options:
        with pytest.raises(InvalidInputError) as caught:
            track(value, "a", store=store, **given)
        assert caught.value.code == "bad-hook"


def test_a_state_of_another_shape_is_refused_and_the_object_stays(store: Store) -> None:
    store.save("list", [1])
    store.save("dict", {"n": 1, "other": 2})
    store.save("keys", {1: 2})
    rekindle.CheckpointManager(store).save_sync(_Registered("managed"))
    for agent, value in (("list", {"n": 0}), ("list", Planner()), ("keys", Planner()), ("dict", []),
                         ("dict", Slotted("Porto")), ("managed", {"n": 0})):  # fmt: skip
        with pytest.raises(InvalidInputError) as caught:
            track(value, agent, store=store)
        assert caught.value.code == "state-does-not-fit"
        assert value in ({"n": 0}, [], Slotted("Porto")) or value.city == "Lisbon"


@rekindle.register(name="test_track.Registered")
@dataclass
class _Registered:
    agent_id: str


# -- which agent, which store ----------------------------------------------------------------------------------------


def test_an_object_may_have_an_agent_id_of_its_own(store: Store) -> None:
    assert track(_Registered("mine"), store=store).agent_id == "mine"
    assert track({"agent_id": "yours"}, store=store).agent_id == "yours"
    for value in ({}, Planner(), {"agent_id": 7}):
        with pytest.raises(InvalidInputError) as caught:
            track(value, store=store)
        assert caught.value.code == "bad-name"


def test_a_store_it_opened_is_closed_with_it_and_no_other(tmp_path: Path, store: Store) -> None:
    with track({}, "a", store=tmp_path / "own.db") as own:
        own.save()
    own.close()
    with pytest.raises(rekindle.UnavailableError):
        own.save()
    with track({}, "a", store=store) as borrowed:
        borrowed.save()
    assert store.agents() == ["a"]


def test_a_tracker_that_is_forgotten_leaves_no_store_open(tmp_path: Path) -> None:
    agent = track({}, "a", store=tmp_path / "own.db")
    agent.save()
    store = agent.store
    del agent
    gc.collect()
    with pytest.raises(rekindle.UnavailableError):
        store.agents()


def test_it_begins_in_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with track({"n": 1}, "a") as agent:
        agent.save()
    with open_store() as store:
        assert store.restore("a") == {"n": 1}


def test_it_does_not_resume_where_it_is_told_not_to(store: Store) -> None:
    first = store.save("a", {"n": 1})
    state = {"n": 7}
    agent = track(state, "a", store=store, resume=False)
    assert (agent.resumed, state) == (False, {"n": 7})
    assert agent.save().parent_checkpoint_id == first.id


def test_it_says_what_it_is(store: Store) -> None:
    agent = track({}, "a b", store=store)
    assert repr(agent) == f"<Tracker of 'a b', nothing saved on main, in {store.url}>"
    agent.save()
    assert repr(agent).startswith("<Tracker of 'a b', at \"a b\"@1 on main, in ")


# -- going back, branches --------------------------------------------------------------------------------------------


def saved(store: Store, count: int = 3) -> tuple[dict[str, Any], Tracker[dict[str, Any]]]:
    state: dict[str, Any] = {"n": 0}
    agent = track(state, "a", store=store)
    for n in range(1, count + 1):
        state["n"] = n
        agent.save(f"{n}")
    return state, agent


def test_restore_without_a_reference_takes_back_what_was_not_saved(store: Store) -> None:
    state, agent = saved(store)
    state.clear()
    assert agent.restore().seq == 3
    assert state == {"n": 3}


@pytest.mark.parametrize("ref", ["@1", "a@1", "@-3", "@first", "a@first", "id", "checkpoint"])
def test_any_reference_will_do(ref: str, store: Store) -> None:
    state, agent = saved(store)
    first = store.tag("a@1", "first")
    agent.restore({"id": first.id, "checkpoint": first}.get(ref, ref))
    assert (state, agent.checkpoint) == ({"n": 1}, first)


def test_a_reference_to_nothing_or_another_agent_leaves_the_object(store: Store) -> None:
    state, agent = saved(store)
    store.save("b", {"n": "other"})
    for ref, kind, code in (
        ("@9", NotFoundError, "checkpoint-not-found"), ("@nowhere", NotFoundError, "checkpoint-not-found"),
        ("b", InvalidInputError, "foreign-parent"), ("@", InvalidInputError, "bad-ref"),
    ):  # fmt: skip
        with pytest.raises(kind) as caught:
            agent.restore(ref)
        assert caught.value.code == code
    assert state == {"n": 3}
    assert agent.save().seq == 4
    with pytest.raises(NotFoundError):
        track({}, "new", store=store).restore()


def test_going_on_from_the_past_is_a_branch(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    state, agent = saved(store)
    agent.restore("@1")
    state["n"] = "else"
    aside = agent.save()
    assert (aside.branch, agent.branch, agent.branched_from) == ("main-2", "main-2", "main")
    assert (agent.save().branch, store.restore("a")) == ("main-2", {"n": 3})
    assert caplog.records == [], "it was asked for"
    agent.restore("@main")
    assert (agent.branch, agent.branched_from, agent.save().branch) == ("main", None, "main")


def test_fork_goes_on_on_the_branch_with_the_object_as_it_is(store: Store) -> None:
    state, agent = saved(store)
    state["n"] = "not saved yet"
    assert agent.fork("what-if").seq == 3
    assert (agent.branch, state["n"]) == ("what-if", "not saved yet")
    agent.save()
    agent.save()
    assert [c.seq for c in store.list("a", branch="what-if")] == [5, 4, 3, 2, 1]
    assert store.branches("a")["main"].seq == 3


def test_fork_of_the_past_puts_its_state_into_the_object(store: Store) -> None:
    state, agent = saved(store)
    agent.fork("early", "@1")
    assert state == {"n": 1}
    assert (agent.save().branch, store.branches("a")["early"].seq) == ("early", 4)
    with pytest.raises(ConflictError) as caught:
        agent.fork("early", "@2")
    assert caught.value.code == "branch-exists"
    assert (state, agent.branch) == ({"n": 1}, "early")
    with pytest.raises(InvalidInputError) as nothing:
        track({}, "new", store=store).fork("b")
    assert nothing.value.code == "nothing-saved"


def test_a_branch_that_was_just_forked_is_gone_on_on(store: Store) -> None:
    saved(store)
    store.fork("a@3", "x")
    store.fork("a@2", "y")
    for branch, n in (("x", 3), ("y", 2)):
        state: dict[str, Any] = {}
        agent = track(state, "a", store=store, branch=branch)
        assert (state, agent.save().branch) == ({"n": n}, branch)
    state, agent = saved(store, 0)
    store.fork("a@2", "z")
    agent.restore("@z")
    assert agent.save().branch == "z"


def test_a_branch_that_is_not_there_is_refused(store: Store) -> None:
    saved(store)
    with pytest.raises(NotFoundError) as caught:
        track({}, "a", store=store, branch="nowhere")
    assert caught.value.code == "branch-not-found"


def test_what_was_pruned_is_stepped_over(store: Store) -> None:
    _, agent = saved(store, 1)
    store.save("a", {"n": 2})
    store.prune("keep-last=1")
    assert agent.save().parent_checkpoint_id == store.get("a@2").id


# -- two at once -----------------------------------------------------------------------------------------------------


def test_the_second_of_two_trackers_becomes_a_branch_and_says_so(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    saved(store)
    one, two = (track({}, "a", store=store) for _ in range(2))
    one.object["by"], two.object["by"] = "one", "two"
    assert (one.save().branch, one.branched_from) == ("main", None)
    assert (two.save().branch, two.branch, two.branched_from) == ("main-2", "main-2", "main")
    assert [(r.message, r.__dict__["branch"], r.levelno) for r in caplog.records] == [
        ("branched", "main-2", logging.WARNING)
    ]
    assert {c.state["by"] for c in store.branches("a").values()} == {"one", "two"}


def test_the_second_of_two_strict_trackers_is_refused(store: Store) -> None:
    saved(store)
    one, two = (track({}, "a", store=store, strict=True) for _ in range(2))
    one.object["by"], two.object["by"] = "one", "two"
    one.save()
    with pytest.raises(ConflictError) as caught:
        two.save()
    assert caught.value.code == "head-moved"
    two.restore("@main")
    assert two.object == {"n": 3, "by": "one"}
    two.save()
    assert len(store.list("a")) == 5


def test_two_that_begin_an_agent_are_told_too(store: Store) -> None:
    one, two, late = (track({"by": n}, "a", store=store, strict=n == 1) for n in range(3))
    one.save()
    late.save()
    assert one.save().branch == "main-2"
    with pytest.raises(ConflictError) as caught:
        two.save()
    assert caught.value.code == "head-moved"


# -- awaited ---------------------------------------------------------------------------------------------------------


def test_the_awaited_calls_do_the_same(store: Store) -> None:
    async def body() -> None:
        for given in (store, AsyncStore(store)):
            name = type(given).__name__
            state = {"n": 1}
            async with track(state, name, store=given) as agent:
                first = await agent.asave("one", metadata={"k": 1})
                assert (first.label, first.metadata) == ("one", {"k": 1})
                state["n"] = 2
                await agent.asave()
                assert await agent.arestore("@-2") == first
                assert state == {"n": 1}
                await agent.afork("b", "@2")
                assert (state, (await agent.asave()).branch) == ({"n": 2}, "b")
        await AsyncStore(store).save("still open", 1)

    asyncio.run(body())


def test_saves_of_many_threads_follow_each_other(store: Store) -> None:
    agent = track({"n": 1}, "a", store=store)
    threads = [threading.Thread(target=lambda: [agent.save() for _ in range(5)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (agent.branch, agent.checkpoint) == ("main", store.get("a"))
    assert list(store.branches("a")) == ["main"]
    assert len(store.history("a")) == 20


def test_saves_of_many_tasks_follow_each_other(store: Store) -> None:
    async def body() -> None:
        state = {"n": 1}
        agent = track(state, "a", store=store)
        await asyncio.gather(*(agent.asave() for _ in range(20)))
        await asyncio.gather(*(agent.asave() for _ in range(20)))
        assert (agent.branch, agent.checkpoint) == ("main", store.get("a"))

    asyncio.run(body())
    assert list(store.branches("a")) == ["main"]
    assert len(store.history("a")) == 40


# -- steps -----------------------------------------------------------------------------------------------------------


def test_a_step_is_saved_after_each_call(store: Store) -> None:
    state: dict[str, Any] = {"notes": []}
    agent = track(state, "a", store=store)

    @agent.step
    def think(text: str) -> int:
        """Says more than it did."""
        state["notes"].append(text)
        return len(state["notes"])

    assert [think("a"), think("b")] == [1, 2]
    assert [(c.kind, c.label, c.state) for c in store.list("a")] == [
        ("step", "think", {"notes": ["a", "b"]}), ("step", "think", {"notes": ["a"]}),
    ]  # fmt: skip
    assert (think.__name__, think.__doc__) == ("think", "Says more than it did.")


def test_a_step_says_what_it_is_told_to(store: Store) -> None:
    agent = track({}, "a", store=store)

    @agent.step(label="look it up", kind="phase", metadata={"model": "small"}, arguments=("topic", "depth"))
    def look(self: object, topic: str, *, depth: int = 3, key: object = None) -> None: ...

    look(object(), "sea", key=object())
    (checkpoint,) = store.list("a")
    assert (checkpoint.label, checkpoint.kind) == ("look it up", "phase")
    assert checkpoint.metadata == {"model": "small", "topic": "sea", "depth": 3}


def test_a_step_that_raises_saves_nothing(store: Store) -> None:
    state = {"n": 1}
    agent = track(state, "a", store=store)
    agent.save()

    @agent.step
    def fail() -> None:
        state["n"] = 2
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        fail()
    assert (len(store.list("a")), state) == (1, {"n": 2})
    agent.restore()
    assert state == {"n": 1}


def test_methods_and_whatever_awaits_are_steps(store: Store) -> None:
    async def body() -> None:
        state: dict[str, Any] = {"n": 0}
        agent = track(state, "a", store=store)

        class Tools:
            def add(self, by: int) -> None:
                state["n"] += by

            async def later(self, by: int) -> str:
                await asyncio.sleep(0)
                self.add(by)
                return "done"

            async def fail(self) -> None:
                raise ZeroDivisionError

        tools = Tools()
        agent.step(tools.add)(1)
        assert await agent.step(tools.later)(10) == "done"
        assert await agent.step(lambda: tools.later(100))() == "done"
        agent.step(partial(tools.add, 1000))()
        with pytest.raises(ZeroDivisionError):
            await agent.step(tools.fail)()

    asyncio.run(body())
    assert [(c.label, c.state["n"]) for c in store.list("a")] == [
        ("add", 1111), ("<lambda>", 111), ("later", 11), ("add", 1),
    ]  # fmt: skip


def test_what_a_step_could_not_save_keeps_it_from_running(store: Store) -> None:
    agent = track({}, "a", store=store)
    ran: list[str] = []

    @agent.step(arguments="client")
    def send(client: object) -> None:
        ran.append("sync")

    @agent.step(arguments="client")
    async def asend(client: object) -> None:
        ran.append("async")

    for call in (lambda: send(object()), lambda: asyncio.run(asend(object()))):
        with pytest.raises(InvalidInputError):
            call()
    assert (ran, store.agents()) == ([], [])


def test_what_cannot_be_a_step_is_refused_when_it_is_defined(store: Store) -> None:
    agent = track({}, "a", store=store)

    def stream() -> Any:
        yield 1

    async def astream() -> Any:
        yield 1

    for wrong, code in (
        (lambda: agent.step(stream), "not-a-step"),
        (lambda: agent.step(astream), "not-a-step"),
        (lambda: agent.step(arguments="nothing")(print), "bad-argument"),
        (lambda: agent.step(kind="no-such")(print), "bad-kind"),
        (lambda: agent.step(metadata=[])(print), "bad-metadata"),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidInputError) as caught:
            wrong()
        assert caught.value.code == code
