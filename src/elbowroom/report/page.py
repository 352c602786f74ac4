"""The report of a run: its sections, and one HTML file from them that needs no network.

The file carries its own style, script and data; a Content-Security-Policy inside it forbids any request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from elbowroom.draw import svg
from elbowroom.draw.figure import RULE, Figure, Series, TextTable
from elbowroom.draw.html import asset, embed, template
from elbowroom.machine.topology import Machine
from elbowroom.points.point import Note
from elbowroom.quantities import interval, number, plural, rounded_size, unit
from elbowroom.report import columns, first_screen, machine, sections, words
from elbowroom.report.columns import CoreUse
from elbowroom.report.sections import JobSection, ModelSection
from elbowroom.results.quiet import Drift
from elbowroom.results.result import Finding, Grade, PointResult, Verdict
from elbowroom.stats.interval import Side, Summary

PACKAGE = "elbowroom.report"
ROWS_WITHOUT_SCRIPT = 500
DRIFTS_SHOWN = 40


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a report. `manifest` and `state` are those of the run folder, as plain data.

    `findings` are those of the experiments; the verdict's own are shown first, each key once. `uses` has the
    cores of a point by its id. `observers` is what the probe can observe: {name: {status, reason}}. `tables`
    summarise the points if there are too many to read. `answer`, `why`, `next`: how the text of the command
    ends (`answer` empty: the text of the verdict). `method` adds (label, text) rows to the section on how
    the run was measured, or replaces rows of the same label.
    """

    title: str
    manifest: dict[str, Any]
    machine: Machine
    verdict: Verdict
    results: tuple[PointResult, ...]
    state: dict[str, Any] = {}
    observers: dict[str, Any] = {}
    findings: tuple[Finding, ...] = ()
    figures: tuple[Figure, ...] = ()
    notes: tuple[Note, ...] = ()
    uses: dict[str, CoreUse] = {}
    drifts: tuple[Drift, ...] = ()
    method: tuple[tuple[str, str], ...] = ()
    models: tuple[ModelSection, ...] = ()
    job: JobSection | None = None
    tables: tuple[TextTable, ...] = ()
    answer: str = ""
    why: str = ""
    next: str = ""


@dataclass(frozen=True)
class Section:
    """A section of the page: the file `templates/NAME.html.j2` and what it shows, besides the `page` itself;
    `view` gives None where there is nothing to show. `title`: in the list of sections at the top of the page,
    which leads to the element with the section's name; empty if the section is not listed.
    """

    name: str
    title: str
    view: Callable[[Page], dict[str, Any] | None]


def render(page: Page) -> str:
    """The page as one self-contained HTML document."""
    data = columns.pack(page.results, page.uses)
    data["machine"] = machine.details(page.machine)
    data["flagMeanings"] = dict(_flag_meanings(page))
    rendered = []
    for section in SECTIONS:
        view = section.view(page)
        if view is not None:
            html = template(PACKAGE, f"templates/{section.name}.html.j2").render(page=page, **view)
            rendered.append((section, html))
    scripts = ("common.js", *(("models.js", "whatif.js") if _has_sliders(page) else ()), "page.js")
    html = template(PACKAGE, "templates/page.html.j2").render(
        page=page,
        sections=rendered,
        style=asset(PACKAGE, "page.css") + svg.style(),
        script="".join(asset(PACKAGE, name) for name in scripts),
        data=embed(data),
        machine_line=machine_line(page.machine),
    )
    return str(html)


def _flag_meanings(page: Page) -> list[tuple[str, str]]:
    return words.flag_meanings(flag for result in page.results for flag in result.flags)


class RowIndex:
    """The rows of the page's table by point."""

    def __init__(self, results: Sequence[PointResult]) -> None:
        self.results = results
        self.rows = {result.id: index for index, result in enumerate(results)}

    def rows_of(self, series: Series) -> svg.Rows | None:
        """None unless every point of the curve has a row."""
        row_numbers = tuple(self.rows[point] for point in series.points if point in self.rows)
        if not row_numbers or len(row_numbers) != len(series.x):
            return None
        return svg.Rows(
            numbers=row_numbers, same=all(self._same(series, i, row) for i, row in enumerate(row_numbers))
        )

    def _same(self, series: Series, i: int, row: int) -> bool:
        """Whether vertex `i` shows the median, d1 and d9 of the table, and not for instance GB/s."""
        if series.side is None or series.style not in ("alone", "together"):
            return False
        result = self.results[row]
        side = result.comp if series.side == "computation" else result.comm
        summary: Summary | None = getattr(side, series.style)
        if summary is None or series.y[i] != summary.median:
            return False
        return not series.low or (series.low[i] == summary.d1 and series.high[i] == summary.d9)


