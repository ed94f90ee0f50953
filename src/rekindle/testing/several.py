"""What every storage must do for several at once: the part of StorageConformance on threads and processes."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable
from functools import partial

import pytest

from rekindle.storage.base import Outcome, Storage
from rekindle.testing.records import A, put, record


class SeveralConformance:
    def reopen(self, storage: Storage) -> Storage:
        raise NotImplementedError

    def test_threads_that_append_to_one_agent_get_every_seq_once(self, storage: Storage) -> None:
        won: dict[int, list[int]] = {n: [] for n in range(4)}
        failed: list[BaseException] = []

        def save(worker: int) -> None:
            try:
                won[worker] = _append_next(storage, worker, 10)
            except BaseException as e:  # noqa: BLE001 - told below, by the test's own thread
                failed.append(e)

        threads = [threading.Thread(target=save, args=(n,)) for n in won]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed
        assert sorted(seq for seqs in won.values() for seq in seqs) == list(range(1, 41))
        writers = {seq: int(head) for seq, head in storage.heads(A)}
        assert writers == {seq: worker for worker, seqs in won.items() for seq in seqs}

    def test_readers_never_see_half_a_unit(self, storage: Storage) -> None:
        done = threading.Event()
        odd: list[int] = []

        def look() -> None:
            while not done.is_set():
                odd.extend(len(heads) for heads in [storage.heads(A)] if len(heads) % 2)

        reader = threading.Thread(target=look)
        reader.start()
        try:
            for seq in range(1, 20, 2):
                assert put(storage, record(A, seq), record(A, seq + 1)) is Outcome.CREATED
        finally:
            done.set()
            reader.join()
        assert not odd

    def test_processes_that_append_to_one_agent_get_every_seq_once(self, storage: Storage) -> None:
        if not storage.concurrent or not hasattr(os, "fork"):
            pytest.skip("this storage is for one process")
        put(storage, record(A, 1, head=b"0"))
        # one child goes on with the handle it was born with, one opens its own
        opened: list[Callable[[], Storage]] = [lambda: storage, lambda: self.reopen(storage)]
        children = [_forked(partial(_append_some, of, n)) for n, of in enumerate(opened, 1)]
        _append_next(storage, 3, 10)
        assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
        writers = [int(head) for _, head in storage.heads(A)]
        assert [writers.count(n) for n in (0, 1, 2, 3)] == [1, 10, 10, 10]
        assert [stored.seq for stored in storage.heads(A)] == list(range(31, 0, -1))
        assert storage.check() == []


def _append_next(storage: Storage, worker: int, count: int) -> list[int]:
    """Append `count` records at whatever seq is next; answers the seqs that were given."""
    won: list[int] = []
    seq = 1
    while len(won) < count:
        newest = storage.heads(A, limit=1)
        seq = newest[0].seq + 1 if newest else 1
        outcome = put(storage, record(A, seq, head=b"%d" % worker))
        if outcome is Outcome.CREATED:
            won.append(seq)
        else:
            assert outcome is Outcome.TAKEN
    return won


def _append_some(of: Callable[[], Storage], worker: int) -> None:
    _append_next(of(), worker, 10)


def _forked(run: Callable[[], object]) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking while threads run
        child = os.fork()
    if child == 0:
        code = 1
        try:
            run()
            code = 0
        finally:
            os._exit(code)
    return child
