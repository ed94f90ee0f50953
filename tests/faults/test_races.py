"""Several at once, in threads and in processes: nothing is lost, nobody is left out, and verify is clean at the end."""

import contextlib
import gc
import io
import json
import multiprocessing
import os
import random
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rekindle import Checkpoint, ConflictError, NotFoundError, Store, open_store
from rekindle.store import names
from rekindle.store.retain import delete_checkpoint

TORTURE = os.environ.get("REKINDLE_TORTURE") == "1"
SECONDS = 60.0 if TORTURE else 2.0
SCHEMES = ["sqlite", "file"]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="one process at a time there")


@pytest.fixture(params=SCHEMES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"{request.param}:///{tmp_path}/store"


def together(*jobs: tuple[Callable[..., Any], Any]) -> list[Any]:
    """Each job in a process of its own, from one moment on; answers what they said."""
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(len(jobs))
    pipes, processes = [], []
    for call, args in jobs:
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_run, args=(start, theirs, call, args))
        process.start()
        theirs.close()
        pipes.append(ours)
        processes.append(process)
    answers = []
    for pipe, process in zip(pipes, processes, strict=True):
        try:
            assert pipe.poll(SECONDS * 5 + 60), f"{process.name} does not end"
            answers.append(pipe.recv())
        finally:
            process.join(10)
            if process.is_alive():
                process.kill()
    for answer in answers:
        assert not isinstance(answer, str) or not answer.startswith("failed: "), answer
    return answers


def _run(start: Any, pipe: Any, call: Callable[..., Any], args: Any) -> None:
    import traceback

    start.wait(60)
    try:
        pipe.send(call(*args))
    except BaseException:
        pipe.send("failed: " + traceback.format_exc())


def whole(url: str) -> Store:
    """The store, opened anew and verified, every state of it really restored."""
    store = open_store(url, create=False)
    assert store.verify().problems == []
    for checkpoint in store.list(limit=None):
        store.restore(checkpoint)
    return store


# -- collect beside savers -------------------------------------------------------------------------------------------


def documents() -> list[str]:
    """Large texts that come and go in the states of all agents: the shared index is in play."""
    rng = random.Random("documents")
    return ["".join(rng.choices("abcdefgh \n", k=9_000)) for _ in range(6)]


def save_with_shared(url: str, worker: int, seconds: float) -> dict[str, Any]:
    """Saves states out of the same large texts; answers each checkpoint's text numbers and the longest wait."""
    rng, texts = random.Random(f"saver {worker}"), documents()
    made: dict[str, list[int]] = {}
    longest, until = 0.0, time.monotonic() + seconds
    with open_store(url) as store:
        while time.monotonic() < until:
            agent = f"agent-{rng.randrange(3)}"
            chosen = rng.sample(range(len(texts)), rng.choice((1, 2)))
            before = time.monotonic()
            done = store.save(agent, {"docs": [texts[i] for i in chosen], "n": rng.random()}, metadata={"docs": chosen})
            longest = max(longest, time.monotonic() - before)
            made[done.id] = chosen
            if rng.random() < 0.2:
                look_back(store, done, [texts[i] for i in chosen])
    return {"made": made, "longest": longest}


def look_back(store: Store, done: Checkpoint, docs: list[str]) -> None:
    """What is read while it is being taken away is right, or it is gone: never half there."""
    agent = done.agent_id
    for checkpoint in [*store.list(agent, limit=5), *store.history(agent, limit=5), done]:
        try:
            got = store.restore(checkpoint)
        except NotFoundError:
            continue
        assert checkpoint.id != done.id or got["docs"] == docs


def prune_and_collect(url: str, seconds: float) -> int:
    until, rounds = time.monotonic() + seconds, 0
    with open_store(url) as store:
        while time.monotonic() < until:
            store.prune("keep-last=2")
            store.collect()
            rounds += 1
    return rounds


def verify_often(url: str, seconds: float) -> list[str]:
    """What verify finds wrong in a sound store while others write to it."""
    found, until = [], time.monotonic() + seconds
    with open_store(url) as store:
        while time.monotonic() < until:
            found += [f"{p.where}: {p.message}" for p in store.verify().problems]
    return found


