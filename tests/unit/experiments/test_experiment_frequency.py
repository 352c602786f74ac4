"""`frequency` reads traces and constant frequencies (Figures 1 to 3)."""

from __future__ import annotations

from itertools import product

import msgspec
import pytest

from elbowroom import experiments
from elbowroom.errors import UsageError
from elbowroom.experiments.plans import Overrides, apply, load
from elbowroom.plan.order import order_units
from elbowroom.points.payload import Trace
from elbowroom.points.point import Point, Steady
from sampled import with_payload
from studies import HENRI, by_key, measured, study

BORA = {"n": "10,18,19,35", "sizes": "64MB", "kernels": "prime"}


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
    found = [with_payload(item, traces=traces) for item in found]
    finding = by_key(experiment.findings(found, HENRI), "mhz")
    assert "it does not change" in finding.text
    assert (finding.values["computing"], finding.values["asleep"]) == (3000, 1000)
    trace = next(figure for figure in experiment.figures(found, HENRI) if figure.name.startswith("trace"))
    lengths = {series.name: len(series.x) for series in trace.series}
    assert lengths == {"core 35 (communication)": 4, "core 3 (idle)": 1, "core 3 (computing)": 2}


@pytest.mark.parametrize(
    ("since", "text"),
    [
        (
            19,
            "slows down abruptly from 19 computing cores on: from there on its cores include some of socket",
        ),
        (10, "slows down abruptly from 10 computing cores on; from 19 computing cores on"),
        (99, "does not slow down, though from 19 computing cores on"),
    ],
)
def test_the_socket_at_which_computation_slows_down_is_named(since: int, text: str) -> None:
    def bora(point: Point) -> tuple[float, float, float, float]:
        return 100.0 * point.n, 100.0 * point.n * (0.775 if point.n >= since else 1.0), 9063.0, 9063.0

    experiment, found = study("frequency", HENRI, bora, settings=BORA)
    assert text in by_key(experiment.findings(found, HENRI), "boundary").text


def test_many_cores_of_a_role_are_one_band_and_the_uncore_is_drawn_too() -> None:
    experiment, found = study("frequency", HENRI, turbo)
    cores = [
        Trace(phase="AB", core=core, role="computing", interval_s=0.002, khz=(2e6 + 1e5 * core, 3e6))
        for core in range(5)
    ]
    uncore = Trace(
        phase="AB", core=-1, role="uncore", interval_s=0.002, khz=(2.4e6, 2.4e6), part="package_00_die_00"
    )
    found = [with_payload(item, traces=(*cores, uncore)) for item in found]
    trace = next(figure for figure in experiment.figures(found, HENRI) if figure.name.startswith("trace"))
    band, line = trace.series
    assert (band.name, band.y, band.low, band.high) == (
        "5 computing cores",
        (2200.0, 3000.0),
        (2000.0, 3000.0),
        (2400.0, 3000.0),
    )
    assert (line.name, line.y, line.side) == ("uncore package_00_die_00", (2400.0, 2400.0), None)


def test_figure_1_has_a_curve_over_sizes_for_each_combination_of_frequencies() -> None:
    plan = apply(load("frequency"), Overrides(settings={"constant_sizes": "4,1KiB,64MB"}))
    points = experiments.get("frequency").expand(plan, PERMITTED).points
    found = measured([point for point in points if point.core_khz], turbo)
    drawn = {figure.name: figure for figure in experiments.get("frequency").figures(found, PERMITTED)}
    latency = next(figure for name, figure in drawn.items() if name.startswith("constant-latency"))
    bandwidth = next(figure for name, figure in drawn.items() if name.startswith("constant-bandwidth"))
    for figure in (latency, bandwidth):
        assert {series.name for series in figure.series} == {
            f"core {core} MHz, uncore {uncore} MHz" for core, uncore in product((1000, 2300), (1200, 2400))
        }
        assert {series.x for series in figure.series} == {(4.0, 1024.0, 64e6)}
    slow = next(series for series in latency.series if series.name.startswith("core 1000"))
    assert slow.y[0] == pytest.approx(1.7 * 2.3, rel=0.05)
    assert slow.y[2] == pytest.approx(64e6 / 9063, rel=0.05)
    assert bandwidth.series[0].y[2] == pytest.approx(9063, rel=0.05)


