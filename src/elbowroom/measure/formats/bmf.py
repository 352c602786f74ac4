"""Bencher Metric Format: a JSON object of benchmarks, each with measures (https://bencher.dev/bmf.json)."""

from __future__ import annotations

import msgspec

from elbowroom.documents import encode
from elbowroom.measure.formats.values import SIDES, measured, side_of, values
from elbowroom.measure.results import Results

_UNITS = {"MB/s": "mb-per-s", "us": "us", "M/s": "million-per-s", "Mflop/s": "mflop-per-s"}
"""As part of a measure's slug: the format has no units."""


class Metric(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A value, with its interval where there is one."""

    value: float
    lower_value: float | None = None
    upper_value: float | None = None


def text(results: Results) -> bytes:
    """A benchmark for each point, by its id; measures such as `comm-alone-us` and `comp-kept`, and the
    percentiles of tails, `comm-alone-p99-us`. What was not measured is left out: JSON has no comments.
    """
    points = measured(results, "bmf")
    named: dict[str, dict[str, Metric]] = {}
    for one in values(points):
        unit = _UNITS.get(one.summary.unit, "other")
        metric = Metric(value=one.summary.median, lower_value=one.summary.low, upper_value=one.summary.high)
        named.setdefault(one.point.id, {})[f"{one.side}-{one.style}-{unit}"] = metric
    for point in points:
        for side in SIDES:
            kept = side_of(point, side).kept
            if kept is not None:
                metric = Metric(value=kept.value, lower_value=kept.low, upper_value=kept.high)
                named[point.id][f"{side}-kept"] = metric
    for tail in results.tails:
        for percentile in tail.tail.percentiles if tail.tail else ():
            if percentile.value is not None and tail.point in named:
                named[tail.point][f"comm-{tail.style}-p{percentile.percent:g}-us".replace(".", "-")] = Metric(
                    value=percentile.value, lower_value=percentile.low, upper_value=percentile.high
                )
    return encode(msgspec.to_builtins(named))
