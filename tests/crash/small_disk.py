"""A real small disk, filled up or made read-only under an open store.

Run by test_small_disk.py in a mount namespace of its own, whose end takes every mount with it:
unshare --mount python -m tests.crash.small_disk FOLDER KIND SCENE
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.crash.saver import state_of

from rekindle.errors import UnavailableError
from rekindle.store import open_store
from rekindle.store.saving import filling
from rekindle.store.store import Store

CANNOT = 77
URLS = {"sqlite": "sqlite:///{}/store.db", "files": "file://{}/store"}


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=30)


def refused(call: Callable[[], object], code: str) -> None:
    with pytest.raises(UnavailableError) as told:
        call()
    assert told.value.code == code, f"{told.value.code}: {told.value}"
    assert told.value.hint, told.value


def keeps(store: Store, saved: dict[str, int]) -> None:
    assert not store.verify().problems, store.verify().problems
    for id_, number in saved.items():
        assert store.restore(id_) == state_of(number), number
    listed = store.list(limit=None)
    assert all(c.state == state_of(c.state["number"]) for c in listed), "something half is listed"
    assert len(listed) <= len(saved) + 1, f"{len(listed)} are listed, {len(saved)} were promised"


def full(mount: Path, url: str) -> None:
    """Filled up, refused, filled by every verb, space made, and on it goes in the same open store."""
    ballast = mount / "ballast"
    ballast.write_bytes(bytes(300_000))
    saved: dict[str, int] = {}
    code = ""
    with open_store(url) as store:
        for number in range(1, 1_000):
            try:
                saved[store.save("chat", state_of(number)).id] = number
            except UnavailableError as e:
                code = e.code
                break
        assert (code, 3 < len(saved) < 900) == ("disk-full", True)
        for _ in range(3):
            refused(lambda: store.save("chat", state_of(7_000)), "disk-full")
        keeps(store, saved)
        ballast.unlink()
        saved[store.save("chat", state_of(1_000)).id] = 1_000
        keeps(store, saved)
    with open_store(url) as store:
        keeps(store, saved)


def read_only(mount: Path, url: str) -> None:
    """Neither opened nor made anew on a read-only disk; as it was when that can be written again."""
    with open_store(url) as store:
        saved = {store.save("chat", state_of(number)).id: number for number in (1, 2, 7)}
    run("mount", "-o", "remount,ro", str(mount))
    refused(lambda: open_store(url), "not-writable")
    refused(lambda: open_store(url.replace("store", "another")), "not-writable")
    run("mount", "-o", "remount,rw", str(mount))
    with open_store(url) as store:
        keeps(store, saved)
        saved[store.save("chat", state_of(4)).id] = 4
        keeps(store, saved)


SCENES = {"full": full, "read-only": read_only}


def main(folder: str, kind: str, scene: str) -> None:
    mount = Path(folder)
    try:
        run("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder)
    except subprocess.SubprocessError as e:
        print(e, getattr(e, "stderr", ""))
        sys.exit(CANNOT)
    filling.SPILL = 20_000
    SCENES[scene](mount, URLS[kind].format(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
