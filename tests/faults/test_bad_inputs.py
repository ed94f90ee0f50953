"""What cannot be right is refused by an error that names what, where and what to do; and nothing is lost by it."""

import os
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from rekindle import (
    ConflictError,
    CorruptDataError,
    InvalidInputError,
    NotFoundError,
    RekindleError,
    Store,
    UnavailableError,
    UnsupportedError,
    open_store,
)
from rekindle.storage import record
from rekindle.storage.memory import MemoryStorage
from rekindle.store.engine import Engine

SCHEMES = ["memory", "sqlite", "file"]


@pytest.fixture(params=SCHEMES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory://" if request.param == "memory" else f"{request.param}:///{tmp_path}/store"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """A store with something in it, which is there, unchanged, after whatever a test has done wrong."""
    with open_store(url) as store:
        store.save("a", {"n": 1}, id="mine")
        store.save("a", {"n": 2})
        yield store
        assert [c.seq for c in store.list("a")] == [2, 1]
        assert [store.restore("a@1"), store.restore("a@2")] == [{"n": 1}, {"n": 2}]
        assert store.verify().problems == []
        store.save("a", {"n": 3})
        assert store.restore("a") == {"n": 3}


def refused(error_type: type[RekindleError], code: str, call: Any, *args: Any, says: str = "", **kwargs: Any) -> None:
    with pytest.raises(error_type) as caught:
        call(*args, **kwargs)
    error = caught.value
    assert (error.code, type(error)) == (code, error_type)
    assert says in error.message, error.message
    assert error.hint, f"{code} says nothing of what to do: {error.message}"


DEEP = 40
"""How deep every kind of container may be nested."""


class Stranger:
    pass


# -- names, kinds, parents -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["", "x" * 513, "é" * 257, "a\nb", "a\0", "\x1b[31m", "\x85", "lone \ud800", None, 7, b"bytes"]
)
def test_a_name_that_is_none_is_refused_everywhere(store: Store, name: Any) -> None:
    refused(InvalidInputError, "bad-name", store.save, name, 1)
    refused(InvalidInputError, "bad-name", store.fork, "a@1", name)
    refused(InvalidInputError, "bad-name", store.tag, "a@1", name)
    refused(InvalidInputError, "bad-name", store.for_user, name)
    if name is not None:
        refused(InvalidInputError, "bad-name", store.save, "a", 1, id=name)
        refused(InvalidInputError, "bad-name", store.save, "a", 1, branch=name)


def test_a_name_may_hold_whatever_is_no_control_character(store: Store) -> None:
    for name in ("x" * 512, "../../etc/passwd", "a/b", "CON", ".", "é\U0001f600", "A", "%2e", "~", "a@b.c", " "):
        store.save(name, name)
    assert [store.list(n)[0].agent_id for n in ("../../etc/passwd", "A", " ")] == ["../../etc/passwd", "A", " "]
    assert all(c.state == c.agent_id for n in store.agents() if n != "a" for c in store.list(n))


@pytest.mark.parametrize("label", [5, b"bytes", ["a"], "lone \ud800"])
def test_a_label_that_is_no_text_is_refused(store: Store, label: Any) -> None:
    refused(InvalidInputError, "bad-label", store.save, "a", 1, label=label)
    refused(InvalidInputError, "bad-label", store.label, "a@1", label)
    assert store.label("a@1", "a\x1b[31m\nb").label == "a\x1b[31m\nb"


def test_an_unknown_word_is_refused(store: Store) -> None:
    refused(InvalidInputError, "bad-kind", store.list, "a", kind="odd", says="odd")
    refused(InvalidInputError, "bad-kind", store.save, "a", 1, kind="odd", says="odd")
    refused(InvalidInputError, "bad-changes", store.save, "a", 1, changes="maybe", says="maybe")
    refused(InvalidInputError, "bad-limit", store.list, "a", limit=-1, says="-1")
    refused(InvalidInputError, "bad-metadata", store.save, "a", 1, metadata=[1])
    refused(InvalidInputError, "type-unregistered", store.save, "a", 1, metadata={"x": Stranger()}, says="Stranger")
    refused(InvalidInputError, "bad-every", store.set_policy, "keep-last=1", every=0, says="0")


