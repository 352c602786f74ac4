"""FLOW: what holds whatever its parameters, and the threshold model inside it."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from elbowroom.models.curves import Shape, Situation
from elbowroom.models.flow.law import INDEX, JITTER, NAMES
from elbowroom.models.threshold.law import Parameters, bandwidths
from made_flow import parameters, situation_rates

Array = NDArray[np.float64]
SHAPE = Shape(name="made", cores_first_socket=16, numa_per_socket=2)
WIDE = 1e12
"""A capacity that never limits."""


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    node, count = st.integers(0, 3), st.integers(0, 16)
    return Situation(
        comp_node=draw(node), comm_node=draw(node), n=draw(count), n_other=draw(st.one_of(st.just(0), count))
    )


def ask(vector: Array, *asked: Situation) -> Array:
    return situation_rates(vector, SHAPE, *asked)[:, 0]


def threshold_like(p: Parameters, remote: bool) -> Array:
    """One resource of capacity T, floor alpha, weight 0, no jitter, no excess."""
    values = dict.fromkeys(NAMES, 0.0)
    values |= dict.fromkeys(("uplink", "link", "crossing", "root", "controller", "port"), WIDE)
    values |= {"remote_weight": 1.0, "remote_cost": 1.0, "cost_first": 1.0, "cost_second": 1.0}
    values |= {"core_local": p.b_comp_seq, "core_remote": p.b_comp_seq}
    values |= {"comm_first": p.b_comm_seq, "comm_second": p.b_comm_seq}
    values |= {"floor_first": p.alpha, "floor_second": p.alpha}
    values["port" if remote else "controller"] = p.t_par_max
    return np.array([[values[name] for name in NAMES]])


@given(st.floats(1e3, 8e3), st.floats(4e3, 25e3), st.floats(0.0, 1.0), st.floats(1.1, 20.0), st.booleans())
def test_one_resource_with_a_floor_and_weight_zero_is_the_threshold_model(
    core: float, messages: float, alpha: float, room: float, remote: bool
) -> None:
    total = room * max(core, messages)
    p = Parameters(
        n_par_max=16, t_par_max=total, n_seq_max=16, t_seq_max=total, t_par_max2=total, alpha=alpha,
        delta_l=0.0, delta_r=0.0, b_comp_seq=core, b_comm_seq=messages,
    )  # fmt: skip
    expected = bandwidths(p, 16, faithful=True)
    node = 2 if remote else 0
    asked = [Situation(comp_node=node, comm_node=node, n=n) for n in range(1, 17)]
    found = ask(threshold_like(p, remote), *asked)
    assert np.allclose(found[2], expected.comp_together[-16:], rtol=1e-9, atol=0)
    assert np.allclose(found[3], expected.comm_together[-16:], rtol=1e-9, atol=0)


@given(
    st.floats(1e3, 8e3), st.floats(4e3, 25e3), st.floats(0.0, 1.0), st.integers(1, 16), st.floats(0.0, 0.3)
)
def test_over_demand_is_the_slope_of_the_threshold_model(
    core: float, messages: float, alpha: float, peak: int, excess: float
) -> None:
    """delta_r = excess b_comp_seq, if the total peaks with as many cores as have room beside messages."""
    total, slope = peak * core + messages, excess * core
    assume(total - slope * (16 - peak) >= alpha * messages)
    p = Parameters(
        n_par_max=peak, t_par_max=total, n_seq_max=peak, t_seq_max=total, t_par_max2=total, alpha=alpha,
        delta_l=0.0, delta_r=slope, b_comp_seq=core, b_comm_seq=messages,
    )  # fmt: skip
    expected = bandwidths(p, 16, faithful=True)
    vector = threshold_like(p, remote=False)
    vector[0, INDEX["excess_local"]] = excess
    found = ask(vector, *(Situation(comp_node=0, comm_node=0, n=n) for n in range(1, 17)))
    assert np.allclose(found[2], expected.comp_together[-16:], rtol=1e-9, atol=0)
    assert np.allclose(found[3], expected.comm_together[-16:], rtol=1e-9, atol=0)


@given(parameters(), situations())
def test_bandwidths_are_finite_and_messages_never_gain_from_computation(
    vector: Array, asked: Situation
) -> None:
    found = ask(vector, asked)
    assert np.isfinite(found).all()
    assert (found >= 0).all()
    assert found[3] <= found[1] * (1 + 1e-9)


@given(parameters(), situations())
def test_both_sockets_are_alike_but_for_the_messages(vector: Array, asked: Situation) -> None:
    mirrored = Situation(
        comp_node=(asked.comp_node + 2) % 4,
        comm_node=(asked.comm_node + 2) % 4,
        n=asked.n_other,
        n_other=asked.n,
    )
    assert np.allclose(ask(vector, asked)[0], ask(vector, mirrored)[0], rtol=1e-9)


@given(parameters(), st.integers(1, 16), st.sampled_from([0, 2]))
def test_messages_keep_their_floor_when_their_floor_fits(vector: Array, n: int, node: int) -> None:
    found = ask(vector, Situation(comp_node=node, comm_node=node, n=n))
    part = vector[0, INDEX["floor_second" if node else "floor_first"]]
    # Only over-demand leaves room for the floor by law; a jitter that takes the capacity away does not.
    quiet = vector.copy()
    quiet[0, [INDEX[name] for name in ("dip_local", "dip_remote", "rise_local", "rise_remote")]] = 0
    cost = vector[0, INDEX["cost_second" if node else "cost_first"]]
    whole = vector[0, INDEX["controller"]]
    if node:
        cost /= vector[0, INDEX["remote_cost"]]
        whole = min(vector[0, INDEX["port"]], whole / vector[0, INDEX["remote_cost"]])
    if cost * part * found[1, 0] <= whole:
        assert (
            ask(quiet, Situation(comp_node=node, comm_node=node, n=n))[3]
            >= part * found[1] * (1 - 1e-9) - 1e-300
        )


@settings(max_examples=20)
@given(parameters(), st.lists(situations(), min_size=2, max_size=8))
def test_asking_for_many_is_asking_for_each(vector: Array, asked: list[Situation]) -> None:
    together = ask(vector, *asked)
    one_by_one = np.concatenate([ask(vector, at) for at in asked], axis=1)
    assert np.array_equal(together, one_by_one)


def test_the_jitter_is_even_and_of_variance_one() -> None:
    assert np.isclose(sum(JITTER), 0)
    assert np.isclose(np.mean(np.square(JITTER)), 1, atol=1e-5)
