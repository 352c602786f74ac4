"""The network of credits, whatever streams and resources it is made of."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elbowroom.model import published
from elbowroom.model.curves import Situation
from elbowroom.virtual.network import Resource, Stream, solve, utilisation
from elbowroom.virtual.scaling import credits

RESOURCES = {
    "uplink": Resource(capacity=80_000, delay=0.004),
    "link": Resource(capacity=30_000, delay=0.004),
    "memory": Resource(capacity=50_000, delay=0.008),
}


@st.composite
def streams(draw: st.DrawFn) -> Stream:
    route = draw(st.dictionaries(st.sampled_from(sorted(RESOURCES)), st.floats(0.5, 3), min_size=1))
    return Stream(
        credits=draw(st.floats(64, 64_000)),
        latency=draw(st.floats(0.05, 2)),
        most=draw(st.floats(100, 100_000)),
        route=route,
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(streams(), min_size=1, max_size=4))
def test_every_stream_has_exactly_its_credits_under_way_or_issues_its_most(found: list[Stream]) -> None:
    rates = solve(found, RESOURCES)
    used = utilisation(found, rates, RESOURCES)
    assert all(share < 1 for share in used.values())
    for stream, rate in zip(found, rates, strict=True):
        waiting = sum(work * RESOURCES[name].waiting(used[name]) for name, work in stream.route.items())
        under_way = rate * (stream.latency + waiting)
        if rate == stream.most:
            assert under_way <= stream.credits * (1 + 1e-9)
        else:
            assert under_way == pytest.approx(stream.credits, rel=1e-7)


@settings(max_examples=40, deadline=None)
@given(st.lists(streams(), min_size=2, max_size=4))
def test_one_more_stream_through_the_same_resource_makes_none_faster(found: list[Stream]) -> None:
    shared = [Stream(credits=s.credits, latency=s.latency, most=s.most, route={"memory": 1.0}) for s in found]
    before, after = solve(shared[:-1], RESOURCES), solve(shared, RESOURCES)
    for fewer, more in zip(before, after, strict=False):
        assert more <= fewer * (1 + 1e-7)


TRUTHS = {name: credits(published.load(name).model) for name in published.names()}


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(TRUTHS)), st.data())
def test_cores_of_either_socket_only_take_from_communications_on_their_node(
    name: str, data: st.DataObject
) -> None:
    """On other nodes they may even give: cores slowed at their controller leave the link to messages."""
    truth = TRUTHS[name]
    cores, last = truth.shape.cores_first_socket, truth.shape.nodes - 1
    node = data.draw(st.integers(0, last))
    n, other = data.draw(st.integers(0, cores)), data.draw(st.integers(0, cores - 1))
    fewer, more = (
        truth.streams(Situation(comp_node=node, comm_node=node, n=n, n_other=count))
        for count in (other, other + 1)
    )
    assert more[3] <= fewer[3] * (1 + 1e-9)
