"""References to records: what a name means here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..errors import CorruptDataError, InvalidInputError, NotFoundError
from ..model import MAIN, Checkpoint, parse_id
from ..refs import Instant, Ref, TimeAgo, parse_ref, quote_agent
from ..storage.base import Key, has_checkpoints
from ..storage.record import Head
from .answers import id_of
from .engine import Engine
from .saving.tips import branch_heads

AnyRef = str | Checkpoint | Ref
_LIST = "list the agents with `rekindle agents`, an agent's checkpoints with `rekindle log AGENT`"


class Resolver:
    """Looks references up for one user. Checkpoints that were pruned are not found."""

    def __init__(self, engine: Engine, user: str) -> None:
        self._engine = engine
        self._user = user

    def key(self, agent: str) -> Key:
        return Key(self._user, agent)

    def agents(self) -> list[str]:
        keys = self._engine.storage.keys(self._user)
        return [key.agent for key in keys if has_checkpoints(key.agent) and self.branches(key.agent)]

    def branches(self, agent: str) -> dict[str, int]:
        key = self.key(agent)
        view = self._engine.log.view(self._user, fresh=True).agent(agent)
        return branch_heads(self._engine.newest(key), view)

    def known(self, agent: str) -> bool:
        return bool(self._engine.storage.heads(self.key(agent), limit=1))

    def head(self, ref: AnyRef) -> Head:
        """The record a reference means."""
        if not isinstance(ref, (str, Ref, Checkpoint)):
            raise InvalidInputError("bad-ref", f"{ref!r} is no reference", hint="an id, 'agent@-1', or a checkpoint")
        if isinstance(ref, Checkpoint):
            return self.by_id(ref.id) or _raise(self._nothing(ref.id))
        if isinstance(ref, str) and (found := self.by_id(ref)) is not None:
            return found
        parsed = ref if isinstance(ref, Ref) else parse_ref(ref)
        if parsed.name is None:
            raise InvalidInputError("ref-without-name", f"the reference {str(parsed)!r} names no agent", hint=_LIST)
        if parsed.at is None and parsed.name != ref and (found := self.by_id(parsed.name)) is not None:
            return found  # an id in quotes, with a path after it, or parsed by the caller
        if self.known(parsed.name):
            return self._of_agent(parsed.name, parsed.at)
        if parsed.at is None:
            return self._by_name(parsed.name)
        self._nothing(str(ref))
        raise NotFoundError("agent-not-found", f"there is no agent {parsed.name!r}", hint=_LIST)

    def by_id(self, text: str) -> Head | None:
        """The record whose id that is, ours or a caller's own; None where there is none, or it was pruned."""
        parsed = parse_id(text)
        if parsed is not None:
            seq, tag, _ = parsed
            found = self._with_id(text, seq, self._engine.tagged(self._user, tag))
            if found is None:
                found = self._with_id(text, seq, self._engine.tagged(self._user, tag, fresh=True))
            if found is not None:
                return found
        return self._by_alias(text)

    def _with_id(self, text: str, seq: int, agents: Sequence[str]) -> Head | None:
        for agent in agents:
            head = self._present(self.key(agent), seq)
            if head is not None and id_of(self._engine, head) == text:
                return head
        return None

    def _by_alias(self, text: str) -> Head | None:
        found = self._engine.storage.find_alias(self._user, text)
        if found is None:
            return None
        head = self._present(self.key(found[0]), found[1])
        if head is not None and head.alias != text:
            raise CorruptDataError(
                "bad-index", f"the index of ids is damaged at {text!r}", hint="run `rekindle verify`"
            )
        return head

    def by_alias_scan(self, agent: str, alias: str) -> Head | None:
        """A caller's id looked for in an agent's own records, where the index does not know it."""
        return next((h for h in self._engine.heads(self.key(agent)) if h.alias == alias and self._live(h)), None)

    def own(self, agent: str, name: str, *, scans: bool = True) -> Head | None:
        """The agent's checkpoint that a caller calls so; None where there is none, or it was pruned; with `scans` after
        a look at every record. CorruptDataError where the index of ids has lost it, or leads to another."""
        engine, key = self._engine, self.key(agent)
        seq = engine.own_seq(key, name)
        head = self._present(key, seq) if seq else None
        if head is not None and engine.own_name(head) == name:
            return head
        if scans and head is None:
            head = next((h for h in engine.heads(key) if engine.own_name(h) == name), None)
        if head is None or head.seq in engine.log.view(key.user, fresh=True).agent(agent).dropped:
            return None  # perhaps since the first look, and emptied by a collect
        if engine.own_name(head) == name and engine.own_seq(key, name) == head.seq:
            return head  # it came between the two looks
        raise CorruptDataError("bad-index", f"the index of ids is damaged at {name!r}", hint="run `rekindle verify`")

    def _nothing(self, name: str) -> NotFoundError:
        """There is none; looked for in every record first: a damaged index must not make a checkpoint's id unknown."""
        for key in self._engine.storage.keys(self._user):
            if has_checkpoints(key.agent) and self.by_alias_scan(key.agent, name) is not None:
                raise CorruptDataError("bad-index", f"the index of ids has lost {name!r}", hint="run `rekindle verify`")
        return NotFoundError("nothing-named", f"nothing here is called {name!r}", hint=_LIST)

    def _present(self, key: Key, seq: int) -> Head | None:
        """The record, where it is there and not pruned."""
        if seq < 1 or seq in self._engine.log.view(self._user, fresh=True).agent(key.agent).dropped:
            return None
        try:
            return self._engine.head(key, seq)
        except NotFoundError:
            return None

    def _live(self, head: Head) -> bool:
        return head.seq not in self._engine.log.view(self._user).agent(head.key.agent).dropped

    def _of_agent(self, agent: str, at: int | TimeAgo | Instant | str | None) -> Head:
        key = self.key(agent)
        if isinstance(at, int) and at >= 0:
            return self._present(key, at) or _raise(_no_such(agent, f"checkpoint {at}"))
        if isinstance(at, str):
            return self._named(agent, at) or _raise(_no_such(agent, f"branch or tag {at!r}"))
        history = self.history(self._default_head(agent))
        if at is None:
            return next(history)
        if isinstance(at, int):
            count = 0
            for count, head in enumerate(history, 1):
                if count == -at:
                    return head
            raise _no_such(agent, f"checkpoint @{at}: its history has {count}")
        moment = self._engine.now() / 1000 - at.ago.total_seconds() if isinstance(at, TimeAgo) else at.at.timestamp()
        for head in history:
            if head.time <= moment * 1000:
                return head
        raise _no_such(agent, "checkpoint that old")

    def _default_head(self, agent: str) -> Head:
        branches = self.branches(agent)
        if not branches:
            raise NotFoundError(
                "agent-empty", f"agent {agent!r} has no checkpoints (they were pruned)", hint="see undo"
            )
        return self._engine.head(self.key(agent), branches.get(MAIN) or max(branches.values()))

    def _named(self, agent: str, name: str) -> Head | None:
        view = self._engine.log.view(self._user, fresh=True).agent(agent)
        seq = self.branches(agent).get(name) or view.tags.get(name)
        return self._present(self.key(agent), seq) if seq else None

    def _by_name(self, name: str) -> Head:
        """A branch or a tag of whichever agent has it, or the beginning of an id."""
        agents = [key.agent for key in self._engine.storage.keys(self._user) if has_checkpoints(key.agent)]
        found = [head for agent in agents if (head := self._named(agent, name)) is not None]
        hint = "say which: AGENT@NAME"
        if not found and name.startswith("chk_"):
            found, hint = list(self._by_prefix(name, agents)), "write more of the id, or AGENT@SEQ"
        if len(found) > 1:
            those = ", ".join(f"{quote_agent(h.key.agent)}@{h.seq}" for h in found[:5])
            raise InvalidInputError("ambiguous", f"{name!r} could be any of {those}", hint=hint)
        return found[0] if found else _raise(self._nothing(name))

    def _by_prefix(self, prefix: str, agents: list[str]) -> Iterator[Head]:
        seq, dash, rest = prefix[4:].partition("-")
        if not seq.isdigit() or not dash:
            return
        for agent in agents:
            tag = self._engine.tag(agent)
            head = self._present(self.key(agent), int(seq)) if tag.startswith(rest[:8]) else None
            if head is not None and id_of(self._engine, head).startswith(prefix):
                yield head

    def history(self, head: Head) -> Iterator[Head]:
        """The record and its ancestors that were not pruned, newest first; a pruned one is stepped over."""
        view = self._engine.log.view(self._user, fresh=True).agent(head.key.agent)
        if head.seq not in view.dropped:
            yield head
        wanted = view.parent_of_gone(head.parent)
        if not wanted:
            return
        for older in self._engine.heads(head.key, before=wanted + 1):
            if older.seq < wanted:  # taken out since, or `heads` would not have stepped over it
                view = self._engine.log.view(self._user).agent(head.key.agent)
                wanted = view.parent_of_gone(wanted)
            if older.seq == wanted:
                if older.seq not in view.dropped:
                    yield older
                wanted = view.parent_of_gone(older.parent)
            if not wanted:
                return


def _raise(error: Exception) -> Head:
    raise error


def _no_such(agent: str, what: str) -> NotFoundError:
    return NotFoundError(
        "checkpoint-not-found", f"agent {agent!r} has no {what}",
        hint=f"list what it has with `rekindle log {quote_agent(agent)}`",
    )  # fmt: skip
