"""rekindle keeps AI agents alive and rewindable. What is named here is the public library; it loads when used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .errors import ConflictError as ConflictError
    from .errors import CorruptDataError as CorruptDataError
    from .errors import InvalidInputError as InvalidInputError
    from .errors import NotFoundError as NotFoundError
    from .errors import RekindleError as RekindleError
    from .errors import UnavailableError as UnavailableError
    from .errors import UnsupportedError as UnsupportedError
    from .model import Checkpoint as Checkpoint
    from .retention import Policy as Policy
    from .state.registry import Opaque as Opaque
    from .state.registry import register as register
    from .state.tracked import tracked as tracked
    from .store import Store as Store
    from .store import open_store as open_store

__version__ = "0.1.0"

_HOMES = {
    "Checkpoint": "model",
    "CheckpointDiff": "manager",
    "CheckpointManager": "manager",
    "CheckpointStorage": "manager",
    "FileCheckpointStorage": "manager",
    "InMemoryCheckpointStorage": "manager",
    "SQLiteCheckpointStorage": "manager",
    "AsyncStore": "store",
    "Store": "store",
    "open_store": "store",
    "Policy": "retention",
    "Opaque": "state.registry",
    "register": "state.registry",
    "tracked": "state.tracked",
    "ConflictError": "errors",
    "CorruptDataError": "errors",
    "InvalidInputError": "errors",
    "NotFoundError": "errors",
    "RekindleError": "errors",
    "UnavailableError": "errors",
    "UnsupportedError": "errors",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'rekindle' has no attribute {name!r}")
    import importlib

    value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
