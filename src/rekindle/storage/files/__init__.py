"""Records as JSON files that people can read, in folders."""

from .storage import FilesStorage

__all__ = ["FilesStorage"]