def _figures(page: Page) -> dict[str, Any] | None:
    table = RowIndex(page.results)
    drawings = [drawn(figure, table.rows_of) for figure in page.figures]
    return {"figures": drawings, "rule": RULE} if drawings else None


def drawn(figure: Figure, rows_of: Callable[[Series], svg.Rows | None] = svg.no_rows) -> tuple[Figure, str]:
    """The figure and its drawing, without the rule of all curves, which the page gives once."""
    short = msgspec.structs.replace(figure, caption=figure.caption.replace(RULE, "").strip())
    return short, svg.svg(short, rows_of)


def _has_sliders(page: Page) -> bool:
    """Whether a model answers for other numbers of cores."""
    return any(part.shown for part in page.models)


def _models(page: Page) -> dict[str, Any] | None:
    """The models, none without any."""
    if not page.models:
        return None
    table = RowIndex(page.results)
    views = [
        (
            sections.model_view(part),
            [
                # SVG identifiers are global in the page, and models of one machine have figures of one name.
                (figure, svg.svg(msgspec.structs.replace(figure, name=f"m{at}-{figure.name}"), table.rows_of))
                for figure in part.figures
            ],
        )
        for at, part in enumerate(page.models)
    ]
    return {
        "parts": views,
        "data": embed(sections.embedded(page.models)),
        "sliders": _has_sliders(page),
    }


def _job(page: Page) -> dict[str, Any] | None:
    if page.job is None:
        return None
    drawings = [(figure, svg.svg(figure)) for figure in page.job.figures]
    return {"job": sections.job_view(page.job), "drawings": drawings}


def machine_line(machine: Machine) -> str:
    """The machine in one line: model, packages, cores, NUMA nodes, memory, hosts, what is unusual."""
    parts = [
        machine.model or "model unknown",
        plural(machine.packages, "package"),
        plural(len(machine.cores), "core"),
        plural(len(machine.nodes), "NUMA node"),
        rounded_size(machine.memory) if machine.memory else "memory unknown",
        plural(machine.hosts, "host"),
        *machine.peculiarities,
    ]
    return " · ".join([*parts, "virtual"] if machine.virtual else parts)


KINDS: dict[Grade, str] = {"yes": "interference", "likely": "interference", "no": "quiet"}
"""Classes (colours) of the banner of runs that are trusted; of other grades `neutral`."""


def _verdict(page: Page) -> dict[str, Any]:
    """The first screen: answer, numbers, plot, reason and next command. `kind`: the class (colour) of the
    banner; `chips`: in a few words whether to trust the run, and its grade.
    """
    verdict = page.verdict
    trust = "Virtual" if page.machine.virtual else "Trusted" if verdict.trusted else "Not trusted"
    kind = KINDS.get(verdict.grade, "neutral") if verdict.trusted else "untrusted"
    if page.manifest.get("launcher") == "imported":
        trust, kind = "Imported: trust unknown", "neutral"
    answer = page.answer or verdict.text
    headline = first_screen.headline(verdict) if verdict.trusted or page.machine.virtual else ""
    reasons = [reason for reason in verdict.reasons if reason not in answer and reason not in page.why]
    point = first_screen.shown_point(page.results, verdict)
    figure = None if point is None else first_screen.loss_figure(page.results, point)
    if figure is None and page.figures:
        figure = msgspec.structs.replace(page.figures[0], name="first", marks=())
    return {
        "kind": kind,
        "chips": (trust, f"Interference: {verdict.grade}"),
        "headline": headline or answer,
        "answer": answer if headline else "",
        "reasons": reasons,
        "numbers": [] if point is None else first_screen.numbers(point),
        "where": "" if point is None else first_screen.where(point),
        "plot": None if figure is None else drawn(figure, RowIndex(page.results).rows_of),
    }


def _findings(page: Page) -> dict[str, Any] | None:
    rows = RowIndex(page.results).rows
    by_key = {finding.key: finding for finding in (*page.findings, *page.verdict.findings)}
    order = dict.fromkeys(finding.key for finding in (*page.verdict.findings, *page.findings))
    shown = [
        {
            "level": by_key[key].level,
            "class": by_key[key].level.replace("/", ""),
            "text": by_key[key].text,
            "rows": [rows[point] for point in by_key[key].points if point in rows],
        }
        for key in order
        # The banner contains it.
        if by_key[key].text not in page.verdict.text and by_key[key].text != page.why
    ]
    return {"findings": shown} if shown else None


