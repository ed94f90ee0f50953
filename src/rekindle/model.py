"""What a checkpoint is, to everyone: frozen facts about a moment, and the state loaded when it is asked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from .errors import InvalidInputError
from .quoting import escape

KINDS = ("step", "manual", "routine", "pre_operation", "recovery", "phase")
MAIN = "main"
MAX_ID_BYTES = 512
_NAMES = f"any text of 1 to {MAX_ID_BYTES} bytes in UTF-8 without control characters"

ATTRIBUTES = ("agent_id", "user_id", "status", "collected_fields", "required_fields", "context_summary")
"""What a checkpoint shows of an agent by itself, beside its state."""

_LABEL = 60
_LAZY = ("collected_fields", "required_fields", "context_summary", "state")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_ID = re.compile(r"chk_([1-9][0-9]{0,9})-([0-9a-f]{8})([0-9a-f]{8})")


@dataclass(eq=False)
class Checkpoint:
    """One immutable record: a state, its parent, and what is known about the moment.

    In answers of a store, `state` and the fields beside it load on first access. `to_dict()` is JSON-safe.
    """

    id: str
    agent_id: str
    agent_type: str = ""
    user_id: str = "local"
    status: str = ""
    collected_fields: dict[str, Any] = field(default_factory=dict)
    required_fields: list[Any] = field(default_factory=list)
    context_summary: Any = field(default_factory=str)
    parent_checkpoint_id: str | None = None
    timestamp: datetime = field(default_factory=lambda: datetime.now(UTC))
    metadata: dict[str, Any] = field(default_factory=dict)
    state: Any = field(default_factory=dict)
    kind: str = "manual"
    label: str | None = None
    seq: int = 0
    branch: str = MAIN
    size: int = 0
    digest: str = ""
    agent_version: int = 1
    agent_attributes: list[str] | None = None
    """Which of ATTRIBUTES the agent really had; None: all of them."""

    def __getattr__(self, name: str) -> Any:
        # reached only for a field that is not set yet: a checkpoint from a list, whose state is still in the store
        load = self.__dict__.get("_load")
        if name not in _LAZY or load is None:
            raise AttributeError(f"a checkpoint has no {name!r}")
        self.__dict__.update(load())
        return self.__dict__[name]

    def __eq__(self, other: object) -> bool:
        return self.to_dict() == other.to_dict() if isinstance(other, Checkpoint) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.user_id, self.id))

    def __getstate__(self) -> dict[str, Any]:
        """Whole: a copy in another process has no store to load from."""
        for name in _LAZY:
            getattr(self, name)
        return {name: value for name, value in self.__dict__.items() if name != "_load"}

    def _repr_html_(self) -> str:
        from .notebook import checkpoint_html

        return checkpoint_html(self)

    def __repr__(self) -> str:
        label = f" {_beginning(self.label)!r}" if self.label else ""
        at = self.timestamp.strftime("%Y-%m-%d %H:%M:%S")
        place = f"{self.agent_id!r}@{self.seq} on {escape(self.branch)}"
        return f"<Checkpoint {escape(self.id)} {place}, {self.kind}{label}, {at}>"

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON can carry it: what JSON has no word for is tagged, and comes back as it was."""
        from .state.shown.plain import to_plain

        return {
            "id": self.id,
            "agent_id": self.agent_id,
            "agent_type": self.agent_type,
            "user_id": self.user_id,
            "status": self.status,
            "collected_fields": to_plain(self.collected_fields),
            "required_fields": to_plain(self.required_fields),
            "context_summary": to_plain(self.context_summary),
            "parent_checkpoint_id": self.parent_checkpoint_id,
            "timestamp": self.timestamp.isoformat(),
            "metadata": to_plain(self.metadata),
            "state": to_plain(self.state),
            **self.facts(),
            "agent_version": self.agent_version,
            "agent_attributes": self.agent_attributes,
        }

    def facts(self) -> dict[str, Any]:
        """The fields a listing shows beside the contract's, none of which loads the state."""
        names = ("kind", "label", "seq", "branch", "size", "digest")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Checkpoint:
        from .state.shown.plain import from_plain

        known = dict(data)
        for name in ("collected_fields", "required_fields", "context_summary", "metadata", "state"):
            if name in known:
                known[name] = from_plain(known[name])
        if unknown := set(known) - set(cls.__dataclass_fields__):
            raise InvalidInputError("bad-checkpoint", f"a checkpoint has no field {sorted(unknown)[0]!r}")
        if missing := {"id", "agent_id"} - set(known):
            raise InvalidInputError("bad-checkpoint", f"a checkpoint has to have a field {sorted(missing)[0]!r}")
        stamp = known.get("timestamp")
        if isinstance(stamp, str):
            try:
                known["timestamp"] = datetime.fromisoformat(stamp)
            except ValueError as e:
                raise InvalidInputError("bad-checkpoint", f"a checkpoint's timestamp is no ISO time: {stamp!r}") from e
        return cls(**known)