def test_collect_beside_savers_takes_nothing_that_is_needed(url: str) -> None:
    savers = [(save_with_shared, (url, n, SECONDS)) for n in range(2)]
    *saved, rounds, problems = together(*savers, (prune_and_collect, (url, SECONDS)), (verify_often, (url, SECONDS)))
    assert problems == []
    made = {ident: docs for answer in saved for ident, docs in answer["made"].items()}
    print(
        f"{len(made)} saves beside {rounds} collects; longest wait "
        f"{max(answer['longest'] for answer in saved) * 1000:.0f} ms"
    )
    assert rounds > 0
    texts = documents()
    with whole(url) as store:
        left = store.list(limit=None)
        assert {c.id for c in left} <= set(made)
        assert left
        for checkpoint in left:
            assert checkpoint.metadata == {"docs": made[checkpoint.id]}
            assert store.restore(checkpoint)["docs"] == [texts[i] for i in made[checkpoint.id]]
        heads = [store.get(agent) for agent in store.agents()]
        newest = {c.agent_id: max(x.seq for x in left if x.agent_id == c.agent_id) for c in heads}
        assert {c.agent_id: c.seq for c in heads} == newest


# -- prune, save and undo ----------------------------------------------------------------------------------------


def save_numbers(url: str, agent: str, seconds: float) -> list[int]:
    made, until = [], time.monotonic() + seconds
    with open_store(url) as store:
        while time.monotonic() < until:
            made.append(store.save(agent, {"n": len(made)}).seq)
    return made


def prune_and_undo(url: str, seconds: float) -> list[str]:
    verbs, until = [], time.monotonic() + seconds
    with open_store(url) as store:
        while time.monotonic() < until:
            store.prune("keep-last=1")
            try:
                verbs.append(store.undo().summary)
            except (NotFoundError, ConflictError):
                verbs.append("nothing")
            time.sleep(0.001)
    return verbs


def test_prune_and_undo_beside_a_saver_bring_everything_back(url: str) -> None:
    saved, undone, _ = together(
        (save_numbers, (url, "a", SECONDS)),
        (prune_and_undo, (url, SECONDS)),
        (prune_and_undo, (url, SECONDS)),
    )
    assert undone
    with whole(url) as store:
        while True:
            try:
                store.undo()
            except NotFoundError:
                break
        assert [c.seq for c in store.list("a", limit=None)] == sorted(saved, reverse=True)
        assert [store.restore(f"a@{seq}")["n"] for seq in saved] == list(range(len(saved)))


# -- a save between a decision and its commit ------------------------------------------------------------------------


def during(store: Store, look: str, save: Callable[[], object], *, after: bool = True) -> None:
    """Let `save` come through once, beside the first look the store takes."""
    taken = getattr(store._engine, look)

    def looking(*args: Any, **kwargs: Any) -> Any:
        setattr(store._engine, look, taken)
        answer = taken(*args, **kwargs) if after else None
        if isinstance(answer, Iterator):
            answer = iter(list(answer))
        save()
        return answer if after else taken(*args, **kwargs)

    setattr(store._engine, look, looking)


@pytest.fixture
def two_handles(url: str) -> Iterator[tuple[Store, Store]]:
    with open_store(url) as ours, open_store(url) as theirs:
        for n in range(3):
            ours.save("a", {"n": n})
        ours.fork("a@1", "side")
        ours.save("a", {"n": 3}, branch="side")
        yield ours, theirs


def test_a_save_is_refused_by_what_is_there_and_not_by_what_was(url: str, two_handles: tuple[Store, Store]) -> None:
    """What a handle remembers of an agent is outdated as soon as another one saves."""
    ours, theirs = two_handles
    there = theirs.save("a", {"n": 4})
    assert ours.save("a", {"n": 5}, parent=there, strict=True).branch == "main"
    theirs.save("a", {"n": 6}, parent="a@1", branch="new")
    assert ours.save("a", {"n": 7}, branch="new").branch == "new"
    theirs.delete("a")
    with pytest.raises(ConflictError):
        ours.save("a", {"n": 8})
    theirs.undo()
    assert ours.save("a", {"n": 9}).branch == "main"
    with pytest.raises(ConflictError):
        ours.save("a", {"n": 10}, parent="a@2", strict=True)
    with whole(url) as store:
        assert len(store.list("a", limit=None)) == 9


