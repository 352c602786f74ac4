"""Which native folders may include which: core/base is below core and lib, which share nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = {path.name for path in (ROOT / "core").iterdir() if path.is_dir()}


def included(folder: str) -> set[str]:
    """The first folders of what the sources below `folder` include in quotes."""
    sources = [path for path in (ROOT / folder).rglob("*.[ch]pp") if path.is_file()]
    assert sources
    return {
        name
        for path in sources
        for name in re.findall(r'^#include "([^"/]+)/', path.read_text(), re.MULTILINE)
    }


def test_the_base_includes_nothing_but_itself() -> None:
    assert included("core/base") == {"base"}


def test_libraries_take_nothing_of_the_core_but_its_base() -> None:
    assert included("lib") & CORE == {"base"}


@pytest.mark.parametrize("folder", sorted(CORE - {"observe", "exchange"}))
def test_only_what_observes_and_exchanges_uses_the_libraries(folder: str) -> None:
    assert not included(f"core/{folder}") & {"elbowroom", "trace", "clock", "pmpi", "predict"}
