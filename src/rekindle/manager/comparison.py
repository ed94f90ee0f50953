"""What is different between two checkpoints of agents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..model import ATTRIBUTES
from ..quoting import escape
from ..state.diff.change import Change
from ..state.diff.states import Page, page, render, summary, to_json
from ..state.shown.path import Path
from ..state.shown.path import render as render_path
from ..state.values.canon import same


@dataclass(frozen=True)
class CheckpointDiff:
    """From one checkpoint to another: every change with its path, its old value and its new one."""

    old_id: str
    new_id: str
    old_status: str
    new_status: str
    changes: tuple[Change, ...]
    """Paths begin with `collected_fields`, `state` (the other attributes), `required_fields`, `context_summary` or
    `status`. Values of registered types are shown as their data."""

    @property
    def changed_fields(self) -> list[str]:
        """The names of the collected fields that changed, then of other attributes. The status has its own place."""
        places = [place for change in self.changes for place in (change.from_path, change.path) if place]
        collected = [name for path in places if path[0] == "collected_fields" for name in path[1:2]]
        collected += [name for change in self.changes if change.path == ("collected_fields",) for name in _keys(change)]
        others = [_attribute(path) for path in places if path[0] not in ("collected_fields", "status")]
        return list(dict.fromkeys(str(getattr(name, "text", name)) for name in [*collected, *others]))

    def __bool__(self) -> bool:
        """Whether anything is different."""
        return bool(self.changes) or self.old_status != self.new_status

    def at(self, path: str) -> list[Change]:
        """The changes at a path, and below it."""
        return [change for change in self.changes if _is_at(render_path(change.path), path)]

    def page(self, limit: int, offset: int = 0) -> Page:
        """A part of the changes, for large diffs."""
        return page(self.changes, limit, offset)

    def to_dict(self, *, full: bool = False) -> dict[str, Any]:
        """JSON-safe. Long values are cut, and say their size, unless `full`."""
        return {
            "old_id": self.old_id,
            "new_id": self.new_id,
            "old_status": self.old_status,
            "new_status": self.new_status,
            "changed_fields": self.changed_fields,
            "changes": [to_json(change, full=full) for change in self.changes],
        }

    def __repr__(self) -> str:
        status = f", status {self.old_status} -> {self.new_status}" if self.old_status != self.new_status else ""
        return escape(f"<CheckpointDiff {self.old_id} -> {self.new_id}: {summary(self.changes)}{status}>")

    def __str__(self) -> str:
        return render(self.changes) or "no changes"

    def _repr_html_(self) -> str:
        from ..notebook import diff_html

        return diff_html((self.old_id, self.new_id), self.changes, (self.old_status, self.new_status))


def _keys(change: Change) -> list[Any]:
    """Of a change of all collected fields at once: those that are not the same."""
    if change.op != "replace" or not (isinstance(change.old, dict) and isinstance(change.new, dict)):
        return []
    return [key for key in {**change.old, **change.new} if not same(change.old.get(key), change.new.get(key))]


def _attribute(path: Path) -> Any:
    if path[0] == "state":
        return path[1] if len(path) > 1 else "state"
    return path[0] if path[0] in ATTRIBUTES else "state"


def _is_at(text: str, path: str) -> bool:
    return text == path or (text.startswith(path) and text[len(path)] in ".[{")