class History(list[Checkpoint]):
    """Checkpoints, newest first: a list that shows itself a line each."""

    def __repr__(self) -> str:
        return f"<History of {len(self)}>" + "".join(f"\n  {checkpoint!r}" for checkpoint in self)

    def _repr_html_(self) -> str:
        from .notebook import history_html

        return history_html(self)


def _beginning(label: str) -> str:
    """What fits a line that has more to say."""
    return label if len(label) <= _LABEL else label[: _LABEL - 3] + "..."


def lazy(load: Callable[[], Mapping[str, Any]], **facts: Any) -> Checkpoint:
    """A checkpoint whose state `load` brings when it is first asked for."""
    checkpoint = Checkpoint.__new__(Checkpoint)
    checkpoint.__dict__.update(facts)
    checkpoint.__dict__["_load"] = load
    return checkpoint


def checkpoint_id(seq: int, agent_tag: str, link: bytes) -> str:
    """`chk_42-5d41402abc4b2a76`: the 42nd record, of the agent with that tag, with that content."""
    return f"chk_{seq}-{agent_tag}{link.hex()[:8]}"


def agent_tag(digest: bytes) -> str:
    return digest.hex()[:8]


def parse_id(text: str) -> tuple[int, str, str] | None:
    """(seq, agent tag, link's beginning) of an id of ours; None for any other text."""
    match = _ID.fullmatch(text)
    return (int(match[1]), match[2], match[3]) if match else None


def check_name(text: object, what: str) -> str:
    """An id of a user, agent, branch or tag: text up to 512 bytes without control characters."""
    if not isinstance(text, str) or not text:
        raise InvalidInputError("bad-name", f"{what} must be a non-empty text, not {text!r}", hint=_NAMES)
    if _CONTROL.search(text):
        raise InvalidInputError("bad-name", f"{what} {text!r} has a control character or lone surrogate", hint=_NAMES)
    if len(text.encode()) > MAX_ID_BYTES:
        raise InvalidInputError("bad-name", f"{what} {text[:40]!r}… is longer than {MAX_ID_BYTES} bytes", hint=_NAMES)
    return text


def check_label(text: object) -> str | None:
    """A label: any text that UTF-8 can write, control characters too, or None."""
    if text is not None and not isinstance(text, str):
        raise InvalidInputError("bad-label", f"a label must be a text, not {type(text).__name__}", hint="or None")
    if text is not None and _SURROGATE.search(text):
        raise InvalidInputError("bad-label", f"the label {text[:40]!r} has a lone surrogate", hint="any text in UTF-8")
    return text


def check_kind(kind: str) -> str:
    if kind not in KINDS:
        raise InvalidInputError("bad-kind", f"there is no kind {kind!r}", hint="one of " + ", ".join(KINDS))
    return kind
