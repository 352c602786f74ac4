"""Each paper has a page with all of its figures and tables, and what could not be tested at its end."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from elbowroom.studies import STUDIES

ROOT = Path(__file__).resolve().parents[3]


def page(paper: str) -> str:
    return (ROOT / STUDIES.get(paper).page).read_text(encoding="utf-8")


@pytest.mark.parametrize("paper", STUDIES.names())
def test_the_page_of_a_paper_has_every_figure_and_table_of_its_study(paper: str) -> None:
    rows = [line for line in page(paper).splitlines() if line.startswith("| ")]
    shown = " ".join(line.split("|")[1] + line.split("|")[2] for line in rows)
    for exhibit in STUDIES.get(paper).exhibits:
        assert exhibit.label in shown, exhibit.label


@pytest.mark.parametrize("paper", STUDIES.names())
def test_the_page_of_a_paper_ends_with_what_could_not_be_tested(paper: str) -> None:
    titles = re.findall(r"^## (.+)$", page(paper), re.MULTILINE)
    assert titles[-1] == "What could not be tested here"


@pytest.mark.parametrize("paper", STUDIES.names())
def test_labels_on_the_page_are_those_of_the_study(paper: str) -> None:
    labels = {exhibit.label for exhibit in STUDIES.get(paper).exhibits}
    named = set(re.findall(r"`FIG (?:'([^']+)'|(\S+))`", page(paper)))
    assert named
    assert {quoted or plain for quoted, plain in named} <= labels
