"""LangGraph on this store: a checkpoint saver for any graph, and a node that saves by the clock."""

from .node import checkpoint_node
from .reading import Thread
from .saver import RekindleSaver

__all__ = ["RekindleSaver", "Thread", "checkpoint_node"]
