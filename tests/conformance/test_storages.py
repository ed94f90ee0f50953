"""The storages that come with rekindle keep the contract."""

from __future__ import annotations

from pathlib import Path

from rekindle.storage.base import Storage
from rekindle.storage.files import FilesStorage
from rekindle.storage.memory import MemoryStorage
from rekindle.storage.sqlite import SqliteStorage
from rekindle.testing.storage import StorageConformance


class TestMemory(StorageConformance):
    def make(self, folder: Path) -> Storage:
        return MemoryStorage()


class TestSqlite(StorageConformance):
    def make(self, folder: Path) -> Storage:
        return SqliteStorage(folder / "store.db")

    def reopen(self, storage: Storage) -> Storage:
        assert isinstance(storage, SqliteStorage)
        return SqliteStorage(storage.path)


class TestFiles(StorageConformance):
    def make(self, folder: Path) -> Storage:
        return FilesStorage(folder / "store")

    def reopen(self, storage: Storage) -> Storage:
        assert isinstance(storage, FilesStorage)
        return FilesStorage(storage.root)
