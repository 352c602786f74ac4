"""`quick` finds in made-up data whether there is interference, from which size, and where it comes from."""

from __future__ import annotations

import math

import msgspec
import pytest

from elbowroom.points.point import Point
from elbowroom.results.quiet import verdict
from elbowroom.results.result import PointResult
from elbowroom.stats.interval import Kept
from studies import MIB, SMALL, by_key, sound, study


def vm(point: Point) -> tuple[float, float, float, float]:
    """docs/design/method.md, last part: what a two-core machine shows."""
    large = point.size >= 4 * MIB
    comm = 0.2 if point.metric == "latency" else 8000.0
    if point.kernel == "prime" or not large:
        return 6.6, 6.6, comm, comm
    kept = {"triad": (0.64, 0.79), "memset_nt": (0.72, 0.65), "triad_llc": (0.99, 0.80)}[point.kernel]
    return 39_000.0, 39_000 * kept[0], comm, comm * kept[1]


def test_quick_answers_yes_and_from_which_size() -> None:
    experiment, found = study("quick", SMALL, vm)
    findings = experiment.findings(found, SMALL)
    assert findings[0].level == "interference"
    assert findings[0].text.startswith("Yes, there is interference here, both sides suffer: TRIAD")
    assert "64 MiB" in findings[0].text
    assert "loses 36.0 % (" in findings[0].text
    onset = by_key(findings, "onset-triad")
    assert (onset.values["comm_from"], onset.values["comp_from"]) == (4 * MIB, 4 * MIB)
    assert by_key(findings, "prime-n1-67108864").level == "quiet"
    assert by_key(findings, "triad-n1-4").level == "quiet"
    assert by_key(findings, "memset_nt-n1-67108864").values["comm_kept"] == pytest.approx(0.65, abs=0.01)
    figures = experiment.figures(found, SMALL)
    sound(figures, {item.id for item in found})
    assert any(mark.x == 4 * MIB for mark in figures[0].marks)


def test_quick_tells_memory_from_cores_by_contrast() -> None:
    experiment, found = study("quick", SMALL, vm)
    assert "comes from caches and memory" in by_key(experiment.findings(found, SMALL), "contrast").text

    def slow(point: Point) -> tuple[float, float, float, float]:
        values = vm(point)
        return (6.6, 5.0, *values[2:]) if point.kernel == "prime" else values

    experiment, found = study("quick", SMALL, slow)
    assert (
        "uses no memory shows interference too" in by_key(experiment.findings(found, SMALL), "contrast").text
    )


def test_quick_tells_the_last_level_cache_from_the_memory_by_contrast() -> None:
    def cached(point: Point) -> tuple[float, float, float, float]:
        comp, _, comm, _ = vm(point)
        return comp, comp, comm, comm * (0.8 if point.kernel == "triad_llc" else 1.0)

    experiment, found = study("quick", SMALL, cached)
    findings = experiment.findings(found, SMALL)
    assert "share that cache" in by_key(findings, "contrast").text
    assert "TRIAD in the last-level cache" in findings[0].text


def test_quick_tells_when_one_side_only_suffers() -> None:
    def truth(point: Point) -> tuple[float, float, float, float]:
        values = vm(point)
        return values[0], values[0], values[2], values[3]

    experiment, found = study("quick", SMALL, truth)
    text = experiment.findings(found, SMALL)[0].text
    assert "the communication suffers" in text


def test_quick_draws_no_latency_on_the_axis_of_bandwidths() -> None:
    experiment, found = study("quick", SMALL, vm)
    rates = next(figure for figure in experiment.figures(found, SMALL) if figure.name.startswith("rates"))
    sizes = {item.size for item in found if item.metric == "bandwidth"}
    assert rates.left.label == "Network bandwidth (MB/s)"
    assert {int(x) for series in rates.series for x in series.x} <= sizes


def _uncertain(half: float) -> list[PointResult]:
    """Twelve sides that lose nothing but one, whose own interval ends just below 1."""
    found = study("quick", SMALL, lambda _: (6.6, 6.6, 8000.0, 8000.0))[1]
    changed = []
    for item in found:
        value = 0.8 if (item.kernel, item.size) == ("triad", 16 * MIB) else 1.0
        kept = Kept(value=value, low=value * math.exp(-half), high=value * math.exp(half))
        side = msgspec.structs.replace(item.comp, kept=kept)
        changed.append(msgspec.structs.replace(item, comp=side))
    return changed


def test_one_side_of_many_whose_interval_ends_just_below_one_is_no_interference() -> None:
    experiment = study("quick", SMALL, vm)[0]
    found = _uncertain(half=0.2)
    findings = experiment.findings(found, SMALL)
    assert not [finding for finding in findings if finding.level == "interference"]
    assert findings[0].text.startswith("Neither side loses more than 18 % here: TRIAD")
    judged = verdict(findings, found)
    assert (judged.interference, judged.grade) == (None, "at most")


def test_one_side_of_many_that_loses_beyond_chance_is_interference() -> None:
    experiment = study("quick", SMALL, vm)[0]
    findings = experiment.findings(_uncertain(half=0.02), SMALL)
    assert findings[0].text.startswith("Yes, there is interference here, the computation suffers: TRIAD")
