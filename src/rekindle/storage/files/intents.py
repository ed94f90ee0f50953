"""Several files of a store changed as one."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from contextlib import suppress

from ..disk import Disk
from .layout import INTENTS
from .readable import document, open_document

Step = tuple[str, str, str]
"""("write", path under the root, text) or ("delete", path, "")."""


class Intents:
    """Several files changed as one: the steps are written down first, and whoever finds them takes them.

    Every call but `pending` is for the holder of the store's lock.
    """

    def __init__(self, disk: Disk, root: str) -> None:
        self._disk = disk
        self._root = root
        self._folder = posixpath.join(root, INTENTS)

    def pending(self) -> list[str]:
        return self._disk.listdir(self._folder)

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
        # durably: taken again later, the steps would undo what has come in their place
        self._disk.unlink(path)
        self._disk.sync_dir(self._folder)
