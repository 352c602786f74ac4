"""`frequency` reads traces and constant frequencies (Figures 1 to 3)."""

from __future__ import annotations

import msgspec
import pytest

from elbowroom import experiments
from elbowroom.errors import UsageError
from elbowroom.experiments.plans import Overrides, apply, load
from elbowroom.plan.file import Steady
from elbowroom.plan.order import order_units, request
from elbowroom.plan.point import Point
from elbowroom.results.result import Trace
from studies import HENRI, by_key, measured, study


def turbo(point: Point) -> tuple[float, float, float, float]:
    """Section 3.2: latency slightly better beside prime counting."""
    if point.metric == "latency":
        khz = point.core_khz or 2_300_000
        return 100.0, 100.0, 1.7 * 2_300_000 / khz, 1.52
    return 100.0, 100.0, 9063.0, 9097.0


def test_frequency_tells_that_latency_gains_beside_computation() -> None:
    experiment, found = study("frequency", HENRI, turbo)
    gains = [
        item
        for item in experiment.findings(found, HENRI)
        if "latency" in item.text and item.key[:6] == "effect"
    ]
    assert gains
    assert all("gains" in item.text and item.level == "quiet" for item in gains)
    assert by_key(experiment.findings(found, HENRI), "frequencies").level == "n/a"


def test_frequency_reads_traces_where_there_are_any() -> None:
    experiment, found = study("frequency", HENRI, turbo)
    traces = (
        Trace(phase="B", core=35, role="communication", interval_s=0.002, khz=(2_500_000, 2_500_000)),
        Trace(phase="S", core=3, role="idle", interval_s=0.002, khz=(1_000_000,)),
        Trace(phase="AB", core=35, role="communication", interval_s=0.002, khz=(2_510_000, 2_490_000)),
        Trace(phase="AB", core=3, role="computing", interval_s=0.002, khz=(3_000_000, 3_000_000)),
    )
    found = [msgspec.structs.replace(item, traces=traces) for item in found]
    finding = by_key(experiment.findings(found, HENRI), "mhz")
    assert "it does not change" in finding.text
    assert (finding.values["computing"], finding.values["asleep"]) == (3000, 1000)
    trace = next(figure for figure in experiment.figures(found, HENRI) if figure.name.startswith("trace"))
    assert {len(series.x) for series in trace.series} == {4, 3}


def test_constant_frequencies_are_measured_only_where_permitted() -> None:
    plan = apply(load("frequency"), Overrides(settings={"core_khz": "1000000,2300000"}))
    experiment = experiments.get("frequency")
    refused = experiment.expand(plan, HENRI)
    assert {point.core_khz for point in refused.points} == {None}
    assert "constant core frequencies" in {note.what for note in refused.notes}
    allowed = msgspec.structs.replace(
        HENRI, permitted=("core_frequency",), frequency_ranges={"core_frequency": (1_000_000, 2_300_000)}
    )
    points = experiment.expand(plan, allowed).points
    assert {point.core_khz for point in points} == {None, 1_000_000, 2_300_000}
    assert {point.kernel for point in points if point.core_khz} == {"none"}
    found = measured(points, turbo)
    text = by_key(experiment.findings(found, HENRI), "constant-core-4").text
    assert "from 1000 to 2300 MHz" in text
    assert "(-57%)" in text


PERMITTED = msgspec.structs.replace(
    HENRI,
    permitted=("core_frequency", "uncore_frequency"),
    frequency_ranges={"core_frequency": (1_000_000, 2_300_000), "uncore_frequency": (1_200_000, 2_400_000)},
)


def test_permitted_frequencies_are_measured_at_both_extremes() -> None:
    """The paper's section 3.1: communication only, one of the two frequencies at a time."""
    expansion = experiments.get("frequency").expand(load("frequency"), PERMITTED)
    held = [point for point in expansion.points if point.core_khz or point.uncore_khz]
    assert {(point.size, point.core_khz, point.uncore_khz) for point in held} == {
        (size, *pair)
        for size in (4, 64_000_000)
        for pair in ((1_000_000, None), (2_300_000, None), (None, 1_200_000), (None, 2_400_000))
    }
    assert {point.kernel for point in held} == {"none"}
    assert not any(note.what.startswith("constant") for note in expansion.notes)


def test_refused_frequencies_are_noted_with_their_reasons() -> None:
    refused = {"core_frequency": "no cpufreq", "uncore_frequency": "needs root"}
    machine = msgspec.structs.replace(HENRI, refused=refused)
    expansion = experiments.get("frequency").expand(load("frequency"), machine)
    reasons = {note.what: (note.status, note.reason) for note in expansion.notes}
    assert reasons["constant core frequencies"] == ("n/a", "no cpufreq")
    assert reasons["constant uncore frequencies"] == ("n/a", "needs root")
    assert not any(point.core_khz or point.uncore_khz for point in expansion.points)


def test_a_frequency_outside_of_the_range_is_refused_with_the_range() -> None:
    plan = apply(load("frequency"), Overrides(settings={"core_khz": "3700000"}))
    with pytest.raises(UsageError) as error:
        experiments.get("frequency").expand(plan, PERMITTED)
    assert (error.value.field, error.value.value) == ("core_khz", 3_700_000)
    assert "1000000 to 2300000 kHz" in str(error.value)


def test_frequency_asks_for_sleep_and_traces() -> None:
    plan = load("frequency")
    points = experiments.get("frequency").expand(plan, HENRI).points
    message = request(points[0], order_units(points, 1, 1)[0], Steady())
    assert "S" in msgspec.json.encode(message["sequence"]).decode()
    assert "frequency_trace" in plan.observe
    assert message["observe"] == list(plan.observe)
