"""The store: records and states above a storage, below the manager."""

from .async_store import AsyncStore
from .opening import open_store
from .store import Store

__all__ = ["AsyncStore", "Store", "open_store"]
