"""Dependencies point one way (docs: DESIGN): a room imports only rooms below it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import elbowroom

SOURCE = Path(elbowroom.__file__).parent

# From the top: a room may import those of its own line's right side and whatever they may import.
ARROWS = {
    "cli": {"api"},
    "api": {"campaign", "report"},
    "campaign": {"experiments", "launch", "advise", "store"},
    "report": {"experiments", "advise", "draw"},
    "advise": {"predict"},
    "experiments": {"draw", "model", "attribution"},
    "attribution": {"draw"},
    "trace": {"draw", "stats"},
    "launch": {"store", "virtual"},
    "predict": {"draw", "model"},
    "store": {"model", "stats", "plan", "machine", "trace"},
    "virtual": {"model"},
    "draw": {"stats", "plan", "machine"},
    "model": {"stats", "plan", "machine"},
    "stats": {"plan", "machine"},
    "plan": {"machine"},
    "machine": set(),
}
ANYBODY = {"errors"}


def below(room: str) -> set[str]:
    found = set(ARROWS[room])
    for other in ARROWS[room]:
        found |= below(other)
    return found


def imported(file: Path) -> set[str]:
    rooms = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "elbowroom":
            names = [f"elbowroom.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        else:
            continue
        rooms |= {name.split(".")[1] for name in names if name.startswith("elbowroom.")}
    return rooms - {"__version__"}


def test_every_room_has_its_place() -> None:
    rooms = {path.name for path in SOURCE.iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    assert rooms == set(ARROWS)


@pytest.mark.parametrize("room", ARROWS)
def test_a_room_imports_only_what_lies_below_it(room: str) -> None:
    allowed = below(room) | ANYBODY | {room}
    wrong = {
        f"{file.relative_to(SOURCE)} imports {other}"
        for file in (SOURCE / room).rglob("*.py")
        for other in imported(file) - allowed
    }
    assert wrong == set()


def test_importing_elbowroom_loads_no_heavy_library() -> None:
    import subprocess
    import sys

    heavy = "numpy scipy pyarrow matplotlib jinja2 rich.table"
    code = f"import sys, elbowroom.cli; print([name for name in {heavy.split()!r} if name in sys.modules])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "[]"