def test_a_parent_has_to_be_a_checkpoint_of_the_agent(store: Store) -> None:
    store.save("b", 1)
    refused(InvalidInputError, "foreign-parent", store.save, "b", 2, parent="a@1", says="'a'")
    refused(NotFoundError, "checkpoint-not-found", store.save, "a", 2, parent="a@9", says="9")
    refused(NotFoundError, "nothing-named", store.save, "a", 2, parent="chk_1-aaaaaaaabbbbbb", says="chk_1")
    refused(NotFoundError, "branch-not-found", store.save, "a", 2, branch="gone", says="gone")
    assert [c.seq for c in store.list("b")] == [1]


def test_a_pruned_parent_is_refused_until_the_prune_is_undone(store: Store) -> None:
    old, new = (store.get(f"a@{n}") for n in (1, 2))
    store.prune("keep-last=1", agent_id="a")
    with pytest.raises(NotFoundError):
        store.save("a", {"n": 9}, parent=old)
    with pytest.raises(NotFoundError):
        store.save("a", {"n": 9}, parent=old.id)
    store.undo()
    assert [c.id for c in store.list("a")] == [new.id, old.id]


def test_strict_refuses_a_head_that_moved(store: Store) -> None:
    refused(ConflictError, "head-moved", store.save, "a", 9, parent="a@1", strict=True, says="'main'")


def test_an_id_belongs_to_one_checkpoint(store: Store) -> None:
    refused(ConflictError, "id-taken", store.save, "other", 1, id="mine", says="'a'")
    assert store.save("a", {"n": "ignored"}, id="mine").seq == 1


def test_a_deleted_agent_refuses_late_saves(store: Store) -> None:
    store.delete("a")
    refused(ConflictError, "agent-deleted", store.save, "a", 1, says="'a'")
    store.undo()


def test_what_is_not_there_is_named(store: Store) -> None:
    refused(NotFoundError, "nothing-named", store.restore, "nobody", says="nobody")
    refused(NotFoundError, "agent-not-found", store.restore, "nobody@1", says="nobody")
    refused(NotFoundError, "checkpoint-not-found", store.restore, "a@77", says="77")
    refused(NotFoundError, "checkpoint-not-found", store.restore, "a@0", says="0")
    refused(NotFoundError, "checkpoint-not-found", store.restore, "a@-5", says="@-5: its history has 2")
    refused(NotFoundError, "agent-not-found", store.branches, "nobody", says="nobody")
    refused(NotFoundError, "branch-not-found", store.delete_branch, "a", "b", says="'b'")
    refused(NotFoundError, "tag-not-found", store.untag, "a", "t", says="'t'")
    refused(ConflictError, "main-stays", store.delete_branch, "a", "main")
    refused(NotFoundError, "no-operation", store.undo, 99, says="99")


# -- states ----------------------------------------------------------------------------------------------------


def test_a_state_that_contains_itself_is_refused(store: Store) -> None:
    cyclic: list[Any] = [1]
    cyclic.append({"again": cyclic})
    large: dict[str, Any] = {"text": "x" * 10_000}
    large["me"] = large
    for state in (cyclic, large, {"deep": {"in": cyclic}}):
        with pytest.raises(InvalidInputError) as caught:
            store.save("a", state)
        assert caught.value.code in ("too-deep", "state-cycle")
        assert caught.value.hint


