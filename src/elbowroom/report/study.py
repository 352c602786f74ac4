"""The report of a study: the paper's figures and tables in its order, its statements with our values and
the verdicts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from elbowroom.draw import svg
from elbowroom.draw.figure import Figure, TextTable
from elbowroom.draw.html import asset, template
from elbowroom.machine.topology import Machine
from elbowroom.report.page import PACKAGE, machine_line
from elbowroom.studies.document import JudgedExhibit, StudyDocument
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


def render(page: StudyPage) -> str:
    """The page as one HTML document that needs no network and no script."""
    document = page.document
    html: str = template(PACKAGE, "study.html.j2").render(
        page=page,
        style=asset(PACKAGE, "page.css") + svg.style(),
        machine_line=machine_line(page.machine),
        banner="neutral" if document.virtual else "quiet" if document.trusted else "untrusted",
        word="Virtual"
        if document.virtual
        else "Measured"
        if document.trusted
        else "Not all runs are trusted",
        counts=document.counts,
        parts=[_part(exhibit, page) for exhibit in document.exhibits],
        untested=_untested(document.exhibits),
        version=__version__,
    )
    return html


def _part(exhibit: JudgedExhibit, page: StudyPage) -> dict[str, Any]:
    figures = page.figures.get(exhibit.label, ())
    reasons = [run.reason for run in page.document.runs if run.measurement in exhibit.runs and run.reason]
    empty = exhibit.runs and not figures and not page.tables.get(exhibit.label)
    return {
        "exhibit": exhibit,
        "anchor": "".join(letter if letter.isalnum() else "-" for letter in exhibit.label.lower()),
        "drawings": [(figure, svg.svg(figure)) for figure in figures],
        "tables": page.tables.get(exhibit.label, ()),
        "absent": _absent(exhibit, reasons) if empty else "",
    }


def _absent(exhibit: JudgedExhibit, reasons: Sequence[str]) -> str:
    """Why a figure with runs is not drawn."""
    return reasons[0] if reasons else exhibit.absent or "its points cannot be measured on this machine"


def _untested(exhibits: Sequence[JudgedExhibit]) -> list[tuple[str, str]]:
    """Statements that this machine cannot judge, and figures that no run makes, with the reasons."""
    rows = []
    for exhibit in exhibits:
        if exhibit.instead:
            rows.append((exhibit.label, exhibit.instead))
        rows += [
            (f"{exhibit.label}: {statement.text}", statement.why)
            for statement in exhibit.statements
            if statement.verdict == "not testable here"
        ]
    return rows
