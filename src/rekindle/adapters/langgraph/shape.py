"""A LangGraph checkpoint as a record has it: its channels' values are the state, the rest is beside the state.

The input a graph was called with stands in one checkpoint, under `__start__`. It is kept in the journal, where the
messages in it are named by the checkpoints that follow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from langgraph.checkpoint.base import EXCLUDED_METADATA_KEYS

from ...errors import CorruptDataError
from ...state.values import codec
from ...storage.record import Head

START = "__start__"
MORE = "langgraph"
"""In a head's `more`: a checkpoint without its id and its values, packed; its time in microseconds."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BY_HAND = ("update", "fork")


def pack_rest(checkpoint: Mapping[str, Any]) -> bytes:
    """Everything of a checkpoint but its id and its channels' values: versions by name, each name once."""
    rest = {name: value for name, value in checkpoint.items() if name not in ("id", "channel_values")}
    micros = micros_of(rest.get("ts"))
    if micros is not None and _text_of(micros) == rest["ts"]:
        rest["ts"] = micros
    names: dict[str, int] = {}

    def numbered(held: Mapping[str, Any]) -> list[Any]:
        return [x for name, value in held.items() for x in (names.setdefault(name, len(names)), value)]

    versions = numbered(rest.pop("channel_versions", {}))
    seen = numbered({node: numbered(held) for node, held in rest.pop("versions_seen", {}).items()})
    updated = None
    if type(rest.get("updated_channels")) is list:
        updated = [names.setdefault(name, len(names)) for name in rest.pop("updated_channels")]
    told = [list(names), rest.pop("v", None), rest.pop("ts", None), versions, seen, updated]
    return codec.pack([*told, rest] if rest else told)


def unpack_rest(head: Head) -> dict[str, Any]:
    """CorruptDataError where the record is no checkpoint of LangGraph's."""
    try:
        names, v, ts, versions, seen, updated, *more = codec.unpack(head.more[MORE])
        by_node = _named(names, seen)
        rest = {
            "v": v,
            "ts": _text_of(ts) if type(ts) is int else ts,
            "channel_versions": _named(names, versions),
            "versions_seen": {node: _named(names, held) for node, held in by_node.items()},
        }
        if updated is not None:
            rest["updated_channels"] = [names[number] for number in updated]
        return {**rest, **(more[0] if more else {})}
    except (KeyError, ValueError, TypeError, IndexError, OverflowError) as e:
        raise none(head) from e


def metadata_in(head: Head) -> dict[str, Any]:
    """CorruptDataError where it has none."""
    told = codec.unpack(head.metadata)
    if type(told) is not dict:
        raise none(head)
    return told


def none(head: Head) -> CorruptDataError:
    return CorruptDataError("bad-record", f"record {head.seq} of {head.key.agent!r} is no checkpoint of LangGraph's")


def _named(names: Sequence[str], flat: Sequence[Any]) -> dict[str, Any]:
    return {names[number]: value for number, value in zip(flat[::2], flat[1::2], strict=True)}


def is_checkpoint(head: Head) -> bool:
    """Whether LangGraph made it: a thread's agent may have others, saved by hand."""
    return MORE in head.more


def micros_of(stamp: Any) -> int | None:
    """Microseconds since 1970 of a checkpoint's time; None where it says none."""
    try:
        return (datetime.fromisoformat(stamp) - _EPOCH) // timedelta(microseconds=1)
    except (TypeError, ValueError):
        return None


def _text_of(micros: int) -> str:
    return (_EPOCH + timedelta(microseconds=micros)).isoformat()


def metadata_of(config: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The checkpoint's metadata, and what the call's config says beside: as LangGraph's own savers put it together."""
    found = dict(metadata)
    for told in (config.get("metadata"), config.get("configurable")):
        for name, value in (told or {}).items():
            known = name in found or name in EXCLUDED_METADATA_KEYS or name.startswith("__")
            if not known and isinstance(value, (str, int, float)):
                found[name] = value
    return found


def kind_of(metadata: Mapping[str, Any]) -> str:
    return "manual" if metadata.get("source") in _BY_HAND else "step"


def label_of(metadata: Mapping[str, Any]) -> str | None:
    """`loop 3`: where it comes from, and the step."""
    told = [str(metadata[name]) for name in ("source", "step") if metadata.get(name) is not None]
    return " ".join(told).encode(errors="replace").decode() or None
