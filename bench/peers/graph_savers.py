"""What a real graph is compiled with: LangGraph's SqliteSaver, and a saver that does nothing."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple, copy_checkpoint
from langgraph.checkpoint.sqlite import SqliteSaver

from bench.measure import folder_bytes


class Theirs:
    """One file, as durable as ours."""

    name = "LangGraph SqliteSaver"
    durability = "WAL, synchronous=FULL"
    delta = False

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._db = sqlite3.connect(folder / "checkpoints.sqlite", check_same_thread=False)
        self.saver = SqliteSaver(self._db)
        self.saver.setup()
        self._db.execute("PRAGMA synchronous = FULL")

    def bytes_now(self) -> int:
        """Pages, those in the write-ahead log too."""
        pages, page = (self._db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
        return int(pages * page)

    def collect(self) -> None:
        """It has no call that would."""

    def close(self) -> None:
        self._db.close()

    def bytes_held(self) -> int:
        return folder_bytes(self._folder)


class TheirsDelta(Theirs):
    """For a graph whose messages are a DeltaChannel, every setting of which is the default."""

    name = "LangGraph SqliteSaver + DeltaChannel"
    delta = True


class Nothing:
    """What is left of a run without saving: the newest checkpoint is handed back as the object it came as."""

    name = "a saver that does nothing"
    durability = "none: memory"
    delta = False

    def __init__(self, folder: Path) -> None:
        self.saver = _Last()

    def bytes_now(self) -> int:
        return 0

    def collect(self) -> None: ...

    def close(self) -> None: ...

    def bytes_held(self) -> int:
        return 0


class _Last(BaseCheckpointSaver[int]):
    """Of one thread, with whole checkpoints. Writes are dropped: a run that ends never asks for them."""

    def __init__(self) -> None:
        super().__init__()
        self._last: CheckpointTuple | None = None

    def get_tuple(self, config: Any) -> CheckpointTuple | None:
        last = self._last
        # The loop goes on from this very checkpoint and changes it: a copy of its dicts, not of the values.
        return last and last._replace(checkpoint=copy_checkpoint(last.checkpoint))

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        place = config["configurable"]
        at = {"thread_id": place["thread_id"], "checkpoint_ns": place["checkpoint_ns"]}
        saved: Any = {"configurable": at | {"checkpoint_id": checkpoint["id"]}}
        parent: Any = {"configurable": at | {"checkpoint_id": place.get("checkpoint_id")}}
        self._last = CheckpointTuple(
            saved, checkpoint, metadata, parent if place.get("checkpoint_id") else None, pending_writes=[]
        )
        return saved

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None: ...
