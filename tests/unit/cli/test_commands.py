"""Commands are imported when they are asked for, and all that a module defines can be asked for."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

import click
import pytest

from elbowroom import cli
from elbowroom.cli.commands import MODULES, group


def test_every_command_of_a_module_is_in_the_table() -> None:
    modules = [
        importlib.import_module(f"elbowroom.cli.{module.name}")
        for module in pkgutil.iter_modules(cli.__path__)
    ]
    defined = {
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, click.Command) and value is not group
    }
    listed = set(group.commands.values())
    parts = {
        part for command in listed if isinstance(command, click.Group) for part in command.commands.values()
    }
    assert defined == listed | parts


@pytest.mark.parametrize("name", MODULES)
def test_a_command_has_its_name(name: str) -> None:
    assert group.commands[name].name == name


def test_a_command_imports_no_module_of_others() -> None:
    code = (
        "import sys; from elbowroom import cli; cli.run(['plans', '--help']); "
        f"print(sorted({set(MODULES.values())!r} & {{name.rpartition('.')[2] for name in sys.modules "
        "if name.startswith('elbowroom.cli.')}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "['runs']"
