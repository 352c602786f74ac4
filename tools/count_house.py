"""Counts what makes the code hard to move around in: `python tools/count_house.py [--json] [--list NAME]`.

Each figure is a number of places; `--list` prints the places of one, `--json` all figures as one object.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "elbowroom"
FORBIDDEN = frozenset(
    {"answerable", "asked", "begun", "found", "jobbed", "made", "mend", "modelled", "nobody", "nobodys",
     "said", "seen", "told"}
)  # fmt: skip
"""Words of this project's own dialect: no part of an identifier is one (docs/glossary.md has better ones)."""
NATIVE = ("core", "lib", "apps", "include")
SOURCES = frozenset({".c", ".cpp", ".f90", ".h", ".hpp"})
HEAVY = frozenset(
    {"contourpy", "jinja2", "markupsafe", "matplotlib", "meshio", "msgspec", "numpy", "pandas", "polars",
     "pyarrow", "rich", "scipy"}
)  # fmt: skip
"""Optional or slow libraries: importing them inside a function keeps the start of other commands short."""


class Module:
    """A file of the package, parsed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        self.name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        self.tree = ast.parse(path.read_text())
        functions = (n for n in ast.walk(self.tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
        self.inside = {
            inner for function in functions for inner in ast.walk(function) if inner is not function
        }

    def imports(self) -> Iterator[tuple[ast.Import | ast.ImportFrom, str, tuple[str, ...]]]:
        """Import statements: the node, the module named, the names taken from it."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield node, alias.name, ()
            elif isinstance(node, ast.ImportFrom):
                yield node, node.module or "", tuple(alias.name for alias in node.names)

    def at(self, node: ast.AST) -> str:
        """`path:line`."""
        return f"{self.path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"


def load() -> list[Module]:
    """All modules of the package."""
    return [Module(path) for path in sorted(PACKAGE.rglob("*.py"))]


def circles(modules: list[Module]) -> list[str]:
    """Groups of files that import each other, also inside functions and for type checkers only."""
    names = {module.name for module in modules}
    edges: dict[str, set[str]] = defaultdict(set)
    for module in modules:
        for _, target, taken in module.imports():
            wanted = {f"{target}.{name}" for name in taken} & names or ({target} & names)
            edges[module.name] |= wanted - {module.name}
    return [" <-> ".join(sorted(group)) for group in _strongly_connected(edges) if len(group) > 1]


def _strongly_connected(edges: dict[str, set[str]]) -> list[set[str]]:
    """Tarjan's algorithm."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups: list[set[str]] = []

    def visit(node: str) -> None:
        order[node] = low[node] = len(order)
        stack.append(node)
        for target in sorted(edges.get(node, ())):
            if target not in order:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], order[target])
        if low[node] == order[node]:
            at = stack.index(node)
            groups.append(set(stack[at:]))
            del stack[at:]

    for node in sorted(edges):
        if node not in order:
            visit(node)
    return groups


def local_imports(modules: list[Module]) -> list[str]:
    """Imports inside functions, but of heavy libraries."""
    return [
        f"{module.at(node)} {target}"
        for module in modules
        for node, target, _ in module.imports()
        if node in module.inside and target.split(".")[0] not in HEAVY
    ]


def classes_with_two_meanings(modules: list[Module]) -> list[str]:
    """Names of classes that several modules define."""
    places = defaultdict(list)
    for module in modules:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef):
                places[node.name.lstrip("_")].append(module.name)
    return [f"{name}: {', '.join(where)}" for name, where in sorted(places.items()) if len(where) > 1]


def forbidden_names(modules: list[Module]) -> list[str]:
    """Names of variables, arguments, fields, functions and classes with a word of FORBIDDEN."""
    return [
        f"{module.at(node)} {name}"
        for module in modules
        for node in ast.walk(module.tree)
        for name in _defined(node)
        if FORBIDDEN & {word.lower() for word in re.split(r"_|(?<=[a-z])(?=[A-Z])", name)}
    ]


def _defined(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name) if isinstance(node.ctx, ast.Store):
            yield name
        case ast.Attribute(attr=name) if isinstance(node.ctx, ast.Store):
            yield name
        case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name


def python_files(modules: list[Module]) -> list[str]:
    """Files of the package."""
    return [str(module.path.relative_to(ROOT)) for module in modules]


def python_lines(modules: list[Module]) -> list[str]:
    """Lines of the package."""
    return [
        f"{module.path.relative_to(ROOT)}:{line}"
        for module in modules
        for line in range(1, 1 + len(module.path.read_text().splitlines()))
    ]


def native_lines() -> list[str]:
    """Lines of native code without tests."""
    command = ["git", "ls-files", *NATIVE]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    paths = (
        ROOT / name for name in listed.stdout.splitlines() if not re.search(r"(^|[/_])tests?([/_.]|$)", name)
    )
    return [
        f"{path.relative_to(ROOT)}:{line}"
        for path in paths
        if path.suffix in SOURCES and path.is_file()
        for line in range(1, 1 + len(path.read_text(errors="replace").splitlines()))
    ]


def main() -> int:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", metavar="NAME", help="print the places of one figure")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    modules = load()
    places = {
        "python_lines": python_lines(modules),
        "python_files": python_files(modules),
        "native_lines": native_lines(),
        "circles": circles(modules),
        "forbidden_names": forbidden_names(modules),
        "classes_with_two_meanings": classes_with_two_meanings(modules),
    }
    if options.list is not None:
        if options.list not in places:
            parser.error(f"--list: {options.list!r} is not one of {', '.join(places)}")
        print(*places[options.list], sep="\n")
    elif options.json:
        print(json.dumps({name: len(where) for name, where in places.items()}, indent=1))
    else:
        for name, where in places.items():
            print(f"{len(where):7}  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
