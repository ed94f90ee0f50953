"""Records as the checkpoints people are handed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ..errors import InvalidInputError
from ..model import ATTRIBUTES, Checkpoint, checkpoint_id, lazy
from ..refs import quote_agent
from ..state.diff.change import Change
from ..state.values import codec
from ..storage.record import Head, long_id
from .engine import Engine

if TYPE_CHECKING:
    from ..state.diff.show import Page

_SHOWN = 50
AGENT_FIELDS = ("status", "required_fields", "context_summary", "collected_fields", "state")
SHAPE = "shape"
"""In a head's `more`: "agent" where the state is a dict of AGENT_FIELDS, as the manager saves it. Beside it the
version of the agent's type where it is not 1, and which of ATTRIBUTES the agent had where it had not all."""


class Changes(tuple[Change, ...]):
    """What makes one checkpoint's state of another's: a tuple that shows itself a line or so a change."""

    between: tuple[str, str]

    @classmethod
    def of(cls, changes: Iterable[Change], old: Head, new: Head) -> Changes:
        made = cls(changes)
        made.between = _name(old), _name(new)
        return made

    def page(self, limit: int, offset: int = 0) -> Page:
        """A part of the changes, for large diffs."""
        from ..state.diff.show import page

        return page(self, limit, offset)

    def __repr__(self) -> str:
        from ..state.diff.show import render, summary

        some = self.page(_SHOWN)
        lines = render(some.items).split("\n") if some.items else []
        more = [f"... {some.total - _SHOWN:,} more"] if some.next_offset is not None else []
        return "\n  ".join([f"<Changes {' -> '.join(self.between)}: {summary(self)}>", *lines, *more])

    def _repr_html_(self) -> str:
        from ..notebook import diff_html

        return diff_html(self.between, self, ("", ""))


def _name(head: Head) -> str:
    return f"{quote_agent(head.key.agent)}@{head.seq}"


def agent_more(version: int, attributes: Sequence[str] | None) -> dict[str, Any]:
    more: dict[str, Any] = {SHAPE: "agent"}
    if version != 1:
        more["version"] = version
    if attributes is not None and set(attributes) != set(ATTRIBUTES):
        more["attributes"] = [n for n, name in enumerate(ATTRIBUTES) if name in attributes]
    return more


def agent_state(checkpoint: Checkpoint) -> dict[str, Any]:
    """What is saved of a checkpoint of an agent."""
    return {name: getattr(checkpoint, name) for name in AGENT_FIELDS}


def id_of(engine: Engine, head: Head) -> str:
    return head.alias or checkpoint_id(head.seq, engine.tag(head.key.agent), head.link)


def parent_id_of(engine: Engine, head: Head) -> str | None:
    if not head.parent:
        return None
    return long_id(head.more.get("parent_alias")) or checkpoint_id(
        head.parent, engine.tag(head.key.agent), head.parent_link
    )


def checkpoint(engine: Engine, head: Head, labels: Mapping[int, str | None]) -> Checkpoint:
    """What a listing shows of a record; its state is read when it is asked for."""
    return lazy(
        lambda: _fields(engine, head),
        id=id_of(engine, head),
        agent_id=head.key.agent,
        agent_type=head.agent_type,
        user_id=head.key.user,
        status=head.status,
        parent_checkpoint_id=parent_id_of(engine, head),
        timestamp=datetime.fromtimestamp(head.time / 1000, UTC),
        metadata=codec.unpack(head.metadata, opaque=True) if head.metadata else {},
        kind=head.kind,
        label=labels.get(head.seq, head.label),
        seq=head.seq,
        branch=head.branch,
        size=head.size,
        digest=head.digest.hex(),
        agent_version=head.more.get("version", 1),
        agent_attributes=[ATTRIBUTES[n] for n in held] if (held := head.more.get("attributes")) is not None else None,
    )


def _fields(engine: Engine, head: Head) -> dict[str, Any]:
    try:
        value = engine.state(head)
    except InvalidInputError:  # a type is not registered here, or it is another version's: its data can be shown
        value = engine.state(head, opaque=True)
    if head.more.get(SHAPE) == "agent":
        return {name: value[name] for name in AGENT_FIELDS if name != "status"}
    return {"collected_fields": {}, "required_fields": [], "context_summary": "", "state": value}
