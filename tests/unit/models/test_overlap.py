"""The overlap model against its published values, and what it refuses."""

from __future__ import annotations

import math
from typing import Any

import pytest

from elbowroom.errors import UsageError
from elbowroom.models.overlap.figures import scaling
from elbowroom.models.overlap.fluid import Activity, constant_losses, halo_steps, simulate
from elbowroom.models.overlap.law import AcceleratedNode, OverlappedStep, worth

CARTESIUS = {"l_comp": 1.72, "l_comm": 2.2}
NODE = {"work": 60.0, "p_comp": 10.0, "p_acc": 50.0, "t_comm": 0.5, **CARTESIUS}


def step(**changes: float) -> OverlappedStep:
    return OverlappedStep(**({"t_comp": 1.0, "t_comm": 0.5, **CARTESIUS} | changes))


def node(**changes: float) -> AcceleratedNode:
    return AcceleratedNode(**(NODE | changes))


def test_the_step_of_section_vi_takes_1_46_ms() -> None:
    found = step()
    assert found.total == pytest.approx(1.460465, abs=1e-6)
    assert (found.comp_contended, found.comm_contended) == pytest.approx((1.72, 1.1))
    assert (found.naive_max, found.naive_sum) == (1.0, 1.5)


def test_half_the_load_on_the_cpu_takes_0_97_ms() -> None:
    assert step(t_comp=0.5).total == pytest.approx(0.969091, abs=1e-6)


def test_the_best_split_of_section_vi() -> None:
    best = node().best_split()
    assert best.w == pytest.approx(0.8974973, abs=1e-7)
    assert best.total == pytest.approx(1.0769968, abs=1e-7)


def test_a_given_split_of_section_vi_reaches_1745_gflops_on_32_nodes() -> None:
    """The paper prints 1741: 60 Gflop in 1.1 ms on 32 nodes are 1745.45."""
    halved = node().split(1.0 - 10.0 / 60.0 / 2.0)
    assert 32 * 60.0 / halved.total == pytest.approx(1745.4545, abs=1e-3)


def test_accelerators_get_everything_where_the_communication_outlasts_them() -> None:
    assert node(t_comm=1.2).best_split().w == 1.0
    assert node(t_comm=1.2 - 1e-9).best_split().w < 1.0


def test_accelerators_get_no_more_than_their_memory_holds() -> None:
    assert node(w_limit=0.5).best_split() == node().split(0.5)
    assert node(w_limit=0.95).best_split().w == pytest.approx(0.8974973, abs=1e-7)
    assert node(w_limit=0.0).best_split() == node().split(0.0)
    with pytest.raises(UsageError, match=r"between 0 and 0\.5"):
        node(w_limit=0.5).split(0.6)


def test_the_optimal_number_of_subdomains_has_equal_bars_beside_each_other() -> None:
    """Fig. 4: few are bound by computation, many by communication."""
    comp, comm = (
        series for series in scaling(step(t_comp=8.0)).series if series.name.endswith("lost by contention")
    )
    few, optimal, many = zip(comp.y, comm.y, strict=True)
    assert optimal[0] == pytest.approx(optimal[1])
    assert few[0] > few[1]
    assert many[0] < many[1]


def test_a_step_without_communication_has_no_optimal_number_of_subdomains() -> None:
    with pytest.raises(UsageError, match="above 0"):
        scaling(step(t_comm=0.0))


def test_slow_accelerators_get_little_but_never_nothing() -> None:
    best = node(p_acc=1e-6).best_split()
    assert 0.0 < best.w < 1e-6
    assert best.total == pytest.approx(node().split(0.0).total, rel=1e-6)


def test_a_computation_without_communication_takes_its_time_alone() -> None:
    assert step(t_comm=0.0).total == 1.0
    assert step(t_comp=0.0).total == 0.5
    assert step(t_comp=0.0, t_comm=0.0).total == 0.0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "hardly worth it"),
        ({"l_comp": 1.1}, "is worth it"),
        ({"l_comp": 2.5}, "not worth it"),
        ({"t_comm": 0.0}, "nothing to overlap"),
    ],
)
def test_one_sentence_says_whether_overlapping_is_worth_it(changes: dict[str, float], words: str) -> None:
    said = worth(step(**changes))
    assert words in said
    assert said.count(". ") == 0


