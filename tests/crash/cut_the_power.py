"""A power cut on a real file system: an image on a loop device, shut down under a saver with nothing written back.

Run by test_power_cut.py in a mount namespace of its own, whose end takes every mount with it:
unshare --mount python -m tests.crash.cut_the_power FOLDER FS KIND DURABILITY SEED CUTS
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.crash import promises
from tests.crash.promises import Lines

from rekindle.errors import RekindleError

SHUTDOWN = 0x8004587D
"""EXT4_IOC_SHUTDOWN and XFS_IOC_GOINGDOWN alike."""
NO_LOG_FLUSH = 2
MAKE = {"ext4": ["mkfs.ext4", "-q", "-F"], "xfs": ["mkfs.xfs", "-q", "-f"]}
SIZE = {"ext4": 96 << 20, "xfs": 320 << 20}
CANNOT = 77
"""The exit code where this machine has no such thing."""


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=30)


def prepare(folder: Path, fs: str) -> tuple[Path, Path]:
    image, mount = folder / f"{fs}.img", folder / fs
    with image.open("wb") as file:
        file.truncate(SIZE[fs])
    mount.mkdir()
    run(*MAKE[fs], str(image))
    run("mount", "-o", "loop", str(image), str(mount))
    return image, mount


def cut(mount: Path) -> None:
    handle = os.open(mount, os.O_RDONLY)
    try:
        fcntl.ioctl(handle, SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
    finally:
        os.close(handle)


def cut_under(url: str, seed: int, durability: str, mount: Path, after: float) -> list[str]:
    """What a saver had said when its power went. What it says from then on may be promised of a dead disk: a sync that
    is under way at that moment is answered as if it had reached it."""
    saver = promises.start(url, seed, durability=durability)
    out = saver.stdout
    assert out is not None
    said = [out.readline()]

    def listen() -> None:
        for line in out:
            said.append(line)

    listener = threading.Thread(target=listen)
    listener.start()
    time.sleep(after)
    heard = len(said)
    cut(mount)
    saver.kill()
    listener.join()
    saver.communicate()
    return said[:heard]


def main(folder: Path, fs: str, kind: str, durability: str, seed: int, cuts: int) -> None:
    try:
        image, mount = prepare(folder, fs)
    except (subprocess.SubprocessError, OSError) as e:
        print(e, getattr(e, "stderr", ""))
        sys.exit(CANNOT)
    url = {"sqlite": f"sqlite:///{mount}/store.db", "files": f"file://{mount}/store"}[kind]
    rng = random.Random(seed)
    promised: Lines = []
    problems: list[str] = []
    for n in range(cuts):
        promised += promises.lines("".join(cut_under(url, seed + n, durability, mount, rng.uniform(0.1, 0.5))))
        run("umount", str(mount))
        run("mount", "-o", "loop", str(image), str(mount))
        try:
            problems += promises.broken(url, promised)
        except RekindleError as e:
            problems.append(repr(e))
        if problems:
            break
    run("umount", str(mount))
    print(json.dumps({"promised": len(promised), "problems": problems}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:5], int(sys.argv[5]), int(sys.argv[6]))
