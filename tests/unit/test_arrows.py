"""Dependencies point one way (CONTRIBUTING.md): direct imports between packages, and none in a circle."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from pathlib import Path

import count_house
import pytest

import elbowroom

SOURCE = Path(elbowroom.__file__).parent

LAYERS = (
    {"verbs"},
    {"cli"},
    {"advise", "measure", "report"},
    {"studies"},
    {"accept", "diagnose", "guard"},
    {"experiments", "launch"},
    {"profile"},
    {"explain", "store"},
    {"broadcast", "draw", "logs", "models", "schedule", "trace", "virtual"},
    {"results"},
    {"plan"},
    {"points"},
    {"stats"},
    {"machine"},
)
"""From the top: a package imports packages of lower layers, and of its own."""

ARROWS = {
    "accept": {"draw", "launch", "logs", "results", "store"},
    "verbs": {
        "accept", "advise", "broadcast", "cli", "diagnose", "draw", "experiments", "explain", "guard",
        "launch", "machine", "measure",
        "models", "plan", "profile", "report", "results", "schedule", "stats", "store", "studies", "trace",
        "virtual", "points", "logs",
    },
    "cli": set(),
    "measure": {
        "accept", "advise", "draw", "experiments", "explain", "launch", "logs", "machine", "models", "plan",
        "points", "results", "schedule", "stats", "store", "studies", "trace", "virtual",
    },
    "report": {"advise", "diagnose", "draw", "machine", "models", "points", "results", "stats", "studies"},
    "studies": {"draw", "experiments", "machine", "models", "plan", "points", "results", "stats"},
    "advise": {"draw", "machine", "models", "plan", "points", "results", "stats", "profile"},
    "diagnose": {"launch", "logs", "machine", "profile", "stats", "store"},
    "guard": {"launch", "models", "profile", "stats"},
    "explain": {"draw", "machine", "plan", "results", "stats"},
    "experiments": {
        "broadcast", "draw", "explain", "machine", "models", "plan", "points", "results", "stats",
    },
    "launch": {"broadcast", "machine", "points", "profile", "trace", "virtual"},
    "profile": {"draw", "machine", "trace"},
    "models": {"draw", "machine", "plan", "points", "results", "stats"},
    "virtual": {"draw", "machine", "models", "plan", "points"},
    "trace": {"draw", "stats"},
    "broadcast": {"draw", "points", "stats"},
    "draw": set(),
    "logs": set(),
    "schedule": {"draw", "stats"},
    "store": {"logs", "machine", "models", "plan", "points", "trace"},
    "results": {"plan", "points", "stats"},
    "stats": set(),
    "plan": {"machine", "points"},
    "points": {"machine", "stats"},
    "machine": set(),
}  # fmt: skip
"""The packages that each package imports directly."""

ANYBODY = {
    "display",
    "documents",
    "errors",
    "files",
    "frames",
    "heartbeat",
    "plugins",
    "progress",
    "quantities",
    "synonyms",
    "schemas",
    "signals",
    "version",
}
"""Modules that every package may import."""

EDGES = [(package, other) for package, others in sorted(ARROWS.items()) for other in sorted(others)]


def imported(file: Path) -> set[str]:
    """Packages and modules of elbowroom that a file imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "elbowroom":
            names |= {f"elbowroom.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return {name.split(".")[1] for name in names if name.startswith("elbowroom.")} - {"__version__"}


@functools.cache
def modules() -> list[count_house.Module]:
    """All modules of the package, parsed once."""
    return count_house.load()


def layer(package: str) -> int:
    return next(index for index, packages in enumerate(LAYERS) if package in packages)


def test_every_package_has_its_place() -> None:
    packages = {path.name for path in SOURCE.iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    assert packages == set(ARROWS) == set().union(*LAYERS)


@pytest.mark.parametrize("package", ARROWS)
def test_a_package_imports_what_its_arrows_lead_to(package: str) -> None:
    allowed = ARROWS[package] | {package} | ANYBODY
    wrong = {
        f"{file.relative_to(SOURCE)} imports {other}"
        for file in (SOURCE / package).rglob("*.py")
        for other in imported(file) - allowed
    }
    assert wrong == set()


def test_arrows_lead_down() -> None:
    upward = {(package, other) for package, other in EDGES if layer(package) > layer(other)}
    assert upward == set()


def test_arrows_form_no_circle() -> None:
    left = {package: set(others) for package, others in ARROWS.items()}
    while free := {package for package, others in left.items() if not others}:
        left = {package: others - free for package, others in left.items() if package not in free}
    assert left == {}


def test_no_files_form_a_circle() -> None:
    """Imports for type checkers and inside functions count too."""
    assert count_house.circles(modules()) == []


def test_only_commands_import_inside_functions() -> None:
    """A command imports what it runs when it runs: its help and its completion stay quick."""
    places = count_house.local_imports(modules())
    assert [place for place in places if not place.startswith("src/elbowroom/verbs/")] == []


HEAVY = ("numpy", "scipy", "polars", "pyarrow", "matplotlib", "jinja2")


def loaded(code: str, heavy: tuple[str, ...]) -> str:
    """Which of these modules a process imports that runs the code."""
    code += f"; import sys; print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stderr.strip()


def test_importing_elbowroom_loads_no_heavy_library() -> None:
    code = "import elbowroom.cli.commands as c; list(c.group.commands.values())"
    assert loaded(code, (*HEAVY, "rich.table")) == "[]"


@pytest.mark.parametrize("words", [["--help"], ["list", "FOLDER"], ["plans"]])
def test_a_quick_command_loads_no_heavy_library(words: list[str], tmp_path: Path) -> None:
    words = [str(tmp_path) if word == "FOLDER" else word for word in words]
    assert loaded(f"from elbowroom import cli; assert cli.run({words!r}) == 0", HEAVY) == "[]"


def test_names_have_no_word_of_the_list_and_one_meaning() -> None:
    assert count_house.forbidden_names(modules()) == []
    assert count_house.classes_with_two_meanings(modules()) == []
