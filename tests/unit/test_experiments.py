"""Experiments find in made-up data what was put there: the paper's curves give back the paper's sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import pytest

from elbowroom import experiments
from elbowroom.draw.figure import Figure
from elbowroom.errors import UsageError
from elbowroom.experiments import intensity, ring
from elbowroom.experiments.experiment import Experiment
from elbowroom.machine.topology import Cache, Core, Machine, Nic, Node
from elbowroom.plan import Overrides, Point, apply, load, names, request, validate
from elbowroom.plan.kernels import arithmetic_intensity, find
from elbowroom.plan.ordering import order
from elbowroom.plan.placing import near_node
from elbowroom.plan.reading import Plan, Steady
from elbowroom.stats.points import results
from elbowroom.stats.result import Finding, PointResult, Trace
from elbowroom.stats.summary import Samples

MIB = 2**20

# A truth gives (computation alone, together, communication alone, together) of a point.
Truth = Callable[[Point], tuple[float, float, float, float]]


def machine(
    cores: int, nodes: int = 1, packages: int = 1, *, nic: int | None = None, hosts: int = 1
) -> Machine:
    """A regular machine of the paper's kind."""
    per_node, per_package = cores // nodes, nodes // packages
    numbers = [tuple(range(node * per_node, (node + 1) * per_node)) for node in range(nodes)]
    return Machine(
        name="test",
        model="test",
        cores=tuple(
            Core(number=core, logical=core, package=node // per_package, node=node, pus=(core,))
            for node in range(nodes)
            for core in numbers[node]
        ),
        nodes=tuple(
            Node(number=node, package=node // per_package, memory=24 << 30, cores=numbers[node])
            for node in range(nodes)
        ),
        caches=tuple(Cache(level=3, size=25 * MIB, cores=item) for item in numbers),
        nics=() if nic is None else (Nic(name="mlx5_0", kind="openfabrics", node=nic),),
        allowed=tuple(range(cores)),
        memory=nodes * 24 << 30,
        hosts=hosts,
    )


HENRI = machine(36, 4, 2, nic=0, hosts=2)  # Denis et al. 2021, section 2.2
SMALL = machine(2)


def measured(
    points: Sequence[Point], truth: Truth, repetitions: int = 8, noise: float = 0.004
) -> list[PointResult]:
    """Results of samples drawn around a truth: two per phase, side and repetition, as the protocol takes
    them.
    """
    rng = np.random.default_rng(0)
    rows = []
    for index, point in enumerate(points):
        kernel = find(point.kernel)
        comp_unit = kernel.rate_unit if kernel else ""
        comm_unit = "us" if point.metric == "latency" else "MB/s"
        comp_alone, comp_together, comm_alone, comm_together = truth(point)
        cells = [("B", "comm", comm_alone, comm_unit)]
        if kernel:
            cells += [("A", "comp", comp_alone, comp_unit), ("AB", "comp", comp_together, comp_unit)]
            cells += [("AB", "comm", comm_together, comm_unit)]
        for phase, side, value, unit in cells:
            for sample in range(2 * repetitions):
                rows.append(
                    (index, sample // 2, False, phase, side, value * rng.normal(1, noise), unit, "ok")
                )
    return results(points, Samples(*zip(*rows, strict=True)))


def study(
    name: str, here: Machine, truth: Truth, **overrides: object
) -> tuple[Experiment, list[PointResult]]:
    plan = apply(load(name), Overrides(**overrides))  # type: ignore[arg-type]
    experiment = experiments.get(plan.experiment)
    return experiment, measured(experiment.expand(plan, here).points, truth)


def by_key(findings: Sequence[Finding], start: str) -> Finding:
    return next(finding for finding in findings if finding.key.startswith(start))


def sound(figures: Sequence[Figure], ids: set[str]) -> None:
    """Every figure has names and columns that fit each other, and points that exist."""
    assert len({figure.name for figure in figures}) == len(figures)
    for figure in figures:
        assert figure.series
        for series in figure.series:
            assert len(series.x) == len(series.y) > 0
            assert len(series.low) in (0, len(series.x))
            assert all(
                low <= y <= high for low, y, high in zip(series.low, series.y, series.high, strict=True)
            )
            assert set(series.points) <= ids
            assert series.axis == "left" or figure.right is not None


# The registry


def test_every_experiment_of_the_issue_is_registered_with_a_plan_of_its_name() -> None:
    wanted = {"quick", "cores", "placement", "sizes", "intensity", "frequency", "model", "ring"}
    assert wanted <= {experiment.name for experiment in experiments.all()}
    assert all(load(experiment.name).experiment == experiment.name for experiment in experiments.all())


def test_an_unknown_experiment_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="did you mean 'sizes'"):
        experiments.get("size")


@pytest.mark.parametrize("name", names())
def test_an_experiment_without_results_says_so(name: str) -> None:
    experiment = experiments.get(load(name).experiment)
    assert [finding.level for finding in experiment.findings([], HENRI)] == ["n/a"]
    assert experiment.figures([], HENRI) == ()


@pytest.mark.parametrize("name", names())
def test_an_undisturbed_machine_shows_no_interference_in_any_experiment(name: str) -> None:
    def truth(point: Point) -> tuple[float, float, float, float]:
        comm = 1.5 if point.metric == "latency" else 10_000.0
        return 9000.0, 9000.0, comm, comm

    experiment, found = study(name, machine(8, 2, 2, nic=0, hosts=2), truth)
    levels = {finding.level for finding in experiment.findings(found, HENRI)}
    assert "interference" not in levels
    assert "quiet" in levels
    sound(experiment.figures(found, HENRI), {item.id for item in found})


# quick


def vm(point: Point) -> tuple[float, float, float, float]:
    """METHOD.md, last part: what a two-core machine shows."""
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
    assert "0.64 (" in findings[0].text
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


def test_quick_shows_latency_as_bandwidth_beside_bandwidths() -> None:
    experiment, found = study("quick", SMALL, vm)
    rates = next(figure for figure in experiment.figures(found, SMALL) if figure.name.startswith("rates"))
    alone = next(
        series for series in rates.series if series.side == "communication" and series.style == "alone"
    )
    assert alone.y[0] == pytest.approx(4 / 0.2, rel=0.02)


# cores and placement: Figures 4 and 5, Table 1


def henri(point: Point) -> tuple[float, float, float, float]:
    """Sections 4.2 and 4.3: latency by where the thread is, bandwidth by where the data is."""
    n, near_thread = point.n, point.comm_core == 8
    triad = 12_000.0 * min(n, 6)
    if point.kernel == "prime":
        return (
            n,
            n,
            (1.4 if point.metric == "latency" else 10_500.0),
            (1.4 if point.metric == "latency" else 10_500.0),
        )
    if point.metric == "latency":
        alone = 1.39 if near_thread else 1.67
        if near_thread:
            return triad, triad, alone, 2.0 if n >= 6 else alone
        return triad, triad, alone, alone * (1 + max(0, n - 24) * 0.1)
    steady, abrupt = (1.0 if n < 3 else 1 - 0.019 * (n - 1)), (1.0 if n < 4 else 0.45)
    kept = steady if point.comm_node == 0 else abrupt
    comp = {5: 0.75, 4: 0.85, 6: 0.85}.get(n, 0.99)
    return triad, triad * comp, 10_500.0, 10_500 * kept


def test_cores_finds_the_papers_figure_4() -> None:
    experiment, found = study("cores", HENRI, henri)
    findings = experiment.findings(found, HENRI)
    latency = next(item for item in findings if item.values["metric"] == "latency")
    bandwidth = next(item for item in findings if item.values["metric"] == "bandwidth")
    assert latency.values["comm_from"] == 25
    assert latency.values["comp_first"] is None
    assert bandwidth.values["comm_from"] in (3, 4)
    assert bandwidth.values["comm_manner"] == "steadily"
    assert (bandwidth.values["comp_first"], bandwidth.values["comp_last"]) == (4, 6)
    assert bandwidth.values["comp_worst_at"] == 5
    assert "times that alone" in latency.text
    figures = experiment.figures(found, HENRI)
    sound(figures, {item.id for item in found})
    assert figures[0].left.label == "Network latency (µs)"
    assert figures[0].right is not None
    assert "per core" in figures[0].right.label
    assert {(series.style, series.axis, series.side) for series in figures[0].series} == {
        (style, axis, side)
        for style in ("alone", "together")
        for axis, side in (("left", "communication"), ("right", "computation"))
    }


@pytest.mark.parametrize(
    ("comp_node", "comm_core", "latency", "first", "bandwidth"),
    [
        (0, 8, "latency increases slightly", 6, "decreases steadily"),
        (0, 35, "latency increases highly", 25, "decreases steadily"),
        (3, 8, "latency increases slightly", 6, "decreases abruptly"),
        (3, 35, "latency increases highly", 25, "decreases abruptly"),
    ],
)
def test_placement_finds_the_papers_table_1(
    comp_node: int, comm_core: int, latency: str, first: int, bandwidth: str
) -> None:
    experiment, found = study(
        "placement", HENRI, henri, comp_node=comp_node, comm_node=comp_node, comm_core=comm_core
    )
    (row,) = experiment.findings(found, HENRI)
    data, thread = ("near" if comp_node == 0 else "far"), ("near" if comm_core == 8 else "far")
    assert row.text.startswith(f"Data {data} (node {comp_node}), communication thread {thread}")
    assert latency in row.text
    assert f"starting from {first} computing cores" in row.text
    assert row.values["latency_from"] == first
    assert bandwidth in row.text
    assert "TRIAD is impacted only beside large messages" in row.text
    assert row.level == "interference"


def test_placement_has_a_row_for_every_pair_of_nodes_and_both_threads() -> None:
    plan = apply(load("placement"), Overrides(settings={"n": "1,2,3"}))
    experiment = experiments.get("placement")
    found = measured(experiment.expand(plan, HENRI).points, henri, repetitions=3)
    rows = experiment.findings(found, HENRI)
    assert {(row.values["comp_node"], row.values["comm_node"], row.values["comm_core"]) for row in rows} == {
        (comp, comm, core) for comp in range(4) for comm in range(4) for core in (8, 35)
    }
    mixed = next(row for row in rows if (row.values["comp_node"], row.values["comm_node"]) == (0, 3))
    assert "data of computations near" in mixed.text.lower()
    assert "of communications far" in mixed.text


def test_a_machine_without_numa_and_nic_says_what_it_cannot_answer() -> None:
    notes = {note.what for note in experiments.get("placement").expand(load("placement"), SMALL).notes}
    assert "data and thread far from the NIC" in notes
    assert "near and far from the NIC" in notes
    assert "exchange over the network" in notes


# sizes


def sized(point: Point) -> tuple[float, float, float, float]:
    """Section 4.4: communication degraded from 64 KB with a few cores and 128 B with all, TRIAD from 4 KB;
    a switch from eager to rendezvous above 16 KiB.
    """
    latency = 1.5 + point.size / 10_500 + (4.0 if point.size > 16 * 1024 else 0.0)
    alone = latency if point.metric == "latency" else point.size / latency
    from_size = 128 if point.n > 20 else 65536
    factor = 0.5 if point.size >= from_size else 1.0
    together = alone / factor if point.metric == "latency" else alone * factor
    return 60_000.0, 60_000 * (0.8 if point.size >= 4096 else 1.0), alone, together


def test_sizes_finds_from_which_size_each_side_suffers_and_the_switch() -> None:
    experiment, found = study("sizes", HENRI, sized)
    findings = experiment.findings(found, HENRI)
    few = next(item for item in findings if item.values.get("n") == 5)
    all_cores = next(item for item in findings if item.values.get("n") == 35)
    assert (few.values["comm_from"], few.values["comp_from"]) == (65536, 4096)
    assert (all_cores.values["comm_from"], all_cores.values["comp_from"]) == (128, 4096)
    switch = by_key(findings, "switch")
    assert (switch.values["switch_before"], switch.values["switch_after"]) == (16384, 16387)
    assert "eager to rendezvous" in switch.text
    sound(experiment.figures(found, HENRI), {item.id for item in found})


def test_sizes_without_a_step_says_that_none_is_visible() -> None:
    def smooth(point: Point) -> tuple[float, float, float, float]:
        latency = 1.5 + point.size / 10_500
        alone = latency if point.metric == "latency" else point.size / latency
        return 1.0, 1.0, alone, alone

    experiment, found = study("sizes", HENRI, smooth)
    assert "No step" in by_key(experiment.findings(found, HENRI), "switch").text


# intensity


def roofline(point: Point) -> tuple[float, float, float, float]:
    """Section 4.5: memory-bound below 6 flop/B, where latency doubles and bandwidth loses 60 %."""
    flops = arithmetic_intensity(point.kernel, point.cursor)
    if flops is None:
        return 1.0, 1.0, 1.5, 1.5
    rate = 60_000 * min(1.0, 6 / flops)
    bound = flops <= 6
    if point.metric == "latency":
        return rate, rate, 1.5, 3.0 if bound else 1.5
    return rate, rate * (0.9 if bound else 1.0), 10_500.0, 10_500 * (0.4 if bound else 1.0)


def test_intensity_finds_the_papers_boundary_at_6_flop_per_byte() -> None:
    experiment, found = study("intensity", HENRI, roofline)
    findings = experiment.findings(found, HENRI)
    assert len(findings) == 2
    for finding in findings:
        assert finding.values["memory_bound_to"] == pytest.approx(6)
        assert finding.values["compute_bound_from"] == pytest.approx(8)
        assert finding.values["ridge"] == pytest.approx(6, rel=0.03)
        assert finding.values["comm_recovers_from"] == pytest.approx(8)
    figures = experiment.figures(found, HENRI)
    sound(figures, {item.id for item in found})
    right = next(series for series in figures[0].series if series.axis == "right")
    assert right.y[0] == pytest.approx(60_000 / 12, rel=0.02)


def test_the_boundary_is_the_same_from_flops_as_from_bytes() -> None:
    points = experiments.get("intensity").expand(load("intensity"), HENRI).points
    found = [item for item in measured(points, roofline) if item.metric == "latency"]

    def in_flops(item: PointResult) -> PointResult:
        alone = item.comp.alone
        if alone is None or item.arithmetic_intensity is None:
            return item
        scaled = msgspec.structs.replace(
            alone, median=alone.median * item.arithmetic_intensity, unit="Mflop/s"
        )
        return msgspec.structs.replace(item, comp=msgspec.structs.replace(item.comp, alone=scaled))

    one, other = intensity.boundary(found), intensity.boundary([in_flops(item) for item in found])
    assert (one.inside, one.outside) == (other.inside, other.outside)


def test_a_computation_that_never_leaves_the_memory_bound_says_so() -> None:
    def always(point: Point) -> tuple[float, float, float, float]:
        comm = 1.5 if point.metric == "latency" else 10_500.0
        return 60_000.0, 60_000.0, comm, comm

    experiment, found = study("intensity", HENRI, always)
    assert "stays memory-bound up to" in experiment.findings(found, HENRI)[0].text


# frequency


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
    assert "it does not move" in finding.text
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
    message = request(points[0], order(points, 1, 1)[0], Steady())
    assert "S" in msgspec.json.encode(message["sequence"]).decode()
    assert "frequency_trace" in plan.observe
    assert message["observe"] == list(plan.observe)


# model


def shared(point: Point) -> tuple[float, float, float, float]:
    """The bus carries 60 GB/s; memset asks 6 GB/s per core, reception 10; what is asked above is lost by
    both.
    """
    asked = 6000.0 * point.n
    alone = min(asked, 60_000.0)
    share = min(1.0, 60_000 / (alone + 10_000)) if point.kernel != "prime" else 1.0
    return alone, alone * share, 10_000.0, 10_000 * share


def test_model_covers_the_first_socket_and_every_placement() -> None:
    plan = load("model")
    points = experiments.get("model").expand(plan, HENRI).points
    asked = [point for point in points if point.role == "point"]
    assert {point.n for point in asked} == set(range(1, 19))
    assert {(point.comp_node, point.comm_node) for point in asked} == {
        (a, b) for a in range(4) for b in range(4)
    }
    assert {(point.kernel, point.pattern, point.size) for point in asked} == {
        ("memset_nt", "receive", 64_000_000)
    }
    assert all(core < 18 for point in asked for core in point.comp_cores)


def test_model_finds_peaks_and_onsets() -> None:
    experiment, found = study("model", HENRI, shared, comp_node=0, comm_node=0)
    (finding,) = experiment.findings(found, HENRI)
    assert finding.values["peak_alone"] == pytest.approx(60_000, rel=0.02)
    assert finding.values["comm_from"] in (9, 10)
    sound(experiment.figures(found, HENRI), {item.id for item in found})


# ring


def langguth(point: Point) -> tuple[float, float, float, float]:
    """Section III, Cartesius: 5.8 to 2.7 GB/s (L_N = 2.2) and 75 to 43 GB/s (L_M = 1.72) with all cores."""
    if point.kernel == "prime":
        return 1.0, 1.0, 5800.0, 5800.0
    most = 36 - len(point.comm_cores) * (2 if point.processes == "socket" else 1)
    share = point.n / most
    return 75_000 * share, 75_000 * share * (1 - share * (1 - 43 / 75)), 5800.0, 5800 - 3100 * share


def test_ring_prints_the_papers_loss_ratios() -> None:
    experiment, found = study("ring", HENRI, langguth)
    findings = experiment.findings(found, HENRI)
    assert {(item.values["processes"], item.values["comm_threads"]) for item in findings} == {
        (processes, threads) for processes in ("node", "socket") for threads in (1, 2, 4)
    }
    for finding in findings:
        assert finding.values["L_N"] == pytest.approx(2.15, abs=0.05)
        assert finding.values["L_M"] == pytest.approx(1.74, abs=0.04)
        assert "L_N = 2.1" in finding.text
    sound(experiment.figures(found, HENRI), {item.id for item in found})


def test_ring_per_socket_places_one_rank_on_each_socket_of_each_host() -> None:
    points = [
        p for p in experiments.get("ring").expand(load("ring"), HENRI).points if p.processes == "socket"
    ]
    full = max((p for p in points if len(p.comm_cores) == 2), key=lambda p: p.n)
    assert full.n == 32
    assert [place.rank for place in full.placements] == [0, 1, 2, 3]
    assert full.placements[0].comm_cores == (17, 16)
    assert full.placements[1].comm_cores == (35, 34)
    assert full.placements[1].comp_cores == tuple(range(18, 34))
    assert full.placements[1].comp_node == 2
    validate(points, HENRI)
    assert request(full, order([full], 1, 1)[0], Steady())["placements"]


def test_ring_on_one_host_says_that_only_one_process_computes() -> None:
    expansion = experiments.get("ring").expand(load("ring"), SMALL)
    assert {point.computing_ranks for point in expansion.points} == {"first"}
    assert {"one process per node", "one process per socket"} <= {note.what for note in expansion.notes}
    assert all(
        point.computing_ranks == "all" for point in experiments.get("ring").expand(load("ring"), HENRI).points
    )


def test_ring_per_socket_alone_has_a_control() -> None:
    plan = apply(load("ring"), Overrides(settings={"processes": "socket"}))
    points = experiments.get("ring").expand(plan, HENRI).points
    assert {point.processes for point in points} == {"socket"}
    (control,) = [point for point in points if point.role == "control"]
    assert control.kernel == "prime"
    assert control.placements


def test_a_loss_is_the_inverse_of_what_was_kept() -> None:
    assert ring.loss(None) is None
    experiment, found = study("ring", HENRI, langguth)
    kept = found[0].comm.kept
    loss = ring.loss(kept)
    assert kept is not None
    assert loss is not None
    assert loss[0] * kept.value == pytest.approx(1)
    assert loss[1] <= loss[0] <= loss[2]
    assert experiment.name == "ring"


# Words


def test_near_and_far_are_not_said_where_the_nic_does_not_tell() -> None:
    unknown = machine(8, 2, 2, hosts=2)
    experiment, found = study("placement", unknown, henri, settings={"n": "1,2,3"})
    texts = [finding.text for finding in experiment.findings(found, unknown)]
    assert texts
    assert not any("near" in text or "far" in text for text in texts)
    assert near_node(unknown) == 0


def test_failed_points_and_the_control_are_left_out_of_findings() -> None:
    experiment, found = study("cores", HENRI, henri)
    failed = [msgspec.structs.replace(item, status="failed") for item in found]
    assert experiment.findings(failed, HENRI)[0].level == "n/a"
    ids = {identity for finding in experiment.findings(found, HENRI) for identity in finding.points}
    assert not any("control" in identity for identity in ids)


def test_a_plan_may_name_another_plans_experiment() -> None:
    plan = Plan(name="mine", experiment="sizes", sizes=(4, 64))
    assert experiments.get(plan.experiment).expand(plan, SMALL).points