@pytest.mark.parametrize("size", [1, 10_000])
@pytest.mark.parametrize("around", ["list", "dict", "tuple"])
def test_a_state_nested_too_deep_is_refused_and_a_deep_one_comes_back(store: Store, around: str, size: int) -> None:
    def nested(depth: int) -> Any:
        value: Any = "x" * size
        for _ in range(depth):
            value = [value] if around == "list" else {"k": value} if around == "dict" else (value,)
        return value

    store.save("deep", nested(DEEP))
    assert store.restore("deep") == nested(DEEP)
    refused(InvalidInputError, "too-deep", store.save, "deep", nested(5_000))
    assert [c.seq for c in store.list("deep")] == [1]


def test_a_type_nobody_registered_is_named_with_its_place(store: Store) -> None:
    bad = {"messages": [{"role": "user"}, {"role": "tool", "result": Stranger()}]}
    refused(InvalidInputError, "type-unregistered", store.save, "a", bad, says="messages[1].result")
    refused(InvalidInputError, "type-unregistered", store.save, "a", {"x": ["y" * 9_000, bad]}, says="Stranger")
    refused(InvalidInputError, "type-unregistered", store.save, "a", Stranger(), says="Stranger")
    refused(InvalidInputError, "type-unregistered", store.save, "a", {Stranger(): 1}, says="Stranger")


def test_huge_and_odd_keys_come_back(store: Store) -> None:
    state = {2**3000: 1, -(2**70): 2, "k" * 200_000: 3, "\ud800": 4, ("a", (None, 1.5)): 5, None: 6, "": 7}
    store.save("keys", state)
    assert list(store.restore("keys").items()) == list(state.items())


def test_a_state_that_changes_while_it_is_saved_harms_no_other(store: Store) -> None:
    state: dict[str, Any] = {"items": [{"n": i, "text": "x" * 50} for i in range(300)]}
    store.save("moving", state)
    kept = store.restore("moving")
    stop = threading.Event()

    def stir() -> None:
        n = 0
        while not stop.is_set():
            n += 1
            state["items"][n % 300] = {"n": n, "text": "y" * (n % 90)}
            state[f"k{n % 50}"] = n
            state.pop(f"k{(n + 25) % 50}", None)

    thread = threading.Thread(target=stir)
    thread.start()
    try:
        for _ in range(30):
            try:
                store.save("moving", state)
            except (RuntimeError, InvalidInputError):
                pass  # Python's own "changed size during iteration": refused, and nothing is kept
    finally:
        stop.set()
        thread.join()
    store.save("moving", state)
    assert store.restore("moving") == state
    assert store.restore("moving@1") == kept
    assert [len(store.restore(c)["items"]) for c in store.list("moving", limit=None)]


# -- clocks -----------------------------------------------------------------------------------------------------


def test_a_clock_that_jumps_back_turns_no_order_round() -> None:
    times = iter([1000.0, 5000.0, 10.0, 20.0, 4000.0])
    now = [0.0]

    def clock() -> float:
        now[0] = next(times, now[0])
        return now[0]

    store = Store(Engine(MemoryStorage(), clock=clock), "local")
    for n in range(5):
        store.save("a", n)
    assert [c.seq for c in store.list("a")] == [5, 4, 3, 2, 1]
    assert [c.seq for c in store.list()] == [5, 4, 3, 2, 1]
    assert [c.seq for c in store.history("a")] == [5, 4, 3, 2, 1]
    assert store.restore("a") == 4
    assert [c.timestamp.timestamp() for c in store.list("a")] == [4000, 20, 10, 5000, 1000]
    kept = store.prune("keep-last=2").keep
    assert sorted(d.candidate.seq for d in kept) == [4, 5]


# -- files that are no store -------------------------------------------------------------------------------------


