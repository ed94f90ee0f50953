"""Moving over: the database of LangGraph's own SqliteSaver, read as it is and brought into a saver on this store."""

from .move import Moved, move
from .source import bytes_of, check, path_of

__all__ = ["Moved", "bytes_of", "check", "move", "path_of"]
