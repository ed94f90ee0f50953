"""An import, step by step. What fits one commit comes in one. More of it comes in several, dropped from the start,
and one operation at the end shows all of it: cut short anywhere, nothing is seen, and the next import goes on."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ...errors import ConflictError, UnavailableError
from ...model import check_name, parse_id
from ...refs import quote_agent
from ...state.tree.slots import pack_body
from ...storage.base import Key, Record, has_checkpoints
from ...storage.record import EMPTIED, Head, open_head, seal, short_id
from ..answers import id_of
from ..engine import Engine
from ..ranges import Ranges
from ..resolve import Resolver
from ..saving.tips import JOURNAL_FROM, branch_heads
from ..view import IMPORTING, AgentView, Edit, View
from .catalog import Catalog
from .file import damaged
from .incoming import Incoming, Written
from .notes import Notes
from .outgoing import HEAD, ORIGIN

RECORDS_AT_ONCE = 2000
BYTES_AT_ONCE = 8 << 20
_TRIES = 100
_NAMES_KEPT = 16


class Bringing:
    """One import into one agent."""

    def __init__(self, engine: Engine, refs: Resolver, key: Key, catalog: Catalog) -> None:
        self._engine = engine
        self._refs = refs
        self._key = key
        self._catalog = catalog
        self._incoming = Incoming(engine, key, catalog)
        self._tags = {engine.tag(k.agent): k for k in engine.storage.keys(key.user) if has_checkpoints(k.agent)}
        self._here: dict[int, int] = {}  # seq in the file -> seq here, of all that is here
        self._names: OrderedDict[int, set[tuple[str, int]]] = OrderedDict()
        self._shown = Ranges()
        self._notes = Notes(engine, key, catalog)

    def run(self) -> list[int]:
        """The seqs that came into view."""
        self._find_known()
        self._notes.bring(self._summary())
        todo = [number for number, seq in enumerate(self._catalog.seqs) if seq not in self._here]
        at = 0
        while at < len(todo):
            at = self._append(todo, at)
        if not self._shown:
            self._engine.log.operate(self._key.user, "import", self._summary(), lambda view: self._finish(view, []))
        return list(self._shown)

    def _summary(self) -> str:
        return f"{quote_agent(self._key.agent)}, {len(self._catalog.seqs)} checkpoints"

    # -- what is here ----------------------------------------------------------------------------------------

    def _find_known(self) -> None:
        """Match checkpoints by id. Those that are here have to be the same."""
        view = self._view().agent(self._key.agent)
        by_id: dict[str, int] = {}
        alive = False
        for head in self._engine.heads(self._key):
            if head.seq in view.gone or EMPTIED in head.more:
                continue
            alive = alive or head.seq not in view.dropped
            for name in (head.more.get(ORIGIN), id_of(self._engine, head)):
                if name is not None and (name not in by_id or by_id[name] in view.dropped):
                    by_id[name] = head.seq
        for number, seq in enumerate(self._catalog.seqs):
            here = by_id.get(self._catalog.ids[seq])
            if here is not None:
                self._check_same(self._engine.head(self._key, here), number)
                self._here[seq] = here
        self._incoming.keep()
        if alive and not self._here:
            raise ConflictError(
                "agent-exists", f"there is an agent {self._key.agent!r} here, with other checkpoints",
                hint="import it under another name: agent_id=... (--agent NAME)",
            )  # fmt: skip

    def _check_same(self, head: Head, number: int) -> None:
        _, fields, tree = self._catalog.entry(HEAD, number)
        same = (head.kind, head.time, head.metadata) == (fields["kind"], fields["time"], fields["metadata"])
        if not same or not self._incoming.known(tree, self._engine.root(head)):
            raise ConflictError(
                "other-content",
                f"agent {self._key.agent!r} has a checkpoint {fields['id']!r} that is another one than in the file",
                hint="import it under another name: agent_id=... (--agent NAME)",
            )

    def _view(self) -> View:
        """The newest view, in which nothing may have happened to what is here."""
        view = self._engine.log.view(self._key.user, fresh=True)
        held = view.agent(self._key.agent)
        if held.deleted:
            raise ConflictError(
                "agent-deleted", f"agent {self._key.agent!r} was deleted", hint="undo that, or use another name"
            )
        if held.gone and any(seq in held.gone for seq in self._here.values()):
            raise ConflictError(
                "collected-meanwhile", "a collect took out what was imported so far", hint="import it again"
            )
        return view

    # -- what comes ------------------------------------------------------------------------------------------

    def _append(self, todo: list[int], at: int) -> int:
        """Append the next records, as many as fit a commit; answers how far it came."""
        for _ in range(_TRIES):
            view = self._view()
            newest = self._engine.newest(self._key)
            heads: dict[int, Head] = {}
            try:
                records = list(self._records(todo[at:], view, newest.seq + 1 if newest else 1, heads))
                verb, edits = self._edits(view, newest, heads, whole=len(records) == len(todo))
                made = self._engine.log.operate_with(self._key.user, view, records, verb, self._summary(), edits)
            except BaseException:
                self._forget(heads)
                raise
            if made:
                self._incoming.keep()
                self._engine.forget(self._key)
                return at + len(records)
            self._forget(heads)
        raise UnavailableError("contended", f"others keep saving agent {self._key.agent!r}", hint="try again")

    def _forget(self, heads: dict[int, Head]) -> None:
        self._shown = Ranges()
        for seq in heads:
            self._here.pop(seq, None)
        self._incoming.forget()

    def _records(self, numbers: list[int], view: View, first: int, heads: dict[int, Head]) -> Iterator[Record]:
        size = 0
        for seq, number in enumerate(numbers[:RECORDS_AT_ONCE], first):
            _, fields, tree = self._catalog.entry(HEAD, number)
            written = self._incoming.write(tree, seq)
            body = pack_body(written.filling.slots)
            head = self._head(fields, written, seq, view.seq, heads)
            data, link = seal(head, body, compress=self._engine.storage.compresses)
            heads[fields["seq"]] = replace(head, link=link)
            self._here[fields["seq"]] = seq
            yield Record(self._key, seq, data, body, head.alias, tuple(written.shared))
            size += len(body) + len(data)
            if size >= BYTES_AT_ONCE:
                return

    def _head(self, fields: dict[str, Any], written: Written, seq: int, guard: int, heads: dict[int, Head]) -> Head:
        parent = None
        if fields["parent"]:
            parent = heads.get(fields["parent"])
            if parent is None:
                parent = self._engine.head(self._key, self._here[fields["parent"]])
        alias = self._alias(fields["id"])
        more = dict(fields["more"])
        if alias != fields["id"]:
            more[ORIGIN] = fields["id"]
        if (first := self._notes.first.get(fields["id"])) is not None:
            more[JOURNAL_FROM] = first
        if parent is not None and parent.alias is not None:
            more["parent_alias"] = short_id(parent.alias)
        node = written.node
        return Head(
            self._key, seq, parent.seq if parent else 0, fields["kind"], fields["time"], node.size,
            check_name(fields["branch"], "a branch"), parent.link if parent else b"",
            self._engine.hasher(self._key.user).root(node), node.stored(), fields["label"], fields["agent_type"],
            fields["status"], fields["metadata"], alias, {}, guard,
            more=more, reaches=self._reaches(fields, written),
        )  # fmt: skip

    def _reaches(self, fields: dict[str, Any], written: Written) -> bool:
        """Whether it names what neither it wrote nor its parent names; where that is not known any more, it does."""
        self._names[fields["seq"]] = written.names
        while len(self._names) > _NAMES_KEPT:
            self._names.popitem(last=False)
        return written.filling.packed or not written.reused <= self._names.get(fields["parent"], set())

    def _alias(self, name: str) -> str | None:
        """The id it had, where no other checkpoint of this user has it; a caller's own is told apart by the agent."""
        find, parsed = self._engine.storage.find_alias, parse_id(name)
        if find(self._key.user, name) is not None:
            other = self._engine.own_alias(self._key, name)
            return None if parsed is not None or find(self._key.user, other) is not None else other
        key = self._tags.get(parsed[1]) if parsed is not None else None
        if parsed is not None and key is not None:
            data = self._engine.storage.head(key, parsed[0])
            if data is not None and id_of(self._engine, open_head(key, parsed[0], data)) == name:
                return None
        return check_name(name, "a checkpoint's id")

    # -- what it comes to ------------------------------------------------------------------------------------

    def _edits(self, view: View, newest: Head | None, heads: dict[int, Head], *, whole: bool) -> tuple[str, list[Edit]]:
        """The operation beside the records, and the places of the branches that are here: the newest record would
        tell them otherwise."""
        agent = self._key.agent
        new = [head.seq for head in heads.values()]
        before = branch_heads(newest, view.agent(agent))
        stay: list[Edit] = [("branch", agent, name, seq, seq) for name, seq in before.items()]
        own = heads[max(heads)].branch
        if own not in before:
            stay.append(("branch", agent, own, None, None))
        if whole:
            return "import", [*stay, *(self._finish(view, new) or [])]
        return IMPORTING, [*stay, ("drop", agent, [list(pair) for pair in Ranges.of(new).pairs])]

    def _finish(self, view: View, new: list[int]) -> list[Edit] | None:
        """What shows all that is here: `new` comes into view with it, what was dropped is kept again."""
        self._view()
        agent = self._key.agent
        held = view.agent(agent)
        self._shown = Ranges.of(new) | (Ranges.of(self._here.values()) & held.dropped)
        edits: list[Edit] = []
        if self._shown:
            edits.append(("keep", agent, [list(pair) for pair in self._shown.pairs]))
        edits += self._notes.edits(view)
        heads = branch_heads(self._engine.newest(self._key), held)
        edits += self._branch_edits(heads, held)
        taken = {*heads, *(edit[2] for edit in edits if edit[0] == "branch")}
        for name, seq in self._told("tags").items():
            if name not in held.tags and name not in taken:
                edits.append(("tag", agent, check_name(name, "a tag"), None, seq))
        closed = [self._here.get(seq) for seq in self._catalog.end["closed"]]
        edits += [("closed", agent, seq, False, True) for seq in closed if seq and seq not in held.closed]
        return edits or None

    def _told(self, what: str) -> dict[str, int]:
        """The branches or tags of the file, with the seqs here."""
        told = self._catalog.end[what]
        if not set(told.values()) <= self._here.keys():
            raise damaged(f"its {what} are not among its checkpoints")
        return {name: self._here[seq] for name, seq in told.items()}

    def _branch_edits(self, heads: dict[str, int], held: AgentView) -> Iterator[Edit]:
        taken = {*heads, *held.tags}
        for name, seq in self._told("branches").items():
            now = heads.get(name)
            if now == seq or (now is not None and (seq in heads.values() or self._follows(now, seq))):
                continue
            if now is not None and self._comes_before(now, name):
                yield "branch", self._key.agent, name, now, seq
                continue
            own = check_name(name, "a branch")
            if own in taken:
                own = next(f"{name}-{n}" for n in range(2, len(taken) + 3) if f"{name}-{n}" not in taken)
            taken.add(own)
            yield "branch", self._key.agent, own, None, seq

    def _follows(self, seq: int, older: int) -> bool:
        """Whether `older` is in the history of `seq`."""
        for head in self._refs.history(self._engine.head(self._key, seq)):
            if head.seq <= older:
                return head.seq == older
        return False

    def _comes_before(self, seq: int, branch: str) -> bool:
        """Whether a checkpoint here is among those that the file's branch goes through."""
        at = self._catalog.end["branches"][branch]
        while at:
            if self._here[at] == seq:
                return True
            at = self._catalog.parents[at]
        return False