def test_a_file_that_is_no_store_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("dear diary, this is not a database at all")
    refused(InvalidInputError, "not-a-store", open_store, str(text), says="notes.txt")
    assert text.read_text() == "dear diary, this is not a database at all"
    refused(InvalidInputError, "not-a-store", open_store, f"file://{text}", says="notes.txt")

    other = tmp_path / "other.db"
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE users (name TEXT)")
    db.close()
    before = other.read_bytes()
    refused(InvalidInputError, "not-a-store", open_store, str(other), says="other.db")
    with sqlite3.connect(other) as db:
        assert db.execute("SELECT name FROM sqlite_master").fetchall() == [("users",)]
    db.close()
    assert other.read_bytes() == before, "another program's database was written to"

    refused(InvalidInputError, "not-a-store", open_store, str(tmp_path), says="folder")
    refused(InvalidInputError, "not-a-store", open_store, f"file://{tmp_path}", says="other files")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["notes.txt", "other.db"]


def test_a_socket_or_a_pipe_is_no_store(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "sock"))
        with pytest.raises(RekindleError) as caught:
            open_store(str(tmp_path / "sock"))
        assert caught.value.hint
    os.mkfifo(tmp_path / "pipe")
    done: list[RekindleError] = []

    def open_it() -> None:
        try:
            open_store(str(tmp_path / "pipe"))
        except RekindleError as e:
            done.append(e)

    thread = threading.Thread(target=open_it, daemon=True)
    thread.start()
    thread.join(5)
    assert not thread.is_alive(), "it waits for a writer of the pipe"
    assert done[0].hint


