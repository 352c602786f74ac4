"""Commands are imported when they are asked for, and all that a module defines can be asked for."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import click
import msgspec
import pytest

from elbowroom import api, cli, verbs
from elbowroom.cli.commands import CASES, COMMANDS, GOALS, GROUPS, START, group
from elbowroom.experiments.plans import names as plan_names
from elbowroom.quantities import parse_cores
from elbowroom.synonyms import of_commands, of_words
from elbowroom.verbs import run_tables
from elbowroom.verbs.declaration import VERBS, command_of
from elbowroom.verbs.documentation import topics
from elbowroom.virtual.machines import MACHINES


def test_every_command_of_a_module_is_in_the_table() -> None:
    for module in pkgutil.iter_modules(verbs.__path__):
        importlib.import_module(f"elbowroom.verbs.{module.name}")
    listed = set(group.commands.values())
    groups = {command for command in listed if isinstance(command, click.Group)}
    parts = {part for command in groups for part in command.commands.values()}
    assert {command_of(verb) for verb in VERBS.values()} == (listed | parts) - groups
    assert {command.name for command in groups} == set(GROUPS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_its_name(name: str) -> None:
    assert group.commands[name].name == name


def imported(*words: str) -> set[str]:
    """The modules that the command line imports for these words."""
    code = f"import sys; from elbowroom import cli; cli.run({list(words)!r}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


COMMAND_MODULES = {f"elbowroom.verbs.{place}" for place, _ in COMMANDS.values()}


def test_a_command_imports_no_module_of_others() -> None:
    assert imported("plans", "--help") & COMMAND_MODULES == {"elbowroom.verbs.show"}


def test_the_list_of_commands_imports_no_module_of_a_command() -> None:
    assert imported("--help") & {*COMMAND_MODULES, "msgspec"} == set()


def test_the_list_of_commands_has_every_command_once() -> None:
    """But those of which the first lines name one case only."""
    first = [name for name in START if name in COMMANDS]
    assert sorted([*first, *(name for names in GOALS.values() for name in names)]) == sorted(COMMANDS)
    assert set(START) - set(CASES) <= set(COMMANDS)
    assert len(START) <= 8


@pytest.mark.parametrize("columns", [40, 60, 80, 160])
def test_the_list_of_commands_is_as_wide_as_the_terminal(
    columns: int, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert cli.run(["--help"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert columns - 20 < max(map(len, lines)) <= columns - 2
    heads = [f"{goal}:" for goal in ("Start here", *GOALS)]
    assert [line for line in lines if line in heads] == heads


def test_the_summary_of_a_command_fits_a_line() -> None:
    widest = 80 - len("  completion  ")
    assert {name for name, (_, summary) in COMMANDS.items() if len(summary) > widest} == set()


def test_a_long_plan_is_printed_with_its_first_points(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["run", "placement", "--machine", "henri", "--dry-run"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) < 40
    [shown] = [line for line in lines if line.startswith("Shown: ")]
    total = int(next(line for line in lines if " points, " in line).split()[0])
    assert shown == f"Shown: the first 20 of {total} rows; all: --rows all."


def test_all_points_of_a_long_plan_are_printed_when_asked_for(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["run", "placement", "--machine", "henri", "--dry-run", "--rows", "all"]) == 0
    assert sum(line.startswith("triad") for line in capfd.readouterr().out.splitlines()) > 500


def test_every_core_of_a_long_list_is_in_the_table_of_a_dry_run(capfd: pytest.CaptureFixture[str]) -> None:
    prepared = api.dry_run("quick", machine="henri")
    cores = tuple(number for number in range(0, 192, 2) if number % 14)
    point = msgspec.structs.replace(prepared.expansion.points[0], comp_cores=cores, n=len(cores))
    expansion = msgspec.structs.replace(prepared.expansion, points=(point,))
    run_tables.print_dry_run(msgspec.structs.replace(prepared, expansion=expansion))
    out = capfd.readouterr().out
    head = next(line for line in out.splitlines() if "cores" in line and "kernel" in line)
    rows = out.split(head)[1].splitlines()
    listed = " ".join(row[head.index("cores") :].strip() for row in rows).partition(" beside ")[0]
    assert parse_cores(listed.strip()) == cores
    assert max(map(len, out.splitlines()[:8])) <= 80


def path_of(place: str) -> list[str]:
    """The words that lead to a group."""
    return [] if place == "elbowroom" else [place]


@pytest.mark.parametrize(
    ("place", "word", "meant"),
    [(place, word, meant) for place, words in of_commands().items() for word, meant in words.items()],
)
def test_a_word_of_other_tools_names_the_command_that_does_it(
    place: str, word: str, meant: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert cli.run([*path_of(place), word]) == 2
    assert f"did you mean `elbowroom {meant}`?" in " ".join(capfd.readouterr().err.split())
    command = group.commands[meant.split()[0]]
    if isinstance(command, click.Group):
        command = command.commands[meant.split()[1]]
    options = {option for parameter in command.params for option in parameter.opts}
    own = meant.partition(" -- ")[0].split()
    assert {part for part in own if part.startswith("-")} <= options


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["trace", "true", "-x"], "elbowroom trace record -- true …"),
        (["nic", "true"], "elbowroom nic run --nic RATE -- true …"),
        (["trace", "recrod"], "did you mean 'record'"),
        (["tracee"], "did you mean 'trace'"),
    ],
)
def test_a_program_or_a_mistyped_name_gets_a_guess(
    words: list[str], meant: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(words) == 2
    assert meant in " ".join(capfd.readouterr().err.split())


def test_runs_that_are_not_trusted_for_one_reason_are_named_in_one_warning(
    capfd: pytest.CaptureFixture[str],
) -> None:
    run = str(Path(__file__).parents[2] / "data" / "quick")
    assert cli.run(["compare", run, run]) == 0
    err = capfd.readouterr().err
    assert err.count("warning: ") == 1
    assert err.count("not trusted") == 1


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["run", "quick", "--output", "x"], "did you mean --out?"),
        (["run", "quick", "--iterations", "4"], "did you mean --repeat?"),
        (["run", "quick", "--reapeat", "4"], "did you mean --repeat?"),
        (["run", "async"], "did you mean 'overlap'?"),
        (["run", "stencil"], "did you mean 'diffusion'?"),
        (["run", "quick", "--machine", "epyc"], "did you mean 'billy'?"),
        (["model"], "did you mean `elbowroom fit RUN`?"),
        (["overview"], "`elbowroom help overview` searches"),
    ],
)
def test_a_synonym_of_an_option_a_plan_or_a_machine_is_understood(
    words: list[str], meant: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(words) == 2
    assert meant in capfd.readouterr().err


def test_every_synonym_leads_to_something_that_exists() -> None:
    for module in pkgutil.iter_modules(verbs.__path__):
        importlib.import_module(f"elbowroom.verbs.{module.name}")
    options = {
        word.lstrip("-") for verb in VERBS.values() for item in command_of(verb).params for word in item.opts
    }
    places = {*COMMANDS, *VERBS, *options, *topics(), *plan_names(), *MACHINES.names()}
    pages = " ".join(path.read_text(encoding="utf-8") for path in topics().values()).lower()
    lost = {
        name for names in of_words().values() for name in names if name not in places and name not in pages
    }
    assert lost == set()


def test_the_help_of_no_command_imports_a_heavy_library() -> None:
    for module in pkgutil.iter_modules(verbs.__path__):
        importlib.import_module(f"elbowroom.verbs.{module.name}")
    lines = [[*name.split(), "--help"] for name in VERBS]
    code = f"import sys; from elbowroom import cli; print(any(map(cli.run, {lines!r})), *sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"numpy", "scipy", "pandas", "polars", "pyarrow", "matplotlib", "jinja2"}
    failed, *loaded = done.stdout.splitlines()[-1].split()
    assert failed == "False"
    assert set(loaded) & heavy == set()
