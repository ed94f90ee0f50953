"""Several files of a store changed as one."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from contextlib import suppress

from ..disk import Disk
from .layout import INTENTS
from .readable import document, open_document

Step = tuple[str, str, str]
"""("write", path under the root, text) or ("delete", path, "")."""

_TURN = re.compile("turn-([0-9]+)")
"""The name of an empty file: how often several files were changed as one."""


class Intents:
    """Several files changed as one: the steps are written down first, and whoever finds them takes them.

    Every call but `seen` and `pending` is for the holder of the store's lock.
    """

    def __init__(self, disk: Disk, root: str) -> None:
        self._disk = disk
        self._root = root
        self._folder = posixpath.join(root, INTENTS)

    def seen(self) -> list[str]:
        """Where two answers are alike and nothing was pending, nothing was half at any time between them."""
        return self._disk.listdir(self._folder)

    def pending(self) -> list[str]:
        return pending_of(self.seen())

    def commit(self, steps: Sequence[Step], *, undo: bool) -> None:
        """All steps, durably, or after a crash all later. `undo`: new files are taken back on an error."""
        path = posixpath.join(self._folder, "1.json")
        self._disk.write_new(path, document({"steps": [list(step) for step in steps]}))
        try:
            self._take(steps)
        except OSError:
            if undo:
                with suppress(OSError):
                    self._take([("delete", where, "") for _, where, _ in steps])
                    self._forget(path)
            raise
        self._forget(path)

    def finish(self) -> None:
        """Take the steps again that a crash left."""
        for name in self.pending():
            path = posixpath.join(self._folder, name)
            self._take(open_document(self._disk.read(path), path)["steps"])
            self._forget(path)

    def _take(self, steps: Sequence[Sequence[str]]) -> None:
        emptied = set()
        for verb, where, text in steps:
            path = posixpath.join(self._root, where)
            if verb == "write":
                self._disk.replace(path, text.encode())
                continue
            with suppress(FileNotFoundError):
                self._disk.unlink(path)
            emptied.add(posixpath.dirname(path))
        for folder in emptied:
            with suppress(FileNotFoundError):
                self._disk.sync_dir(folder)

    def _forget(self, path: str) -> None:
        self._turn()
        # durably: taken again later, the steps would undo what has come in their place
        self._disk.unlink(path)
        self._disk.sync_dir(self._folder)

    def _turn(self) -> None:
        """Before an intent goes: a reader that saw none before and sees none after has to see this."""
        turns = {int(match[1]): name for name in self.seen() if (match := _TURN.fullmatch(name))}
        last = max(turns, default=0)
        next_one = posixpath.join(self._folder, f"turn-{last + 1}")
        if turns:
            self._disk.rename(posixpath.join(self._folder, turns[last]), next_one)
        else:
            self._disk.close(self._disk.create(next_one))


def pending_of(seen: Sequence[str]) -> list[str]:
    """Of what lies in the folder: the intents."""
    return [name for name in seen if not _TURN.fullmatch(name)]
