"""Output quoted on pages is what the commands print today. Commands whose output is the same on every
machine are run: virtual machines, models and published numbers. Last digits of fits may differ.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from elbowroom import cli

ROOT = Path(__file__).resolve().parents[3]
FENCE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)

PAGES = ("advise", "calibrate", "colocate", "diffusion", "explain", "overlap", "predict", "simulate")
"""Pages of the guide whose quoted output needs no measurement. That of other pages was measured on the
machine that they name.
"""

FITTED = ("calibrate", "predict")
"""Pages whose numbers come from fits: their last digits depend on the processor."""

CLOSE = 0.02
"""Relative difference of two numbers of a fit that count as equal; or one unit of the last digit."""

FILES = {"curves.csv": r"```text\n(# name: .*?)```", "load.toml": r"```toml\n(\[\[computing.*?)```"}
"""Files that a page shows and its commands read."""

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


NUMBER = r"[-−+]?\d[\d\u202f]*(?:\.\d+)?(?:e[-+]\d+)?"


def words_of(text: str) -> list[str]:
    """Numbers, and the words between them, of a text."""
    return re.findall(rf"{NUMBER}|[^\s\d\u202f]+", text)


def pieces(output: str) -> list[list[str]]:
    """The words of a quoted output between lines with an ellipsis, or between ellipses of a line."""
    return [words_of(piece) for piece in re.split(r"…|\.\.\.$", output, flags=re.MULTILINE) if piece.strip()]


def value_of(word: str) -> tuple[float, float] | None:
    """A number and a unit of its last digit; None for another word."""
    if not re.fullmatch(NUMBER, word):
        return None
    plain = word.replace("\u202f", "").replace("−", "-")
    digits = plain.partition("e")[0].partition(".")[2]
    return float(plain), 10.0 ** -len(digits)


def same(quoted: str, printed: str, close: float) -> bool:
    """Whether two words are equal, or numbers that differ by a relative `close` or a unit."""
    if quoted == printed or not close:
        return quoted == printed
    a, b = value_of(quoted), value_of(printed)
    if a is None or b is None:
        return False
    return abs(a[0] - b[0]) <= max(close * abs(a[0]), 1.001 * a[1])


def contains(printed: list[str], piece: list[str], close: float) -> bool:
    """Whether the words of a piece follow each other somewhere in what was printed."""
    return any(
        all(same(*pair, close) for pair in zip(piece, printed[start:], strict=False))
        for start in range(len(printed) - len(piece) + 1)
    )


@pytest.mark.parametrize(
    ("quoted", "printed", "is_same"),
    [
        ("4.5 MB/s", "4.51 MB/s", True),
        ("73\u202f770", "73\u202f900", True),
        ("−153.7", "153.7", False),
        ("1.00", "1.05", False),
        ("1.00 kept", "1.00 lost", False),
    ],
)
def test_numbers_of_fits_may_differ_in_their_last_digits(quoted: str, printed: str, is_same: bool) -> None:
    assert contains(words_of(f"a {printed} b"), words_of(quoted), CLOSE) == is_same


@pytest.mark.parametrize("page", PAGES)
def test_quoted_output_is_what_the_commands_print(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("docs", "machines", "plans"):
        os.symlink(ROOT / name, tmp_path / name)
    text = (ROOT / "docs" / "guide" / f"{page}.md").read_text(encoding="utf-8")
    for name, pattern in FILES.items():
        for shown in re.findall(pattern, text, re.DOTALL):
            (tmp_path / name).write_text(shown)
    monkeypatch.chdir(tmp_path)
    close = CLOSE if page in FITTED else 0.0
    compared = 0
    for block in blocks(page):
        # Blocks without any output show what can be typed.
        for command, output in block if any(text.strip() for _, text in block) else ():
            if MEASURES.search(command) or not command.startswith("elbowroom "):
                continue
            words = shlex.split(command, comments=True)[1:]
            if words[0] == "run" and "diffusion" not in words:
                words.append("--no-report")  # it takes longer than the rest
            code = cli.run(words)
            printed = capfd.readouterr().out
            assert code in (0, 3), command
            for piece in pieces(output):
                compared += 1
                assert contains(words_of(printed), piece, close), (
                    f"$ {command}\n{' '.join(piece)}\nis not in\n{printed}"
                )
    assert compared


EXPORT = re.compile(
    r"^```console\n\$ elbowroom export runs/RUN --format (\w+) -o (\S+)\n```\n+```text\n(.*?)^```",
    re.MULTILINE | re.DOTALL,
)


@pytest.mark.parametrize(
    ("kind", "name", "quoted"),
    EXPORT.findall((ROOT / "docs" / "reference" / "exports.md").read_text(encoding="utf-8")),
    ids=lambda value: value if len(value) < 12 else "",
)
def test_quoted_exports_are_those_of_the_run_in_the_source_tree(
    kind: str, name: str, quoted: str, tmp_path: Path
) -> None:
    run = tmp_path / "quick"
    shutil.copytree(ROOT / "tests" / "data" / "quick", run)
    assert cli.run(["export", str(run), "--format", kind, "-o", str(tmp_path / name)]) == 0
    printed = words_of((tmp_path / name).read_text())
    for piece in pieces(quoted):
        assert contains(printed, piece, 0.0), f"{' '.join(piece)} is not in {name}"
