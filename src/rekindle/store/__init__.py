"""The store: records and states above a storage, below the manager."""

from .opening import open_store
from .store import Store

__all__ = ["Store", "open_store"]
