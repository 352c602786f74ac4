"""Seeds faults into two checkouts and says which of them the tests of each find.

    python tools/seed_faults.py OLD [NEW] [--count 40] [--seed 1] [--list] [-o FILE.json]

A fault changes one comparison, sign, bound, connective or constant in a line of src/elbowroom that both
checkouts have, once each. Its tests are those that name a module which imports the changed one, nearest
first; they run until the first one fails. A fault that neither suite finds may change nothing at all.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SOURCE = Path("src/elbowroom")
LIMIT = 1800
"""Seconds for the tests of a fault."""

SWAPS: dict[type[ast.AST], str] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.And: "or", ast.Or: "and",
}  # fmt: skip
SPELT: dict[type[ast.AST], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.And: "and", ast.Or: "or",
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}


class Fault(NamedTuple):
    """A line as it is and as it becomes."""

    line: str
    becomes: str


def faults(text: str) -> Iterator[Fault]:
    """What can be changed in a file: an operator between two operands, a name, or a number."""
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        for row, start, end, old, new in _changes(node):
            line = lines[row - 1]
            place = line.find(old, start, end)
            if place >= 0:
                yield Fault(line.strip(), (line[:place] + new + line[place + len(old) :]).strip())


def _changes(node: ast.AST) -> Iterator[tuple[int, int, int, str, str]]:
    """Row, columns from and to, what stands there, and what is to stand there."""
    pairs: list[tuple[ast.expr, ast.AST, ast.expr]] = []
    if isinstance(node, ast.Compare):
        pairs = list(zip([node.left, *node.comparators], node.ops, node.comparators, strict=False))
    elif isinstance(node, ast.BinOp):
        pairs = [(node.left, node.op, node.right)]
    elif isinstance(node, ast.BoolOp):
        pairs = [(a, node.op, b) for a, b in zip(node.values, node.values[1:], strict=False)]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in NAMES:
        name = node.func
        yield name.lineno, name.col_offset, name.end_col_offset or 0, name.id, NAMES[name.id]
    elif isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield node.lineno, node.col_offset, node.end_col_offset or 0, repr(value), repr(value * 2 + 1)
    for left, operator, right in pairs:
        if type(operator) in SWAPS and left.end_lineno == right.lineno:
            spelt = SPELT[type(operator)]
            yield right.lineno, left.end_col_offset or 0, right.col_offset, spelt, SWAPS[type(operator)]


def places(root: Path) -> dict[str, Path]:
    """The file of each line that stands once in the sources."""
    found: dict[str, Path | None] = {}
    for file in sorted((root / SOURCE).rglob("*.py")):
        for line in file.read_text(encoding="utf-8").splitlines():
            found[line.strip()] = None if line.strip() in found else file
    return {line: file for line, file in found.items() if file is not None}


def draw(old: Path, new: Path, count: int, seed: int) -> list[Fault]:
    """Faults at random, at most one in a file, of lines that both checkouts have once."""
    here, there = places(old), places(new)
    by_file: dict[Path, list[Fault]] = {}
    for file in sorted(set(there.values())):
        listed = [fault for fault in faults(file.read_text(encoding="utf-8")) if fault.line in here]
        listed = [fault for fault in listed if there.get(fault.line) == file]
        if listed:
            by_file[file] = listed
    chooser = random.Random(seed)
    files = chooser.sample(sorted(by_file), min(count, len(by_file)))
    return [chooser.choice(by_file[file]) for file in files]


def tests_of(root: Path, file: Path) -> list[str]:
    """The files of tests that may notice: those whose imports lead to the file, the nearest first."""
    modules = {path: _imports(path) for path in (root / SOURCE).rglob("*.py")}
    names = {path: ".".join(path.relative_to(root / "src").with_suffix("").parts) for path in modules}
    near, ring = {names[file]}, {names[file]}
    order: list[str] = []
    tests = {path: _imports(path) for path in sorted((root / "tests").glob("*/**/test_*.py"))}
    tests = {path: wanted for path, wanted in tests.items() if path.parts[-2] not in ("mpi", "e2e", "compat")}
    while ring:
        for path, wanted in tests.items():
            if str(path) not in order and _meets(wanted, ring):
                order.append(str(path))
        ring = {names[path] for path, wanted in modules.items() if _meets(wanted, ring)} - near
        near |= ring
    return order


def _imports(file: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


def _meets(wanted: set[str], ring: set[str]) -> bool:
    return any(name in wanted or name.removesuffix(".__init__") in wanted for name in ring)


def is_found(root: Path, fault: Fault) -> str:
    """The first test that fails with the fault; empty where all pass."""
    file = places(root)[fault.line]
    text = file.read_text(encoding="utf-8")
    tests = tests_of(root, file)
    if not tests:
        return ""
    file.write_text(text.replace(fault.line, fault.becomes, 1), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "2", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return "time limit"
    finally:
        file.write_text(text, encoding="utf-8")
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return (failed or ["" if done.returncode == 0 else f"exit code {done.returncode}"])[0]


def main() -> int:
    """Prints a line for each fault and checkout."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path, nargs="?", default=Path(__file__).parents[1])
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--list", action="store_true", help="print the faults only")
    parser.add_argument("-o", "--out", type=Path)
    options = parser.parse_args()
    rows = []
    for number, fault in enumerate(draw(options.old, options.new, options.count, options.seed), start=1):
        print(f"{number}. {fault.line}  ->  {fault.becomes}", flush=True)
        if options.list:
            continue
        by = {
            name: is_found(root.resolve(), fault)
            for name, root in (("old", options.old), ("new", options.new))
        }
        print(f"   old: {by['old'] or 'not found'}\n   new: {by['new'] or 'not found'}", flush=True)
        rows.append(fault._asdict() | by)
        if options.out is not None:
            options.out.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    missed = [row for row in rows if row["old"] and not row["new"]]
    print(f"{len(rows)} faults; found by the old suite and not by the new one: {len(missed)}")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
