"""rekindle keeps AI agents alive and rewindable. What is named here is the public library; it loads when used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .adapters.track import Tracker as Tracker
    from .adapters.track import track as track
    from .errors import ConflictError as ConflictError
    from .errors import CorruptDataError as CorruptDataError
    from .errors import InvalidInputError as InvalidInputError
    from .errors import NotFoundError as NotFoundError
    from .errors import RekindleError as RekindleError
    from .errors import UnavailableError as UnavailableError
    from .errors import UnsupportedError as UnsupportedError
    from .manager import CheckpointDiff as CheckpointDiff
    from .manager import CheckpointManager as CheckpointManager
    from .manager import CheckpointStorage as CheckpointStorage
    from .manager import FileCheckpointStorage as FileCheckpointStorage
    from .manager import InMemoryCheckpointStorage as InMemoryCheckpointStorage
    from .manager import SQLiteCheckpointStorage as SQLiteCheckpointStorage
    from .manager import StoreCheckpointStorage as StoreCheckpointStorage
    from .model import Checkpoint as Checkpoint
    from .model import History as History
    from .retention import Policy as Policy
    from .state.tracked import tracked as tracked
    from .state.values.registry import Opaque as Opaque
    from .state.values.registry import register as register
    from .store import AsyncStore as AsyncStore
    from .store import Store as Store
    from .store import open_store as open_store

__version__ = "0.1.0"

_HOMES = {
    "Tracker": "adapters.track",
    "track": "adapters.track",
    "Checkpoint": "model",
    "CheckpointDiff": "manager",
    "CheckpointManager": "manager",
    "CheckpointStorage": "manager",
    "FileCheckpointStorage": "manager",
    "History": "model",
    "InMemoryCheckpointStorage": "manager",
    "SQLiteCheckpointStorage": "manager",
    "StoreCheckpointStorage": "manager",
    "AsyncStore": "store",
    "Store": "store",
    "open_store": "store",
    "Policy": "retention",
    "Opaque": "state.values.registry",
    "register": "state.values.registry",
    "tracked": "state.tracked",
    "ConflictError": "errors",
    "CorruptDataError": "errors",
    "InvalidInputError": "errors",
    "NotFoundError": "errors",
    "RekindleError": "errors",
    "UnavailableError": "errors",
    "UnsupportedError": "errors",
}


__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'rekindle' has no attribute {name!r}")
    import importlib

    value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
