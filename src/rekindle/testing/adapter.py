"""What every adapter must do, as tests that anybody can run on theirs.

    from rekindle.testing.adapter import AdapterConformance

    class TestMine(AdapterConformance):
        program = "my_agent"  # a module's name, or the path of a file

The program is a small agent on the adapter. It has `run(job)`, which begins it or goes on from what the store at
`job.url` has of it, and answers what the agent comes to; and `fork(job)`, which goes on from the checkpoint after step
`job.at_step` with `job.task` as its input, on a branch, and answers too. Either may be async. Each of the `job.steps`
steps calls `job.work(step, *seen)` for its work, and is checkpointed before the next begins. (`Job` says more.)

The kit runs it in processes of their own, kills them with SIGKILL, and goes on in fresh ones. REKINDLE_TORTURE=1 makes
it long. Without `fork` the tests of forks are skipped.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from rekindle.testing.processes import AGENT, URLS, Bench, Nursery, Point, points
from rekindle.testing.program import ANSWERED, BEGIN, END, INSIDE, NO_FORK, REFUSED, Job

__all__ = ["AdapterConformance", "Job"]

TORTURE = os.environ.get("REKINDLE_TORTURE") == "1"
KILLS = 100 if TORTURE else 2
SEED = 20261120


@dataclass(frozen=True)
class Unkilled:
    """A run to the end in one go: never changed, only copied."""

    bench: Bench
    answer: str
    seconds: float
    """What the run took,"""
    working: float
    """and what of it from the beginning of the first step."""


class AdapterConformance:
    """Mix it in; see the module for how."""

    program: ClassVar[str | Path]
    steps: ClassVar[int] = 3
    """At least three: a first, one in the middle, a last."""
    warm: ClassVar[bool] = False
    """Import the program once, and fork each process from there: for frameworks that take long to import, and start no
    threads when they are. (Where there is no fork, each process imports it.)"""
    imports: ClassVar[Sequence[str]] = ()
    """Modules that register what types the states hold, for `verify(restore=True)`."""

    @pytest.fixture(scope="class", params=URLS)
    @classmethod
    def kind(cls, request: pytest.FixtureRequest) -> str:
        if request.param == "files" and sys.platform == "win32":
            pytest.skip("there is no files storage on Windows")
        return str(request.param)

    @pytest.fixture(scope="class")
    @classmethod
    def nursery(cls) -> Iterator[Nursery | None]:
        nursery = Nursery(os.fspath(cls.program)) if cls.warm and hasattr(os, "fork") else None
        yield nursery
        if nursery is not None:
            nursery.close()

    @pytest.fixture(scope="class")
    @classmethod
    def unkilled(cls, kind: str, nursery: Nursery | None, tmp_path_factory: pytest.TempPathFactory) -> Unkilled:
        bench = Bench(tmp_path_factory.mktemp("unkilled"), os.fspath(cls.program), kind, cls.steps, nursery)
        started = time.monotonic()
        try:
            running = bench.start(stop=(BEGIN, 1))
            running.must_stop((BEGIN, 1))
            began = time.monotonic()
            running.go_on()
            answer, ended = running.must_answer(), time.monotonic()
        finally:
            bench.close()
        return Unkilled(bench, answer, ended - started, ended - began)

    @pytest.fixture
    def bench(self, unkilled: Unkilled, tmp_path: Path) -> Iterator[Bench]:
        """Nothing in it yet."""
        bench = unkilled.bench.anew(tmp_path / "bench")
        yield bench
        bench.close()

    @pytest.fixture
    def finished(self, unkilled: Unkilled, tmp_path: Path) -> Iterator[Bench]:
        bench = unkilled.bench.copy(tmp_path / "finished")
        (bench.folder / "effects.txt").unlink()
        yield bench
        bench.close()

    def _each(self, times: int = 1, begin: int = 1) -> Counter[int]:
        return Counter(dict.fromkeys(range(begin, self.steps + 1), times))

    # -- to the end, and killed --------------------------------------------------------------------------------------

    def test_it_runs_to_the_end_and_does_each_step_once(self, unkilled: Unkilled) -> None:
        done = unkilled.bench.effects()
        assert done == self._each(), f"steps 1 to {self.steps} are to be done, each once: {done}"

    def test_its_history_is_in_the_store(self, unkilled: Unkilled, finished: Bench) -> None:
        came = finished.saved_steps()
        assert sorted(came) == list(self._each()), "what work() answered is to be found in the states, as text"
        seqs = [came[step][0].seq for step in sorted(came)]
        assert seqs == sorted(set(seqs)), f"each step is to be checkpointed before the next begins: {seqs}"
        with finished.store() as store:
            assert AGENT in store.agents(), "the store is to know the agent by its id"
            history = store.history(AGENT)
            last, path = came[self.steps]
            assert {checkpoint.id for checkpoint, _ in came.values()} <= {checkpoint.id for checkpoint in history}
            for step in range(2, self.steps + 1):
                assert store.diff(came[step - 1][0], came[step][0]), f"nothing changed in step {step}"
            blamed = [checkpoint.id for checkpoint in store.blame(AGENT, path)]
            assert last.id in blamed, f"{last.id} brought {path}, and blame knows {blamed}"
            report = store.verify(restore=True, imports=self.imports)
            assert report, report.problems

    def test_killed_at_every_boundary_and_inside_every_step(self, bench: Bench, unkilled: Unkilled) -> None:
        """One agent, killed in one process after the other: each goes on where the one before had come to."""
        for point in points(self.steps):
            bench.kill_at(point)
            self._must_have_saved_up_to(point, bench)
        self._must_be(unkilled.answer, bench.run())
        assert bench.effects() == self._each(2), (
            f"once before the kill inside it, once after, and never once it was saved: {bench.effects()}"
        )

    def _must_be(self, unkilled: str, answer: str, when: str = "") -> None:
        assert answer == unkilled, f"{when}it answered {answer}, and {unkilled} where nobody killed it"

    def _must_have_saved_up_to(self, point: Point, bench: Bench) -> None:
        moment, step = point
        done = self.steps if moment == END else step - 1
        saved = sorted(bench.saved_steps())
        assert saved == list(range(1, done + 1)), f"killed at {moment} {step}, and the store has steps {saved}"

    def test_killed_at_random_moments(self, bench: Bench, unkilled: Unkilled) -> None:
        rng = random.Random(SEED)
        print(f"seed {SEED}, {KILLS} kills")
        for n in range(KILLS):
            if n % 5 == 4 or len(bench.saved_steps()) == self.steps:
                bench = bench.anew(bench.folder.with_name(f"anew-{n}"))
            if n % 2:
                running = bench.start()
            else:  # the short time in which it works is hit more often so
                point = (BEGIN, len(bench.saved_steps()) + 1)
                running = bench.start(stop=point)
                running.must_stop(point)
                running.go_on()
            time.sleep(rng.uniform(0, unkilled.seconds if n % 2 else unkilled.working))  # wherever it is by then
            running.kill()
            before, saved = bench.effects(), bench.saved_steps()
            copy = bench.copy(bench.folder.with_name(f"copy-{n}"))
            self._must_be(unkilled.answer, copy.run(), f"kill {n} of seed {SEED}: ")
            again = {step for step in saved if copy.effects()[step] != before[step]}
            assert not again, f"kill {n} of seed {SEED}: steps {again} were saved, and done again"

    def test_a_copy_of_the_store_goes_on_too_and_twice_is_as_once(
        self, bench: Bench, unkilled: Unkilled, tmp_path: Path
    ) -> None:
        bench.kill_at((INSIDE, 2))
        copy = bench.copy(tmp_path / "copy")
        for each in (copy, bench):
            self._must_be(unkilled.answer, each.run())
            assert each.effects() == self._each() + Counter([2]), f"done so often: {each.effects()}"
        self._must_be(unkilled.answer, bench.run())
        assert bench.effects() == self._each() + Counter([2]), "what is finished is not done again"

    # -- forks -------------------------------------------------------------------------------------------------------

    def test_forks_from_the_middle_go_another_way(self, finished: Bench, unkilled: Unkilled) -> None:
        before = self._everything(finished)
        middle = self.steps // 2
        answers = [unkilled.answer]
        for count, task in enumerate(("another task", "a third"), 1):
            running = finished.start("fork", at_step=middle, task=task)
            told = running.tells()
            if told["what"] == NO_FORK:
                pytest.skip("this program has no fork")
            assert told["what"] == ANSWERED, told.get("error")
            answers.append(told["answer"])
            assert finished.effects() == self._each(count, middle + 1), "steps before the fork are not done again"
        assert len(set(answers)) == 3, f"another input has to give another answer: {answers}"
        after = self._everything(finished)
        assert {each: after.get(each) for each in before} == before, "a fork leaves what was there as it was"
        with finished.store() as store:
            assert store.verify()

    def _everything(self, bench: Bench) -> dict[str, tuple[str, str | None, object]]:
        with bench.store() as store:
            found = store.list(AGENT, limit=None)
            return {c.id: (c.digest, c.parent_checkpoint_id, repr(c.state)) for c in found}

    # -- two at once -------------------------------------------------------------------------------------------------

    def test_of_two_processes_at_once_none_is_lost_silently(self, bench: Bench) -> None:
        """Both go on from the first step. Both are kept, or one is told by an error."""
        running = {}
        for who in (" of one", " of two"):
            running[who] = bench.start(stop=(INSIDE, 2), who=who)
            running[who].must_stop((INSIDE, 2))
        for each in running.values():
            each.go_on()
        ends = {who: each.tells() for who, each in running.items()}
        assert all(end["what"] in (ANSWERED, REFUSED) for end in ends.values()), ends
        answered = [who for who, end in ends.items() if end["what"] == ANSWERED]
        assert answered, f"nobody came through: {ends}"
        for who in answered:
            assert set(bench.saved_steps(who)) >= {*range(2, self.steps + 1)}, f"what was done{who} is lost"
        assert bench.effects()[1] == 1, "the first step was saved, and done again"
        with bench.store() as store:
            assert store.verify()
