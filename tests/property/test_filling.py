"""Sharing capacities: what holds of every network of streams and resources."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from elbowroom.models.flow.law import fill, pair

Array = NDArray[np.float64]
Network = tuple[Array, Array, Array, Array, Array]

rates = st.floats(1.0, 1e5)
shares = st.floats(0.0, 1.0)
weights = st.one_of(st.just(0.0), st.floats(0.01, 50.0))
costs = st.one_of(st.just(0.0), st.floats(0.2, 3.0))


def column(values: list[float]) -> Array:
    return np.array(values, dtype=float)[:, None]


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """Up to four streams over up to three resources: demands, floors, weights, capacities, costs."""
    streams, resources = draw(st.integers(1, 4)), draw(st.integers(1, 3))

    def some(of: st.SearchStrategy[float], count: int) -> list[float]:
        return draw(st.lists(of, min_size=count, max_size=count))

    demands = column(some(rates, streams))
    floors = demands * column(some(shares, streams))
    table = np.array([some(costs, streams) for _ in range(resources)])[:, :, None]
    return demands, floors, column(some(weights, streams)), column(some(rates, resources)), table


@given(networks())
def test_nobody_gets_more_than_asked_and_no_resource_carries_more_than_it_can(network: Network) -> None:
    demands, _, _, capacities, table = network
    found = fill(*network)
    assert (found >= 0).all()
    assert (found <= demands * (1 + 1e-9)).all()
    assert ((table * found).sum(axis=1) <= capacities * (1 + 1e-9)).all()


@given(networks())
def test_every_stream_is_content_or_passes_a_full_resource(network: Network) -> None:
    demands, _, _, capacities, table = network
    found = fill(*network)
    full = (table * found).sum(axis=1) >= capacities * (1 - 1e-9)
    held = ((table > 0) & full[:, None]).any(axis=0)
    assert (held | (found >= demands * (1 - 1e-9))).all()


@given(networks())
def test_floors_that_fit_are_kept(network: Network) -> None:
    demands, floors, importance, capacities, table = network
    roomy = np.maximum(capacities, (table * floors).sum(axis=1))
    assert (fill(demands, floors, importance, roomy, table) >= floors * (1 - 1e-9)).all()


@given(rates, rates, st.floats(1.0, 64.0), rates)
def test_a_stream_of_weight_zero_gets_what_the_other_leaves(a: float, d: float, u: float, c: float) -> None:
    found = fill(column([a, d]), column([0, 0]), column([u, 0]), column([c]), np.ones((1, 2, 1)))[:, 0]
    assert np.allclose(found, [min(a, c), min(d, c - min(a, c))], rtol=1e-9, atol=1e-6)


@given(rates, st.floats(1.0, 64.0), rates, weights, shares, st.floats(0.2, 3.0), rates)
def test_two_streams_in_one_resource_are_the_general_filling(
    a: float, u: float, d: float, w: float, floor: float, cost: float, c: float
) -> None:
    one = [np.array([value]) for value in (a, u, d, w, floor * d)]
    found = np.stack(pair(*one, np.array([cost]), np.array([c])))
    table = np.array([[[1.0], [cost]]])
    general = fill(column([a, d]), column([0, floor * d]), column([u, w]), column([c]), table)
    assert np.allclose(found, general, rtol=1e-9, atol=1e-6)