def test_conditions_multiply_what_is_measured_beside_computation() -> None:
    machine = msgspec.structs.replace(
        HENRI, permitted=("turbo", "governor"), governors=("performance", "powersave")
    )
    plan = apply(
        load("frequency"), Overrides(settings={"turbo": "on,off", "governors": "performance,powersave"})
    )
    points = experiments.get("frequency").expand(plan, machine).points
    held = {(point.turbo, point.governor) for point in points if point.role == "point"}
    assert held == set(product((True, False), ("performance", "powersave")))
    assert len({point.id for point in points}) == len(points)


def test_conditions_that_may_not_be_set_are_noted_and_the_rest_is_measured() -> None:
    machine = msgspec.structs.replace(HENRI, refused={"turbo": "the driver has no switch for turbo"})
    plan = apply(load("frequency"), Overrides(settings={"turbo": "off"}))
    expansion = experiments.get("frequency").expand(plan, machine)
    reasons = {note.what: note.reason for note in expansion.notes}
    assert reasons["turbo as a condition"] == "the driver has no switch for turbo"
    assert {point.turbo for point in expansion.points} == {None}


def test_an_unknown_governor_is_refused_with_those_there_are() -> None:
    machine = msgspec.structs.replace(HENRI, permitted=("governor",), governors=("performance",))
    plan = apply(load("frequency"), Overrides(settings={"governors": "perfomance"}))
    with pytest.raises(UsageError, match="did you mean 'performance'"):
        experiments.get("frequency").expand(plan, machine)


def test_a_core_stays_free_to_sample_frequencies_from() -> None:
    points = experiments.get("frequency").expand(load("frequency"), HENRI).points
    assert max(point.n for point in points) == 34
    untraced = apply(load("frequency"), Overrides(settings={"observe": "frequency"}))
    points = experiments.get("frequency").expand(untraced, HENRI).points
    assert max(point.n for point in points) == 35


def test_a_frequency_that_the_processor_does_not_hold_is_said() -> None:
    plan = apply(load("frequency"), Overrides(settings={"constant_sizes": "4"}))
    points = experiments.get("frequency").expand(plan, PERMITTED).points
    held = measured([point for point in points if point.core_khz == 1_000_000], turbo)
    trace = Trace(phase="B", core=35, role="communication", interval_s=0.002, khz=(1_200_000.0,))
    moved = [with_payload(item, traces=(trace,)) for item in held]
    text = by_key(experiments.get("frequency").findings(moved, PERMITTED), "not-held").text
    assert "ran at 1200 MHz while its frequency was set to 1000 MHz" in text
    kept = msgspec.structs.replace(trace, khz=(1_001_000.0,))
    found = experiments.get("frequency").findings(
        [with_payload(item, traces=(kept,)) for item in held], PERMITTED
    )
    assert not [item for item in found if item.key.startswith("not-held")]


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
    """The paper's Figure 1: communication only, over sizes, core and uncore in all four combinations."""
    expansion = experiments.get("frequency").expand(load("frequency"), PERMITTED)
    held = [point for point in expansion.points if point.core_khz or point.uncore_khz]
    assert {(point.size, point.core_khz, point.uncore_khz) for point in held} == {
        (size, *pair)
        for size in (4, 64, 1024, 16 * 1024, 256 * 1024, 4 << 20, 64_000_000)
        for pair in product((1_000_000, 2_300_000), (1_200_000, 2_400_000))
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
    message = points[0].workload.request(points[0], order_units(points, 1, 1)[0], Steady())
    assert "S" in msgspec.json.encode(message["sequence"]).decode()
    assert "frequency_trace" in plan.observe
    assert message["observe"] == list(plan.observe)
