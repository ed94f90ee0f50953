"""The slots of one record in the making. What is too much for a record is streamed into a pack."""

from __future__ import annotations

import secrets

from ...state.tree.nodes import Place
from ...storage.base import Packs, PackWriter

SPILL = 256 << 10
"""A record that holds so much lets the rest go into a pack. SQLite writes rows of some MB ten times slower than a file
is written, and memory stays bounded; for less than this a pack's own syncs cost more than they save."""


class Filling:
    """Seal it before the record is appended; abort it where the record will not be."""

    def __init__(self, packs: Packs, seq: int) -> None:
        self._packs = packs
        self._seq = seq
        self._room = SPILL
        self._pack: PackWriter | None = None
        self.slots: list[bytes] = []

    @property
    def packed(self) -> bool:
        """Whether a part of it went into a pack."""
        return self._pack is not None

    @property
    def is_full(self) -> bool:
        """Whether what comes next goes into a pack."""
        return self._room <= 0

    def put(self, slot: bytes) -> Place:
        if not self.is_full:
            self._room -= len(slot)
            self.slots.append(slot)
            return (self._seq, 1, len(self.slots) - 1)
        if self._pack is None:
            self._pack_id = secrets.token_bytes(12)
            self._pack = self._packs.create(self._pack_id)
        return (self._pack_id, self._pack.append(slot), len(slot))

    def seal(self) -> None:
        """Make durable what the record will name."""
        if self._pack is not None:
            self._pack.seal()

    def abort(self) -> None:
        """Take back what was written, sealed or not. Harmless a second time."""
        if self._pack is not None:
            self._pack.abort()
