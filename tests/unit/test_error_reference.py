"""docs/reference/errors.md knows every code there is."""

import ast
from collections.abc import Iterator
from pathlib import Path

from rekindle import errors

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
CLASSES = {name for name, value in vars(errors).items() if isinstance(value, type)}


def codes() -> Iterator[str]:
    """Every code that is written where an error is made."""
    for path in (ROOT / "src" / "rekindle").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            made = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CLASSES
            if made and node.args and isinstance(node.args[0], ast.Constant):
                yield node.args[0].value


def test_every_code_is_in_the_reference() -> None:
    assert {code for code in codes() if f"`{code}`" not in PAGE} == set()


def test_the_reference_names_every_class() -> None:
    assert {name for name in CLASSES if f"`{name}`" not in PAGE} == set()
