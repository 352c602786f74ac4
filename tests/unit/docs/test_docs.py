"""What the documentation tells people to type exists, and what it points to is there."""

from __future__ import annotations

import inspect
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

import console_lines
import elbowroom
from cli_commands import refusal
from elbowroom import api
from elbowroom.cli.commands import group

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")

WRAPPERS = {"salloc", "tests/bootstrap/debian12.sh"}
"""Commands that start the command after their own options."""


def commands(text: str) -> Iterator[list[str]]:
    """The words after `elbowroom` of every command line in code blocks of a page and between backquotes."""
    blocks = [block for kind, block in FENCE.findall(text) if kind in ("console", "sh")]
    lines = [line for block in blocks for line in block.splitlines() if "elbowroom" in line]
    lines += re.findall(r"`((?:\./)?elbowroom [a-z][^`]*)`", FENCE.sub("", text))
    for line in lines:
        words = shlex.split(line.removeprefix("$ "), comments=True)
        for index, word in enumerate(words):
            before = words[:index]
            started = not before or before[0] in WRAPPERS
            if started and word.rpartition("/")[2] == "elbowroom" and index + 1 < len(words):
                yield words[index + 1 :]
                break


def cases() -> list[tuple[str, list[str]]]:
    return [(page.name, words) for page in PAGES for words in commands(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize(("page", "words"), cases(), ids=str)
def test_a_command_in_the_documentation_parses(page: str, words: list[str]) -> None:
    assert not refusal(words), f"{page}: elbowroom {' '.join(words)}"


def test_every_console_line_of_readme_and_guide_can_be_typed_with_the_stand_ins_of_one_table() -> None:
    """tests/bootstrap/typed.py types them; what it types parses, too."""
    for line in console_lines.lines(ROOT):
        if not console_lines.reason_not_to_type(line):
            text = re.sub(r"\$\([^)]*\)", "run", console_lines.typed(line))
            words = next(iter(commands(f"```console\n$ {text}\n```\n")), None)
            own = ("mpirun ", "python3 -m venv ", "venv/bin/")
            assert words is not None or text.startswith(own), f"{line.page}:{line.number}: {text}"
            assert words is None or not refusal(words), f"{line.page}:{line.number}: {text}"


def test_every_stand_in_is_used() -> None:
    every = list(console_lines.lines(ROOT))
    tables = (console_lines.NOT_TYPED, console_lines.STAND_INS, console_lines.UNAVAILABLE)
    for stand_in in (item for table in tables for item in table):
        assert any(re.search(stand_in.pattern, line.text) for line in every), stand_in.what


def test_lines_that_measure_have_a_budget() -> None:
    text = console_lines.with_budget("elbowroom run sizes --kernels triad", 20)
    assert text == "elbowroom run --budget 20s sizes --kernels triad"
    for other in (
        "elbowroom run model --machine henri",
        "elbowroom run cores --budget 60s",
        "elbowroom list",
    ):
        assert console_lines.with_budget(other, 20) == other


def test_the_documentation_shows_every_command() -> None:
    shown = {words[0] for _, words in cases()}
    assert set(group.commands) <= shown


@pytest.mark.parametrize(
    "words",
    [["measure", "quick"], ["run", "--kernel", "triad"], ["show"], ["run", "quickly"], ["--verbose"]],
    ids=" ".join,
)
def test_a_command_that_does_not_exist_would_be_found(words: list[str]) -> None:
    assert refusal(words)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_resolve(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" in target or target.startswith("#"):
            continue
        file = page.parent / unquote(target.partition("#")[0])
        assert file.exists(), f"{page.name} points to {target}"


def test_the_newest_entry_of_the_changelog_is_this_version() -> None:
    entry = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")[1]
    assert entry.startswith(("[Unreleased]", f"[{elbowroom.__version__}] - "))
    assert elbowroom.__version__ in entry


def test_a_changelog_has_only_the_headings_of_keep_a_changelog() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.+)$", text, re.MULTILINE)) <= kinds


def test_the_citation_names_this_version() -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {elbowroom.__version__}\n" in text


def test_the_names_that_the_python_page_shows_are_public() -> None:
    page = (ROOT / "docs" / "guide" / "python.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"elbowroom\.(\w+)\(", page))
    assert shown <= set(api.PUBLIC)
    functions = {name for name in api.PUBLIC if inspect.isfunction(getattr(elbowroom, name))}
    assert functions - shown == set()


def test_the_files_that_keep_the_rules_of_measuring_exist() -> None:
    page = (ROOT / "docs" / "design" / "method.md").read_text(encoding="utf-8")
    files = set(re.findall(r"`(\w+/[\w*]+\.(?:cpp|py|toml))`", page))
    roots = (ROOT / "core", ROOT / "src" / "elbowroom", ROOT)
    assert {name for name in files if not any(list(root.glob(name)) for root in roots)} == set()


def test_no_two_lines_of_a_page_write_the_same_folder() -> None:
    """Run folders, profiles and traces are never overwritten: the second line would fail as typed."""
    twice = {
        f"{page}: {name}"
        for page in {line.page for line in console_lines.lines(ROOT)}
        for name, count in Counter(
            name
            for line in console_lines.lines(ROOT)
            if line.page == page and not console_lines.reason_not_to_type(line)
            for name in console_lines.created(line)
            if not Path(name).suffix and " --resume " not in line.text and "--dry-run" not in line.text
        ).items()
        if count > 1
    }
    assert twice == set()
