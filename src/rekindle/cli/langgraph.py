"""`import --from langgraph`: LangGraph's own database into this store."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from importlib import import_module
from typing import TYPE_CHECKING

from ..errors import InvalidInputError, UnsupportedError
from ..store import open_store
from . import words
from .progress import progress
from .session import Session

if TYPE_CHECKING:
    from ..adapters.langgraph.moving import Moved


def bring_over(session: Session, source: str, *, agent: str | None, imports: tuple[str, ...]) -> None:
    """Every thread of the database, compared; says what came, and what it takes there and here."""
    if source == "-":
        raise InvalidInputError("usage", "a database cannot be read from stdin", hint="name the file")
    _needed()
    from ..adapters.langgraph import moving

    path = moving.path_of(source)
    moving.check(path)  # before a store is made for it
    _load(imports)
    from ..adapters.langgraph import RekindleSaver

    started, before = time.monotonic(), _size(session)
    with progress("importing") as report:
        moved = moving.move(path, RekindleSaver(session.open(create=True)), thread=agent, progress=report)
    session.close()
    taken = time.monotonic() - started
    theirs, ours = moving.bytes_of(path), _size(session) - before
    if session.out.json:
        session.out.data({**asdict(moved), "bytes": {"source": theirs, "store": ours}, "seconds": round(taken, 3)})
        return
    _tell(session, moved, theirs=theirs, ours=ours, seconds=taken)


def _tell(session: Session, moved: Moved, *, theirs: int, ours: int, seconds: float) -> None:
    out = session.out
    new = moved.checkpoints or moved.writes
    if new:
        what = f"{words.count(moved.checkpoints, 'checkpoint')} of {words.count(moved.threads, 'thread')}"
        out.line(f"imported {what} in {seconds:.1f} s ", ("and compared each", "good"))
    else:
        out.line("nothing new: all of it is here already, ", ("and the same", "good"))
    if moved.known and new:
        out.line(f"{words.count(moved.known, 'checkpoint')} of it were here already")
    if new and not moved.known:
        less = f", {theirs / ours:.1f} times less" if 0 < ours < theirs else ""
        out.line(f"{words.size(theirs)} there, {words.size(ours)} here{less}")
    if moved.cut:
        out.line((f"{words.count(moved.cut, 'checkpoint')} had a parent that is gone there: roots here", "warn"))
    if moved.orphans:
        out.line((f"{words.count(moved.orphans, 'pending write')} stayed: of checkpoints that are gone there", "warn"))
    if new:
        out.note("", "in the program: checkpointer=RekindleSaver(store)", "`rekindle agents` shows the threads")


def _size(session: Session) -> int:
    """Bytes the store takes when nobody has it open: while somebody has, its log is counted too."""
    settings = session.settings
    open_store(settings.store, user=settings.user).close()
    with open_store(settings.store, user=settings.user) as store:
        return sum(store.size().values())


def _needed() -> None:
    try:
        import_module("langgraph.checkpoint.base")
        import_module("langgraph.types")
    except ModuleNotFoundError as e:
        raise UnsupportedError(
            "langgraph-missing", f"importing from langgraph needs it, and there is no module {e.name!r}",
            hint="pip install 'rekindle[langgraph]'",
        ) from e  # fmt: skip


def _load(modules: tuple[str, ...]) -> None:
    """The user's own modules, which register the types that states hold."""
    if "" not in sys.path:
        sys.path.insert(0, "")
    for module in modules:
        try:
            import_module(module)
        except Exception as e:
            raise InvalidInputError(
                "bad-import", f"the module {module!r} cannot be imported: {type(e).__name__}: {e}"
            ) from e
