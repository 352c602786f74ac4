"""The experiments cholesky and qr: which trees and matrices, who runs where, and what results say."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import pytest

from elbowroom import cli, experiments
from elbowroom.errors import UsageError
from elbowroom.experiments.plans import Overrides, apply, load
from elbowroom.machine.topology import Machine
from elbowroom.plan.validation import validate
from elbowroom.points.factorizations import FactorizationProgram
from elbowroom.points.point import Expansion, Point
from elbowroom.results.points import results
from elbowroom.results.result import PointResult
from elbowroom.stats.summary import Samples
from sampled import entries
from studies import HENRI, SMALL, by_key, machine, sound

Seconds = Callable[[FactorizationProgram], float]


def expanded(here: Machine, name: str = "cholesky", **settings: str) -> Expansion:
    return experiments.get(name).expand(apply(load(name), Overrides(settings=settings)), here)


def programs(expansion: Expansion) -> list[Point]:
    return [point for point in expansion.points if isinstance(point.workload, FactorizationProgram)]


def program(point: Point) -> FactorizationProgram:
    assert isinstance(point.workload, FactorizationProgram)
    return point.workload


def measured(
    points: Sequence[Point],
    *,
    binomial: float = 1.0,
    kept: float = 0.99,
    flags: tuple[str, ...] = (),
    late: int = 0,
) -> list[PointResult]:
    """A second without broadcasts, `binomial` times that with binomial trees; `late` of 100 broadcasts have a
    late recipient.
    """
    columns, told = [], {}
    for index, point in enumerate(points):
        time = 1e6 * (binomial if program(point).way == "binomial" else 1.0)
        cells = [("A", "comp", 1000.0, "Mflop/s"), ("AB", "comp", 1000.0 * kept, "Mflop/s")]
        cells += [("A", "total", time / 2, "us"), ("B", "total", 9.0, "us"), ("AB", "total", time, "us")]
        for phase, side, value, unit in cells:
            for repetition in range(8):
                factor = 1 + 0.004 * (repetition - 3.5)
                columns.append((index, repetition, False, phase, side, value * factor, unit, "ok"))
        facts = {"residual": 2e-15, "broadcasts": 100.0, "messages": 240.0, "late": float(late)}
        facts["complete_share"] = 1 - late / 100
        told[point.id] = entries(point.id, {"facts": facts})
    seen = {point.id: flags for point in points}
    return results(points, Samples(*zip(*columns, strict=True)), seen, entries=told)


def found(items: Sequence[PointResult], key: str, name: str = "cholesky", here: Machine = SMALL) -> str:
    return by_key(experiments.get(name).findings(items, here), key).text


INLINE = programs(expanded(SMALL, builds="inline", trees="none,binomial"))


@pytest.mark.parametrize("name", ["cholesky", "qr"])
def test_each_tree_is_measured_in_each_build_on_the_same_matrix(name: str) -> None:
    points = programs(expanded(SMALL, name))
    asked = {(program(point).build, program(point).way) for point in points}
    assert asked == {
        (build, tree) for build in ("inline", "starpu") for tree in ("none", "binomial", "binary", "two")
    }
    assert len({point.id for point in points}) == len(points)
    assert len({(program(point).task, program(point).tiles, program(point).block) for point in points}) == 1
    validate(points, SMALL)


def test_four_processes_on_two_cores_compute_on_one_and_communicate_on_the_other() -> None:
    expansion = expanded(SMALL)
    for point in programs(expansion):
        assert [(place.comp_cores, place.comm_cores) for place in point.placements] == [((1,), (0,))] * 4
        assert point.workload.startup(point).settings["scheduling"] is True
    assert (
        "in turns"
        in {note.what: note.reason for note in expansion.notes}["cores of its own for each process"]
    )


def test_processes_of_a_larger_host_have_cores_of_their_own() -> None:
    here = machine(12)
    for point in programs(expanded(here)):
        used = [core for place in point.placements for core in (*place.comp_cores, *place.comm_cores)]
        assert len(used) == len(set(used))
        assert {len(place.comp_cores) for place in point.placements} == {
            1 if program(point).build == "inline" else 2
        }
        assert point.workload.startup(point).settings["scheduling"] is False
    validate(programs(expanded(here)), here)


def test_a_process_on_each_host_has_all_its_cores() -> None:
    points = programs(expanded(HENRI, grid="1x2", builds="starpu"))
    assert all(not point.placements and point.n == 35 for point in points)


def test_blocks_grids_priorities_early_and_held_data_are_axes_of_one_plan() -> None:
    axes = {"block": "64,128", "grid": "2x2,1x4", "priorities": "true,false", "early": "true,false"}
    points = programs(expanded(SMALL, builds="inline", trees="none,binomial", **axes))
    assert len(points) == len({point.id for point in points}) == 2**5
    assert {(program(p).block, program(p).grid, *program(p).variants) for p in points} >= {
        (64, "2x2"),
        (128, "1x4", "late", "unordered"),
    }
    validate(points, SMALL)


def test_only_data_of_starpu_are_held_and_only_tasks_of_cholesky_have_priorities() -> None:
    both = {"trees": "binomial", "hold": "true,false", "priorities": "true,false"}
    tasks = ("cholesky", "qr")
    asked = [program(point) for task in tasks for point in programs(expanded(SMALL, task, **both))]
    assert {(one.task, one.build, one.hold) for one in asked if not one.hold} == {
        ("cholesky", "starpu", False),
        ("qr", "starpu", False),
    }
    assert {one.task for one in asked if not one.priorities} == {"cholesky"}


def test_findings_and_curves_of_an_axis_say_which_value_they_are_of() -> None:
    points = programs(expanded(SMALL, builds="inline", trees="none,binomial", early="true,false"))
    items = measured(points, binomial=0.5)
    keys = [finding.key for finding in experiments.get("cholesky").findings(items, SMALL)]
    assert len(keys) == len(set(keys))
    [figure] = experiments.get("cholesky").figures(items, SMALL)
    assert [line.name for line in figure.series] == ["inline", "inline, readers wait for release"]


def test_columns_of_qr_are_its_rows_unless_they_are_named() -> None:
    assert program(programs(expanded(SMALL, "qr", tiles="6"))[0]).columns == 6
    named = program(programs(expanded(SMALL, "qr", tiles="6", columns="2"))[0])
    assert (named.tiles, named.columns) == (6, 2)
    rows, columns = 6 * named.block, 2 * named.block
    assert named.flops == pytest.approx(2 * columns**2 * (rows - columns / 3))


def test_a_single_process_has_no_trees_and_no_messages_alone() -> None:
    [point] = programs(expanded(SMALL, grid="1x1", builds="inline"))
    assert point.workload.sequence(point) == ("A", "AB")
    assert [(place.comp_cores, place.comm_cores) for place in point.placements] == []


@pytest.mark.parametrize(
    ("settings", "field", "said"),
    [
        ({"grid": "4"}, "grid", "is not rows x columns; for instance 2x2"),
        ({"grid": "2x0"}, "grid", "is not rows x columns"),
        ({"grid": "999x999"}, "grid", "has 998001 processes; at most 4096"),
        ({"trees": "bush"}, "tree", "is not a kind of tree"),
        ({"tiles": "2000"}, "tiles", "use 1 to 1000"),
        ({"block": "10000"}, "block", "use 1 to 8192"),
        ({"tiles": "100", "block": "1024"}, "block", "the tiles do not fit: 127 GB of 25.8"),
        ({"builds": "openmp"}, "builds", "invalid enum value"),
        ({"peer_core": "1"}, "peer_core", "leave it out"),
        ({"columns": "3"}, "columns", "is only valid for experiment qr"),
    ],
)
def test_what_cannot_be_factorized_is_refused(settings: dict[str, str], field: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        validate(expanded(SMALL, **settings).points, SMALL)
    assert refused.value.field == field
    assert said in refused.value.sentence()


def test_ranks_that_are_not_those_of_the_grid_are_refused() -> None:
    point = INLINE[0]
    other = msgspec.structs.replace(point, workload=msgspec.structs.replace(program(point), ranks=3))
    with pytest.raises(UsageError, match="product is the number of ranks"):
        validate([other], SMALL)


def test_a_virtual_machine_says_what_it_simulates_instead(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["run", "cholesky", "--machine", "henri", "--set", "control=false"]) == 2
    assert "runs no programs: measured on a real one; a simulated cluster" in capfd.readouterr().err


def test_a_stored_point_is_read_back() -> None:
    for point in programs(expanded(SMALL, "qr")):
        stored = {"program": msgspec.to_builtins(point.workload)}
        assert type(point.workload).decode(stored) == point.workload


def test_the_gain_of_a_tree_has_an_interval_and_the_scale_is_said() -> None:
    text = found(measured(INLINE, binomial=0.5), "cholesky-gain")
    assert "binomial 2.00 (1.9" in text
    assert "undecided" not in text
    assert "this is not the thesis' scale" in text


def test_a_gain_within_the_intervals_is_undecided() -> None:
    assert "undecided)" in found(measured(INLINE, binomial=1.001), "cholesky-gain")


def test_incomplete_broadcasts_are_counted_with_their_reason() -> None:
    complete = by_key(experiments.get("cholesky").findings(measured(INLINE), SMALL), "cholesky-complete")
    assert complete.values["verdict"] == "confirmed"
    assert "submitted after" not in complete.text
    missed = by_key(
        experiments.get("cholesky").findings(measured(INLINE, late=3), SMALL), "cholesky-complete"
    )
    assert missed.values["verdict"] == "refuted"
    assert "3 are not: 3 recipients read the data in tasks that were submitted after" in missed.text


def test_residuals_of_all_factorizations_are_told() -> None:
    assert "2 of 2 factorizations were right: residuals of at most 2.0e-15" in found(
        measured(INLINE), "cholesky-checked"
    )


def test_what_tasks_keep_is_not_known_where_processes_take_turns() -> None:
    chosen = experiments.get("cholesky").findings
    assert by_key(chosen(measured(INLINE, kept=0.8), SMALL), "cholesky-kept").level == "interference"
    assert by_key(chosen(measured(INLINE), SMALL), "cholesky-kept").level == "quiet"
    turns = measured(INLINE, kept=0.8, flags=("scheduling",))
    assert by_key(chosen(turns, SMALL), "cholesky-kept").level == "n/a"


def test_nothing_measured_is_said() -> None:
    assert experiments.get("qr").findings((), SMALL)[0].level == "n/a"


def test_one_matrix_is_drawn_tree_by_tree_and_several_over_their_order() -> None:
    for settings, label, lines in (
        ({}, "Tree of broadcasts", 2),
        ({"tiles": "8,16"}, "Rows of the matrix", 8),
    ):
        points = programs(expanded(SMALL, **settings))
        items = measured(points)
        drawn = experiments.get("cholesky").figures(items, SMALL)
        sound(drawn, {point.id for point in points})
        assert drawn[0].x.label == label
        assert len(drawn[0].series) == lines


def test_a_table_of_each_matrix_fits_a_terminal() -> None:
    items = measured(programs(expanded(SMALL, tiles="8,16")), late=2)
    shown = experiments.get("cholesky").tables(items, SMALL)
    assert [table.title for table in shown] == [
        f"Cholesky factorization: {tiles} x {tiles} tiles of 128 on 2x2 processes" for tiles in (8, 16)
    ]
    assert shown[0].rows[1] == (
        "binomial",
        "inline",
        "1",
        "1000",
        "0.358",
        "2e-15",
        "100",
        "98.0%",
        "2",
        "240",
    )


def test_processes_of_a_host_have_numa_nodes_of_their_own_where_these_can_be_shared_out() -> None:
    here = machine(36, 4, 2)
    (point,) = programs(expanded(here, builds="inline", trees="none"))
    nodes = {core.number: core.node for core in here.cores}
    assert [place.comp_node for place in point.placements] == [0, 1, 2, 3]
    for place in point.placements:
        assert {nodes[core] for core in (*place.comp_cores, *place.comm_cores)} == {place.comp_node}
        assert place.comm_node == place.comp_node


def test_two_processes_of_four_nodes_have_two_each_and_named_cores_stay() -> None:
    here = machine(36, 4, 2, hosts=2)
    (point,) = programs(expanded(here, builds="inline", trees="none"))
    assert [place.comp_node for place in point.placements] == [0, 2, 0, 2]
    (point,) = programs(expanded(here, builds="inline", trees="none", comm_cores="35"))
    assert {place.comp_node for place in point.placements} == {point.comp_node}


def test_tiles_of_several_sizes_make_the_same_matrix() -> None:
    points = programs(expanded(SMALL, builds="inline", trees="none", block="96,144,288", order="1152"))
    assert [(program(point).tiles, program(point).block) for point in points] == [
        (12, 96),
        (8, 144),
        (4, 288),
    ]
    with pytest.raises(UsageError, match="not a multiple of 144 rows"):
        expanded(SMALL, block="96,144", order="960")
