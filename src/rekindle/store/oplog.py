"""Users' operation logs: folded into what they come to, and appended to by decisions on the newest."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..errors import UnavailableError
from ..state.values import codec
from ..storage.base import OPERATIONS, Append, Key, Outcome, Record, Storage
from ..storage.record import OPERATION, Head, open_head, seal
from .logged import operation_from, view_from
from .lost import lost
from .view import Edit, Operation, View, advance, destroyed, to_state

SNAPSHOT_EVERY = 64
_TRIES = 100


class OperationLog:
    """The operation logs of a storage's users, the views they fold into remembered."""

    def __init__(self, storage: Storage, commit: Callable[[Append], Outcome], now: Callable[[], int]) -> None:
        self._storage = storage
        self._commit = commit
        self._now = now
        self._views: dict[str, View] = {}
        self._deciding = threading.local()

    def saw(self, key: Key, newest: int) -> None:
        """A decision under way in this thread rests on that being the agent's newest record."""
        seen = getattr(self._deciding, "seen", None)
        if seen is not None:
            seen.setdefault(key.agent, newest)

    def knows(self, user: str) -> bool:
        """Whether `view` answers without reading."""
        return user in self._views

    def view(self, user: str, *, fresh: bool = False) -> View:
        """The user's operation log, folded. With `fresh`, what other processes have added is in it."""
        held = self._views.get(user)
        if held is not None and not fresh:
            return held
        newest = self._storage.newest_operation(user)
        if held is None or held.seq != newest:
            held = self._views[user] = self._load_view(user, held, newest)
        return held

    def _load_view(self, user: str, held: View | None, newest: int) -> View:
        key = Key(user, OPERATIONS)
        known = held.seq if held is not None else 0
        view = held or View()
        later: list[Operation] = []
        for head in self.heads_after(key, known):
            told = operation_of(head)
            later.append(told)
            snapshot = codec.unpack(head.metadata).get("snapshot")
            if snapshot is not None:
                view = view_from(snapshot, head.seq)
                later.pop()
                break
        for operation in reversed(later):
            view = advance(view, operation)
        if view.seq < newest:  # beyond it: somebody has added one meanwhile
            raise lost(key, newest)
        return view

    def heads_after(self, key: Key, known: int) -> Iterator[Head]:
        """Newest first, down to the record after `known`; none may be missing."""
        before, expected = None, None
        while True:
            found = self._storage.heads(key, before=before, limit=SNAPSHOT_EVERY)
            for seq, data in found:
                if seq <= known:
                    return
                if expected is not None and seq != expected:
                    raise lost(key, expected)
                yield open_head(key, seq, data)
                before, expected = seq, seq - 1
            if len(found) < SNAPSHOT_EVERY:
                if expected is not None and expected > known:
                    raise lost(key, expected)
                return

    def operations(self, user: str) -> list[Operation]:
        """The whole log, oldest first, each told whether it was undone, and whether it still can be."""
        view = self.view(user, fresh=True)
        past = [operation_of(head) for head in self.heads_after(Key(user, OPERATIONS), 0)][::-1]
        undone = {op.undoes: op.seq for op in past if op.undoes}
        return [replace(op, undone_by=undone.get(op.seq, 0), collected=bool(destroyed(view, op.edits))) for op in past]

    def operate(
        self, user: str, verb: str, summary: str, decide: Callable[[View], Iterable[Edit] | None], *, undoes: int = 0
    ) -> Operation | None:
        """Append one operation, decided on the newest view; None where `decide` finds nothing to do."""
        for _ in range(_TRIES):
            view = self.view(user, fresh=True)
            edits, seen = self._decide(decide, view)
            if edits is None:
                return None
            record, operation = self._operation_record(user, view, verb, summary, edits, undoes, seen)
            if self._commit(Append((record,), view.seq)) is Outcome.CREATED:
                self._views[user] = advance(view, operation)
                return operation
        raise UnavailableError("contended", "other processes keep changing this store", hint="try again")

    def _decide(
        self, decide: Callable[[View], Iterable[Edit] | None], view: View
    ) -> tuple[tuple[Edit, ...] | None, dict[str, int]]:
        """What it decides, and the newest record of each agent it looked at. No operation stops a save that is under
        way: so it is written down which one it did not know."""
        seen: dict[str, int] = {}
        self._deciding.seen = seen
        try:
            edits = decide(view)
            return None if edits is None else tuple(edits), seen
        finally:
            self._deciding.seen = None

    def operate_with(
        self, user: str, view: View, records: Sequence[Record], verb: str, summary: str, edits: Iterable[Edit]
    ) -> bool:
        """Append records and an operation about them together; False, and nothing done, where somebody was faster."""
        seen = {record.key.agent: record.seq for record in records}
        record, operation = self._operation_record(user, view, verb, summary, tuple(edits), 0, seen)
        if self._commit(Append((*records, record), view.seq)) is not Outcome.CREATED:
            return False
        self._views[user] = advance(view, operation)
        return True

    def _operation_record(
        self,
        user: str,
        view: View,
        verb: str,
        summary: str,
        edits: tuple[Edit, ...],
        undoes: int,
        seen: Mapping[str, int],
    ) -> tuple[Record, Operation]:
        key, seq, now = Key(user, OPERATIONS), view.seq + 1, self._now()
        seen = {agent: seen[agent] for agent in {e[1] for e in edits if e[0] == "branch"} if agent in seen}
        operation = Operation(seq, now, verb, summary, edits, undoes, seen=seen)
        told: dict[str, Any] = {"verb": verb, "summary": summary, "edits": [list(e) for e in edits], "undoes": undoes}
        if seen:
            told["seen"] = seen
        if seq % SNAPSHOT_EVERY == 0:
            told["snapshot"] = to_state(advance(view, operation))
        parent_link = b"" if seq == 1 else self._link(key, seq - 1)
        head = Head(
            key, seq, seq - 1, OPERATION, now, 0, "", parent_link, b"", None, None, "", "", codec.pack(told), None, {},
            guard=0,
        )  # fmt: skip
        data, _ = seal(head, b"")
        return Record(key, seq, data, b""), operation

    def _link(self, key: Key, seq: int) -> bytes:
        data = self._storage.head(key, seq)
        if data is None:
            raise lost(key, seq)
        return open_head(key, seq, data).link


def operation_of(head: Head) -> Operation:
    return operation_from(head.seq, head.time, codec.unpack(head.metadata))
