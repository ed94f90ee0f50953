"""Kits others can use too: what every storage must do, and a disk that crashes. They need pytest, some also apsw."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .storage import StorageConformance as StorageConformance

__all__ = ["StorageConformance"]


def __getattr__(name: str) -> Any:
    if name == "StorageConformance":
        from .storage import StorageConformance  # pytest comes with it: not for those who want the disk only

        return StorageConformance
    raise AttributeError(f"module 'rekindle.testing' has no attribute {name!r}")
