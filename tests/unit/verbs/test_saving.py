"""One function writes the results of all commands."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from elbowroom.cli.commands import group
from elbowroom.errors import UsageError
from elbowroom.verbs.declaration import VERBS
from elbowroom.verbs.saving import MODULES, save


@pytest.mark.parametrize("module", sorted(set(MODULES.values())))
def test_every_module_of_the_table_saves(module: str) -> None:
    assert callable(importlib.import_module(f"elbowroom.{module}").save)


def test_what_a_command_writes_to_out_is_in_the_table() -> None:
    for name, command in group.commands.items():
        list(getattr(command, "commands", {name: command}).values())
    saving = [verb for verb in VERBS.values() if verb.saves]
    kinds = {verb.do.__annotations__["return"].removeprefix("list[").removesuffix("]") for verb in saving}
    assert len(saving) >= 10
    assert kinds <= set(MODULES)


def test_what_no_command_returns_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="result 'str': cannot be saved"):
        save("text", tmp_path / "x.svg")
