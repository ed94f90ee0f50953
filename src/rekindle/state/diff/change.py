"""One difference between two states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ..shown.path import Path
from .texts import Hunk

Op = Literal["add", "remove", "replace", "move", "text", "reorder", "set_add", "set_remove"]


@dataclass(frozen=True, slots=True)
class Change:
    """What is different at `path`.

    Paths are those of the new state; only the path of a `remove` and every `from_path` are of the old one.
    So in a list an index says where an element was found or is found, whatever else came or went around it.

        add         `new` came: a list's element, a dict's entry, an object's field
        remove      `old` went; `path` is where it was
        replace     `old` became `new`
        move        the value went from `from_path` to `path`, in one list or (a renamed key) in one dict
        text        a long text `old` became `new` in part; `hunks` are the parts that changed
        reorder     a dict's keys, `old` tuple, are in other order, `new` tuple (after all that came and went)
        set_add     `new` came into the set at `path`
        set_remove  `old` left the set at `path`

    A side that does not exist is None; `op` says which that is.
    """

    op: Op
    path: Path
    old: Any = None
    new: Any = None
    from_path: Path | None = None
    hunks: tuple[Hunk, ...] = ()
