"""How a save goes: encode against the parent, append one record if nobody was faster, else look again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...errors import ConflictError, CorruptDataError, InvalidInputError, NotFoundError, RekindleError
from ...model import MAIN
from ...state.tree.nodes import Node, Place
from ...state.tree.out import Slots
from ...state.tree.slots import pack_body
from ...state.tree.write import Writer
from ...storage.base import Append, Key, Outcome, Record
from ...storage.record import Head, seal, short_id
from ..engine import Engine
from ..view import AgentView, View
from .drafts import Draft, Drafts
from .filling import Filling
from .noting import refuse_deleted, refuse_dropped
from .parked import Parked, take
from .tips import JOURNAL_FROM, Mark, Tip, unknown_heads


@dataclass(slots=True)
class Line:
    """What a live object last saved or was restored from. Read and moved under the agent's turn, so that saves of one
    object follow each other whoever waits for them; where that checkpoint was pruned, the branch's head goes for it."""

    seq: int
    branch: str


ROOT = 0
"""As a request's parent: none at all, even where the branch has a head."""


@dataclass(frozen=True, slots=True)
class Request:
    """One save, as asked for. `parent` None: the branch's head, whatever it is by then. `time`: not now but then.

    `changed`: the state is a dict, and only the values under these keys may differ from those of the checkpoint that
    `parent` (or `line`) names. `identity`: objects that the parent's state holds too have not changed in place.
    """

    key: Key
    state: Any
    parent: int | None
    branch: str | None
    kind: str
    label: str | None
    metadata: bytes
    alias: str | None
    strict: bool
    trusted: bool
    agent_type: str = ""
    status: str = ""
    more: dict[str, Any] | None = None
    line: Line | None = None
    time: int | None = None
    drafts: tuple[Draft, ...] = ()
    """Entries of the journal that come into being with the checkpoint."""
    journaled: bool = False
    """It has entries, or may get some: where they begin is noted in the record."""
    apart: bool = False
    """A root on a branch that has a head becomes a branch of its own."""
    changed: frozenset[str] | None = None
    identity: bool = False


@dataclass(frozen=True, slots=True)
class Saved:
    """What came of it: the record's head, and whether it went where it was meant to."""

    head: Head
    parent: Mark | None
    branched_from: str | None = None
    known: bool = False
    """There was a checkpoint of that id already: nothing was written."""


