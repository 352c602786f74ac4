"""`elbowroom help`, `completion`, `manual` and `list`, and the names of outputs."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import click
import pytest

import elbowroom
from elbowroom import cli
from elbowroom.cli.commands import group
from elbowroom.verbs.documentation import docs, manual_page, topics

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "src" / "elbowroom"


def test_every_page_of_the_documentation_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["help"]) == 0
    listed = [line[:29].strip() for line in capsys.readouterr().out.splitlines()]
    assert listed == sorted(topics())
    assert cli.run(["help", "reading"]) == 0
    assert capsys.readouterr().out == (docs() / "guide" / "reading.md").read_text(encoding="utf-8")


def test_no_two_pages_share_a_topic() -> None:
    pages = [path.stem for path in docs().rglob("*.md") if path.stem != "index"]
    assert sorted(pages) == sorted(topics())


def test_help_that_programs_print_exists() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    wanted = set(re.findall(r"`elbowroom help ([a-z-]+)`", sources))
    assert wanted
    assert wanted - set(topics()) == set()


def test_the_package_brings_the_pages_along() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["scikit-build"]
    assert build["wheel"]["force-include"]["docs"] == "elbowroom/docs"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_completion(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["completion", shell]) == 0
    text = capsys.readouterr().out
    assert "_ELBOWROOM_COMPLETE" in text
    program = shutil.which(shell)
    if program is not None:
        assert subprocess.run([program, "-n"], input=text.encode(), check=False).returncode == 0


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("elbowroom run qu", "plain,quick"),
        ("elbowroom run --comp-c", "plain,--comp-cores"),
        ("elbowroom show te", "file,te"),
        ("elbowroom predict henri --model-kind fl", "plain,flow"),
    ],
)
def test_commands_plans_options_choices_and_files_are_completed(
    line: str, expected: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_ELBOWROOM_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split()) - 1))
    with pytest.raises(SystemExit):
        cli.run([])
    assert expected in capsys.readouterr().out.splitlines()


def test_the_man_page_holds_every_command_and_option() -> None:
    page = manual_page(group).replace(r"\-", "-")
    for name, command in group.commands.items():
        assert f"elbowroom {name}" in page
        for option in command.params:
            if isinstance(option, click.Option):
                assert max(option.opts, key=len) in page


def test_the_man_page_has_no_faults() -> None:
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("groff is not installed")
    done = subprocess.run(
        [groff, "-man", "-Tutf8", "-w", "mac", "-w", "syntax"],
        input=manual_page(group).encode(),
        capture_output=True,
        check=True,
    )
    assert done.stderr == b""


def test_the_runs_in_a_folder_are_listed_with_their_verdicts(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(recorded, recorded.parent / "damaged")
    (recorded.parent / "damaged" / "manifest.json").write_text("{")
    assert cli.run(["list", str(recorded.parent), "--json"]) == 0
    whole, damaged = json.loads(capsys.readouterr().out)["runs"]
    assert (whole["plan"], whole["state"], whole["trusted"]) == ("quick", "finished", False)
    assert damaged["state"] == "unreadable"
    assert "manifest.json" in damaged["verdict"]
    assert cli.run(["list", str(recorded.parent)]) == 0
    assert "not trusted" in capsys.readouterr().out


def test_a_run_says_what_it_is(recorded: Path) -> None:
    text = repr(elbowroom.open(recorded))
    assert str(recorded) in text
    assert "quick" in text
    assert "finished='2026" in text


def test_every_command_that_writes_takes_o() -> None:
    lacking = []
    for name, command in [*group.commands.items(), *_parts("trace"), *_parts("machine")]:
        names = {word for option in command.params for word in option.opts}
        if names & {"--out"} and "-o" not in names:
            lacking.append(name)
    assert lacking == []


def _parts(name: str) -> list[tuple[str, click.Command]]:
    part = group.commands[name]
    assert isinstance(part, click.Group)
    return list(part.commands.items())


def test_the_version_has_a_short_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["-V"]) == 0
    assert capsys.readouterr().out == f"elbowroom, version {elbowroom.__version__}\n"
