"""Quoted output is what the commands print today (tools/quotes.py); other values name their origin."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import quotes
from quotes import CLOSE, ROOT, contains, words_of

TEXTS = {page: page.read_text(encoding="utf-8") for page in quotes.pages()}
PAGES = [page for page, text in TEXTS.items() if any(quotes.quotes(text)) or any(quotes.python_quotes(text))]


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_quoted_output_is_what_the_commands_print(page: Path, tmp_path: Path) -> None:
    wrong = [
        f"$ {quote.command}\n{part}is not in\n{printed}"
        for quote, printed in quotes.run_quotes(page.read_text(encoding="utf-8"), tmp_path)
        for part in quotes.differences(quote.output, printed, fitted=quote.fitted)
    ]
    assert wrong == [], "python tools/quotes.py --update renews the pages"


@pytest.mark.parametrize("page", quotes.pages(), ids=lambda page: page.stem)
def test_values_on_a_page_are_printed_today_or_name_their_origin(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert list(quotes.unmarked(text)) == [], "tools/quotes.py describes the comments that name an origin"
    for mark in re.findall(r"^<!-- (.*?) -->$", text, re.MULTILINE):
        origin = quotes.ORIGIN.fullmatch(mark)
        for name in (origin["page"], origin["script"]) if origin else ():
            assert name is None or (ROOT / name).is_file(), mark


def test_pages_of_measured_values_name_their_machine() -> None:
    """Their own one, or the page that describes it."""
    for page in (ROOT / "docs" / "measured").glob("*.md"):
        text = page.read_text(encoding="utf-8")
        assert re.search(
            r"Machine: |[Mm]achine is that of \[|QEMU|AMD EPYC|traces that others published", text
        ), page


def test_blocks_and_tables_without_an_origin_are_found() -> None:
    table = "| cores | MB/s |\n|---|---|\n| 1 | 4455 |\n"
    assert list(quotes.unmarked(table)) == ["| cores | MB/s |"]
    assert list(quotes.unmarked(f"<!-- computed by python benchmarks/advise.py -->\n{table}")) == []
    assert list(quotes.unmarked("```text\nkept 0.9\n```\n")) == ["kept 0.9"]
    assert list(quotes.unmarked("```\nkept 0.9\n```\n")) == ["kept 0.9"]
    assert list(quotes.unmarked("<!-- printed by elbowroom doctor -->\n```text\nkept 0.9\n```\n")) == []
    assert list(quotes.unmarked("<!-- seen somewhere -->\n```console\n$ elbowroom list\n```\n")) == [
        "seen somewhere"
    ]


def test_commands_of_blocks_without_output_are_not_run() -> None:
    typed = "```console\n$ elbowroom run quick\n$ elbowroom list\n```\n"
    assert list(quotes.quotes(typed)) == []
    shown = "```console\n$ elbowroom run quick \\\n    --out q\n$ elbowroom list\nq: finished\n```\n"
    first, second = quotes.quotes(shown)
    assert (first.command.split(), first.output) == (["elbowroom", "run", "quick", "--out", "q"], "")
    assert (second.command, second.output) == ("elbowroom list", "q: finished\n")


def test_quotes_are_renewed_part_by_part() -> None:
    printed = "machine: henri\n\nLoses 13 %.\nMore.\n\nn kept\n1 1.00\n2 0.86\n\nnext: elbowroom fit r\n"
    quoted = "machine: henri\n\nKeeps 0.87.\n…\nn kept\n1 1.00\n2 0.87\n…\n"
    assert quotes.renewed(quoted, printed) == "machine: henri\n\nLoses 13 %.\n…\nn kept\n1 1.00\n2 0.86\n…\n"
    assert quotes.renewed("whole\n", "whole and new\n") == "whole and new\n"
    assert quotes.differences(quoted, printed, fitted=False) == [
        "machine: henri\n\nKeeps 0.87.\n",
        "n kept\n1 1.00\n2 0.87\n",
    ]


def test_examples_of_python_are_one_session_and_are_renewed(tmp_path: Path) -> None:
    text = (
        "```pycon\n>>> a = 1\n>>> a + 1\n3\n```\nText.\n"
        "```pycon\n>>> for b in (a, 7):\n...     print(b)\n1\n7\n```\n"
    )
    first, second, third = quotes.run_quotes(text, tmp_path)
    assert (first[0].output, first[1]) == ("", "")
    assert (text[second[0].start : second[0].end], second[1]) == ("3\n", "2\n")
    assert (third[0].output, third[1]) == ("1\n7\n", "1\n7\n")
