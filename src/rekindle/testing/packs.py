"""What the packs of every storage must do: the part of StorageConformance that is about large byte strings."""

from __future__ import annotations

import random

import pytest

from rekindle.errors import CorruptDataError
from rekindle.storage.base import Storage


class PacksConformance:
    def _again(self, storage: Storage) -> Storage:
        raise NotImplementedError

    def test_a_pack_is_a_stream_in_and_ranges_out(self, storage: Storage) -> None:
        pack_id, parts = b"p" * 16, [random.Random(n).randbytes(50_000) for n in range(3)]
        writer = storage.packs.create(pack_id)
        assert [writer.append(part) for part in parts] == [0, 50_000, 100_000]
        writer.seal()
        for packs in (storage.packs, self._again(storage).packs):
            assert packs.read(pack_id, 0, 150_000) == b"".join(parts)
            assert packs.read(pack_id, 49_999, 2) == parts[0][-1:] + parts[1][:1]
            assert packs.read(pack_id, 150_000, 0) == b""
            assert packs.list() == [(pack_id, 150_000)]

    def test_a_pack_that_is_not_there_or_too_short_is_damage(self, storage: Storage) -> None:
        writer = storage.packs.create(b"p" * 16)
        writer.append(b"12345")
        writer.seal()
        for pack_id, offset, length in ((b"q" * 16, 0, 1), (b"p" * 16, 3, 3), (b"p" * 16, 9, 1)):
            with pytest.raises(CorruptDataError):
                storage.packs.read(pack_id, offset, length)

    def test_packs_are_deleted_aborted_and_abandoned(self, storage: Storage) -> None:
        for name in (b"a" * 16, b"b" * 16, b"c" * 16):
            writer = storage.packs.create(name)
            writer.append(b"123")
            if name == b"a" * 16:
                writer.seal()
            elif name == b"b" * 16:
                writer.abort()
        del writer  # the third is abandoned: a crash would leave it so
        assert sorted(name for name, _ in storage.packs.list()) == [b"a" * 16, b"c" * 16]
        for _ in range(2):
            storage.packs.delete(b"a" * 16)
            storage.packs.delete(b"c" * 16)
        assert storage.packs.list() == []
