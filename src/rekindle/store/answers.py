"""Records as the checkpoints people are handed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from ..model import Checkpoint, checkpoint_id, lazy
from ..state import codec
from ..storage.record import Head
from .engine import Engine

AGENT_FIELDS = ("status", "required_fields", "context_summary", "collected_fields", "state")
SHAPE = "shape"
"""In a head's `more`: "agent" where the state is a dict of AGENT_FIELDS, as the manager saves it."""


def id_of(engine: Engine, head: Head) -> str:
    return head.alias or checkpoint_id(head.seq, engine.tag(head.key.agent), head.link)


def parent_id_of(engine: Engine, head: Head) -> str | None:
    if not head.parent:
        return None
    alias = head.more.get("parent_alias")
    return alias or checkpoint_id(head.parent, engine.tag(head.key.agent), head.parent_link)


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
        timestamp=datetime.fromtimestamp(head.time / 1000, timezone.utc),
        metadata=codec.unpack(head.metadata, opaque=True) if head.metadata else {},
        kind=head.kind,
        label=labels.get(head.seq, head.label),
        seq=head.seq,
        branch=head.branch,
        size=head.size,
        digest=head.digest.hex(),
    )


def _fields(engine: Engine, head: Head) -> dict[str, Any]:
    value = engine.state(head, opaque=True)
    if head.more.get(SHAPE) == "agent":
        return {name: value[name] for name in AGENT_FIELDS if name != "status"}
    return {"collected_fields": {}, "required_fields": [], "context_summary": "", "state": value}
