"""The house keeps its shape: imports point down, and a third-party library has one door."""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src" / "rekindle"
MODULES = sorted(SRC.rglob("*.py"))

# Bottom to top. Rooms on one line ignore each other; `__init__` is the front door: `from rekindle import X`.
LINES = (
    ("errors", "forks"),
    ("quoting",),
    ("state", "retention"),
    ("notebook",),
    ("model", "refs"),
    ("storage", "agents"),
    ("store",),
    ("manager",),
    ("adapters",),
    ("__init__",),
    ("testing", "demo"),
    ("cli",),
    ("__main__",),
)
LEVEL = {room: level for level, line in enumerate(LINES) for room in line}
STATE = {"tracked": 0, "values": 1, "shown": 2, "tree": 2, "diff": 3}
"""The rooms of `state`, in the same way."""

# Where a third-party library may be imported: anywhere in a room, or in ONE module, whichever that is.
ONE = "one module"
DOORS = {
    "numpy": "state", "pydantic": "state", "msgspec": "state",
    "click": "cli", "rich": "cli", "langgraph": "adapters", "langchain_core": "adapters",
    "blake3": ONE, "ormsgpack": ("state", "storage"), "backports": ONE, "compression": ONE,
    "pytest": "testing", "hypothesis": "testing", "apsw": "testing",
}  # fmt: skip
UNSAFE = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "jsonpickle"}


def room_of(path: Path) -> str:
    return path.relative_to(SRC).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[tuple[str, ...]]:
    """Every imported dotted name of a module, as its parts; relative ones made absolute."""
    package = ("rekindle", *path.relative_to(SRC).parent.parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (tuple(alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else ()
            origin = (*start, *(node.module or "").split(".")) if node.module else start
            yield from ((*origin, alias.name) for alias in node.names)


def rooms_used(path: Path) -> set[str]:
    """The rooms a module imports from; `from rekindle import Store` uses the front door."""
    inner = [name[1:] for name in imports(path) if name[0] == "rekindle"]
    return {name[0] if name and is_room(name[0]) else "__init__" for name in inner}


def is_room(name: str) -> bool:
    return (SRC / name).is_dir() or (SRC / f"{name}.py").is_file()


def name_of(path: Path) -> str:
    return path.relative_to(SRC).as_posix()


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_point_down_only(path: Path) -> None:
    room = room_of(path)
    assert room in LEVEL, f"{room!r} has no layer yet: give it a place in LINES"
    for used in rooms_used(path) - {room}:
        assert LEVEL.get(used, -1) < LEVEL[room], f"{name_of(path)} imports {used!r}, which is not below {room!r}"
        assert used in LEVEL, f"{used!r} has no layer yet: give it a place in LINES"


@pytest.mark.parametrize("path", [path for path in MODULES if room_of(path) == "state"], ids=name_of)
def test_imports_inside_the_state_point_down_only(path: Path) -> None:
    room = path.relative_to(SRC / "state").parts[0]
    used = {name[2] for name in imports(path) if name[:2] == ("rekindle", "state")} & STATE.keys() - {room}
    assert all(STATE[other] < STATE[room] for other in used), f"{name_of(path)} imports from {sorted(used)}"


def test_a_third_party_library_is_imported_in_one_place() -> None:
    users: dict[str, set[str]] = defaultdict(set)
    for path in MODULES:
        for top in {name[0] for name in imports(path)}:
            if top in DOORS or top not in {*sys.stdlib_module_names, "rekindle"}:
                users[top].add(name_of(path))
    assert users.keys() <= DOORS.keys(), f"no door yet for {sorted(users.keys() - DOORS.keys())}: add it to DOORS"
    for library, modules in users.items():
        door = DOORS[library]
        if door == ONE:
            assert len(modules) == 1, f"{library} is imported by {sorted(modules)}"
        else:
            assert {room_of(SRC / module) for module in modules} <= ({door} if isinstance(door, str) else set(door)), (
                f"{library} belongs in {door}"
            )


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_nothing_stored_can_name_code_to_run(path: Path) -> None:
    assert not {name[0] for name in imports(path)} & UNSAFE


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_stays_under_400_lines(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) < 400
