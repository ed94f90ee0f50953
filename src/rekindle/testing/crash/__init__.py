"""Power cuts without power: a simulated disk, SQLite and files on it, and every state a cut could leave.

    disk = SimDisk()
    db = connect(disk, "store.db")            # SQLite; or SimFiles(disk) for a storage made of files
    ...                                       # after each save that has returned:
    disk.mark(7)
    for state in crash_states(disk.recording()):
        again = connect(state.disk(), "store.db")
        ...                                   # everything in state.marks must be there, whole

`connect` needs apsw.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rekindle.testing.crash.disk import SimDisk
from rekindle.testing.crash.files import SimFiles
from rekindle.testing.crash.log import Image, Recording
from rekindle.testing.crash.states import CrashState, crash_states

if TYPE_CHECKING:
    from rekindle.testing.crash.vfs import SimConnection

__all__ = ["CrashState", "Image", "Recording", "SimDisk", "SimFiles", "connect", "crash_states"]


def connect(disk: SimDisk, name: str, *, exclusive: bool = True) -> SimConnection:
    """Open, or make, the SQLite database of this name on the disk: see `vfs.connect`."""
    from rekindle.testing.crash import vfs

    return vfs.connect(disk, name, exclusive=exclusive)
