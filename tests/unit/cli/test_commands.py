"""Commands are imported when they are asked for, and all that a module defines can be asked for."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

import click
import pytest

from elbowroom import cli
from elbowroom.cli.commands import COMMANDS, group


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


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_its_name(name: str) -> None:
    assert group.commands[name].name == name


def imported(*words: str) -> set[str]:
    """The modules that the command line imports for these words."""
    code = f"import sys; from elbowroom import cli; cli.run({list(words)!r}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


COMMAND_MODULES = {f"elbowroom.cli.{module}" for module, _ in COMMANDS.values()}


def test_a_command_imports_no_module_of_others() -> None:
    assert imported("plans", "--help") & COMMAND_MODULES == {"elbowroom.cli.runs"}


def test_the_list_of_commands_imports_no_module_of_a_command() -> None:
    assert imported("--help") & {*COMMAND_MODULES, "msgspec"} == set()


def test_the_summary_of_a_command_fits_a_line() -> None:
    widest = 80 - len("  completion  ")
    assert {name for name, (_, summary) in COMMANDS.items() if len(summary) > widest} == set()
