"""JUnit XML: a test for each side of each point, which fails where the side suffers; for CI servers."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from elbowroom.measure.formats.values import (
    NAMES,
    SIDES,
    STYLES,
    SideName,
    measured,
    missing,
    side_of,
    source,
)
from elbowroom.measure.results import Results
from elbowroom.quantities import interval, number, unit
from elbowroom.results.family import losing_sides
from elbowroom.results.grades import loss_of, loss_text
from elbowroom.results.judgement import suffers
from elbowroom.results.result import PointResult
from elbowroom.stats.interval import Kept
from elbowroom.stats.signed_ranks import FEWEST

_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 has no way to write."""


def text(results: Results) -> bytes:
    """A suite of the run: the test `trusted`, which fails where the machine was not quiet, and a test of each
    side, which fails where it loses beyond what chance makes of so many sides. Points that failed are errors;
    what was not measured is skipped, with the reason.
    """
    points = measured(results, "junit")
    manifest = results.manifest
    suite = ElementTree.Element("testsuite", name=_clean(f"elbowroom.{manifest.plan['name']}"))
    suite.set("timestamp", manifest.created.removesuffix("Z")[:19])
    suite.set("hostname", _clean(results.machine.name or "unknown"))
    properties = ElementTree.SubElement(suite, "properties")
    ElementTree.SubElement(properties, "property", name="source", value=_clean(source(results)))
    ElementTree.SubElement(properties, "property", name="verdict", value=_clean(results.verdict.text))
    ElementTree.SubElement(properties, "property", name="grade", value=results.verdict.grade)
    _add_verdict(suite, results)
    planned = [point for point in points if point.role != "control"]
    losing = losing_sides(planned)
    for point in planned:
        for side in SIDES:
            # Without repetitions alone, the interval is all that is known.
            alone = side_of(point, side).alone
            _add_side(suite, results, point, side, loses=alone is None or (point.id, side) in losing)
    for attribute, tag in (
        ("tests", "testcase"),
        ("failures", "failure"),
        ("errors", "error"),
        ("skipped", "skipped"),
    ):
        suite.set(attribute, str(len(list(suite.iter(tag)))))
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    whole: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return whole + b"\n"


def _add_verdict(suite: ElementTree.Element, results: Results) -> None:
    verdict = results.verdict
    case = ElementTree.SubElement(suite, "testcase", classname=suite.get("name", ""), name="trusted")
    if not verdict.trusted:
        failure = ElementTree.SubElement(case, "failure", message=_clean(verdict.text), type="not trusted")
        failure.text = _clean("\n".join(verdict.reasons))


def _add_side(
    suite: ElementTree.Element, results: Results, point: PointResult, side: SideName, *, loses: bool
) -> None:
    case = ElementTree.SubElement(
        suite, "testcase", classname=suite.get("name", ""), name=_clean(f"{point.id} {NAMES[side]}")
    )
    kept = side_of(point, side).kept
    if point.status == "failed":
        ElementTree.SubElement(case, "error", message=_clean(missing(point)), type="failed")
    elif kept is None:
        ElementTree.SubElement(case, "skipped", message=_clean(missing(point)))
    elif kept.bounds is None:
        message = f"n/a, fewer than {FEWEST} repetitions: no interval"
        ElementTree.SubElement(case, "skipped", message=message)
    elif loses and suffers(kept) == "confirmed":
        message = f"the {NAMES[side]} loses {loss_text(loss_of(kept))} of its performance"
        failure = ElementTree.SubElement(case, "failure", message=message, type="interference")
        failure.text = "" if results.verdict.trusted else "tentative: the run is not trusted"
    if lines := _lines(point, side):
        ElementTree.SubElement(case, "system-out").text = "\n".join(lines)


def _lines(point: PointResult, side: SideName) -> list[str]:
    measured_side = side_of(point, side)
    lines = [
        f"{style} {number(summary.median)} {unit(summary.unit)}"
        for style in STYLES
        if (summary := getattr(measured_side, style)) is not None
    ]
    return lines if measured_side.kept is None else [*lines, f"kept {_text(measured_side.kept)}"]


def _text(kept: Kept) -> str:
    return f"{kept.value:.2f} (no interval)" if kept.bounds is None else interval(kept.value, *kept.bounds)


def _clean(text: str) -> str:
    return _NO_XML.sub("?", text)
