"""Output quoted on pages is what the commands print today. Commands whose output is the same on every
machine are run: virtual machines, models and published numbers.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from elbowroom import cli

ROOT = Path(__file__).resolve().parents[3]
FENCE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)

PAGES = ("advise", "colocate", "explain", "overlap", "simulate")
"""Pages of the guide whose quoted output needs no measurement and no fit, whose last digits depend on the
processor. Those of other pages were measured on the machine that they name.
"""

MEASURES = re.compile(r"elbowroom run (?!.*--machine)|runs/why|--verify")
"""Commands whose output is that of one machine; a page may quote others in the same block."""


def blocks(page: str) -> Iterator[list[tuple[str, str]]]:
    """(command, quoted output) of each block of a page, in order."""
    for block in FENCE.findall((ROOT / "docs" / "guide" / f"{page}.md").read_text(encoding="utf-8")):
        parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
        pairs = []
        for part in parts:
            command, _, output = part.replace("\\\n", " ").partition("\n")
            pairs.append((command, output))
        yield pairs


def words_of(text: str) -> str:
    """A text without its breaks of lines and without spaces at their ends."""
    return " ".join(text.split())


def quoted(output: str) -> list[str]:
    """The pieces of a quoted output between lines with an ellipsis, or between ellipses of a line."""
    return [words_of(piece) for piece in re.split(r"…|\.\.\.$", output, flags=re.MULTILINE) if piece.strip()]


@pytest.mark.parametrize("page", PAGES)
def test_quoted_output_is_what_the_commands_print(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("docs", "machines", "plans"):
        os.symlink(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    compared = 0
    for block in blocks(page):
        # Blocks without any output show what can be typed.
        for command, output in block if any(text.strip() for _, text in block) else ():
            if MEASURES.search(command) or not command.startswith("elbowroom "):
                continue
            code = cli.run(shlex.split(command, comments=True)[1:])
            printed = words_of(capfd.readouterr().out)
            assert code in (0, 3), command
            for piece in quoted(output):
                compared += 1
                assert piece in printed, f"$ {command}\n{piece}\nis not in\n{printed}"
    assert compared