def _machine(page: Page) -> dict[str, Any]:
    known, _ = words.known_and_unknown(page.state)
    return {"drawings": machine.drawings(page.machine, page.uses), "known": known}


def _points(page: Page) -> dict[str, Any]:
    rows = [_row(result) for result in page.results[:ROWS_WITHOUT_SCRIPT]]
    return {"rows": rows, "summary": words.SUMMARY}


def _flags(page: Page) -> dict[str, Any]:
    statuses = words.status_meanings(result.status for result in page.results)
    return {"flags": _flag_meanings(page), "statuses": statuses}


def _how(page: Page) -> dict[str, Any]:
    return {
        "protocol": words.protocol(page.manifest),
        "transport": words.transport(page.manifest, page.machine.hosts),
        "facts": tuple({**dict(words.facts(page.manifest)), **dict(page.method)}.items()),
    }


def _unknown(page: Page) -> dict[str, Any]:
    _, unknown = words.known_and_unknown(page.state)
    _, unseen = words.known_and_unknown(page.observers)
    reasons = page.manifest.get("unknown", {})
    recorded = (
        [(str(what).replace("_", " "), str(why)) for what, why in reasons.items()]
        if isinstance(reasons, dict)
        else []
    )
    parts_left_out = [
        (note.what, note.reason if note.status == "n/a" else f"{note.status}: {note.reason}")
        for note in page.notes
    ]
    missing = [(f"observer {what}", why) for what, why in unseen]
    return {"unknown": list(dict.fromkeys(parts_left_out + missing + recorded + unknown))}


def _row(result: PointResult) -> dict[str, Any]:
    """A row of the table without JavaScript."""
    return {
        "kernel": columns.kernel_label(result),
        "variant": columns.variant_label(result),
        "n": result.n,
        "size": columns.size_label(result),
        "placement": columns.placement_label(result),
        "metric": columns.metric_label(result),
        "cells": (*_cells(result.comp), *_cells(result.comm)),
        "status": result.status,
        "flags": " ".join(result.flags),
    }


def _cells(side: Side) -> tuple[str, str, str]:
    return summary_text(side.alone), summary_text(side.together), _kept_text(side)


def _kept_text(side: Side) -> str:
    """With its interval, where there is one."""
    if side.kept is None:
        return "–"
    if side.kept.bounds is None:
        return f"{side.kept.value:.2f}"
    return interval(side.kept.value, *side.kept.bounds)


def summary_text(summary: Summary | None) -> str:
    """The median with its unit; a dash where it was not measured."""
    return f"{number(summary.median)} {unit(summary.unit)}" if summary else "–"


def _drift(page: Page) -> dict[str, Any]:
    """The baselines, those with the largest change first, and their number."""
    ordered = sorted(page.drifts, key=lambda drift: abs(drift.relative), reverse=True)
    drift = {
        "count": len(ordered),
        "moved": sum(1 for drift in ordered if drift.outside),
        "largest": number(abs(ordered[0].relative) * 100, 2) if ordered else "",
        "rows": [
            {
                "point": drift.point,
                "side": drift.side,
                "alone": summary_text(drift.alone),
                "spread": f"{number(drift.alone.d1)} – {number(drift.alone.d9)}",
                "closing": f"{number(drift.closing)} {unit(drift.alone.unit)}",
                "change": f"{'+' if drift.relative > 0 else ''}{number(drift.relative * 100, 2)} %",
                "outside": drift.outside,
            }
            for drift in ordered[:DRIFTS_SHOWN]
        ],
    }
    return {"drift": drift}


SECTIONS = (
    Section("verdict", "verdict", _verdict),
    Section("findings", "", _findings),
    Section("tables", "", lambda _: {}),
    Section("figures", "figures", _figures),
    Section("job", "this job", _job),
    Section("what-if", "what if", lambda page: {} if _has_sliders(page) else None),
    Section("model", "model", _models),
    Section("machine", "machine", _machine),
    Section("points", "points", _points),
    Section("flags", "flags", _flags),
    Section("how", "how it was measured", _how),
    Section("unknown", "unknown", _unknown),
    Section("drift", "drift", _drift),
)
"""All sections of the page, in its order."""
