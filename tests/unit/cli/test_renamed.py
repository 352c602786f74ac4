"""Former names of commands and options: accepted with a hint, hidden, and listed in renamed.md."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

import click
import pytest

from elbowroom import cli, verbs
from elbowroom.cli.commands import RENAMED, group
from elbowroom.cli.options import Command
from elbowroom.verbs.declaration import VERBS, command_of

PAGE = Path(__file__).parents[3] / "docs" / "design" / "renamed.md"
TIMES = ["--t-comp", "1", "--t-comm", "0.5", "--l-comp", "1.72", "--l-comm", "2.2"]


def renamed_options() -> dict[str, str]:
    """The present name of each former option, by `command --old`."""
    for module in pkgutil.iter_modules(verbs.__path__):
        importlib.import_module(f"elbowroom.verbs.{module.name}")
    found = {}
    for name, verb in VERBS.items():
        command = command_of(verb)
        assert isinstance(command, Command)
        found |= {f"{name} {old}": new for old, new in command.renamed.items()}
    return found


def test_the_page_of_renamed_names_lists_what_is_declared() -> None:
    text = PAGE.read_text(encoding="utf-8").partition("## Commands and options")[2]
    listed = dict(re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|", text, re.MULTILINE))
    assert listed == renamed_options() | RENAMED


def test_a_former_name_of_an_option_is_not_that_of_another_one() -> None:
    for name, verb in VERBS.items():
        command = command_of(verb)
        assert isinstance(command, Command)
        names = {word for parameter in command.params for word in parameter.opts}
        assert not names & set(command.renamed), name
        assert set(command.renamed.values()) <= names, name


def test_former_commands_lead_to_commands_and_are_not_listed() -> None:
    for old, new in RENAMED.items():
        for names, present in ((old, False), (new, True)):
            first, *rest = names.split()
            command = group.commands.get(first)
            found = command is not None
            if rest and isinstance(command, click.Group):
                found = rest[0] in command.commands
            assert found is present, names


@pytest.mark.parametrize("words", [["overlap", *TIMES], ["predict-step", *TIMES]])
def test_a_former_command_does_the_same(words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.run(words) == 0
    out, err = capfd.readouterr()
    assert "overlap model       1.46" in out
    hint = "elbowroom: `elbowroom overlap` is now `elbowroom predict-step`\n"
    assert err == (hint if words[0] == "overlap" else "")


def test_a_former_command_of_a_group_leads_to_another_group(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["profile", "calibrate", "--help"]) == 0
    out, err = capfd.readouterr()
    assert out.startswith("Usage: elbowroom nic measure")
    assert err == "elbowroom: `elbowroom profile calibrate` is now `elbowroom nic measure`\n"


@pytest.mark.parametrize("given", [["--model", "threshold"], ["--model=threshold"]])
def test_a_former_option_is_accepted_with_a_hint(given: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    words = ["predict", "henri", "--cores", "4", "--comp-node", "0", "--comm-node", "0", "--json"]
    assert cli.run([*words, "--model-kind", "threshold"]) == 0
    now = capfd.readouterr()
    assert now.err == ""
    assert cli.run([*words, *given]) == 0
    before = capfd.readouterr()
    assert before == (now.out, "elbowroom: --model is now --model-kind\n")


def test_a_former_option_behind_the_dashes_is_the_programs(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["nic", "run", "--nic", "50MB/s", "--dry-run", "--", "true", "--name", "x"]) == 0
    out, err = capfd.readouterr()
    assert "true --name x" in out
    assert "is now" not in err
