"""Writes the types of the public names for tools that check types: `python tools/public_stub.py`.

A function of a command has the signature that its class declares; every other name is imported from the
module that defines it. tests/unit/api/test_public_names.py compares the file with what this writes.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from pathlib import Path
from typing import Any

from elbowroom.api import PUBLIC

FILE = Path(__file__).parents[1] / "src" / "elbowroom" / "__init__.pyi"
HEAD = '''"""The public names, written by tools/public_stub.py."""
'''


def imports_of(module: Any) -> dict[str, str]:
    """The statement that imports each name of a module's annotations, its own classes among them."""
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    statements = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                name = alias.asname or alias.name
                statements[name] = f"from {node.module} import {alias.name} as {name}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                statements[alias.asname or alias.name] = f"import {alias.name}"
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            statements[node.name] = f"from {module.__name__} import {node.name} as {node.name}"
    return statements


def names_in(annotation: str) -> set[str]:
    """The names that an annotation uses."""
    return {node.id for node in ast.walk(ast.parse(annotation)) if isinstance(node, ast.Name)}


class Stub:
    """The lines of the file: imports, and a function for each command."""

    def __init__(self) -> None:
        self.imports: dict[str, str] = {}
        self.functions: list[str] = []

    def add(self, name: str, module: str) -> None:
        """A public name."""
        value = getattr(importlib.import_module(module), name)
        declared = getattr(value, "__declared__", None)
        if declared is None:
            self._import(name, f"from {module} import {name} as {name}")
        else:
            self._add_function(name, value, declared[0])

    def _add_function(self, name: str, value: Any, verb: Any) -> None:
        places = {member.name: member.place for member in verb.members}
        parts = []
        signature = inspect.signature(value)
        star = False
        for parameter in signature.parameters.values():
            self._import_names(parameter.annotation, places[parameter.name])
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                star = True
            elif parameter.kind is inspect.Parameter.KEYWORD_ONLY and not star:
                star = True
                parts.append("*")
            parts.append(_text(parameter))
        self._import_names(signature.return_annotation, verb.__module__)
        head = f"def {name}(" + "".join(f"\n    {part}," for part in parts)
        lines = inspect.cleandoc(value.__doc__ or "").splitlines()
        doc = textwrap.indent("\n".join([f'"""{lines[0]}', *lines[1:], '"""']), "    ")
        if len(lines) == 1:
            doc = f'    """{lines[0]}"""'
        self.functions.append(f"{head}\n) -> {signature.return_annotation}:\n{doc}\n")

    def _import_names(self, annotation: str, module: str) -> None:
        known = imports_of(importlib.import_module(module))
        for name in sorted(names_in(annotation) & set(known)):
            self._import(name, known[name])

    def _import(self, name: str, statement: str) -> None:
        if self.imports.setdefault(name, statement) != statement:
            raise ValueError(f"{name} means two things: {self.imports[name]}; {statement}")

    def text(self) -> str:
        """The whole file."""
        imports = sorted(self.imports.values(), key=lambda line: (line.split()[1], line))
        return "\n".join([HEAD, *imports, "\n__version__: str\n", *self.functions])


def _text(parameter: inspect.Parameter) -> str:
    stars = "*" * (parameter.kind is inspect.Parameter.VAR_POSITIONAL)
    text = f"{stars}{parameter.name}: {parameter.annotation}"
    if parameter.default is inspect.Parameter.empty:
        return text
    plain = isinstance(parameter.default, bool | int | float | str | None) or parameter.default == ()
    shown = re.sub(r"^'(.*)'$", r'"\1"', repr(parameter.default)) if plain else "..."
    return f"{text} = {shown}"


def stub() -> str:
    """The text of the file."""
    written = Stub()
    for name, module in sorted(PUBLIC.items()):
        written.add(name, module)
    return written.text()


if __name__ == "__main__":
    FILE.write_text(stub(), encoding="utf-8")
