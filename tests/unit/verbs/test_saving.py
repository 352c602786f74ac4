"""One function writes the results of all commands."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from elbowroom.errors import UsageError
from elbowroom.verbs.saving import MODULES, save


@pytest.mark.parametrize("module", sorted(set(MODULES.values())))
def test_every_module_of_the_table_saves(module: str) -> None:
    assert callable(importlib.import_module(f"elbowroom.{module}").save)


def test_what_no_command_returns_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="result 'str': cannot be saved"):
        save("text", tmp_path / "x.svg")
