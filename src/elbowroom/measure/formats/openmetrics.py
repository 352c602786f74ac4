"""OpenMetrics 1.0 text: gauges in base units, for Prometheus and what reads its files."""

from __future__ import annotations

from typing import get_args

from elbowroom.measure.formats.values import NAMES, SIDES, measured, side_of, values
from elbowroom.measure.results import Results
from elbowroom.results.metric_families import MetricFamilies
from elbowroom.results.result import Grade, PointResult

_UNITS = {
    "us": ("duration_seconds", "seconds", 1e-6, "Duration"),
    "MB/s": ("bandwidth_bytes_per_second", "bytes_per_second", 1e6, "Bandwidth"),
    "M/s": ("rate_items_per_second", "items_per_second", 1e6, "Rate"),
    "Mflop/s": ("rate_flops_per_second", "flops_per_second", 1e6, "Rate"),
}
"""By unit: the family, its base unit, the factor, and what it is."""


def text(results: Results) -> str:
    """Medians with their intervals, what each side kept, percentiles of tails, and the verdict. What was not
    measured has no sample: the format has no comments.
    """
    points = measured(results, "openmetrics")
    manifest = results.manifest
    families = MetricFamilies()
    run = {
        "version": manifest.elbowroom,
        "plan": manifest.plan["name"],
        "machine": results.machine.name,
        "virtual": str(results.machine.virtual).lower(),
        "created": manifest.created,
    }
    families.add("elbowroom_run", "info", "", "The run that the samples are of.", run, 1, "_info")
    families.add(
        "elbowroom_trusted",
        "gauge",
        "",
        "1 if the machine was quiet enough for the results to be trusted.",
        {},
        int(results.verdict.trusted),
    )
    verdict = results.verdict
    grade_text = "How sure the run is of interference: the grade that holds is 1."
    for grade in get_args(Grade):
        held = int(grade == verdict.grade)
        families.add(
            "elbowroom_interference", "stateset", "", grade_text, {"elbowroom_interference": grade}, held
        )
    for side, lost in (("comp", verdict.comp), ("comm", verdict.comm)):
        for statistic in ("loss", "low", "high") if lost is not None else ():
            if (value := getattr(lost, statistic)) is not None:
                families.add(
                    "elbowroom_loss_ratio",
                    "gauge",
                    "ratio",
                    "What a side of the verdict's point loses, and the ends of its 95 % interval.",
                    {"point": verdict.point, "side": NAMES[side], "statistic": statistic},
                    value,
                )
    if verdict.visible is not None:
        families.add(
            "elbowroom_visible_loss_ratio",
            "gauge",
            "ratio",
            "The smallest loss at the verdict's point that such a run reports as sure in 4 of 5 cases.",
            {},
            verdict.visible,
        )
    for one in values(points):
        family, unit, factor, what = _UNITS.get(one.summary.unit, ("value", "", 1.0, "Value"))
        labels = _labels(one.point) | {"side": NAMES[one.side], "style": one.style}
        summary = one.summary
        for statistic, value in (("median", summary.median), ("low", summary.low), ("high", summary.high)):
            if value is not None:
                families.add(
                    f"elbowroom_{family}",
                    "gauge",
                    unit,
                    f"{what} of a side alone or together: median, and the ends of its 95 % interval.",
                    labels | {"statistic": statistic},
                    value * factor,
                )
    for point in points:
        _add_kept(families, point)
    _add_tails(families, results)
    return "\n".join([*families.lines(), ""])


def _add_kept(families: MetricFamilies, point: PointResult) -> None:
    for side in SIDES:
        kept = side_of(point, side).kept
        if kept is None:
            continue
        for statistic, value in (("value", kept.value), ("low", kept.low), ("high", kept.high)):
            if value is not None:
                families.add(
                    "elbowroom_kept_ratio",
                    "gauge",
                    "ratio",
                    "Share of its performance that a side keeps together, and the ends of its 95 % interval.",
                    _labels(point) | {"side": NAMES[side], "statistic": statistic},
                    value,
                )


def _add_tails(families: MetricFamilies, results: Results) -> None:
    known = {point.id: point for point in results.points}
    for one in results.tails:
        if one.tail is None or one.point not in known:
            continue
        name = "elbowroom_due_latency_seconds"
        labels = _labels(known[one.point]) | {"style": one.style}
        text = "Latency of messages that were due at fixed times, from the due time to the answer."
        for percentile in one.tail.percentiles:
            if percentile.value is not None:
                quantile = {"quantile": f"{percentile.percent / 100:g}"}
                families.add(name, "summary", "seconds", text, labels | quantile, percentile.value * 1e-6)
        families.add(name, "summary", "seconds", text, labels, one.tail.count, "_count")


def _labels(point: PointResult) -> dict[str, object]:
    return {
        "point": point.id,
        "kernel": point.workload.title or point.kernel,
        "cores": point.n,
        "size_bytes": point.size,
        "role": point.role,
    }