def test_a_prune_keeps_the_heads_of_branches_that_are_saved_to_meanwhile(
    url: str, two_handles: tuple[Store, Store]
) -> None:
    ours, theirs = two_handles

    def save() -> None:
        theirs.save("a", {"n": 4}, branch="side")
        theirs.save("a", {"n": 5})

    during(ours, "heads", save, after=False)
    ours.prune("keep-last=1", agent_id="a")
    with whole(url) as store:
        assert {name: store.restore(c) for name, c in store.branches("a").items()} == {
            "main": {"n": 5},
            "side": {"n": 4},
        }


def test_a_save_under_way_stays_the_head_of_its_branch_whatever_is_decided_meanwhile(
    url: str, two_handles: tuple[Store, Store]
) -> None:
    ours, theirs = two_handles
    during(ours, "newest", lambda: theirs.save("a", {"n": 4}))
    delete_checkpoint(ours._engine, ours._refs.head("a@2"))
    assert theirs.restore("a") == {"n": 4}
    during(ours, "newest", lambda: theirs.save("a", {"n": 5}, branch="side"))
    ours.undo(1)  # the fork: the branch has gone on
    assert theirs.restore("a@side") == {"n": 5}
    during(ours, "newest", lambda: theirs.save("a", {"n": 6}, branch="side"))
    ours.delete_branch("a", "side")
    assert theirs.restore("a@side") == {"n": 6}
    ours.delete_branch("a", "side")
    with whole(url) as store:
        assert {name: c.seq for name, c in store.branches("a").items()} == {"main": 5}
        assert [c.seq for c in store.list("a")] == [7, 6, 5, 4, 3, 1]


def test_an_agent_that_was_deleted_has_nothing_left_of_a_save_under_way(
    url: str, two_handles: tuple[Store, Store]
) -> None:
    ours, theirs = two_handles
    during(ours, "newest", lambda: theirs.save("a", {"n": 4}))
    assert ours.delete("a") == 5
    assert ours.list("a") == []
    with pytest.raises(ConflictError):
        theirs.save("a", {"n": 5})
    while ours.agents() == []:
        ours.undo()
    ours.undo()
    with whole(url) as store:
        assert [c.seq for c in store.list("a")] == [5, 4, 3, 2, 1]
        assert store.restore("a") == {"n": 4}
        assert store.restore("a@side") == {"n": 3}


def test_an_export_beside_a_saver_can_be_imported(url: str, two_handles: tuple[Store, Store]) -> None:
    ours, theirs = two_handles
    file = io.BytesIO()
    during(ours, "heads", lambda: theirs.save("a", {"n": 4}))
    assert ours.export("a", file) == 4
    file.seek(0)
    assert {c.branch: c.seq for c in theirs.import_(file, agent_id="copy")} == {"main": 3, "side": 4}  # 5 came later
    during(ours, "heads", lambda: theirs.fork("a@2", "late"))
    file = io.BytesIO()
    assert ours.export("a", file) == 5
    file.seek(0)
    theirs.import_(file, agent_id="again")
    assert set(theirs.branches("again")) == {"main", "side", "late"}
    whole(url).close()


def test_what_is_collected_while_it_is_read_was_pruned_and_is_no_damage(url: str) -> None:
    with open_store(url) as ours, open_store(url) as theirs:
        for n in range(3):
            ours.save("a", {"n": n, "text": [f"{n} of many words " * 400] * 20})

        def drop() -> None:
            theirs.prune("keep-last=1")
            theirs.collect()

        old = ours.get("a@1")
        reads: list[Callable[[], object]] = [
            lambda: ours.diff(old, "a@3"),
            lambda: ours.export("a", io.BytesIO()),
            lambda: ours.blame("a", "n"),
            lambda: list(ours.grep("many words")),
            lambda: ours.restore(old),
        ]
        for read in reads:
            during(ours, "fetch", drop, after=False)
            try:
                read()
            except NotFoundError as e:
                assert "pruned" in str(e) or "no-record" in e.code
            with contextlib.suppress(ConflictError, NotFoundError):
                theirs.undo()
            for n in range(3):
                ours.save("a", {"n": n, "text": [f"{n} of many words " * 400] * 20})
            old = ours.list("a")[2]


