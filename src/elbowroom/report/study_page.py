"""The report of a study: what is refuted, what cannot be tested and what is confirmed, then the figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from elbowroom.draw import svg
from elbowroom.draw.figure import RULE, Figure, TextTable
from elbowroom.draw.html import asset, template
from elbowroom.machine.topology import Machine
from elbowroom.report.page import PACKAGE, drawn, machine_line
from elbowroom.studies.document import JudgedExhibit, StudyDocument, Verdict
from elbowroom.version import __version__


class StudyPage(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the report. `figures`, `tables`: by the label of the exhibit; `headline` sums the
    verdicts up, `warnings` say what they are not.
    """

    document: StudyDocument
    machine: Machine
    headline: str
    warnings: tuple[str, ...]
    figures: Mapping[str, Sequence[Figure]]
    tables: Mapping[str, Sequence[TextTable]]


VERDICTS: dict[Verdict, tuple[str, str]] = {
    "refuted": ("Refuted", "The measurements contradict these statements."),
    "undecided": ("Undecided", "The intervals are too wide, or the runs are not trusted."),
    "not testable here": ("Not testable here", "This machine, or this study, cannot test them."),
    "confirmed": ("Confirmed", "The measurements agree with these statements."),
}
"""Sections of the page in their order: title, and what the verdict means."""


def render_study(page: StudyPage) -> str:
    """The page as one HTML document that needs no network and no script."""
    document = page.document
    html: str = template(PACKAGE, "templates/study.html.j2").render(
        page=page,
        style=asset(PACKAGE, "page.css") + svg.style(),
        machine_line=machine_line(page.machine),
        banner="neutral" if document.virtual else "quiet" if document.trusted else "untrusted",
        word="Virtual"
        if document.virtual
        else "Measured"
        if document.trusted
        else "Not all runs are trusted",
        verdicts=[_verdict(verdict, document.exhibits) for verdict in VERDICTS],
        rule=RULE,
        parts=[_part(exhibit, page) for exhibit in document.exhibits],
        version=__version__,
    )
    return html


def _anchor(text: str) -> str:
    """The name of an element of the page."""
    return "".join(letter if letter.isalnum() else "-" for letter in text.lower())


def _verdict(verdict: Verdict, exhibits: Sequence[JudgedExhibit]) -> dict[str, Any]:
    """The statements with this verdict, by the reason of the verdict, each with the anchor of its exhibit;
    after those that cannot be tested the exhibits that no run makes.
    """
    title, meaning = VERDICTS[verdict]
    groups: dict[str, list[dict[str, Any]]] = {}
    unmade, count = [], 0
    for exhibit in exhibits:
        here = {"label": exhibit.label, "anchor": _anchor(exhibit.label)}
        for statement in exhibit.statements:
            if statement.verdict == verdict:
                count += 1
                fields = ("text", "paper", "ours", "criterion")
                texts = {name: getattr(statement, name) for name in fields}
                groups.setdefault(statement.why, []).append(here | texts)
        if exhibit.instead and verdict == "not testable here":
            unmade.append(
                here | {"text": exhibit.title, "paper": "", "ours": "", "criterion": exhibit.instead}
            )
    if unmade:
        groups["Figures and tables that no run of a study makes"] = unmade
    return {"anchor": _anchor(verdict), "title": title, "meaning": meaning, "count": count, "groups": groups}


def _part(exhibit: JudgedExhibit, page: StudyPage) -> dict[str, Any]:
    figures = page.figures.get(exhibit.label, ())
    reasons = [run.reason for run in page.document.runs if run.measurement in exhibit.runs and run.reason]
    empty = exhibit.runs and not figures and not page.tables.get(exhibit.label)
    return {
        "exhibit": exhibit,
        "anchor": _anchor(exhibit.label),
        "drawings": [drawn(figure) for figure in figures],
        "tables": page.tables.get(exhibit.label, ()),
        "absent": _absent(exhibit, reasons) if empty else "",
    }


def _absent(exhibit: JudgedExhibit, reasons: Sequence[str]) -> str:
    """Why a figure with runs is not drawn."""
    return reasons[0] if reasons else exhibit.absent or "its points cannot be measured on this machine"