def test_an_empty_file_becomes_a_store_and_a_missing_one_only_where_asked(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with open_store(str(tmp_path / "empty")) as store:
        store.save("a", 1)
    for url in (f"{tmp_path}/none", f"sqlite:///{tmp_path}/none", f"file://{tmp_path}/none"):
        refused(UnavailableError, "no-store", open_store, url, create=False, says="none")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("scheme", ["sqlite:///", "file://"])
def test_a_store_stays_where_it_was_opened_wherever_the_process_goes(
    scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    large = os.urandom(5 << 20)  # more than a record takes: it goes into a pack
    with open_store(f"{scheme}there") as store:
        monkeypatch.chdir("elsewhere")
        store.save("a", large)
        assert threaded(lambda: store.restore("a")) == large
        assert store.verify(restore=True)
    assert os.listdir(".") == []
    with open_store(f"{scheme}{tmp_path}/there") as store:
        assert store.restore("a") == large


@pytest.mark.parametrize("scheme", ["sqlite:///", "file://"])
def test_a_link_to_a_store_is_the_store(scheme: str, tmp_path: Path) -> None:
    large = os.urandom(5 << 20)
    with open_store(f"{scheme}{tmp_path}/real") as store:
        (tmp_path / "link").symlink_to("real")
        with open_store(f"{scheme}{tmp_path}/link") as linked:
            linked.save("a", large)
            assert store.restore("a") == large
            store.prune("keep-last=1")
            store.collect()
            assert linked.restore("a") == large
    assert [name for name in os.listdir(tmp_path) if name.startswith("link")] == ["link"]


def threaded(call: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


@pytest.mark.parametrize(
    "name", ["~nobody at home", "with space", "q?mode=memory", "h#x", "%41", "back\\slash", "-dash"]
)
def test_any_name_is_a_file_of_that_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for url in (f"{name}.db", f"sqlite:///{tmp_path}/{name}", f"file://{tmp_path}/{name} folder"):
        with open_store(url) as store:
            store.save("a", 1)
        with open_store(store.url) as again:
            assert again.restore("a") == 1
    assert {f"{name}.db", name, f"{name} folder"} <= set(os.listdir(tmp_path))


@pytest.mark.parametrize("url", ["", "sqlite://", "sqlite:///", "file://"])
def test_a_url_without_a_path_is_refused(url: str) -> None:
    refused(InvalidInputError, "bad-url", open_store, url)


@pytest.mark.parametrize("url", [":memory:", "memory:", "sqlite:store.db", "file:store.db"])
def test_a_url_that_is_almost_one_makes_no_file(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused(InvalidInputError, "bad-url", open_store, url, says=url)
    assert os.listdir(tmp_path) == []


def test_other_urls_and_words_are_refused() -> None:
    refused(UnsupportedError, "no-such-storage", open_store, "gopher://x/y", says="gopher")
    refused(InvalidInputError, "bad-durability", open_store, "memory://", durability="hopeful", says="hopeful")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
@pytest.mark.parametrize("scheme", ["sqlite", "file"])
def test_a_folder_that_may_not_be_written_is_named(tmp_path: Path, scheme: str) -> None:
    folder = tmp_path / "closed"
    folder.mkdir()
    folder.chmod(0o500)
    try:
        with pytest.raises(UnavailableError) as caught:
            open_store(f"{scheme}:///{folder}/store")
        assert caught.value.code == "not-writable"
        assert caught.value.hint
        assert "closed" in caught.value.message
    finally:
        folder.chmod(0o700)


@pytest.mark.parametrize("scheme", ["sqlite", "file"])
def test_a_path_below_a_file_is_named(tmp_path: Path, scheme: str) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(RekindleError) as caught:
        open_store(f"{scheme}:///{tmp_path}/file/store")
    assert caught.value.hint
    assert "file" in caught.value.message


# -- newer formats, cut files ---------------------------------------------------------------------------------------


def test_a_sqlite_store_of_a_newer_format_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with open_store(str(path)) as store:
        store.save("a", 1)
    db = sqlite3.connect(path)
    from rekindle.state.tree.nodes import check

    db.execute("PRAGMA user_version = 9")
    db.execute("UPDATE meta SET value = ?, checksum = ? WHERE name = 'format'", (b"9", check(b"format9")))
    db.commit()
    db.close()
    before = path.read_bytes()
    refused(UnsupportedError, "newer-format", open_store, str(path), says="9")
    assert path.read_bytes() == before


def test_a_header_that_says_another_format_alone_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "store"
    open_store(str(path)).close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 9")
    db.close()
    refused(CorruptDataError, "bad-header", open_store, str(path), says="store")


def test_a_record_of_a_newer_format_is_refused_and_others_are_read(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_store(url) as store:
        store.save("old", 1)
        with monkeypatch.context() as patch:
            patch.setattr(record, "FORMAT", 7)
            store.save("new", 2)
        store._engine.forget()
        refused(UnsupportedError, "newer-format", store.restore, "new@1", says="7")
        assert store.restore("old") == 1
        assert [p.code for p in store.verify().problems] == ["newer-format"]


@pytest.mark.parametrize("keep", [0, 1, 50, 100, 512, 2048, 5000, 0.5, 0.9])
def test_a_cut_off_file_is_damage_and_never_an_empty_store(tmp_path: Path, keep: float) -> None:
    path = tmp_path / "store"
    with open_store(str(path)) as store:
        for n in range(20):
            store.save("a", {"n": n, "text": "x" * 3000})
    size = path.stat().st_size
    os.truncate(path, int(size * keep) if 0 < keep < 1 else int(keep))
    if keep == 0:
        pytest.skip("an empty file is a store to be: nothing in it tells otherwise")
    try:
        with open_store(str(path), create=False) as store:
            assert not store.verify()
            with pytest.raises(CorruptDataError):
                [store.restore(c) for c in store.list("a", limit=None)]
    except (CorruptDataError, InvalidInputError) as e:
        assert e.hint


def test_a_closed_store_says_so(url: str) -> None:
    store = open_store(url)
    store.save("a", 1)
    store.close()
    store.close()
    for call in (lambda: store.save("a", 2), lambda: store.restore("a"), store.list):
        with pytest.raises(UnavailableError) as caught:
            call()
        assert caught.value.code == "closed"


def test_a_policy_that_is_none_is_refused(store: Store) -> None:
    for text in ("keep-last=0", "keep-last", "max-age=-1d", "hello=3", "kind.odd.keep-last=x", ""):
        with pytest.raises(InvalidInputError) as caught:
            store.prune(text)
        assert caught.value.hint
