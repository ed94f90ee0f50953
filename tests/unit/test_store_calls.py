"""What the store's calls take and answer, beyond what they are for."""

from __future__ import annotations

import logging
import multiprocessing
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rekindle
from rekindle import InvalidInputError, NotFoundError, Store, open_store


@pytest.fixture
def store() -> Any:
    with open_store("memory://") as opened:
        for n in range(4):
            opened.save("planner", {"n": n, "list": list(range(n))})
        yield opened


REFUSED: dict[str, tuple[Callable[[Store], object], type[Exception], str]] = {
    "a kind there is not": (lambda s: s.list(kind="stepp"), InvalidInputError, "bad-kind"),
    "a history of less than nothing": (lambda s: s.history("planner", limit=-1), InvalidInputError, "bad-limit"),
    "less than no match": (lambda s: list(s.grep("x", limit=-1)), InvalidInputError, "bad-limit"),
    "a label that is no text": (lambda s: s.label("planner", 5), InvalidInputError, "bad-label"),  # type: ignore[arg-type]
    "a save with one": (lambda s: s.save("planner", {}, label=5), InvalidInputError, "bad-label"),  # type: ignore[arg-type]
    "a reference to nothing": (lambda s: s.get(None), InvalidInputError, "bad-ref"),  # type: ignore[arg-type]
    "a seq for a reference": (lambda s: s.save("planner", {}, parent=2), InvalidInputError, "bad-ref"),  # type: ignore[arg-type]
    "a policy that is a dict": (lambda s: s.prune({"keep_last": 1}), InvalidInputError, "policy-invalid"),  # type: ignore[arg-type]
    "a prune of nobody": (lambda s: s.prune("keep-last=1", agent_id="nobody"), NotFoundError, "agent-not-found"),
    "agents to clear as one text": (lambda s: s.clear("planner"), NotFoundError, "agent-not-found"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_would_be_a_shorter_answer_or_nothing_done_is_refused(store: Store, what: str) -> None:
    call, error, code = REFUSED[what]
    with pytest.raises(error) as raised:
        call(store)
    assert raised.value.code == code  # type: ignore[attr-defined]
    assert len(store.list(limit=None)) == 4
    assert store.operations() == []


def test_a_diff_shows_itself_and_has_pages(store: Store) -> None:
    store.save("planner", {"n": 9, "list": list(range(200))})
    found = store.diff("planner@4", "planner@5")
    assert found == tuple(found)
    lines = repr(found).splitlines()
    assert lines[0] == "<Changes planner@4 -> planner@5: 198 changes (197 add, 1 replace) in n, list>"
    assert lines[1].split() == ["~", "n", "3", "->", "9"]
    assert lines[-1].endswith(" more")
    assert "list[3]" in found._repr_html_()
    pages = [found.page(100, 0), found.page(100, 100)]
    assert pages[0].items + pages[1].items == found
    assert [each.next_offset for each in pages] == [100, None]


def test_a_diff_in_a_notebook_shows_the_parts_of_a_long_text_that_changed(store: Store) -> None:
    text = "word " * 200
    store.save("planner", {"notes": f"{text}will be here {text}"})
    store.save("planner", {"notes": f"{text}<b>was here {text}"})
    html = store.diff("planner@5", "planner@6")._repr_html_()
    assert "will be" in html
    assert "&lt;b&gt;was" in html


def test_blame_and_histories_show_themselves(store: Store) -> None:
    for found in (store.blame("planner", "n"), store.history("planner"), store.list("planner")):
        assert repr(found).startswith("<History of 4>")


def test_a_checkpoint_of_a_list_goes_whole_to_another_process(store: Store) -> None:
    here, there = multiprocessing.Pipe()
    here.send(store.list("planner"))
    store.close()
    assert [checkpoint.state["n"] for checkpoint in there.recv()] == [3, 2, 1, 0]


@pytest.mark.parametrize(
    "data",
    [{"id": "chk_1"}, {"id": "chk_1", "agent_id": "a", "timestamp": "noon"}, {"id": "c", "agent_id": "a", "x": 1}],
)
def test_what_is_no_checkpoint_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError) as raised:
        rekindle.Checkpoint.from_dict(data)
    assert raised.value.code == "bad-checkpoint"


@pytest.mark.parametrize(
    "name", ["PostgresCheckpointStorage", "StandardAgent", "Message", "Orchestrator", "WorkflowExecutor"]
)
def test_what_a_later_version_brings_is_not_here_as_a_stub(name: str) -> None:
    assert not hasattr(rekindle, name)
    assert name not in rekindle.__all__


def test_everything_public_comes_with_a_star() -> None:
    names: dict[str, Any] = {}
    exec("from rekindle import *", names)
    assert set(rekindle.__all__) <= names.keys()
    assert names["open_store"] is open_store


def test_a_save_is_answered_though_the_stores_policy_could_not_be_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "store.db"
    with open_store(path) as store:
        for n in range(5):
            store.save("planner", {"n": n})
        store.set_policy("keep-last=2", every=1)
    db = sqlite3.connect(path)
    with db:
        db.execute("DELETE FROM records WHERE key = (SELECT key FROM records ORDER BY key LIMIT 1 OFFSET 1)")
    db.close()
    with open_store(path) as store, caplog.at_level(logging.ERROR, "rekindle.store"):
        saved = store.save("planner", {"n": 5})
        assert store.restore(saved) == {"n": 5}
        assert [record.message for record in caplog.records] == ["policy_failed"]


@pytest.mark.parametrize("url", ["memory://", "store.db", "file://{}/folder"])
def test_a_policy_of_the_store_is_kept_after_every_so_many_saves_logged_and_undone(url: str, tmp_path: Path) -> None:
    where = url.format(tmp_path) if "/" in url else str(tmp_path / url)
    with open_store(where) as store:
        store.save("other", {})
        store.set_policy("keep-last=2", every=5)
        for n in range(4):
            store.save("planner", {"n": n})
        assert len(store.list("planner")) == 4
        store.save("planner", {"n": 4})
        assert [checkpoint.state["n"] for checkpoint in store.list("planner")] == [4, 3]
        assert [(o.verb, o.summary) for o in store.operations()][1:] == [("prune", "planner by keep-last=2")]
        store.undo()
        assert [checkpoint.state["n"] for checkpoint in store.list("planner")] == [4, 3, 2, 1, 0]


UNSAVABLE: dict[str, Any] = {
    "a masked array": np.ma.masked_array([1], [True]), "a class of arrays": np.ndarray, "a class": int, "a function": print,
    "an object": object(), "an iterator": iter(()),
}  # fmt: skip


@pytest.mark.parametrize("what", UNSAVABLE)
def test_a_state_of_what_cannot_be_stored_is_refused_with_its_place(store: Store, what: str) -> None:
    with pytest.raises(InvalidInputError) as raised:
        store.save("planner", {"tools": [{"held": UNSAVABLE[what]}]})
    assert raised.value.code == "type-unregistered"
    assert "tools[0].held" in raised.value.message


@pytest.mark.parametrize("url", ["store.db", "sqlite:///store.db", "file://folder"])
def test_a_store_stays_where_it_is_when_the_program_goes_to_another_folder(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = {"log": os.urandom(5_000_000)}  # more than a record takes: a part is a file of its own
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    with open_store(url) as store:
        monkeypatch.chdir("elsewhere")
        store.save("planner", state)
        assert store.verify(restore=True)
        child = os.fork()
        if not child:
            store.save("planner", {"by": "the child"})
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    assert list(tmp_path.joinpath("elsewhere").iterdir()) == []
    monkeypatch.chdir(tmp_path)
    with open_store(url, create=False) as store:
        assert store.restore("planner@1") == state
        assert store.restore("planner") == {"by": "the child"}


def test_what_was_collected_is_not_said_to_be_undoable_and_nothing_older_is_undone_for_it(store: Store) -> None:
    store.tag("planner@2", "kept")
    store.prune("keep-last=1")
    assert [o.undoable for o in store.operations()] == [True, True]
    store.collect()
    assert [o.undoable for o in store.operations()][:2] == [True, False]
    with pytest.raises(rekindle.ConflictError) as raised:
        store.undo()
    assert raised.value.code == "collected"
    assert store.tags("planner").keys() == {"kept"}
    store.undo(1)
    assert store.tags("planner") == {}


def test_an_export_takes_a_path(store: Store, tmp_path: Path) -> None:
    assert store.export("planner", tmp_path / "planner.rekindle") == 4
    assert len(store.import_(tmp_path / "planner.rekindle", agent_id="copy")) == 4