# -- names for what goes meanwhile -----------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["tag", "fork", "label"])
def test_what_was_pruned_meanwhile_gets_no_name(url: str, two_handles: tuple[Store, Store], verb: str) -> None:
    ours, theirs = two_handles
    old = ours._refs.head("a@2")
    theirs.prune("keep-last=1")
    acts: dict[str, Callable[[], object]] = {
        "tag": lambda: names.tag(ours._engine, ours._refs, old, "old", move=False),
        "fork": lambda: names.fork(ours._engine, ours._refs, old, "old"),
        "label": lambda: names.label(ours._engine, old, "old"),
    }
    with pytest.raises(NotFoundError):
        acts[verb]()
    theirs.collect()
    with whole(url) as store:
        assert store.tags("a") == {}


def test_an_undo_makes_no_name_for_what_is_gone(url: str) -> None:
    with open_store(url) as store:
        for n in range(4):
            store.save("a", {"n": n})
        store.tag("a@1", "best")
        moved = store.tag("a@2", "best", move=True) and store.operations()[-1].seq
        store.prune("keep-last=1")
        with pytest.raises(ConflictError, match="pruned"):
            store.undo(moved)
        store.collect()
        with pytest.raises(ConflictError, match="collected"):
            store.undo(moved)
        assert {name: c.seq for name, c in store.tags("a").items()} == {"best": 2}
    whole(url).close()


def test_an_undo_leaves_a_tag_and_a_label_that_were_changed_since(url: str) -> None:
    with open_store(url) as store:
        for n in range(3):
            store.save("a", {"n": n})
        for seq in (1, 2, 3):
            store.tag(f"a@{seq}", "best", move=True)
            store.label("a@1", f"label {seq}")
        for operation in (1, 2, 3, 4):
            store.undo(operation)
        assert store.tags("a")["best"].seq == 3
        assert store.get("a@1").label == "label 3"
        store.undo()
        store.undo()
        assert (store.tags("a")["best"].seq, store.get("a@1").label) == (2, "label 2")


# -- the same agent from two sides -------------------------------------------------------------------------------


def save_on(url: str, parent: str, name: str, strict: bool) -> list[str]:
    with open_store(url) as store:
        try:
            done = store.save("a", {"by": name}, parent=parent, strict=strict)
        except ConflictError as e:
            return [e.code, ""]
        return [done.branch, done.id]


def test_of_two_saves_on_one_parent_the_second_becomes_a_branch_and_both_are_kept(url: str) -> None:
    for _ in range(3):
        with open_store(url) as store:
            parent = store.save("a", {"by": "nobody"})
        answers = together(*((save_on, (url, parent.id, name, False)) for name in ("one", "two")))
        branches = sorted(branch for branch, _ in answers)
        assert branches[0] == "main"
        assert branches[1].startswith("main-")
        with whole(url) as store:
            assert sorted(store.restore(ident)["by"] for _, ident in answers) == ["one", "two"]
            assert [store.get(ident).parent_checkpoint_id for _, ident in answers] == [parent.id] * 2


def test_of_two_strict_saves_on_one_parent_one_is_refused(url: str) -> None:
    with open_store(url) as store:
        parent = store.save("a", {"by": "nobody"})
    answers = together(*((save_on, (url, parent.id, name, True)) for name in ("one", "two")))
    assert sorted(branch for branch, _ in answers) == ["head-moved", "main"]
    with whole(url) as store:
        assert [c.seq for c in store.list("a")] == [2, 1]


def save_by_id(url: str, worker: int, count: int) -> list[str]:
    with open_store(url) as store:
        return [store.save("a", {"by": worker, "n": n}, id=f"job-{n}").id for n in range(count)]


def test_an_id_saved_by_all_at_once_is_kept_once(url: str) -> None:
    count = 100 if TORTURE else 25
    answers = together(*((save_by_id, (url, worker, count)) for worker in range(3)))
    assert answers == [[f"job-{n}" for n in range(count)]] * 3
    with whole(url) as store:
        assert sorted(c.id for c in store.list("a", limit=None)) == sorted(answers[0])


# -- many at once ------------------------------------------------------------------------------------------------


