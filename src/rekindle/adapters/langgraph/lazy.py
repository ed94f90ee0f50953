"""What a listing hands out: values that are read when they are asked for. A list of 100 reads no state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Any, overload

from langgraph.checkpoint.base import PendingWrite


class LazyValues(MutableMapping[str, Any]):
    """A checkpoint's `channel_values`. Reads like the dict it is loaded as, once."""

    def __init__(self, load: Callable[[], dict[str, Any]]) -> None:
        self._load = load
        self._held: dict[str, Any] | None = None

    @property
    def _values(self) -> dict[str, Any]:
        if self._held is None:
            self._held = self._load()
        return self._held

    def __getitem__(self, channel: str) -> Any:
        return self._values[channel]

    def __setitem__(self, channel: str, value: Any) -> None:
        self._values[channel] = value

    def __delitem__(self, channel: str) -> None:
        del self._values[channel]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def copy(self) -> dict[str, Any]:
        return dict(self._values)

    def __repr__(self) -> str:
        return "<LazyValues>" if self._held is None else repr(self._held)


class LazyWrites(Sequence[PendingWrite]):
    """A checkpoint's `pending_writes`."""

    def __init__(self, load: Callable[[], list[PendingWrite]]) -> None:
        self._load = load
        self._held: list[PendingWrite] | None = None

    @property
    def _writes(self) -> list[PendingWrite]:
        if self._held is None:
            self._held = self._load()
        return self._held

    @overload
    def __getitem__(self, at: int) -> PendingWrite: ...
    @overload
    def __getitem__(self, at: slice) -> list[PendingWrite]: ...
    def __getitem__(self, at: int | slice) -> PendingWrite | list[PendingWrite]:
        return self._writes[at]

    def __len__(self) -> int:
        return len(self._writes)

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "<LazyWrites>" if self._held is None else repr(self._held)
