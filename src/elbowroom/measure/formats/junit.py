"""JUnit XML: a test for each side of each point, which fails where the side suffers; for CI servers."""

from __future__ import annotations

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
from elbowroom.results.junit_suite import JunitSuite, set_outcome
from elbowroom.results.result import PointResult
from elbowroom.stats.interval import Kept
from elbowroom.stats.signed_ranks import FEWEST


def text(results: Results) -> bytes:
    """A suite of the run: the test `trusted`, which fails where the machine was not quiet, and a test of each
    side, which fails where it loses beyond what chance makes of so many sides. Points that failed are errors;
    what was not measured is skipped, with the reason.
    """
    points = measured(results, "junit")
    manifest, verdict = results.manifest, results.verdict
    suite = JunitSuite(
        f"elbowroom.{manifest.plan['name']}",
        timestamp=manifest.created.removesuffix("Z")[:19],
        hostname=results.machine.name or "unknown",
        properties={"source": source(results), "verdict": verdict.text, "grade": verdict.grade},
    )
    trusted = suite.add("trusted")
    if not verdict.trusted:
        set_outcome(trusted, "failure", verdict.text, kind="not trusted", text="\n".join(verdict.reasons))
    planned = [point for point in points if point.role != "control"]
    losing = losing_sides(planned)
    for point in planned:
        for side in SIDES:
            # Without repetitions alone, the interval is all that is known.
            alone = side_of(point, side).alone
            case = suite.add(f"{point.id} {NAMES[side]}", printed="\n".join(_lines(point, side)))
            _judge(case, results, point, side, loses=alone is None or (point.id, side) in losing)
    return suite.document()


def _judge(
    case: ElementTree.Element, results: Results, point: PointResult, side: SideName, *, loses: bool
) -> None:
    kept = side_of(point, side).kept
    if point.status == "failed":
        set_outcome(case, "error", missing(point), kind="failed")
    elif kept is None:
        set_outcome(case, "skipped", missing(point))
    elif kept.bounds is None:
        set_outcome(case, "skipped", f"n/a, fewer than {FEWEST} repetitions: no interval")
    elif loses and suffers(kept) == "confirmed":
        message = f"the {NAMES[side]} loses {loss_text(loss_of(kept))} of its performance"
        text = "" if results.verdict.trusted else "tentative: the run is not trusted"
        set_outcome(case, "failure", message, kind="interference", text=text)


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
