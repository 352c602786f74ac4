"""`forwarding` says what a rank's computation loses by each tree, and judges the thesis' hypothesis."""

from __future__ import annotations

import msgspec
import pytest

from elbowroom import experiments
from elbowroom.errors import UsageError
from elbowroom.experiments.experiment import Experiment
from elbowroom.experiments.forwarding.results import cost_per_byte, expected_kept, lost_per_broadcast
from elbowroom.experiments.plans import Overrides, apply, load
from elbowroom.machine.topology import Machine
from elbowroom.measure.prepare import with_losses
from elbowroom.plan.validation import validate
from elbowroom.points.broadcasts import Forwarding
from elbowroom.points.point import Expansion, Point
from elbowroom.points.steps import Losses
from elbowroom.results.result import Finding, PointResult
from elbowroom.stats.interval import Interval
from sampled import with_payload
from studies import SMALL, by_key, machine, measured, sound

LARGE = machine(64)
CLUSTER = machine(36, 4, 2, nic=0, hosts=20)

COPIES = {"flat": 0, "binary": 2, "binomial": 3, "chain": 1}
RATE = 1000.0
"""MB/s of all broadcasts alone and together."""

LOSSES = Losses(
    comp=2.0, comp_low=1.9, comp_high=2.1, comm=1.0, comm_low=1.0, comm_high=1.0, source="m", comm_rate=8000.0
)


def workload(point: Point) -> Forwarding:
    assert isinstance(point.workload, Forwarding)
    return point.workload


def expanded(here: Machine, **settings: str) -> Expansion:
    plan = apply(load("forwarding"), Overrides(settings={"control": "false", **settings}))
    expansion = experiments.get("forwarding").expand(plan, here)
    validate(expansion.points, here)
    return expansion


def study(
    per_copy: float, losses: Losses | None = None, noise: float = 0.004
) -> tuple[Experiment, list[PointResult]]:
    """Results in which each copy, and what is received, takes that share of the computation."""
    points = [
        msgspec.structs.replace(point, workload=msgspec.structs.replace(workload(point), losses=losses))
        for point in expanded(CLUSTER, computations="triad", sizes="1MiB", n="all").points
    ]

    def truth(point: Point) -> tuple[float, float, float, float]:
        passing = 1 + COPIES[workload(point).tree]
        return 5000.0, 5000.0 * (1 - per_copy * passing), RATE, RATE

    results = [
        with_payload(
            item,
            facts={"copies": float(COPIES[item.workload.tree]), "ranks": 20.0},  # type: ignore[attr-defined]
        )
        for item in measured(points, truth, noise=noise)
    ]
    return experiments.get("forwarding"), results


def claim(per_copy: float, noise: float = 0.004) -> Finding:
    experiment, results = study(per_copy, noise=noise)
    return by_key(experiment.findings(results, CLUSTER), "forwarding-claim")


def test_a_tree_in_which_a_rank_forwards_more_is_found_to_cost_more() -> None:
    experiment, results = study(0.1)
    findings = experiment.findings(results, CLUSTER)
    kept = by_key(findings, "forwarding-triad")
    assert kept.level == "interference"
    assert kept.values["binomial_kept"] == pytest.approx(0.6, abs=0.01)
    assert claim(0.1).values["verdict"] == "confirmed"
    sound(experiment.figures(results, CLUSTER), {item.id for item in results})
    [table] = experiment.tables(results, CLUSTER)
    assert [row[3] for row in table.rows] == ["flat", "binary", "binomial", "chain"]


def test_nothing_is_confirmed_where_nothing_happens() -> None:
    assert claim(0.0).values["verdict"] == "undecided"
    assert "less than 5 %" in claim(0.0).text


def test_the_claim_is_undecided_where_intervals_overlap() -> None:
    found = claim(0.1, noise=0.4)
    assert found.values["verdict"] == "undecided"
    assert "the intervals overlap" in found.text


