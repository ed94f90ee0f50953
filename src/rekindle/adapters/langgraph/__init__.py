"""LangGraph on this store: a checkpoint saver for any graph. Importing it registers LangGraph's own types."""

from .reading import Thread
from .saver import RekindleSaver

__all__ = ["RekindleSaver", "Thread"]