class Saving:
    """One save, in steps: `begin`, the commit of what it answers, then `end`, or `fail` where the commit raised.

    The agent's turn is taken before `begin`, by whoever calls it, and given back by `end`, `fail` or a `begin` that
    raises, in whichever thread they run.
    """

    def __init__(self, engine: Engine, request: Request) -> None:
        self._engine = engine
        self._request = request
        self._tip = engine.tip(request.key)
        self._drafts = Drafts(engine, request.key, self._tip)
        self._filling: Filling | None = None
        self._taken: list[Parked] = []
        self._came = False

    @property
    def tip(self) -> Tip:
        return self._tip

    def must_read(self) -> bool:
        """Whether `begin` would have to wait for the storage to know where it goes: call `learn` in a thread then."""
        key, tip = self._request.key, self._tip
        if not self._engine.log.knows(key.user):
            return True
        view = self._engine.log.view(key.user)
        if not tip.known or tip.operation != view.seq or (self._request.journaled and tip.journal is None):
            return True
        line = self._request.line
        parent = self._request.parent if line is None else line.seq
        if parent and parent not in tip.marks:
            return True
        try:
            self._base, self._branch, self._from = self._place(view.agent(key.agent))
        except RekindleError:
            return True  # perhaps not as things are by now
        hint = self._hint()
        return hint != ROOT and hint not in tip.trees

    def learn(self) -> None:
        """Read what `begin` needs, in a turn of its own. Nothing is lost where it is outdated by then."""
        engine, key, tip = self._engine, self._request.key, self._tip
        with tip.lock:
            self._settle()
            if self._request.journaled:
                self._drafts.settle()
            prior = self._prior()
            if prior is not None:
                engine.reader(key).items(prior)
                tip.keep_tree(self._hint(), prior)

    def begin(self) -> Append:
        """Everything but the commit. Raises what the caller has to know; nothing is stored then."""
        try:
            try:
                return self._begin()
            except (CorruptDataError, NotFoundError):
                if not self._is_outdated():
                    raise
                self._take_back()
                return self._begin()
        except BaseException:
            self._take_back()
            self.fail()
            raise

    def _is_outdated(self) -> bool:
        """Whether the log has moved on since this was settled: another process may have collected what it read."""
        return self._engine.log.view(self._request.key.user, fresh=True).seq != self._tip.operation

    def _begin(self) -> Append:
        request, tip, engine = self._request, self._tip, self._engine
        self._drafts = Drafts(engine, request.key, tip)
        view = self._settle()
        self._seq = tip.newest + 1
        filling = self._filling = Filling(engine.storage.packs, self._seq)
        self._node, shared = self._write(filling)
        filling.seal()
        body = pack_body(filling.slots)
        self._head = self._make_head(view.agent(request.key.agent), view.seq)
        data, link = seal(self._head, body, compress=engine.storage.compresses)
        object.__setattr__(self._head, "link", link)
        record = Record(request.key, self._seq, data, body, request.alias, shared)
        kept = self._drafts.kept(view.seq)
        entries = [self._drafts.record(draft, view.seq) for draft in request.drafts]
        return Append((*kept, *entries, *self._along(view), record), view.seq)

    def _along(self, view: View) -> list[Record]:
        """What waited for this save. One that is at fault, as far as is known here, is its own caller's to try."""
        if not self._request.journaled:
            return []
        waiting, self._taken = [*self._taken, *take(self._tip.parked)], []
        records: list[Record] = []
        for parked in waiting:
            made = self._drafts.made
            try:
                refuse_dropped(self._engine, self._request.key, view.agent(self._request.key.agent), parked.drafts)
                records += [self._drafts.record(draft, view.seq) for draft in parked.drafts]
                self._taken.append(parked)
            except Exception:  # noqa: BLE001  a user's class may raise anything: the caller tries, and is told
                self._drafts.back_to(made)
                parked.future.set_result(False)
        return records

    def leave(self) -> None:
        """The last step, whatever came of it: what waited for this save is told whether it is there."""
        for parked in self._taken:
            parked.future.set_result(self._came)
        self._taken = []

    def end(self, outcome: Outcome) -> Saved | None:
        """The answer; None where the save has to begin again."""
        tip = self._tip
        if outcome is Outcome.CREATED:
            self._drafts.created()
            self._came = True
            tip.newest = self._seq
            tip.heads[self._branch] = self._seq
            tip.mark(self._head)
            tip.early.pop(self._own_name(), None)
            tip.keep_tree(self._seq, self._node)
            if self._request.line is not None:
                self._request.line.seq, self._request.line.branch = self._seq, self._branch
            tip.lock.release()
            return Saved(self._head, self._mark, self._from)
        self._take_back()
        self.fail()
        if outcome is Outcome.KNOWN:
            return self._known_already()
        self._engine.log.view(self._request.key.user, fresh=True)
        return None

    def fail(self) -> None:
        """What this save has taught its trees (live compressors) is forgotten.

        A sealed pack stays: the commit may have come through all the same. Collect takes it where nobody names it.
        """
        self._tip.forget()
        self._tip.lock.release()

    def _take_back(self) -> None:
        self._drafts.take_back()
        if self._filling is not None:
            self._filling.abort()

    def _known_already(self) -> Saved:
        key, alias = self._request.key, self._request.alias
        found = self._engine.storage.find_alias(key.user, alias or "")
        if found is None or found[0] != key.agent:
            where = f"agent {found[0]!r}" if found else "another agent"
            raise ConflictError("id-taken", f"the checkpoint id {alias!r} belongs to {where}", hint="use another id")
        if found[1] in self._engine.log.view(key.user, fresh=True).agent(key.agent).dropped:
            raise ConflictError(
                "id-deleted", f"the checkpoint {alias!r} of {key.agent!r} was deleted", hint="undo, or use another id",
            )  # fmt: skip
        return Saved(self._engine.head(key, found[1]), None, known=True)

    # -- where it goes -----------------------------------------------------------------------------------------------

    def _settle(self) -> View:
        """Where it goes, by what is remembered. Before that refuses it, by what is there now: others may have saved."""
        try:
            return self._settled(fresh=False)
        except (ConflictError, NotFoundError):
            return self._settled(fresh=True)

    def _settled(self, *, fresh: bool) -> View:
        engine, key, tip = self._engine, self._request.key, self._tip
        view = engine.log.view(key.user, fresh=fresh)
        held = view.agent(key.agent)
        if fresh or not tip.known or tip.operation != view.seq:
            tip.learn(engine.newest(key), held, view.seq)
        refuse_deleted(key, held)
        self._base, self._branch, self._from = self._place(held)
        self._mark = self._mark_of(self._base) if self._base else None
        return view

    def _place(self, held: AgentView) -> tuple[int, str, str | None]:
        """(parent seq or 0, branch, the branch it was meant for where it became one of its own)."""
        request, heads, line = self._request, self._tip.heads, self._request.line
        parent, wanted = request.parent, request.branch
        if line is not None and line.seq not in held.dropped:
            parent, wanted = line.seq, line.branch if line.branch in heads else None
        if parent is None:
            branch = wanted or MAIN
            if wanted is not None and branch != MAIN and branch not in heads:
                raise _no_branch(request.key.agent, branch)
            return heads.get(branch, 0), branch, None
        if parent in held.dropped:
            raise NotFoundError(
                "parent-gone", f"the parent, checkpoint {parent} of agent {request.key.agent!r}, was pruned",
                hint="undo the prune, or save without a parent",
            )  # fmt: skip
        branch = wanted or (MAIN if parent == ROOT else self._branch_of(parent, heads))
        if branch not in heads or heads[branch] == parent or (parent == ROOT and not request.apart):
            return parent, branch, None
        if request.strict:
            raise ConflictError(
                "head-moved",
                f"branch {branch!r} of agent {request.key.agent!r} is at {heads[branch]}, not at {parent or 'none'}",
                hint="restore the branch's head and try again, or save without strict: it becomes a branch of its own",
            )
        taken = set(heads) | set(held.branches)
        own = next(name for n in range(2, len(taken) + 3) if (name := f"{branch}-{n}") not in taken)
        return parent, own, branch

    def _branch_of(self, seq: int, heads: dict[str, int]) -> str:
        at_head = [name for name, head in heads.items() if head == seq]
        if len(at_head) == 1:
            return at_head[0]
        branch = self._mark_of(seq).branch
        return branch if not at_head or branch in at_head else at_head[0]

    def _mark_of(self, seq: int) -> Mark:
        mark = self._tip.marks.get(seq)
        if mark is None:
            self._tip.mark(self._engine.head(self._request.key, seq))
            mark = self._tip.marks[seq]
        return mark

    # -- what it writes ----------------------------------------------------------------------------------------------

    def _write(self, filling: Filling) -> tuple[Node, tuple[tuple[bytes, int], ...]]:
        """The state's node, and the digests of slots that others may share; what is new goes into `filling`."""
        engine, key = self._engine, self._request.key
        self._reaches = self._hint() != self._base

        def share(digest: bytes) -> Place | None:
            place = engine.shared_place(key, digest)
            self._reaches = self._reaches or place is not None
            return place

        out = Slots(filling.put, share, compress=engine.storage.compresses, pieces=self._tip.pieces)
        if self._request.journaled:
            of = self._mark_name() or self._own_name()
            out.keep = lambda elements: self._keep(elements, of)
        writer = Writer(
            engine.hasher(key.user), engine.reader(key), out, memory=engine.tip_bytes, trusted=self._request.trusted,
            changed=self._promised(), identity=self._request.identity,
        )  # fmt: skip
        node = writer.root(self._request.state, self._prior())
        self._reaches = self._reaches or filling.packed or out.named
        return node, tuple((digest, place[2]) for digest, place in out.shared if type(place[0]) is int)

    def _promised(self) -> frozenset[str] | None:
        """What the caller said of the parent it named, where that is what the state is written against."""
        line = self._request.line
        named = self._request.parent if line is None else line.seq
        return self._request.changed if named and named == self._base == self._hint() else None

    def _hint(self) -> int:
        """Whose state this one is written against: the parent's; for a root that of the head whose place it takes."""
        return self._base or self._tip.heads.get(self._branch, ROOT)

    def _prior(self) -> Node | None:
        seq = self._hint()
        if not seq:
            return None
        tree = self._tip.trees.get(seq)
        return tree if tree is not None else self._engine.root(self._engine.head(self._request.key, seq))

    def _keep(self, elements: list[bytes], of: str) -> Place:
        self._reaches = True
        return self._drafts.keep(elements, of)

    def _mark_name(self) -> str:
        """What the parent's caller calls it."""
        alias = self._mark.alias if self._mark is not None else None
        return (alias or "").removesuffix("@" + self._engine.tag(self._request.key.agent))

    def _own_name(self) -> str:
        request = self._request
        return (request.alias or "").removesuffix("@" + self._engine.tag(request.key.agent))

    def _make_head(self, held: AgentView, guard: int) -> Head:
        request, engine = self._request, self._engine
        more = dict(request.more or {})
        if request.journaled:
            self._drafts.settle()
            more[JOURNAL_FROM] = self._tip.entries_of(self._own_name(), self._base)
        if self._mark is not None and self._mark.alias is not None:
            more["parent_alias"] = short_id(self._mark.alias)
        return Head(
            request.key, self._seq, self._base, request.kind, engine.now() if request.time is None else request.time,
            self._node.size, self._branch,
            self._mark.link if self._mark is not None else b"",
            engine.hasher(request.key.user).root(self._node), self._node.stored(), request.label,
            request.agent_type, request.status, request.metadata, request.alias,
            unknown_heads(self._tip.heads, self._branch, held), guard, more=more, reaches=self._reaches,
        )  # fmt: skip


def _no_branch(agent: str, branch: str) -> NotFoundError:
    return NotFoundError(
        "branch-not-found", f"agent {agent!r} has no branch {branch!r}",
        hint=f"list its branches with `rekindle branches {agent}`, or make it with fork",
    )  # fmt: skip


def check_metadata(metadata: Any) -> None:
    if not isinstance(metadata, dict):
        raise InvalidInputError(
            "bad-metadata", f"metadata must be a dict, not {type(metadata).__name__}", hint='{"key": "value"}'
        )