def test_overlapping_costs_time_where_the_losses_are_large() -> None:
    bad = step(l_comp=2.0, l_comm=3.0)
    assert bad.pace < 1.0
    assert bad.total > bad.naive_sum


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("l_comp", 0.99),
        ("l_comm", 0.0),
        ("t_comp", -1.0),
        ("t_comm", -1e-9),
        ("t_comp", math.nan),
        ("l_comm", math.inf),
    ],
)
def test_a_bad_step_is_refused_by_the_name_of_the_field(field: str, value: float) -> None:
    with pytest.raises(UsageError) as caught:
        step(**{field: value})
    assert caught.value.field == field
    assert caught.value.value is value
    assert caught.value.hint


@pytest.mark.parametrize(
    ("field", "value"),
    [("work", 0.0), ("p_comp", 0.0), ("p_acc", -5.0), ("p_acc", math.nan), ("t_comm", -1.0), ("l_comp", 0.5)],
)
def test_a_bad_node_is_refused_by_the_name_of_the_field(field: str, value: float) -> None:
    with pytest.raises(UsageError) as caught:
        node(**{field: value})
    assert caught.value.field == field


@pytest.mark.parametrize("w", [-0.1, 1.1, math.nan])
def test_a_share_outside_0_to_1_is_refused(w: float) -> None:
    with pytest.raises(UsageError, match="between 0 and 1"):
        node().split(w)


def test_a_flow_tells_when_each_activity_began_and_ended() -> None:
    steps = halo_steps(2, separator=1.0, interior=4.0, exchange=2.0)
    losses = dict.fromkeys((item.name for item in steps), 2.0)
    found = simulate(steps, constant_losses(losses))
    # The exchange takes 2 x 2, in which half of the interior is computed; the other half takes 2.
    assert found.ends["exchange 0"] == 5.0
    assert found.starts["separator 1"] == found.ends["interior 0"] == 7.0
    assert found.total == 14.0
    assert [(span.start, span.end) for span in found.spans[:3]] == [(0.0, 1.0), (1.0, 5.0), (5.0, 7.0)]


def test_activities_without_work_let_others_start_at_once() -> None:
    found = simulate(
        [
            Activity(name="a", work=0.0),
            Activity(name="b", work=0.0, after=("a",)),
            Activity(name="c", work=3.0, after=("b",)),
        ],
        lambda active: dict.fromkeys(active, 1.0),
    )
    assert (found.starts["c"], found.total, len(found.spans)) == (0.0, 3.0, 1)


def test_an_activity_at_rate_0_waits_for_the_others() -> None:
    found = simulate(
        [Activity(name="a", work=1.0), Activity(name="b", work=1.0)],
        lambda active: {name: 1.0 if name == min(active) else 0.0 for name in active},
    )
    assert found.ends == {"a": 1.0, "b": 2.0}


def refused(activities: list[Activity], rates: Any = None) -> str:
    with pytest.raises(UsageError) as caught:
        simulate(activities, rates or (lambda active: dict.fromkeys(active, 1.0)))
    return caught.value.sentence()


def test_activities_that_cannot_run_are_refused() -> None:
    one = Activity(name="a", work=1.0)
    assert "twice" in refused([one, one])
    assert "'b', which is not an activity" in refused([Activity(name="a", work=1.0, after=("b",))])
    circle = [
        Activity(name="a", work=1.0, after=("b",)),
        Activity(name="b", work=1.0, after=("a",)),
    ]
    assert "in a circle" in refused(circle)
    assert "work of a -1.0" in refused([Activity(name="a", work=-1.0)])


def test_rates_that_do_not_tell_what_is_active_are_refused() -> None:
    one = [Activity(name="a", work=1.0)]
    assert "rate of a nan" in refused(one, lambda active: {})
    assert "rate of a -2.0" in refused(one, lambda active: {"a": -2.0})
    assert "never end" in refused(one, lambda active: {"a": 0.0})


def test_a_constant_loss_below_1_is_refused() -> None:
    with pytest.raises(UsageError, match=r"loss of a 0\.5"):
        constant_losses({"a": 0.5})
