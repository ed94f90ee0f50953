"""All of an agent's checkpoints as the tree they make."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ..model import Checkpoint


@dataclass(frozen=True)
class Tree:
    """A checkpoint and what was saved on it, oldest first."""

    checkpoint: Checkpoint
    children: list[Tree] = field(default_factory=list)

    def __iter__(self) -> Iterator[Checkpoint]:
        """Every checkpoint in it, parents first."""
        todo = [self]
        while todo:
            tree = todo.pop()
            yield tree.checkpoint
            todo += reversed(tree.children)

    def __repr__(self) -> str:
        lines, todo = [], [(self, 0)]
        while todo:
            tree, depth = todo.pop()
            lines.append("  " * depth + repr(tree.checkpoint))
            # a line of descent stays in its column; only a fork goes one in
            inner = depth + (len(tree.children) > 1)
            todo += [(child, inner) for child in reversed(tree.children)]
        return "\n".join(lines)


def trees(newest_first: Sequence[Checkpoint]) -> list[Tree]:
    """The trees these checkpoints make; one whose parent is not among them is a root."""
    nodes = {checkpoint.id: Tree(checkpoint) for checkpoint in reversed(newest_first)}
    roots: list[Tree] = []
    for node in nodes.values():
        parent = nodes.get(node.checkpoint.parent_checkpoint_id or "")
        (roots if parent is None else parent.children).append(node)
    return roots
