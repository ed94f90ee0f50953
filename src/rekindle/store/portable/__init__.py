"""One agent, or one branch of it, as a single file that any store can take in (docs/design/004-portable-file.md)."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from ...errors import NotFoundError, UnavailableError
from ...model import check_name
from ...storage.base import Key
from ...storage.disk import OsDisk
from ...storage.record import Head
from ..engine import Engine
from ..journal import entries
from ..resolve import AnyRef, Resolver
from ..saving.drafts import KEPT
from ..saving.tips import branch_heads
from ..view import AgentView
from .bringing import Bringing
from .catalog import Catalog
from .file import PortableFile, PortableWriter
from .outgoing import Outgoing

_TRIES = 100
Target = str | os.PathLike[str] | BinaryIO


def export(engine: Engine, refs: Resolver, ref: AnyRef, file: Target, *, branch_only: bool = False) -> int:
    """Write an agent's checkpoints, branches, tags and labels as one portable file; how many checkpoints.

    With `branch_only`, the history of the checkpoint that `ref` means. What was pruned is not in it; what of it is
    still needed, or lies with other agents, is. A path comes into being when all of it is written. NotFoundError where
    a collect took something out that was to be written.
    """
    tip = refs.head(ref)
    key = tip.key
    view, newest, parents = _look(engine, key)
    if branch_only:
        seqs = [head.seq for head in refs.history(tip)][::-1]
        branches = {name: seq for name, seq in refs.branches(key.agent).items() if seq in set(seqs)}
        if tip.seq not in branches.values():
            branches[tip.branch] = tip.seq
    else:
        seqs = sorted(seq for seq in parents if seq not in view.dropped)
        branches = branch_heads(newest, view)
    kept = set(seqs)
    with _written(file) as out:
        writer = PortableWriter(out, {"agent": key.agent, "user": key.user})
        outgoing = Outgoing(engine, key, writer)
        before = 0
        for seq in seqs:
            head = engine.head(key, seq)
            parent = before if branch_only else view.parent_of_gone(head.parent)
            while parent and parent not in kept:
                parent = view.parent_of_gone(parents[parent])
            with engine.reading(head):
                outgoing.head(head, parent, view.labels.get(seq, head.label))
            before = seq
        _notes(engine, key, set(seqs), outgoing)
        writer.close(
            {
                "checkpoints": len(seqs),
                "branches": branches,
                "tags": {name: seq for name, seq in view.tags.items() if seq in kept},
                "closed": [seq for seq in view.closed if seq in kept],
            }
        )
    return len(seqs)


def _notes(engine: Engine, key: Key, seqs: set[int], outgoing: Outgoing) -> None:
    """The entries of the journal that belong to these checkpoints, oldest first."""
    for entry in list(entries(engine, key))[::-1]:
        # what was kept is in the states
        if entry.kind != KEPT and engine.own_seq(key, entry.of) in seqs:
            with engine.reading(entry.head):
                outgoing.note(entry)


def _look(engine: Engine, key: Key) -> tuple[AgentView, Head | None, dict[int, int]]:
    """An agent at one moment: its view, its newest record, and the parents of all. What is saved meanwhile is in the
    file with neither its branch nor its state."""
    for _ in range(_TRIES):
        view = engine.log.view(key.user, fresh=True)
        newest: Head | None = None
        parents = {}
        for head in engine.heads(key):
            newest = newest or head
            parents[head.seq] = head.parent
        if engine.log.view(key.user, fresh=True).seq == view.seq:
            return view.agent(key.agent), newest, parents
    raise UnavailableError("contended", "other processes keep changing this store", hint="try again")


@contextmanager
def _written(file: Target) -> Iterator[BinaryIO]:
    """The file to write to. A path is written beside, and takes its place, durable, when all went well."""
    if not isinstance(file, (str, os.PathLike)):
        yield file
        return
    path = os.fspath(file)
    beside = f"{path}.part"
    disk = OsDisk()
    try:
        with open(beside, "wb") as out:
            yield out
            out.flush()
            disk.sync(out.fileno())
        disk.rename(beside, path)
        disk.sync_dir(os.path.dirname(path))
    except OSError as e:
        with suppress(OSError):
            os.unlink(beside)
        raise UnavailableError("export-failed", f"{path} cannot be written: {e.strerror}") from e
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise


def import_(engine: Engine, refs: Resolver, file: Target, agent_id: str | None) -> list[Head]:
    """Bring in what `export` wrote, as one operation that can be undone; the checkpoints that came, oldest first.

    The file is checked whole before anything is written; CorruptDataError where it is not what was exported. A
    checkpoint that is here already, by its id, is not written again; one that was dropped is there again. A branch
    that has gone on here keeps its place, what came beyond it gets a name of its own. Cut short anywhere, nothing of
    it is seen, and the next import goes on. Raises ConflictError where the agent here is another one of that name.
    """
    with _readable(file) as source:
        catalog = Catalog(PortableFile(source))
        name = catalog.header.get("agent") if agent_id is None else agent_id
        key = Key(refs.key("").user, check_name(name, "an agent's id"))
        seqs = Bringing(engine, refs, key, catalog).run()
    return [engine.head(key, seq) for seq in seqs]


@contextmanager
def _readable(file: Target) -> Iterator[BinaryIO]:
    """The file, such that it can be read twice: what cannot seek is copied to a temporary file first."""
    if isinstance(file, (str, os.PathLike)):
        try:
            source: BinaryIO = open(file, "rb")  # noqa: SIM115 - closed below
        except FileNotFoundError as e:
            raise NotFoundError("no-file", f"there is no file {os.fspath(file)!r}") from e
        except OSError as e:
            raise UnavailableError("import-failed", f"{os.fspath(file)} cannot be read: {e.strerror}") from e
        with source:
            yield source
    elif file.seekable():
        yield file
    else:
        with tempfile.TemporaryFile() as spool:
            shutil.copyfileobj(file, spool, 1 << 20)
            spool.seek(0)
            yield spool
