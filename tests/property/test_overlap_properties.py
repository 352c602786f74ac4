"""What holds of every overlapped step, split and flow of work."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.models.overlap.fluid import Activity, constant_losses, halo_steps, simulate
from elbowroom.models.overlap.law import AcceleratedNode, OverlappedStep

TIMES = st.floats(0.0, 1e3).map(lambda value: 0.0 if value < 1e-6 else value)
LOSSES = st.floats(1.0, 20.0)
STEPS = st.builds(OverlappedStep, t_comp=TIMES, t_comm=TIMES, l_comp=LOSSES, l_comm=LOSSES)
PERFORMANCES = st.floats(1e-2, 1e3)
NODES = st.builds(
    AcceleratedNode,
    work=PERFORMANCES,
    p_comp=PERFORMANCES,
    p_acc=PERFORMANCES,
    t_comm=TIMES,
    l_comp=LOSSES,
    l_comm=LOSSES,
)


def flow(step: OverlappedStep) -> float:
    both = (Activity(name="comp", work=step.t_comp), Activity(name="comm", work=step.t_comm))
    return simulate(both, constant_losses({"comp": step.l_comp, "comm": step.l_comm})).total


@given(STEPS)
def test_the_formula_is_the_flow_at_two_rates(step: OverlappedStep) -> None:
    assert flow(step) == pytest.approx(step.total, rel=1e-12)


@given(STEPS)
def test_the_total_lies_between_the_longer_alone_and_the_longer_contended(step: OverlappedStep) -> None:
    assert step.naive_max <= step.total * (1 + 1e-12)
    assert step.total <= max(step.comp_contended, step.comm_contended) * (1 + 1e-12)


@given(STEPS)
def test_overlapping_costs_time_exactly_where_both_together_get_less_done(step: OverlappedStep) -> None:
    # From T_tot: what is saved is the time together, in which `pace` is done per unit of time instead of 1.
    assert step.naive_sum - step.total == pytest.approx(
        step.together * (step.pace - 1.0), abs=1e-9 * step.total
    )


@given(STEPS, st.floats(1.0, 2.0))
def test_more_contention_never_makes_a_step_faster(step: OverlappedStep, more: float) -> None:
    for worse in (
        OverlappedStep(t_comp=step.t_comp, t_comm=step.t_comm, l_comp=step.l_comp * more, l_comm=step.l_comm),
        OverlappedStep(t_comp=step.t_comp, t_comm=step.t_comm, l_comp=step.l_comp, l_comm=step.l_comm * more),
    ):
        assert worse.total >= step.total * (1 - 1e-12)


@given(NODES, st.floats(0.0, 1.0))
def test_no_split_is_faster_than_the_best_one(node: AcceleratedNode, w: float) -> None:
    assert node.best_split().total <= node.split(w).total * (1 + 1e-9)


@given(NODES)
def test_the_accelerators_get_all_the_work_iff_the_communication_outlasts_it(node: AcceleratedNode) -> None:
    assert (node.best_split().w == 1.0) == (node.t_comm >= node.work / node.p_acc)


@given(NODES)
def test_at_the_best_split_both_sides_end_at_once_or_the_accelerators_have_it_all(
    node: AcceleratedNode,
) -> None:
    best = node.best_split()
    assert best.w == 1.0 or best.t_acc == pytest.approx(best.step.total, rel=1e-6)


@given(st.integers(1, 4), TIMES, TIMES, TIMES, LOSSES, LOSSES)
def test_halo_steps_take_the_separators_and_the_overlapped_rest(
    count: int, separator: float, interior: float, exchange: float, l_comp: float, l_comm: float
) -> None:
    names = [f"{name} {step}" for step in range(count) for name in ("separator", "interior", "exchange")]
    losses = constant_losses({name: l_comm if name.startswith("exchange") else l_comp for name in names})
    steps = halo_steps(count, separator=separator, interior=interior, exchange=exchange)
    one = separator + OverlappedStep(t_comp=interior, t_comm=exchange, l_comp=l_comp, l_comm=l_comm).total
    assert simulate(steps, losses).total == pytest.approx(count * one, rel=1e-9)


@given(st.lists(st.tuples(TIMES, st.floats(0.1, 5.0)), min_size=1, max_size=6))
def test_the_spans_do_all_the_work_and_leave_no_gap(pairs: list[tuple[float, float]]) -> None:
    work = {str(index): pair[0] for index, pair in enumerate(pairs)}
    speed = {str(index): pair[1] for index, pair in enumerate(pairs)}
    found = simulate(
        [Activity(name=name, work=value) for name, value in work.items()],
        lambda active: {name: speed[name] / len(active) for name in active},
    )
    for name, value in work.items():
        done = sum((span.end - span.start) * span.rates.get(name, 0.0) for span in found.spans)
        assert done == pytest.approx(value, rel=1e-9)
    joints = [0.0, *(end for span in found.spans for end in (span.start, span.end))]
    assert all(a == b for a, b in zip(joints[::2], joints[1::2], strict=False))
