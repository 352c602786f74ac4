"""FLOW fitted to few runs."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest

from elbowroom.errors import UsageError
from elbowroom.models import published
from elbowroom.models.curves import Curves, Row, Shape, Situation
from elbowroom.models.flow.fit import fit
from elbowroom.models.flow.law import INDEX, NAMES
from elbowroom.models.flow.model import bands
from elbowroom.models.flow.part import FlowPart
from elbowroom.virtual.credits import credits
from elbowroom.virtual.machines import PublishedCurves
from elbowroom.virtual.truth import Truth, generator
from made_flow import situation_rates

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

from flow_design import design, mixed

SHAPE = Shape(name="made", cores_first_socket=12, numa_per_socket=1)
TRUE = {
    "core_local": 5000.0,
    "core_remote": 4800.0,
    "comm_first": 11000.0,
    "comm_second": 10500.0,
    "uplink": 44000.0,
    "link": 25000.0,
    "controller": 48000.0,
    "port": 29000.0,
    "crossing": 60000.0,
    "root": 90000.0,
    "floor_first": 0.6,
    "floor_second": 0.5,
    "weight_first": 1.0,
    "weight_second": 0.5,
    "cost_first": 1.1,
    "cost_second": 1.2,
    "remote_weight": 0.8,
    "remote_cost": 1.5,
    "dip_local": 0.04,
    "dip_remote": 0.03,
    "rise_local": 0.1,
    "rise_remote": 0.1,
    "excess_local": 0.02,
    "excess_remote": 0.0,
}


def everywhere(shape: Shape) -> list[Situation]:
    nodes, cores = range(shape.nodes), range(1, shape.cores_first_socket + 1)
    return [Situation(comp_node=i, comm_node=j, n=n) for i in nodes for j in nodes for n in cores]


def row(at: Situation, values: tuple[float, float, float, float]) -> Row:
    comp_alone, comm_alone, comp_together, comm_together = values
    return Row(
        situation=at,
        comp_alone=comp_alone,
        comm_alone=comm_alone,
        comp_together=comp_together,
        comm_together=comm_together,
    )


def made(asked: tuple[Situation, ...]) -> Curves:
    """Runs of a machine that is FLOW itself."""
    vector = np.array([[TRUE[name] for name in NAMES]])
    values = situation_rates(vector, SHAPE, *asked)[:, 0].T.tolist()
    return Curves(shape=SHAPE, rows=tuple(row(at, tuple(v)) for at, v in zip(asked, values, strict=True)))


def sampled(truth: Truth, noise: float, asked: tuple[Situation, ...]) -> Curves:
    rows = [row(at, truth.sample(at, noise, generator(1, truth.shape, at))) for at in asked]
    return Curves(shape=truth.shape, rows=tuple(rows))


def error(fitted: FlowPart, truth: Truth, asked: list[Situation]) -> float:
    """Mean relative error of both streams together."""
    true = np.array([truth.streams(at) for at in asked]).T[2:]
    return float(np.mean(np.abs(bands(fitted, truth.shape, asked)[0][2:] - true) / true))


@pytest.fixture(scope="module")
def fitted() -> FlowPart:
    return fit(made(design(SHAPE)))


def test_a_machine_that_is_flow_is_found_again(fitted: FlowPart) -> None:
    asked = everywhere(SHAPE)
    vector = np.array([[TRUE[name] for name in NAMES]])
    true = situation_rates(vector, SHAPE, *asked)[:, 0]
    assert np.mean(np.abs(bands(fitted, SHAPE, asked)[0] - true) / true) < 0.003


def test_every_value_is_inside_its_interval(fitted: FlowPart) -> None:
    values, low, high = bands(fitted, SHAPE, everywhere(SHAPE))
    assert (low <= values).all()
    assert (values <= high).all()
    assert all(item.low <= item.value <= item.high for item in fitted.parameters)


def test_what_the_runs_do_not_tell_is_a_wide_band(fitted: FlowPart) -> None:
    """No run has messages beside remote cores in another node of that socket: the prior's width remains."""
    parameters = {item.name: item for item in fitted.parameters}
    assert parameters["crossing"].high / parameters["crossing"].low > 2
    assert parameters["core_local"].high / parameters["core_local"].low < 1.02
    assert "both sockets never computed together" in fitted.flags


def test_the_same_runs_and_seed_give_the_same_fit(fitted: FlowPart) -> None:
    assert fit(made(design(SHAPE))) == fitted
    assert fit(made(design(SHAPE)), seed=1).draws != fitted.draws


