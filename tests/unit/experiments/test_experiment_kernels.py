"""The kernels experiment: which matrices, who runs where, what results say about Fig. 10, and its figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import pytest

from compared import as_measured
from elbowroom import experiments
from elbowroom.errors import UsageError
from elbowroom.experiments.kernels.results import rows
from elbowroom.experiments.plans import Overrides, apply, load
from elbowroom.machine.topology import Machine
from elbowroom.measure.prepare import groups
from elbowroom.plan.order import estimate, order_units
from elbowroom.plan.validation import validate
from elbowroom.points.matrices import MatrixProgram, check, completed
from elbowroom.points.point import Expansion, Point, Steady
from elbowroom.points.unit import Unit
from elbowroom.results.comparison import compare
from elbowroom.results.points import results
from elbowroom.results.result import PointResult
from elbowroom.stats.summary import Samples
from sampled import entries
from studies import HENRI, SMALL, by_key, machine, sound

KERNELS = experiments.get("kernels")
Kept = Callable[[Point], float]


def expanded(here: Machine, **settings: str) -> Expansion:
    return KERNELS.expand(apply(load("kernels"), Overrides(settings=settings)), here)


def programs(expansion: Expansion) -> list[Point]:
    return [point for point in expansion.points if isinstance(point.workload, MatrixProgram)]


def program(point: Point) -> MatrixProgram:
    assert isinstance(point.workload, MatrixProgram)
    return point.workload


def measured(
    points: Sequence[Point],
    kept: Kept,
    *,
    source: str = "modelled",
    noise: float = 0.002,
    flags: tuple[str, ...] = (),
) -> list[PointResult]:
    """Sends of 8000 MB/s alone that keep what they are told to; StarPU takes twice as long as OpenMP."""
    columns, told = [], {}
    for index, point in enumerate(points):
        app = program(point)
        time = 1e6 / point.n * (2 if app.build == "starpu" else 1)
        cells = [("A", "comp", 4000.0 * point.n, "Mflop/s"), ("AB", "comp", 3900.0 * point.n, "Mflop/s")]
        cells += [("B", "comm", 8000.0, "MB/s"), ("AB", "comm", 8000.0 * kept(point), "MB/s")]
        cells += [("A", "total", time / 10, "us"), ("AB", "total", time, "us")]
        for phase, side, value, unit in cells:
            for repetition in range(8):
                factor = 1 + noise * (repetition - 3.5)
                columns.append((index, repetition, False, phase, side, value * factor, unit, "ok"))
        intensity = {"cg": 0.25, "cg-sparse": 0.16, "gemm": 120.0}[app.task]
        facts = {
            "arithmetic_intensity": intensity,
            "checksum": 2.0 if app.build == "openmp" else 2.0 + 4e-15,
            "residual": 1e-13 * (3 if app.task == "cg" else 1),
            f"stalled_{source}": 0.2 if app.task == "gemm" else 0.7,
        }
        told[point.id] = entries(point.id, {"facts": facts})
    seen = {point.id: flags for point in points}
    return results(points, Samples(*zip(*columns, strict=True)), seen, entries=told)


def as_published(point: Point) -> float:
    """Fig. 10: CG down to a tenth with all cores, GEMM to 0.8."""
    worst = 0.8 if program(point).task == "gemm" else 0.1
    return 1 - (1 - worst) * point.n / 35


def test_two_cores_compute_in_turns_on_one_and_communicate_on_the_other() -> None:
    found = expanded(SMALL)
    for point in programs(found):
        places = [(place.comp_cores, place.comm_cores) for place in point.placements]
        assert places == [((1,), (0,)), ((1,), (0,))]
        assert point.workload.startup(point).settings["scheduling"] is True
    said = {note.what: note.reason for note in found.notes}
    assert "no message waits for a time slice" in said["cores of its own for each process"]
    assert said["strong scaling"].startswith("1 computing core for each process here")


def test_two_processes_of_one_larger_host_have_as_many_cores_each() -> None:
    found = programs(expanded(machine(10)))
    assert {point.n for point in found} == {1, 2, 3, 4}
    for point in found:
        first, second = (place.comp_cores for place in point.placements)
        assert len(first) == len(second) == point.n
        assert not set(first) & set(second)
        assert point.workload.startup(point).settings["scheduling"] is False


def test_two_hosts_scale_to_all_cores_but_that_of_communication() -> None:
    found = programs(expanded(HENRI))
    assert {point.n for point in found} == set(range(1, 36))
    assert {(program(point).task, program(point).build) for point in found} == {
        (task, build) for task in ("cg", "cg-sparse", "gemm") for build in ("openmp", "starpu")
    }
    assert all(not point.placements and program(point).ranks == 2 for point in found)


@pytest.mark.parametrize("here", [SMALL, HENRI, machine(10)])
def test_matrices_are_the_same_for_every_number_of_cores_and_every_build(here: Machine) -> None:
    found = programs(expanded(here))
    validate(found, here, hosts=1)
    for task in ("cg", "cg-sparse", "gemm"):
        of_task = [program(point) for point in found if program(point).task == task]
        assert len({(one.order, one.block, one.iterations) for one in of_task}) == 1
        assert of_task[0].memory < here.memory * here.hosts / 3


def test_a_chosen_matrix_of_cg_does_not_stay_in_caches_where_there_is_memory() -> None:
    for task in ("cg", "cg-sparse"):
        asked = MatrixProgram(task=task, build="openmp")  # type: ignore[arg-type]
        one = completed(asked, 35, HENRI)
        assert one.memory > 4 * HENRI.last_level_cache * HENRI.hosts
        tight = msgspec.structs.replace(SMALL, memory=1 << 28)
        check(completed(asked, 1, tight), tight)


def test_a_block_is_chosen_that_divides_the_order_given() -> None:
    for whole in (2, 97, 1000, 4096, 6144):
        found = programs(expanded(SMALL, order=str(whole)))
        for one in map(program, found):
            assert one.order == whole
            assert whole % one.block == 0
            assert whole // one.block >= 2


@pytest.mark.parametrize(
    ("asked", "field", "said"),
    [
        ({"order": "1000", "block": "300"}, "block", "for instance 250 or 500"),
        ({"order": "1000", "block": "1000"}, "block", "at most 500"),
        ({"order": "1"}, "order", "give at least 2"),
        ({"order": "200000"}, "order", "cg needs 320 GB of 25.8; an order of 28377 takes a quarter"),
        ({"comm_cores": "0,1"}, "comm_cores", "name one"),
    ],
)
def test_matrices_and_places_that_cannot_be_are_refused(asked: dict[str, str], field: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        validate(expanded(SMALL, **asked).points, SMALL)
    assert refused.value.field == field
    assert said in refused.value.sentence()


def test_a_program_is_started_for_each_task_build_and_number_of_cores() -> None:
    here = machine(10)
    points = expanded(here).points
    by_id = {point.id: point for point in points}
    assert len(by_id) == len(points)
    found = groups(order_units(points, 3, seed=1), by_id, here)
    started = [group.probe.program for group in found if group.probe.program is not None]
    assert len(started) == 3 * 2 * 4
    assert [group.probe.program is not None for group in found] == [False] + [True] * 24


def test_the_control_is_measured_unless_it_is_left_out() -> None:
    [control] = [point for point in expanded(SMALL).points if not isinstance(point.workload, MatrixProgram)]
    assert (control.role, control.kernel, control.comp_cores) == ("control", "prime", (1,))
    assert all(isinstance(point.workload, MatrixProgram) for point in expanded(SMALL, control="false").points)


def test_a_unit_is_computing_sending_and_both() -> None:
    [point] = programs(expanded(SMALL, tasks="cg", builds="openmp"))
    unit = Unit(point=point.id, repetition=0)
    assert point.workload.request(point, unit, Steady())["sequence"] == ["A", "B", "AB"]
    assert point.workload.times(point).patience > 60


def test_larger_matrices_are_expected_to_take_longer() -> None:
    def seconds(order_: int) -> float:
        points = programs(expanded(SMALL, order=str(order_), tasks="gemm"))
        return estimate(points, order_units(points, 8, seed=1))

    assert seconds(8192) > 7 * seconds(4096) > 0


def test_figure_10_is_found_and_the_papers_claim_confirmed_by_its_own_numbers() -> None:
    points = programs(expanded(HENRI))
    found = KERNELS.findings(measured(points, as_published), HENRI)
    cg = by_key(found, "kernels-cg-openmp")
    assert cg.level == "interference"
    assert cg.values["kept"] == pytest.approx(0.1, abs=0.01)
    assert "Its cores wait for memory 70% to 70% of the time (modelled" in cg.text
    for build in ("openmp", "starpu"):
        claim = by_key(found, f"kernels-claim-{build}")
        assert claim.values["verdict"] == "confirmed"
        assert "35 computing cores" in claim.text
    assert found[0].level == "interference"


@pytest.mark.parametrize(
    ("cg", "gemm", "verdict"),
    [(0.5, 0.9, "confirmed"), (0.9, 0.5, "refuted"), (0.99, 0.97, "undecided"), (0.6, 0.6, "undecided")],
)
def test_the_claim_follows_the_intervals(cg: float, gemm: float, verdict: str) -> None:
    points = programs(expanded(SMALL))
    truth = {"cg": cg, "cg-sparse": 1.0, "gemm": gemm}
    found = KERNELS.findings(measured(points, lambda point: truth[program(point).task]), SMALL)
    assert by_key(found, "kernels-claim-starpu").values["verdict"] == verdict


def test_processes_that_take_turns_on_one_core_decide_nothing() -> None:
    points = programs(expanded(SMALL))
    truth = {"cg": 0.1, "cg-sparse": 0.1, "gemm": 0.8}
    found = KERNELS.findings(
        measured(points, lambda point: truth[program(point).task], flags=("scheduling",)), SMALL
    )
    claim = by_key(found, "kernels-claim-openmp")
    assert claim.values["verdict"] == "undecided"
    assert "because of the scheduler" in claim.text
    assert {finding.level for finding in found} == {"note"}


def test_a_task_without_its_rival_decides_nothing() -> None:
    points = programs(expanded(SMALL, tasks="cg"))
    found = KERNELS.findings(measured(points, lambda _: 0.4), SMALL)
    assert by_key(found, "kernels-claim").level == "n/a"


def test_both_builds_are_compared_by_their_times() -> None:
    points = programs(expanded(SMALL))
    found = by_key(KERNELS.findings(measured(points, as_published), SMALL), "kernels-builds-gemm")
    assert found.values["ratio"] == pytest.approx(2)
    assert "times as long. The results of both are 2e-15 apart (relative)." in found.text


def test_counters_are_told_apart_from_a_model() -> None:
    points = programs(expanded(SMALL))
    found = measured(points, as_published, source="measured")
    assert "(counters)" in by_key(KERNELS.findings(found, SMALL), "kernels-gemm-openmp").text
    assert KERNELS.figures(found, SMALL)[1].title == "Cores that wait for memory"
    assert "(modelled)" in KERNELS.figures(measured(points, as_published), SMALL)[1].title


def test_the_worst_residual_is_named() -> None:
    points = programs(expanded(SMALL))
    found = by_key(KERNELS.findings(measured(points, as_published), SMALL), "kernels-checked")
    assert found.text == "The results were checked: largest residual 3.0e-13 (CG, dense (OpenMP))."


def test_sends_are_normalised_to_the_largest_over_cores() -> None:
    points = programs(expanded(HENRI, tasks="cg", builds="openmp"))
    table = rows(measured(points, as_published))
    assert max(row.normalised.value for row in table if row.normalised) == 1
    assert table[-1].normalised is not None
    assert table[-1].normalised.value == pytest.approx(0.1 / as_published(points[0]), rel=1e-6)


def test_several_numbers_of_cores_are_drawn_as_figure_10() -> None:
    points = programs(expanded(HENRI))
    found = KERNELS.figures(measured(points, as_published), HENRI)
    assert [figure.name for figure in found] == ["kernels-sends", "kernels-stalled", "kernels-time"]
    sound(found, {point.id for point in points})
    assert [len(figure.series) for figure in found] == [6, 6, 6]
    assert found[0].series[0].x == tuple(range(1, 36))


def test_one_number_of_cores_is_drawn_over_the_arithmetic_intensity() -> None:
    points = programs(expanded(SMALL))
    found = KERNELS.figures(measured(points, as_published), SMALL)
    assert [figure.name for figure in found] == ["kernels-sends", "kernels-stalled"]
    sound(found, {point.id for point in points})
    assert found[0].series[0].x == (0.25,)


def test_a_task_that_failed_leaves_the_others() -> None:
    points = programs(expanded(SMALL))
    found = [
        msgspec.structs.replace(item, status="failed")
        if isinstance(item.workload, MatrixProgram) and item.workload.task == "cg"
        else item
        for item in measured(points, as_published)
    ]
    assert {row.task for row in rows(found)} == {"cg-sparse", "gemm"}
    assert KERNELS.findings(found[:0], SMALL)[0].level == "n/a"


def test_two_runs_are_compared_by_whole_solutions_too() -> None:
    points = programs(expanded(SMALL, tasks="gemm", builds="openmp"))
    one, other = (measured(points, lambda _, kept=kept: kept) for kept in (0.9, 0.5))
    changes = {
        (change.side, change.phase): change for change in compare(as_measured(one), as_measured(other))
    }
    assert changes["comm", "kept"].better == "a"
    assert changes["step", "together"].better == "same"
