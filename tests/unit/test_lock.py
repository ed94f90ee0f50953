"""The writers' lock: in turn, not for ever, and nothing left behind by who gave up."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from rekindle.errors import UnavailableError
from rekindle.storage.lock import FileLock

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no flock on Windows")


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "store.db-lock")


@pytest.fixture
def taken(path: str) -> Iterator[FileLock]:
    """Somebody else's lock, held until it is closed."""
    other = FileLock(path)
    other.__enter__()
    yield other
    other.close()


def is_free(path: str) -> bool:
    look = FileLock(path, patience=0.01)
    try:
        with look:
            return True
    except UnavailableError:
        return False
    finally:
        look.close()


def in_line() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "rekindle-lock"}


def descriptors(path: str) -> int:
    """How many of this process are open on it."""
    if sys.platform != "linux":
        return 0
    found = 0
    for fd in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # closed meanwhile
            found += os.readlink(f"/proc/self/fd/{fd}") == path
    return found


def test_who_waits_gets_it_when_it_is_let_go(path: str, taken: FileLock) -> None:
    order: list[str] = []
    mine = FileLock(path)

    def wait() -> None:
        with mine:
            order.append("mine")

    thread = threading.Thread(target=wait)
    thread.start()
    while mine._queue is None:  # it waits
        pass
    order.append("theirs")
    taken.__exit__(None, None, None)
    thread.join()
    assert order == ["theirs", "mine"]
    assert is_free(path)
    mine.close()


def test_who_waited_too_long_is_told_and_takes_nothing_later(path: str, taken: FileLock) -> None:
    others = in_line()
    mine = FileLock(path, patience=0.01)
    with pytest.raises(UnavailableError) as told, mine:
        raise AssertionError("it was not free")
    assert told.value.code == "store-busy"
    (left,) = in_line() - others  # it still stands in the kernel's queue
    taken.__exit__(None, None, None)
    left.join()  # its turn came, and it let the lock go with its descriptor
    with mine:
        assert not is_free(path)
    assert is_free(path)
    mine.close()


def test_it_is_held_again_and_again_by_whichever_way_it_was_got(path: str) -> None:
    """Contended and not, in turns: one never lets go what the other took."""
    count = [0]
    others = in_line()

    def take(rounds: int) -> None:
        mine = FileLock(path)
        for _ in range(rounds):
            with mine:
                before = count[0]
                count[0] = before + 1
        mine.close()

    threads = [threading.Thread(target=take, args=(300,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for left in in_line() - others:
        left.join()
    assert count == [1200]
    assert descriptors(path) == 0


def test_a_killed_holder_holds_nothing(path: str) -> None:
    code = f"from rekindle.storage.lock import FileLock as L; l = L({path!r}); l.__enter__(); print(1, flush=True); input()"
    holder = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"1\n"
    assert not is_free(path)
    holder.kill()
    holder.communicate()
    assert is_free(path)