def test_four_processes_all_finish_and_all_their_saves_are_there(url: str) -> None:
    agents = [f"agent-{n}" for n in range(4)]
    answers = together(*((save_numbers, (url, agent, SECONDS)) for agent in agents))
    print("saves each:", [len(made) for made in answers])
    assert all(answers)
    with whole(url) as store:
        for agent, made in zip(agents, answers, strict=True):
            assert [c.seq for c in store.list(agent, limit=None)][::-1] == made
            assert made == list(range(1, len(made) + 1))


def test_four_processes_on_one_agent_each_follow_the_one_before(url: str) -> None:
    answers = together(*((save_numbers, (url, "a", SECONDS)) for _ in range(4)))
    made = sorted(seq for answer in answers for seq in answer)
    assert made == list(range(1, len(made) + 1))
    with whole(url) as store:
        assert [c.seq for c in store.history("a")] == made[::-1]


def test_a_forked_child_saves_beside_its_parent(url: str) -> None:
    with open_store(url) as store:
        for n in range(3):
            store.save("both", n)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                made = [store.save("child", n).seq for n in range(20)] + [store.save("both", "child").seq]
                os.write(writing, json.dumps(made).encode())
                code = 0
            finally:
                os._exit(code)
        parents = [store.save("parent", n).seq for n in range(20)]
        os.close(writing)
        assert os.waitpid(child, 0)[1] == 0
        made = json.loads(os.read(reading, 1 << 16))
        os.close(reading)
        store.save("both", "parent")
        assert parents == list(range(1, 21))
        assert made == [*range(1, 21), 4]
        assert [store.restore(c) for c in store.list("both")] == ["parent", "child", 2, 1, 0]
        assert [store.restore(c) for c in store.list("child", limit=None)] == list(range(19, -1, -1))
    whole(url).close()


def test_a_child_forked_while_threads_save_goes_on_at_once(url: str) -> None:
    with open_store(url) as store:
        stop = threading.Event()

        def save(agent: str) -> None:
            n = 0
            while not stop.is_set():
                store.save(agent, {"n": (n := n + 1)})

        threads = [threading.Thread(target=save, args=(f"thread-{n}",)) for n in range(3)]
        for thread in threads:
            thread.start()
        ends = []
        for n in range(8):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of forking while threads run
                child = os.fork()
            if child == 0:
                signal.alarm(20)
                try:
                    store.restore(store.save(f"child-{n}", {"n": n}))
                    store.save("thread-0", {"child": n})
                    os._exit(0)
                finally:
                    os._exit(1)
            ends.append(os.waitpid(child, 0)[1])
        stop.set()
        for thread in threads:
            thread.join()
        assert ends == [0] * 8
        assert [store.restore(f"child-{n}") for n in range(8)] == [{"n": n} for n in range(8)]
    whole(url).close()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors there")
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_store_that_nobody_closed_leaves_no_descriptor(url: str) -> None:
    def use() -> None:
        open_store(url).save("a", 1)

    use()
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        use()
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before


@pytest.mark.parametrize("scheme", ["memory", *SCHEMES])
def test_sixteen_threads_save_to_four_agents_through_one_store(scheme: str, tmp_path: Path) -> None:
    url = "memory://" if scheme == "memory" else f"{scheme}:///{tmp_path}/store"
    count = 200 if TORTURE else 15
    failed: list[BaseException] = []
    made: dict[str, list[tuple[int, Any]]] = {f"agent-{n}": [] for n in range(4)}
    texts = documents()
    with open_store(url) as store:

        def work(thread: int) -> None:
            agent = f"agent-{thread % 4}"
            try:
                for n in range(count):
                    state = {"thread": thread, "n": n, "doc": texts[(thread + n) % 3]}
                    done = store.save(agent, state, changes=("verified", "trusted")[n % 2])
                    made[agent].append((done.seq, state))
                    if n % 5 == 0:
                        assert store.restore(done) == state
                        store.list(agent, limit=3)
                    if thread == 0 and n % 7 == 6:
                        store.tag(done, f"t{n}")
            except BaseException as e:
                failed.append(e)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert not failed, failed[0]
        for agent, states in made.items():
            assert [c.seq for c in store.list(agent, limit=None)] == list(range(4 * count, 0, -1))
            for seq, state in states:
                assert store.restore(f"{agent}@{seq}") == state
        assert store.verify().problems == []
