"""Records in one SQLite file: the default."""

from .storage import SqliteStorage

__all__ = ["SqliteStorage"]