def test_runs_with_both_sockets_make_both_sockets_predictable() -> None:
    truth = credits(published.load("henri").model)
    some = [Situation(comp_node=1, comm_node=1, n=n, n_other=m) for n in (3, 9, 18) for m in (6, 12)]
    runs = design(truth.shape)
    without = error(fit(sampled(truth, 0.01, runs)), truth, some)
    beside = error(fit(sampled(truth, 0.01, (*runs, *mixed(truth.shape)))), truth, some)
    assert beside < 0.05 < without


@pytest.mark.parametrize("name", ["henri", "occigen"])
def test_the_published_curves_are_followed_from_few_noisy_runs(name: str) -> None:
    truth = PublishedCurves(published.load(name).model)
    runs = design(truth.shape)
    others = [at for at in everywhere(truth.shape) if at not in runs]
    assert error(fit(sampled(truth, 0.01, runs)), truth, others) < 0.015


def test_values_that_were_not_measured_are_left_out() -> None:
    runs = made(design(SHAPE))
    holes = tuple(
        msgspec.structs.replace(item, comp_alone=None) if k % 3 == 0 else item
        for k, item in enumerate(runs.rows)
    )
    result = fit(msgspec.structs.replace(runs, rows=holes))
    values = bands(result, SHAPE, everywhere(SHAPE))[0]
    vector = np.array([[TRUE[name] for name in NAMES]])
    true = situation_rates(vector, SHAPE, *everywhere(SHAPE))[:, 0]
    assert np.mean(np.abs(values - true) / true) < 0.01


def test_one_placement_is_enough_for_that_placement_and_flagged() -> None:
    asked = tuple(Situation(comp_node=0, comm_node=0, n=n) for n in range(1, 13))
    runs = made(asked)
    result = fit(runs)
    assert "no remote accesses measured" in result.flags
    assert "messages into one socket only" in result.flags
    true = np.array([item.streams for item in runs.rows], dtype=float).T
    assert np.abs(bands(result, SHAPE, asked)[0] / true - 1).max() < 0.02
    _, low, high = bands(result, SHAPE, [Situation(comp_node=1, comm_node=1, n=12)])
    assert (high[2] / low[2] > 1.3).all(), "remote accesses are known by the prior only"


def test_a_single_run_is_fitted_with_a_flag() -> None:
    result = fit(made((Situation(comp_node=0, comm_node=0, n=4),)))
    assert "fewer values than parameters" in result.flags
    assert np.isfinite(np.array(result.draws)).all()


def test_without_computing_cores_there_is_nothing_to_fit() -> None:
    idle = row(Situation(comp_node=0, comm_node=0, n=0), (0.0, 11000.0, 0.0, 11000.0))
    with pytest.raises(UsageError, match="no run with computing cores"):
        fit(Curves(shape=SHAPE, rows=(idle,)))


def test_a_stream_that_was_never_measured_is_named() -> None:
    silent = tuple(
        msgspec.structs.replace(item, comm_alone=None, comm_together=None)
        for item in made(design(SHAPE)).rows
    )
    with pytest.raises(UsageError, match="comm_alone, comm_together"):
        fit(Curves(shape=SHAPE, rows=silent))


def test_names_in_another_order_are_the_same_model(fitted: FlowPart) -> None:
    turned = msgspec.structs.replace(
        fitted,
        names=fitted.names[::-1],
        values=fitted.values[::-1],
        draws=tuple(draw[::-1] for draw in fitted.draws),
    )
    asked = everywhere(SHAPE)[::5]
    assert np.array_equal(bands(turned, SHAPE, asked), bands(fitted, SHAPE, asked))
    assert turned.names.index("root") == len(NAMES) - 1 - INDEX["root"]


@pytest.mark.parametrize("cores", [1, 2, 14, 64])
@pytest.mark.parametrize(("nodes", "sockets"), [(1, 1), (1, 2), (2, 2), (4, 2), (2, 1)])
def test_a_design_keeps_its_budget_and_stays_on_the_machine(cores: int, nodes: int, sockets: int) -> None:
    shape = Shape(name="made", cores_first_socket=cores, numa_per_socket=nodes, sockets=sockets)
    runs = design(shape, 24)
    assert len(set(runs)) == len(runs) <= 24
    assert all(1 <= at.n <= cores and max(at.comp_node, at.comm_node) < shape.nodes for at in runs)
    assert {at.comp_node // nodes for at in runs} == set(range(sockets))
    assert len(mixed(shape)) == (3 if sockets > 1 else 0)


def test_a_budget_below_one_curve_is_refused() -> None:
    with pytest.raises(UsageError, match="at least 4"):
        design(SHAPE, 3)
