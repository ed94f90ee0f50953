"""Writing into a files store's folder: what a record's file names first; the file itself is the commit."""

from __future__ import annotations

import posixpath
from contextlib import suppress

from ...errors import CorruptDataError
from ...state.tree.nodes import check
from ..base import Key, Record, Rewrite
from . import layout
from .intents import Step
from .readable import document, open_document, show_head, show_slot, slots_of
from .shelf import Fields, Shelf, groups_of, index_of

_LARGE = 4096
"""A slot of more bytes is a file of its own."""


class Filing:
    """Every call is for the holder of the store's lock."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._disk = shelf.disk
        self._made: set[str] = set()

    def prepare(self, record: Record) -> Step:
        """Write all that the record's file names; answers how to write the file."""
        key, seq = record.key, record.seq
        self._make_agent(key)
        index: Fields = {}
        if record.alias is not None:
            index["alias"] = record.alias
            self._folder(posixpath.join(layout.user_folder(key.user), layout.ALIASES))
            entry = document({"user": key.user, "alias": record.alias, "agent": key.agent, "seq": seq})
            self._disk.replace(self._shelf.path(layout.alias_path(key.user, record.alias)), entry)
        if record.shared:
            index["shared"] = [[digest.hex(), slot] for digest, slot in record.shared]
        return self._step(key, seq, record.head, record.body, index)

    def rewrite(self, edit: Rewrite) -> list[Step]:
        """How to put the edit in the place of the record; nothing where it is gone already."""
        key, path = edit.key, layout.record_path(edit.key, edit.seq)
        try:
            old = self._shelf.record(key, edit.seq)
        except CorruptDataError:
            if edit.head is not None:
                raise
            return [("delete", path, "")]
        if old is None:
            return []
        index, kept = index_of(old), set()
        if edit.head is not None:
            steps = [self._step(key, edit.seq, edit.head, edit.body, index)]
            kept = groups_of(open_document(steps[0][2].encode(), path))
        else:
            steps = [("delete", path, "")]
            if "alias" in index and self._shelf.aliased(key.user, index["alias"]) == (key.agent, edit.seq):
                steps.append(("delete", layout.alias_path(key.user, index["alias"]), ""))
        folder = posixpath.join(layout.agent_folder(key), layout.GROUPS)
        gone = sorted(groups_of(old) - kept)
        return [*steps, *(("delete", posixpath.join(folder, name), "") for name in gone)]

    def share(self, record: Record) -> None:
        """Say where large slots lie. Only a hint, so it is not synced, and may fail."""
        user = record.key.user
        for digest, slot in record.shared:
            entry = document({"agent": record.key.agent, "seq": record.seq, "slot": slot})
            path = self._shelf.path(layout.shared_path(user, digest))
            with suppress(OSError):
                self._folder(posixpath.join(layout.user_folder(user), layout.SHARED))
                with suppress(FileNotFoundError):
                    self._disk.unlink(path)
                handle = self._disk.create(path)
                try:
                    self._disk.write(handle, memoryview(entry))
                finally:
                    self._disk.close(handle)

    def _step(self, key: Key, seq: int, head: bytes, body: bytes, index: Fields) -> Step:
        fields: Fields = {"user": key.user, "agent": key.agent, "seq": seq, **show_head(head)}
        if index:
            fields["index"] = index
        slots = slots_of(body)
        if slots is not None:
            fields["slots"] = [self._slot(key, seq, i, slot) for i, slot in enumerate(slots)]
        else:
            fields["body"] = self._slot(key, seq, 0, body)
        return "write", layout.record_path(key, seq), document(fields).decode()

    def _slot(self, key: Key, seq: int, number: int, slot: bytes) -> Fields | None:
        """What stands for a slot in a record's file: the slot, or the name of the file that holds it."""
        if not slot:
            return None
        shown = show_slot(slot)
        if len(slot) <= _LARGE:
            return shown
        folder = posixpath.join(layout.agent_folder(key), layout.GROUPS)
        self._folder(folder)
        name = layout.group_name(seq, number, check(slot))
        fields = {"user": key.user, "agent": key.agent, "seq": seq, "slot": number, **shown}
        self._disk.replace(self._shelf.path(posixpath.join(folder, name)), document(fields))
        return {"group": name}

    def _make_agent(self, key: Key) -> None:
        folder = layout.agent_folder(key)
        if folder in self._made:
            return
        self._folder(folder)
        entry = document({"user": key.user, "agent": key.agent})
        try:
            with suppress(FileExistsError):
                self._disk.write_new(self._shelf.path(posixpath.join(folder, layout.AGENT)), entry)
        except OSError:
            self._made.discard(folder)
            raise

    def _folder(self, under: str) -> None:
        if under not in self._made:
            self._disk.mkdir(self._shelf.path(under))
            self._made.add(under)
