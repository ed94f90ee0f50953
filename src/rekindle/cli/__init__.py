"""The command `rekindle`. Nothing but click loads here: a command's module loads when the command is used."""

from .app import main as main

__all__ = ["main"]
