"""Reading a files store's folder: records, groups, agents and the two indexes, each checked as it is read."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import Any

from ...errors import RekindleError
from ...state.tree.nodes import check
from ...state.tree.slots import pack_body
from ..base import Key
from ..disk import Disk
from . import layout
from .readable import damaged, open_document, read_slot

Fields = dict[str, Any]


class Shelf:
    """What lies under `root`. Paths are told from there; errors of the disk come as they are."""

    def __init__(self, disk: Disk, root: str) -> None:
        self.disk = disk
        self.root = root
        self._agents: dict[str, Key] = {}

    def path(self, under: str) -> str:
        return posixpath.join(self.root, under)

    def names(self, under: str) -> list[str]:
        """What is in a folder; nothing where there is no such folder."""
        try:
            return self.disk.listdir(self.path(under))
        except FileNotFoundError:
            return []

    def read(self, under: str) -> Fields | None:
        """A document; None where there is none."""
        path = self.path(under)
        try:
            data = self.disk.read(path)
        except FileNotFoundError:
            return None
        return open_document(data, path)

    # -- records ------------------------------------------------------------------------------------------

    def seqs(self, key: Key) -> list[int]:
        """Ascending."""
        names = self.names(layout.agent_folder(key))
        return sorted(seq for name in names if (seq := layout.seq_of(name)) is not None)

    def record(self, key: Key, seq: int) -> Fields | None:
        path = layout.record_path(key, seq)
        fields = self.read(path) if 0 < seq < 1 << 33 else None
        if fields is not None and (fields["user"], fields["agent"], fields["seq"]) != (*key, seq):
            raise damaged(self.path(path), "is another record's")
        return fields

    def body(self, key: Key, seq: int) -> bytes | None:
        fields = self.record(key, seq)
        if fields is None:
            return None
        if "slots" not in fields:
            return self._slot(key, fields["body"])
        return pack_body([self._slot(key, shown) for shown in fields["slots"]])

    def _slot(self, key: Key, shown: Any) -> bytes:
        if shown is None:
            return b""
        return read_slot(shown) if "group" not in shown else self.group(key, shown["group"])

    def group(self, key: Key, name: str) -> bytes:
        """The slot in a file of its own."""
        path = posixpath.join(layout.agent_folder(key), layout.GROUPS, name)
        fields = self.read(path)
        if fields is None:
            raise damaged(self.path(path), "is gone")
        slot = read_slot(fields)
        if layout.group_name(fields["seq"], fields["slot"], check(slot)) != name:
            raise damaged(self.path(path), "is another group's")
        return slot

    # -- agents and indexes -------------------------------------------------------------------------------

    def keys(self, user: str | None = None) -> list[Key]:
        users = self.names(layout.USERS) if user is None else [layout.encoded(user)]
        folders = [posixpath.join(layout.USERS, name, layout.AGENTS) for name in users]
        found = [self.agent(posixpath.join(folder, name)) for folder in folders for name in self.names(folder)]
        return [key for key in found if key is not None]

    def agent(self, folder: str) -> Key | None:
        """Whose folder that is; None for one that was begun and never held a record."""
        known = self._agents.get(folder)
        if known is None:
            path = posixpath.join(folder, layout.AGENT)
            fields = self.read(path)
            if fields is None:
                if any(layout.seq_of(name) for name in self.names(folder)):
                    raise damaged(self.path(path), "is gone")
                return None
            known = Key(fields["user"], fields["agent"])
            if layout.agent_folder(known) != folder:
                raise damaged(self.path(path), "is another agent's")
            self._agents[folder] = known
        return known

    def aliased(self, user: str, alias: str) -> tuple[str, int] | None:
        """The record of that id. An entry whose record never came to be, or is gone, says nothing."""
        path = layout.alias_path(user, alias)
        entry = self.read(path)
        if entry is None:
            return None
        if (entry["user"], entry["alias"]) != (user, alias):
            raise damaged(self.path(path), "is another id's")
        fields = self.record(Key(user, entry["agent"]), entry["seq"])
        known = fields is not None and index_of(fields).get("alias") == alias
        return (entry["agent"], entry["seq"]) if known else None

    def shared(self, user: str, digest: bytes) -> tuple[str, int, int] | None:
        """Where a run lies. Its entry is a hint: it is believed where the record says the same."""
        try:
            hint = self.read(layout.shared_path(user, digest))
        except RekindleError:
            return None  # cut off by a crash: sharing is an economy, going without is right
        if hint is None:
            return None
        agent, seq, slot = hint["agent"], hint["seq"], hint["slot"]
        fields = self.record(Key(user, agent), seq)
        if fields is None or [digest.hex(), slot] not in index_of(fields).get("shared", []):
            return None
        slots = fields.get("slots", [])
        return None if slot < len(slots) and slots[slot] is None else (agent, seq, slot)

    def shared_in(self, key: Key, spans: Sequence[tuple[int, int]]) -> list[tuple[bytes, int, int]]:
        found = []
        for name in self.names(posixpath.join(layout.user_folder(key.user), layout.SHARED)):
            digest = layout.digest_of(name)
            place = None if digest is None else self.shared(key.user, digest)
            if digest is None or place is None or place[0] != key.agent:
                continue
            if any(first <= place[1] <= last for first, last in spans):
                found.append((digest, place[1], place[2]))
        return found


def index_of(fields: Fields) -> Fields:
    """What the record is found by beside its key: `alias`, `shared`."""
    found: Fields = fields.get("index", {})
    return found


def groups_of(fields: Fields) -> set[str]:
    """The group files that a record's document names."""
    shown = fields.get("slots", [fields.get("body")])
    return {slot["group"] for slot in shown if slot is not None and "group" in slot}
