"""What an agent is: any object of a registered type with an `agent_id`. Taken apart to be saved, put together again.

`user_id`, `status`, `collected_fields`, `required_fields` and `context_summary` are read where the agent has them;
everything else it holds is its state: its attributes, or what its `to_state()` says. It is put together without running
`__init__`: by its attributes, or by `from_state()`. Its class is found by the name it was registered under.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from .errors import InvalidInputError, RekindleError
from .model import ATTRIBUTES, Checkpoint, check_name
from .state.tracked import TrackedDict, TrackedList
from .state.values import codec, shapes
from .state.values.models import dump_model
from .state.values.parts import fields_of
from .state.values.registry import Entry, build, entry_for, entry_named

LOCAL = "local"
_MODEL = "$model"
"""In a pydantic agent's state: what the model holds beside its fields."""
_PLAIN: dict[str, tuple[type, ...]] = {
    "agent_id": (str,),
    "user_id": (str,),
    "status": (str,),
    "collected_fields": (dict, TrackedDict),
    "required_fields": (list, TrackedList),
}
_MISSING: Any = object()


@dataclass(frozen=True, slots=True)
class Captured:
    """An agent, taken apart. What is in here is the agent's own, not a copy: save it before the agent goes on."""

    agent_id: str
    user_id: str
    agent_type: str
    agent_version: int
    status: str
    collected_fields: dict[str, Any]
    required_fields: list[Any]
    context_summary: Any
    state: Any
    agent_attributes: list[str]


def capture(agent: Any) -> Captured:
    """Raises InvalidInputError for an object that is no agent: of no registered type, or without an `agent_id`."""
    entry = entry_for(type(agent))
    if entry is None:
        raise _unregistered_class(type(agent))
    state = entry.dump(agent)
    if _by_attributes(entry):
        state = _fields(state)
        held = state
    else:
        held = {name: value for name in ATTRIBUTES if (value := getattr(agent, name, _MISSING)) is not _MISSING}
    shown: dict[str, Any] = {}
    own = []
    for name in ATTRIBUTES:
        if name in held and _is_plain(name, held[name]):
            shown[name] = held.pop(name)
            own.append(name)
        else:
            shown[name] = _as_shown(name, getattr(agent, name, None))
    check_name(shown["agent_id"], f"the agent_id of a {type(agent).__qualname__}")
    check_name(shown["user_id"], f"the user_id of a {type(agent).__qualname__}")
    return Captured(agent_type=entry.name, agent_version=entry.version, state=state, agent_attributes=own, **shown)


def entry_of(checkpoint: Checkpoint) -> Entry:
    """How agents of its type are rebuilt; InvalidInputError where this program has not registered it."""
    entry = entry_named(checkpoint.agent_type)
    if entry is None:
        raise _unregistered_name(checkpoint)
    return entry


def revive(checkpoint: Checkpoint) -> Any:
    """A live agent of the class it was of, as it was. Values in it are the checkpoint's own: hand over a fresh one.

    InvalidInputError: its type is not registered, or cannot be rebuilt from what was stored.
    """
    entry = entry_of(checkpoint)
    names = ATTRIBUTES if checkpoint.agent_attributes is None else checkpoint.agent_attributes
    shown = {name: getattr(checkpoint, name) for name in names}
    if _by_attributes(entry) and isinstance(checkpoint.state, dict):
        data = {**shown, **checkpoint.state}
        return build(entry.name, checkpoint.agent_version, _model_data(data) if _is_model(entry) else data)
    agent = build(entry.name, checkpoint.agent_version, checkpoint.state)
    for name, value in shown.items():
        _give(agent, name, value)
    return agent


def explain(agent: Any, captured: Captured, error: InvalidInputError) -> InvalidInputError:
    """An error that an agent could not be saved, saying which attribute it is that cannot be stored."""
    parts = {name: getattr(captured, name) for name in ("collected_fields", "required_fields", "context_summary")}
    state = captured.state if isinstance(captured.state, dict) else {"to_state()": captured.state}
    for name, value in {**parts, **state}.items():
        try:
            codec.pack(value)
        except RekindleError as e:
            return InvalidInputError(
                "attribute-unsavable", f"{type(agent).__qualname__}.{name} cannot be saved: {e.message}",
                hint=f"{e.hint}; or leave it out, by to_state() and from_state() of the class",
            )  # fmt: skip
    return error


def _by_attributes(entry: Entry) -> bool:
    return entry.dump in (shapes._attributes, shapes._dump_struct, dump_model)


def _is_model(entry: Entry) -> bool:
    return entry.dump is dump_model


def _fields(data: Any) -> dict[str, Any]:
    if isinstance(data, dict):
        return dict(data)
    fields, *model = data
    return {**fields, _MODEL: model}


def _model_data(data: dict[str, Any]) -> list[Any]:
    model = data.pop(_MODEL, None)
    return [data, *([sorted(data), None, None] if model is None else model)]


def _is_plain(name: str, value: Any) -> bool:
    """Whether a checkpoint can show the attribute as it is. If not, it stays in the state, and its like is shown."""
    return name not in _PLAIN or type(value) in _PLAIN[name]


def _as_shown(name: str, value: Any) -> Any:
    if name == "agent_id":
        return value
    if name == "user_id":
        return LOCAL if value is None else value
    if name == "status":
        return _status_text(value)
    if name == "collected_fields":
        return dict(value) if isinstance(value, Mapping) else dict(fields_of(value) or {})
    if name == "required_fields":
        if isinstance(value, (set, frozenset)):
            return sorted(value, key=repr)
        return list(value) if isinstance(value, (Sequence, Mapping)) and not isinstance(value, (str, bytes)) else []
    return "" if value is None else value


def _status_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, Enum):
        return value.value if type(value.value) is str else value.name
    return str(value)


def _give(agent: Any, name: str, value: Any) -> None:
    try:
        object.__setattr__(agent, name, value)
    except AttributeError:  # a property the class computes, or a slot it does not have
        return


def _unregistered_class(cls: type) -> InvalidInputError:
    return InvalidInputError(
        "agent-unregistered", f"{cls.__module__}.{cls.__qualname__} is not registered, so its agents cannot be saved",
        hint=f"put @rekindle.register above the class, or call rekindle.register({cls.__name__})",
    )  # fmt: skip


def _unregistered_name(checkpoint: Checkpoint) -> InvalidInputError:
    if not checkpoint.agent_type:
        return InvalidInputError(
            "not-an-agent", f"checkpoint {checkpoint.id} holds a state and no agent: it was not saved by a manager",
            hint="read it with store.restore()",
        )  # fmt: skip
    return InvalidInputError(
        "agent-unregistered",
        f"checkpoint {checkpoint.id} is of an agent of type {checkpoint.agent_type!r}, not registered in this program",
        hint=f"before restoring: rekindle.register(YourClass, name={checkpoint.agent_type!r})",
    )
