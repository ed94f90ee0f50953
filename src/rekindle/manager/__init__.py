"""The manager: agents in, agents out, and the storages it keeps them in. Stands on the store."""

from .comparison import CheckpointDiff
from .faces import (
    FileCheckpointStorage,
    InMemoryCheckpointStorage,
    SQLiteCheckpointStorage,
    StoreCheckpointStorage,
)
from .manager import CheckpointManager
from .storage import CheckpointStorage
from .tree import Tree

__all__ = [
    "CheckpointDiff",
    "CheckpointManager",
    "CheckpointStorage",
    "FileCheckpointStorage",
    "InMemoryCheckpointStorage",
    "SQLiteCheckpointStorage",
    "StoreCheckpointStorage",
    "Tree",
]
