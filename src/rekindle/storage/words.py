"""What the heads of records have in common. A part of the format: it is never changed (docs/format.md)."""

from __future__ import annotations

from ..state.tree.slots import Words

_LISTED = (
    "counters_since_delta_snapshot", "assistant_id", "graph_id", "user_id", "thread_id", "checkpoint_ns", "run_id",
    "__previous__", "__end__", "__error__", "__interrupt__", "__pregel_tasks", "~__pregel_push, ", "~__pregel_pull, ",
    "pre_operation", "recovery", "routine", "phase", "manual", "attributes", "version", "open", "given", "origin",
    "shape", "status", "call_model", "supervisor", "tools", "model", "agent", "__root__", "update", "fork", "parents",
    "branch:to:", "__input__", "messages", "__start__", "input", "step", "loop", "source", "main", "langgraph",
    "journal", "parent_alias",
)  # fmt: skip


def _packed(text: str) -> bytes:
    """As MessagePack writes a short text."""
    data = text.encode()
    return (bytes((0xA0 | len(data),)) if len(data) < 32 else bytes((0xD9, len(data)))) + data


TEXT = (
    b"".join(map(_packed, _LISTED))
    + b"\x95\xa9__start__\xa8messages\xafbranch:to:agent\xa9__input__\xa5agent"
    + b"\x83\xa6source\xa5input\xa4step\x01\xa7parents\x80\x83\xa6source\xa4loop\xa4step\x01\xa7parents\x80"
    + b"\xa4main\xc4\x08\xc4\x10\x93\x03\xc0\x91\x92\xc4\x09\xa8messages\x93\x01\xc0"
    + b"\x83\xa9langgraph\xc4\xa7journal\xcd\xacparent_alias\xc4\x10"
)

WORDS = Words(TEXT)
