"""Commands are imported when they are asked for, and all that a module defines can be asked for."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from elbowroom import cli
from elbowroom.cli.commands import COMMANDS, group
from elbowroom.verbs.declaration import VERBS, command_of


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
    declared = {command_of(verb) for verb in VERBS.values()}
    assert defined | declared == listed | parts


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


def test_a_long_plan_is_printed_with_its_first_and_last_points(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["run", "placement", "--machine", "henri", "--dry-run"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) < 70
    [more] = [line for line in lines if " more" in line and "\u2026" in line]
    total = int(next(line for line in lines if " points, " in line).split()[0])
    assert total - int(more.split()[1]) == 36


@pytest.mark.parametrize(
    ("word", "meant"), [("csv", "export RUN --format csv"), ("measure", "run PLAN"), ("plot", "report RUN")]
)
def test_a_word_of_other_tools_names_the_command_that_does_it(
    word: str, meant: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert cli.run([word]) == 2
    assert f"did you mean `elbowroom {meant}`?" in " ".join(capfd.readouterr().err.split())
    assert meant.split()[0] in group.commands


def test_runs_that_are_not_trusted_for_one_reason_are_named_in_one_warning(
    capfd: pytest.CaptureFixture[str],
) -> None:
    run = str(Path(__file__).parents[2] / "data" / "quick")
    assert cli.run(["compare", run, run]) == 0
    err = capfd.readouterr().err
    assert err.count("warning: ") == 1
    assert err.count("not trusted") == 1
