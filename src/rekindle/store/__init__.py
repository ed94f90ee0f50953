"""The store: records and states above a storage, below the manager."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .opening import open_store
from .store import Store

if TYPE_CHECKING:
    from .async_store import AsyncStore

__all__ = ["AsyncStore", "Store", "open_store"]


def __getattr__(name: str) -> Any:
    if name != "AsyncStore":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .async_store import AsyncStore  # here: asyncio is slow to import, and most programs do without

    globals()[name] = AsyncStore
    return AsyncStore