def test_the_claim_is_not_tested_with_ranks_that_forward_as_much_in_both_trees() -> None:
    experiment, results = study(0.1)
    same = [with_payload(item, facts={"copies": 1.0}) for item in results]
    found = by_key(experiment.findings(same, CLUSTER), "forwarding-claim")
    assert (found.level, found.values["verdict"]) == ("n/a", "not tested")


def test_the_model_is_compared_with_what_was_measured() -> None:
    experiment, results = study(0.1, LOSSES)
    found = by_key(experiment.findings(results, CLUSTER), "forwarding-model")
    # Half is lost at 8000 MB/s: of the 4000 that pass with a binomial tree, a quarter.
    assert found.values["binomial_expected"] == pytest.approx(0.75, abs=0.01)
    assert float(found.values["mean_error"] or 0) > 0.05


def test_the_weight_of_a_byte_is_what_was_put_there() -> None:
    experiment, results = study(0.1)
    found = by_key(experiment.findings(results, CLUSTER), "forwarding-weight")
    assert found.values["forwarding"] == pytest.approx(0.1 / (RATE * 1e6), rel=0.05)
    assert "upper bound" not in found.text
    assert "upper bound" in by_key(experiment.findings(results, SMALL), "forwarding-weight").text


def test_costs_follow_from_rates() -> None:
    assert expected_kept(2.0, 8000.0, 0.0) == 1.0
    assert expected_kept(2.0, 8000.0, 8000.0) == 0.5
    kept = Interval(value=0.8, low=0.7, high=0.9)
    assert cost_per_byte(kept, 1000.0).low == pytest.approx(1e-10)
    lost = lost_per_broadcast(kept, Interval(value=1000.0, low=500.0, high=2000.0), 10**6)
    assert (lost.low, lost.value, lost.high) == pytest.approx((50.0, 200.0, 600.0))


def test_only_the_forwarding_rank_computes() -> None:
    for point in expanded(SMALL).points:
        assert [place.rank for place in point.placements if place.comp_cores] == [1]
        assert len(point.placements) == workload(point).ranks == 16


def test_ranks_have_cores_of_their_own_where_half_of_the_cores_are_left_to_compute() -> None:
    alone = expanded(LARGE, n="all").points[0]
    cores = [core for place in alone.placements for core in place.comm_cores]
    assert len(set(cores)) == 16
    assert not set(cores) & set(alone.comp_cores)
    crowded = expanded(machine(8), n="all")
    assert len({core for place in crowded.points[0].placements for core in place.comm_cores}) == 2
    assert any(note.what == "a core of its own for each rank" for note in crowded.notes)


def test_each_host_has_one_rank() -> None:
    assert {workload(point).ranks for point in expanded(CLUSTER).points} == {20}
    assert all(point.comm_cores == point.placements[0].comm_cores for point in expanded(CLUSTER).points)
    assert {workload(point).ranks for point in expanded(machine(36, hosts=2)).points} == {16}


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"ranks": "2"}, "ranks"),
        ({"trees": "bush"}, "tree"),
        ({"kernels": "copy"}, "kernels"),
        ({"metric": "latency"}, "metric"),
    ],
)
def test_what_cannot_be_measured_is_refused_by_its_field(settings: dict[str, str], field: str) -> None:
    with pytest.raises(UsageError) as caught:
        expanded(SMALL, **settings)
    assert caught.value.field == field


def test_a_models_losses_reach_the_points_with_the_rate_of_its_messages() -> None:
    here = msgspec.structs.replace(CLUSTER, name="henrisubnuma")
    settings = {"control": "false", "model": "henrisubnuma", "n": "all", "pool": "socket"}
    plan = apply(load("forwarding"), Overrides(settings=settings))
    point, *_ = with_losses(experiments.get("forwarding").expand(plan, here), plan, here).points
    losses = workload(point).losses
    assert losses is not None
    assert losses.comp > 1
    assert 0 < (losses.comm_rate or 0) < 12_500
    startup = workload(point).startup(point)
    assert startup.settings["program"]["losses"] is None
