"""LangGraph on this store: a checkpoint saver for any graph, and a node that saves by the clock.

Importing it registers the types that LangGraph's own serializer takes for safe: messages, Send, Interrupt and the like.
"""

from .node import checkpoint_node
from .reading import Thread
from .saver import RekindleSaver
from .types import register_types

register_types()

__all__ = ["RekindleSaver", "Thread", "checkpoint_node"]
