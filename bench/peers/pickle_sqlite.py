"""What many write themselves: the whole state pickled into a row."""

from __future__ import annotations

import pickle  # noqa: TID251 - this is what a peer does
import sqlite3
from pathlib import Path

from bench.measure import folder_bytes
from bench.payloads import State


class PickleSqlite:
    name = "pickle into SQLite"
    durability = "WAL, synchronous=FULL"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._db = sqlite3.connect(folder / "states.db")
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("CREATE TABLE states (id INTEGER PRIMARY KEY, thread TEXT NOT NULL, state BLOB NOT NULL)")
        self._db.execute("CREATE INDEX by_thread ON states (thread, id)")

    def save(self, thread: str, state: State) -> None:
        with self._db:
            blob = pickle.dumps(state, protocol=5)
            self._db.execute("INSERT INTO states (thread, state) VALUES (?, ?)", (thread, blob))

    def restore_latest(self, thread: str) -> State:
        query = "SELECT state FROM states WHERE thread = ? ORDER BY id DESC LIMIT 1"
        state: State = pickle.loads(self._db.execute(query, (thread,)).fetchone()[0])
        return state

    def close(self) -> None:
        self._db.close()

    def bytes_held(self) -> int:
        return folder_bytes(self._folder)
