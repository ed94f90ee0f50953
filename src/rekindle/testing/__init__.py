"""Kits others can use too: what every storage and adapter must do, and a disk that crashes. They need pytest, apsw."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .adapter import AdapterConformance as AdapterConformance
    from .storage import StorageConformance as StorageConformance

__all__ = ["AdapterConformance", "StorageConformance"]


def __getattr__(name: str) -> Any:
    if name == "AdapterConformance":
        from .adapter import AdapterConformance

        return AdapterConformance
    if name == "StorageConformance":
        from .storage import StorageConformance  # pytest comes with it: not for those who want the disk only

        return StorageConformance
    raise AttributeError(f"module 'rekindle.testing' has no attribute {name!r}")
