"""`rekindle.track` keeps what every adapter has to; and the kit finds those that do not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from rekindle.testing.adapter import AdapterConformance, Unkilled
from rekindle.testing.processes import Bench, Nursery

HERE = Path(__file__).parent
BROKEN = HERE / "broken_agent.py"


class TestAnObject(AdapterConformance):
    program = HERE / "little_agent.py"


class TestADictAwaited(AdapterConformance):
    program = HERE / "little_async_agent.py"
    warm = hasattr(os, "fork")


class Kit(AdapterConformance):
    program = BROKEN


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Unkilled:
    """What the program does where nothing is wrong with it."""
    bench = Bench(tmp_path_factory.mktemp("sound"), str(BROKEN), "sqlite", 3)
    return Unkilled(bench, bench.run(), 1.0, 1.0)


@pytest.fixture
def bench(sound: Unkilled, tmp_path: Path) -> Iterator[Bench]:
    bench = sound.bench.anew(tmp_path / "bench")
    yield bench
    bench.close()


@pytest.fixture
def finished(sound: Unkilled, tmp_path: Path) -> Iterator[Bench]:
    copy = sound.bench.copy(tmp_path / "finished")
    (copy.folder / "effects.txt").unlink()
    yield copy
    copy.close()


@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        ("never resumes", "never once it was saved"),
        ("every second", "the store has steps"),
        ("raises", "a bug of the program"),
        ("dies", "without a word"),
    ],
)
def test_an_adapter_that_loses_work_is_found(
    wrong: str, found: str, bench: Bench, sound: Unkilled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WRONG", wrong)
    with pytest.raises(AssertionError, match=found):
        Kit().test_killed_at_every_boundary_and_inside_every_step(bench, sound)


def test_an_adapter_that_does_saved_steps_again_is_found(
    bench: Bench, sound: Unkilled, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WRONG", "never resumes")
    with pytest.raises(AssertionError):
        Kit().test_a_copy_of_the_store_goes_on_too_and_twice_is_as_once(bench, sound, tmp_path)


@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        ("fork begins anew", "are not done again"),
        ("fork keeps the input", "another input"),
        ("fork clears", "as it was"),
    ],
)
def test_a_fork_that_is_none_is_found(
    wrong: str, found: str, finished: Bench, sound: Unkilled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WRONG", wrong)
    with pytest.raises(AssertionError, match=found):
        Kit().test_forks_from_the_middle_go_another_way(finished, sound)


def test_a_conflict_that_is_hidden_is_found(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WRONG", "hides conflicts")
    with pytest.raises(AssertionError, match="is lost"):
        Kit().test_of_two_processes_at_once_none_is_lost_silently(bench)


def test_a_history_that_nobody_can_read_is_found(
    bench: Bench, sound: Unkilled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WRONG", "bytes")
    bench.run()
    with pytest.raises(AssertionError, match="as text"):
        Kit().test_its_history_is_in_the_store(sound, bench)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_program_that_cannot_be_imported_is_told_apart(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("raise ImportError('not here')")
    nursery = Nursery(str(program))
    for each in (nursery, None):
        bench = Bench(tmp_path, str(program), "sqlite", 3, each)
        with pytest.raises(AssertionError, match="without a word"):
            bench.run()
        bench.close()
        assert "not here" in (bench.folder / "said.txt").read_text() or each is nursery
    nursery.close()
