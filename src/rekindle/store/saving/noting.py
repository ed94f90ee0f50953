"""Entries appended to a journal by themselves, in the steps of a save."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import ConflictError
from ...storage.base import Append, Key, Outcome
from ..engine import Engine
from ..view import AgentView, View
from .drafts import Draft, Drafts
from .tips import Tip


class Noting:
    """Entries of one agent's journal: as `Saving`, `begin`, then the commit, then `end` or `fail`.

    ConflictError where the checkpoint an entry belongs to was dropped: what comes late brings nothing back.
    """

    def __init__(self, engine: Engine, key: Key, drafts: Sequence[Draft]) -> None:
        self._engine = engine
        self._key = key
        self._drafts = drafts
        self._tip = engine.tip(key)

    @property
    def tip(self) -> Tip:
        return self._tip

    def must_read(self) -> bool:
        if not self._engine.log.knows(self._key.user) or not self._tip.known or self._tip.journal is None:
            return True
        view = self._engine.log.view(self._key.user)
        if self._tip.operation != view.seq:
            return True
        return bool(view.agent(self._key.agent).dropped) and not self._owners_known()

    def _owners_known(self) -> bool:
        aliases = {mark.alias for mark in self._tip.marks.values()}
        return all(draft.of in aliases for draft in self._drafts)

    def learn(self) -> None:
        with self._tip.lock:
            self._settle()
            Drafts(self._engine, self._key, self._tip).settle()

    def begin(self) -> Append:
        self._writing = Drafts(self._engine, self._key, self._tip)
        try:
            view = self._settle()
            records = tuple(self._writing.record(draft, view.seq) for draft in self._drafts)
        except BaseException:
            self._writing.take_back()
            self.fail()
            raise
        return Append(records, view.seq)

    def end(self, outcome: Outcome) -> bool | None:
        """True; None where it has to begin again."""
        if outcome is Outcome.CREATED:
            self._writing.created()
            self._tip.lock.release()
            return True
        self._writing.take_back()
        self.fail()
        self._engine.log.view(self._key.user, fresh=True)
        return None

    def fail(self) -> None:
        self._tip.forget()
        self._tip.lock.release()

    def _settle(self) -> View:
        """The view it rests on. Before what is remembered refuses it, what is there now: others may have undone it."""
        try:
            return self._settled(fresh=False)
        except ConflictError:
            return self._settled(fresh=True)

    def _settled(self, *, fresh: bool) -> View:
        engine, key, tip = self._engine, self._key, self._tip
        view = engine.log.view(key.user, fresh=fresh)
        held = view.agent(key.agent)
        if fresh or not tip.known or tip.operation != view.seq:
            tip.learn(engine.newest(key), held, view.seq)
        refuse_deleted(key, held)
        refuse_dropped(engine, key, held, self._drafts)
        return view


def refuse_deleted(key: Key, held: AgentView) -> None:
    """ConflictError where the agent was deleted."""
    if held.deleted:
        raise ConflictError(
            "agent-deleted", f"agent {key.agent!r} was deleted", hint="save under another agent id, or undo"
        )


def refuse_dropped(engine: Engine, key: Key, held: AgentView, drafts: Sequence[Draft]) -> None:
    """ConflictError where what one of them belongs to was dropped."""
    if not held.dropped:
        return
    known = {mark.alias: seq for seq, mark in list(engine.tip(key).marks.items())}
    for of in {draft.of for draft in drafts}:
        if (known.get(of) or engine.own_seq(key, of)) in held.dropped:
            raise ConflictError(
                "checkpoint-deleted", f"the checkpoint {of!r} of agent {key.agent!r} was deleted",
                hint="begin anew, or undo",
            )  # fmt: skip
