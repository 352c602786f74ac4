"""Counts what makes the Python code hard to move around in: `python tools/count_house.py [--list NAME]`.

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
FORBIDDEN = frozenset({"told", "said", "seen", "found", "asked", "made", "mend"})
HEAVY = frozenset(
    {
        "contourpy",
        "jinja2",
        "markupsafe",
        "meshio",
        "matplotlib",
        "msgspec",
        "numpy",
        "pandas",
        "polars",
        "pyarrow",
        "rich",
        "scipy",
    }
)
"""Optional or slow libraries: importing them inside a function keeps the start of other commands short."""
NOUNS = frozenset({"polling", "ring"})
"""Names of experiments."""
PAYLOADS = frozenset({"application", "program", "extraneous"})
"""Fields of a point that say what it runs."""
PRODUCT = ("src", "core", "lib", "apps", "include")
SOURCES = frozenset({".py", ".cpp", ".hpp", ".h", ".c", ".js", ".css", ".j2", ".f90"})


class Module:
    """A file of the package, parsed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        self.name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        self.is_package = parts[-1] == "__init__"
        self.tree = ast.parse(path.read_text())
        self.inside = _inside_functions(self.tree)
        self.checked = _type_checking(self.tree)

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


def _inside_functions(tree: ast.Module) -> set[ast.AST]:
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {inner for node in functions for inner in ast.walk(node) if inner is not node}


def _type_checking(tree: ast.Module) -> set[ast.AST]:
    blocks = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    )
    return {inner for block in blocks for inner in ast.walk(block)}


def load() -> list[Module]:
    """All modules of the package."""
    return [Module(path) for path in sorted(PACKAGE.rglob("*.py"))]


def circles(modules: list[Module]) -> list[str]:
    """Groups of files that import each other, also inside functions; imports for types alone do not count."""
    names = {module.name for module in modules}
    edges: dict[str, set[str]] = defaultdict(set)
    for module in modules:
        for node, target, taken in module.imports():
            if node in module.checked:
                continue
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


def private_imports(modules: list[Module]) -> list[str]:
    """Names with a leading underscore that one module takes from another."""
    return [
        f"{module.at(node)} {target}.{name}"
        for module in modules
        for node, target, taken in module.imports()
        for name in taken
        if target.startswith("elbowroom") and name.startswith("_") and not name.startswith("__")
    ]


def local_imports(modules: list[Module]) -> list[str]:
    """Imports inside functions, but of heavy libraries."""
    return [
        f"{module.at(node)} {target}"
        for module in modules
        for node, target, _ in module.imports()
        if node in module.inside and node not in module.checked and target.split(".")[0] not in HEAVY
    ]


def repeated_classes(modules: list[Module]) -> list[str]:
    """Names of classes that several modules define."""
    places = defaultdict(list)
    for module in modules:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef):
                places[node.name.lstrip("_")].append(module.name)
    return [f"{name}: {', '.join(where)}" for name, where in sorted(places.items()) if len(where) > 1]


def forbidden_names(modules: list[Module]) -> list[str]:
    """Variables, arguments, attributes, functions and keywords with a name of FORBIDDEN."""
    return [
        f"{module.at(node)} {name}"
        for module in modules
        for node in ast.walk(module.tree)
        for name in _names(node)
        if name.lstrip("_") in FORBIDDEN
    ]


def _names(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name) if isinstance(node.ctx, ast.Store):
            yield name
        case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.keyword(arg=str(name)):
            yield name
        case ast.Attribute(attr=name):
            yield name


def gerund_modules(modules: list[Module]) -> list[str]:
    """Modules whose name ends in -ing, but for nouns."""
    return [
        module.name
        for module in modules
        if module.name.endswith("ing") and module.name.split(".")[-1] not in NOUNS
    ]


def payload_tests(modules: list[Module]) -> list[str]:
    """`X.application is None` and the like outside workloads/: code that asks what a point runs."""
    return [
        f"{module.at(node)} {ast.unparse(node)}"
        for module in modules
        if ".workloads" not in module.name
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Compare)
        and isinstance(node.left, ast.Attribute)
        and node.left.attr in PAYLOADS
        and isinstance(node.ops[0], ast.Is | ast.IsNot)
    ]


def imports_of_cli(modules: list[Module]) -> list[str]:
    """Packages other than api that the command line imports."""
    return [
        f"{module.at(node)} {target}"
        for module in modules
        if module.name.startswith("elbowroom.cli")
        for node, target, _ in module.imports()
        if target.startswith("elbowroom.") and target.split(".")[1] not in ("api", "cli", "errors")
    ]


def product_lines() -> list[str]:
    """Lines of product code by folder, without tests."""
    listed = subprocess.run(
        ["git", "ls-files", *PRODUCT], cwd=ROOT, capture_output=True, text=True, check=True
    )
    lines: dict[str, int] = defaultdict(int)
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.suffix in SOURCES and not re.search(r"(^|[/_])tests?([/_.]|$)", name) and path.is_file():
            lines[name.split("/")[0]] += len(path.read_text(errors="replace").splitlines())
    return [f"{folder}: {count}" for folder, count in sorted(lines.items()) for _ in range(count)]


def main() -> int:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", metavar="NAME", help="print the places of one figure")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    modules = load()
    counts = {
        "circles of files": circles(modules),
        "private imports": private_imports(modules),
        "local imports": local_imports(modules),
        "class names with two meanings": repeated_classes(modules),
        "forbidden identifiers": forbidden_names(modules),
        "modules named by gerunds": gerund_modules(modules),
        "tests on what a point runs": payload_tests(modules),
        "imports of cli besides api": imports_of_cli(modules),
        "lines of product code": product_lines(),
    }
    if options.list is not None:
        print(*sorted(set(counts[options.list])), sep="\n")
    elif options.json:
        print(json.dumps({name: len(places) for name, places in counts.items()}, indent=1))
    else:
        for name, places in counts.items():
            print(f"{len(places):7}  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
