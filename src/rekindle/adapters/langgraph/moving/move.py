"""A database of LangGraph's, checkpoint by checkpoint, into another saver; each is compared once it is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from ....errors import ConflictError, CorruptDataError, InvalidInputError, RekindleError
from .alike import beside, difference, lacking, same_writes
from .order import Node, Write, calls, sorted_writes
from .reading import Reader, check_encoding
from .source import Source, opened

Progress = Callable[[int, int], None] | None
Versions = dict[str, Any]
"""The version of each channel."""


@dataclass(frozen=True, slots=True)
class Moved:
    """What came over, and what was there. All of it was compared with what their own code reads."""

    threads: int = 0
    checkpoints: int = 0
    """That were new."""
    known: int = 0
    """That were there before."""
    writes: int = 0
    """Pending writes that were new."""
    cut: int = 0
    """New checkpoints whose parent is not in the database any more: they begin a history."""
    orphans: int = 0
    """Pending writes that stayed behind, because their checkpoint is not in the database any more."""


def move(
    source: Path, saver: BaseCheckpointSaver[Any], *, thread: str | None = None, progress: Progress = None
) -> Moved:
    """Bring every thread of the database at `source` into `saver`; each checkpoint is read back and compared.

    The database is not changed. What is there already is compared and not written again, so a move that ended half way
    goes on where it was. One checkpoint is in memory at a time. With `thread` the only thread becomes that one.

    InvalidInputError for a database that is none of theirs (`not-langgraph`) and for a value whose class is not
    registered (`type-unregistered`); UnsupportedError for rows that are pickled or encrypted; ConflictError
    (`other-content`) where the saver has another checkpoint of the same id. What came over before that stays.
    """
    with opened(source) as database:
        threads = database.threads()
        if thread is not None and len(threads) != 1:
            raise InvalidInputError(
                "several-threads", f"{source} holds {len(threads)} threads, and one name was given for them",
                hint="without a name each comes in under its own",
            )  # fmt: skip
        total, moved = database.count(), Moved(len(threads), orphans=database.orphans())
        for name in threads:
            with database.standing_still():
                for step in _Thread(database, saver, name, thread or name).moved():
                    moved = _sum(moved, step)
                    if progress is not None:
                        progress(moved.checkpoints + moved.known, total)
    return moved


@dataclass
class _Thread:
    """One thread on its way. `versions` are those of checkpoints whose children are still to come."""

    source: Source
    saver: BaseCheckpointSaver[Any]
    name: str
    new_name: str
    reader: Reader = field(default_factory=Reader)
    versions: dict[tuple[str, str], list[Any]] = field(default_factory=dict)

    def moved(self) -> Iterator[Moved]:
        """Moves one checkpoint after the other, and answers what each came to."""
        with self._named(None):
            for kind in self.source.encodings(self.name):
                check_encoding(kind)
        for node in self.source.nodes(self.name):
            with self._named(node):
                yield self._one(node)

    def _one(self, node: Node) -> Moved:
        row, kept = self.source.checkpoint(self.name, node)
        rows = sorted_writes(self.source.writes(self.name, node))
        checkpoint, metadata = self.reader.read(*row), self.reader.metadata(kept)
        if not isinstance(checkpoint, dict) or checkpoint.get("id") != node.id:
            raise CorruptDataError("bad-row", "what is stored is not the checkpoint of that id")
        writes = [replace(w, value=self.reader.read(*w.value)) for w in rows]
        parent, before = self._parent(node)
        self._remember(node, checkpoint)
        there = self._there(node)
        if there is None:
            versions = checkpoint.get("channel_versions") or {}
            changed = {name: v for name, v in versions.items() if before.get(name, ...) != v}
            self.saver.put(self._config(node.namespace, parent), checkpoint, metadata, changed)  # type: ignore[arg-type]
        pending = (there.pending_writes if there is not None else None) or []
        missing = lacking(pending, writes)
        for call in calls([*missing, *beside(pending, missing)]):
            self.saver.put_writes(self._config(node.namespace, node.id), call.writes, call.task_id, call.task_path)
        expected = self._as_theirs(node, row, metadata, rows, parent)
        if there is None:
            self._check_new(expected, self._there(node))
        else:
            self._check_known(expected, self._there(node) if missing else there, writes)
        new = there is None
        return Moved(0, int(new), int(not new), len(missing), int(new and node.cut and parent is None))

    def _parent(self, node: Node) -> tuple[str | None, Versions]:
        """The parent to put it on, and that one's versions; nothing where the parent is gone."""
        if node.parent is None:
            return None, {}
        if not node.cut:
            entry = self.versions[node.namespace, node.parent]
            entry[1] -= 1
            if not entry[1]:
                del self.versions[node.namespace, node.parent]
            return node.parent, entry[0]
        there = self.saver.get_tuple(self._config(node.namespace, node.parent))  # it came over before it went
        return (None, {}) if there is None else (node.parent, there.checkpoint["channel_versions"])

    def _remember(self, node: Node, checkpoint: dict[str, Any]) -> None:
        if node.children:
            self.versions[node.namespace, node.id] = [checkpoint.get("channel_versions") or {}, node.children]

    def _as_theirs(self, node: Node, row: Any, metadata: Any, rows: list[Write], parent: str | None) -> CheckpointTuple:
        """What their own code reads of the checkpoint."""
        theirs = self.reader.as_theirs
        return CheckpointTuple(
            self._config(node.namespace, node.id),
            theirs(*row),
            metadata,
            self._config(node.namespace, parent) if parent is not None else None,
            [(w.task_id, w.channel, theirs(*w.value)) for w in rows],
        )

    def _check_new(self, expected: CheckpointTuple, found: CheckpointTuple | None) -> None:
        what = "the checkpoint" if found is None else difference(expected, found)
        if (
            what is None
            and found is not None
            and not same_writes(expected.pending_writes or [], found.pending_writes or [])
        ):
            what = "a pending write"
        if what is not None:
            raise CorruptDataError("came-back-different", f"{what} did not come back as it is", hint="please report it")

    def _check_known(self, expected: CheckpointTuple, found: CheckpointTuple | None, writes: list[Write]) -> None:
        what = "the checkpoint" if found is None else difference(expected, found)
        if what is None and found is not None and lacking(found.pending_writes or [], writes):
            what = "a pending write"
        if what is not None:
            raise ConflictError(
                "other-content", f"it is here already, and {what} is another",
                hint="bring the database in to another store: --store",
            )  # fmt: skip

    def _there(self, node: Node) -> CheckpointTuple | None:
        return self.saver.get_tuple(self._config(node.namespace, node.id))

    def _config(self, namespace: str, checkpoint_id: str | None) -> RunnableConfig:
        place = {"thread_id": self.new_name, "checkpoint_ns": namespace}
        return {"configurable": place if checkpoint_id is None else {**place, "checkpoint_id": checkpoint_id}}

    @contextmanager
    def _named(self, node: Node | None) -> Iterator[None]:
        """Errors inside say of which thread and checkpoint they are."""
        try:
            yield
        except RekindleError as e:
            where = f"thread {self.name!r}"
            if node is not None:
                where += f", checkpoint {node.id}" + (f" of {node.namespace!r}" if node.namespace else "")
            raise type(e)(e.code, f"{where}: {e.message}", hint=e.hint) from e


def _sum(a: Moved, b: Moved) -> Moved:
    return Moved(
        a.threads + b.threads, a.checkpoints + b.checkpoints, a.known + b.known,
        a.writes + b.writes, a.cut + b.cut, a.orphans + b.orphans,
    )  # fmt: skip
