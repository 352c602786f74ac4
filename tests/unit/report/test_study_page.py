"""The page of a study: the verdicts in the order in which they matter, each with a link to its figure."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

from elbowroom.report.study_page import StudyPage, render_study
from elbowroom.studies.document import JudgedExhibit, JudgedStatement, StudyDocument, Verdict

PAGES = runpy.run_path(str(Path(__file__).parents[2] / "report_pages.py"))


def exhibit(label: str, *verdicts: Verdict, instead: str = "") -> JudgedExhibit:
    statements = tuple(
        JudgedStatement(
            text=f"{label} states {at}",
            section="4",
            paper="twice",
            ours="1.1",
            verdict=verdict,
            why="too few cores" if verdict == "not testable here" else "",
        )
        for at, verdict in enumerate(verdicts)
    )
    return JudgedExhibit(
        label=label, title="A figure", runs=(), figures=0, tables=0, statements=statements, instead=instead
    )


def page(*exhibits: JudgedExhibit) -> str:
    document = StudyDocument(
        study="made2020",
        paper="Made: A Paper (2020)",
        folder="f",
        report="f/report.html",
        machine="henri",
        hosts=2,
        virtual=False,
        quick=False,
        trusted=True,
        counts={},
        runs=(),
        exhibits=exhibits,
    )
    return render_study(
        StudyPage(
            document=document, machine=PAGES["henri"](), headline="", warnings=(), figures={}, tables={}
        )
    )


def test_refuted_statements_come_first_then_those_without_a_verdict_then_the_confirmed() -> None:
    html = page(
        exhibit("Fig. 1", "confirmed", "not testable here"),
        exhibit("Fig. 2", "refuted", "undecided"),
    )
    order = re.findall(r'<section id="([\w-]+)"', html)
    assert order[:5] == ["summary", "refuted", "undecided", "not-testable-here", "confirmed"]
    assert html.index("Fig. 2 states 0") < html.index("Fig. 1 states 0")
    assert "Too few cores" in html


def test_every_statement_links_to_its_figure() -> None:
    html = page(exhibit("Fig. 4a", "refuted"))
    assert '<a href="#fig--4a">Fig. 4a</a>' in html
    assert 'id="fig--4a"' in html


def test_sections_without_statements_are_left_out_and_figures_without_a_run_are_named() -> None:
    html = page(exhibit("Fig. 9", instead="run `elbowroom simulate-memory`"))
    assert 'id="refuted"' not in html
    assert "no run of a study makes" in html
