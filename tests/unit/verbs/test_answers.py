"""How commands end: a verdict, a reason, and a command that can be typed as it stands."""

from __future__ import annotations

import importlib
import os
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from elbowroom import cli
from elbowroom.cli.answer import Answer, command_line, print_answer
from elbowroom.cli.commands import COMMANDS, GROUPS, group
from elbowroom.verbs.declaration import VERBS, Verb
from texts import widest

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs" / "guide"

WITHOUT = {
    "completion": "prints a script for shells",
    "export": "converts a run",
    "help": "prints a page",
    "list": "lists what was measured, each with its verdict",
    "machine list": "lists what can be named",
    "manual": "prints a page",
    "nic run": "the output is the program's",
    "plans": "lists what can be named",
    "report": "writes a page, which has the answer",
    "schema": "prints a schema",
}
"""Commands without an answer, and why."""


def registry() -> dict[str, type[Verb]]:
    """All commands that the command line has."""
    places = {place for place, _ in COMMANDS.values()} | {
        place for entry in GROUPS.values() for place in entry.places.values()
    }
    for place in places - {"group"}:
        importlib.import_module(f"elbowroom.verbs.{place}")
    named = {name for name, (place, _) in COMMANDS.items() if place != "group"}
    named |= {f"{name} {inner}" for name, entry in GROUPS.items() for inner in entry.places}
    return {name: VERBS[name] for name in sorted(named)}


@pytest.mark.parametrize("name", registry())
def test_a_command_that_measures_or_analyses_has_an_answer(name: str) -> None:
    verb = registry()[name]
    # `diagnose` and the like may print theirs by another way than `show`.
    assert (verb.answer is Verb.answer) == (name in WITHOUT)


def test_the_list_of_commands_without_an_answer_has_no_others() -> None:
    assert set(WITHOUT) <= set(registry())


def parsed(words: list[str]) -> None:
    """Parses the words of a command line; nothing is executed. Raises what click raises."""
    command: click.Command = group
    context = command.make_context("elbowroom", list(words))
    while isinstance(command, click.Group):
        rest = [*context._protected_args, *context.args]
        name, inner, rest = command.resolve_command(context, rest)
        assert inner is not None
        context = inner.make_context(name, rest, parent=context)
        command = inner


WRITTEN = {"-o", "--out", "--slurm", "--report"}
"""Options whose files need not exist."""


def check_next(out: str) -> str:
    """The next command of a text, which can be typed where the text was printed."""
    last = out.rstrip("\n").splitlines()[-1]
    assert last.startswith("next: elbowroom ")
    verdict, why, following = out.rstrip("\n").split("\n\n")[-3:]
    assert verdict
    assert why
    assert following == last
    words = shlex.split(last.removeprefix("next: "))[1:]
    parsed(words)
    before = ""
    for word in words:
        if ("/" in word or word.endswith((".json", ".toml", ".csv"))) and before not in WRITTEN:
            assert Path(word.partition(":")[0]).exists(), word
        before = word
    return last


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a virtual run, a model of it, a job, and curves."""
    where = tmp_path_factory.mktemp("a folder")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(where)
        words = "run model --machine henri -o run --no-report --no-open"
        assert cli.run(shlex.split(words)) == 0
        assert cli.run(shlex.split("fit run -o model.json")) == 0
        (where / "job.toml").write_text((DOCS / "job.toml").read_text())
        (where / "jobs.toml").write_text((DOCS / "jobs.toml").read_text())
        colocation = ROOT / "machines" / "colocation" / "koop_shared_8x8.csv"
        (where / "matrix.csv").write_text(colocation.read_text())
        assert cli.run(shlex.split("export run --format curves -o curves.csv")) == 0
    return where


TYPED = (
    "show run",
    "compare run run",
    "evaluate run model.json",
    "predict henri",
    "predict henri --all",
    "predict model.json --cores 12 --comp-node 0 --comm-node 0",
    "predict model.json --comm-node 0 --direction both",
    "advise model.json --job job.toml",
    "explain run",
    "predict-step --t-comp 1 --t-comm 0.5 --l-comp 1.72 --l-comm 2.2",
    "predict-step --table langguth2018",
    "predict-step henri --cores 17 --comp-node 1 --comm-node 1 --comp-bytes 2GB --comm-bytes 256MB",
    "colocate schedule --matrix matrix.csv",
    "machine show henri",
    "machine from-run run -o own.toml",
    "fit run -o again.json",
    "import curves.csv -o imported",
    "broadcast tune --sizes 4KiB --recipients 3",
    "broadcast simulate --recipients 7",
)


@pytest.mark.parametrize("line", TYPED)
def test_the_next_command_can_be_typed(
    line: str, folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    code = cli.run(shlex.split(line))
    out, err = capfd.readouterr()
    assert code in (0, 3), err
    assert widest(out) <= 80
    check_next(out)


def test_a_list_says_where_runs_came_from(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert cli.run(["import", "curves.csv", "-o", "listed"]) in (0, 3)
    capfd.readouterr()
    assert cli.run(["list", "."]) == 0
    out = " ".join(capfd.readouterr().out.split())
    assert "run model virtual" in out
    assert "imported" in out
    assert "listed" in out


def test_json_has_nothing_of_it(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert cli.run(["show", "run", "--json"]) == 0
    assert "next: " not in capfd.readouterr().out


def test_names_with_blanks_are_quoted_and_the_command_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_answer(Answer("Yes.", "So.", command_line("show", Path("a b") / ("c" * 90))))
    verdict, why, following = capsys.readouterr().out.strip("\n").split("\n\n")
    assert (verdict, why) == ("Yes.", "So.")
    assert following == f"next: elbowroom show 'a b/{'c' * 90}'"


@pytest.mark.parametrize("columns", [40, 80])
def test_text_of_a_narrow_terminal_fits(
    columns: int, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr("elbowroom.cli.console.screen_width", lambda: columns)
    monkeypatch.setattr("elbowroom.cli.tables.screen_width", lambda: columns)
    assert cli.run(["show", "run", "--rows", "3"]) == 0
    out = capsys.readouterr().out
    assert widest(out) <= columns
    assert "memset_nt" in out
    check_next(out)


def test_a_terminal_without_utf_8_and_colour_gets_ascii(folder: Path) -> None:
    environment = os.environ | {
        "LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "NO_COLOR": "1", "TERM": "dumb",
    }  # fmt: skip
    words = [sys.executable, "-m", "elbowroom", "show", "run", "--rows", "3"]
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert b"\x1b" not in done.stdout
    assert b"?" not in done.stdout
    assert done.stdout.rstrip().splitlines()[-1].startswith(b"next: elbowroom ")


def test_a_reader_that_has_gone_is_no_error(folder: Path) -> None:
    words = [sys.executable, "-m", "elbowroom", "show", "run", "--rows", "all"]
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
    assert said == b""
    assert process.returncode == 0
