"""FLOW for loads: the law of situations inside it, and what holds whatever its parameters."""

from __future__ import annotations

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from elbowroom.models.curves import Shape, Situation
from elbowroom.models.flow.extras import NEUTRAL, Extension, regime_names
from elbowroom.models.flow.loads import LoadRates, evaluate, prepare
from elbowroom.models.load import Computing, Copy, Load, Messages, load_of
from made_flow import parameters, situation_rates

Array = NDArray[np.float64]
SHAPE = Shape(name="made", cores_first_socket=16, numa_per_socket=2)
SIZE = 64_000_000
EXTRA_RANGES = {
    "peak": (1e3, 1e5),
    "roofline": (1.0, 8.0),
    "thrift": (0.0, 2.0),
    "latency_load": (0.0, 2.0),
    "relief": (0.0, 1.0),
    "thread_gain": (1.0, 4.0),
    "queueing": (0.0, 1.0),
    "both": (1.0, 2.0),
    "devices": (1e3, 1e6),
    "latency_0": (0.1, 3.0),
    "latency_1": (0.1, 10.0),
    "speed_0": (0.2, 2.0),
    "speed_1": (1.0, 1.0),
}


@st.composite
def extensions(draw: st.DrawFn) -> Extension:
    names = (*NEUTRAL, *regime_names(2))
    values = [draw(st.floats(*EXTRA_RANGES.get(name, (0.5, 1.5)))) for name in names]
    return Extension(size=SIZE, names=names, values=np.array([values]), switches=(4096,))


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    node, count = st.integers(0, 3), st.integers(0, 16)
    return Situation(
        comp_node=draw(node), comm_node=draw(node), n=draw(count), n_other=draw(st.one_of(st.just(0), count))
    )


@st.composite
def loads(draw: st.DrawFn) -> Load:
    node = st.integers(0, 3)
    groups = tuple(
        Computing(
            socket=draw(st.integers(0, 1)),
            node=draw(node),
            count=draw(st.integers(1, 8)),
            intensity=draw(st.sampled_from([0.0, 0.5, 4.0])),
        )
        for _ in range(draw(st.integers(0, 3)))
    )
    messages = Messages(
        node=draw(node),
        direction=draw(st.sampled_from(["receive", "send", "both"])),
        size=draw(st.sampled_from([None, 64, 1_000_000])),
        threads=draw(st.integers(1, 4)),
    )
    copies = tuple(
        Copy(node=draw(node), demand=draw(st.floats(1e3, 3e4))) for _ in range(draw(st.integers(0, 2)))
    )
    return Load(computing=groups, messages=draw(st.sampled_from([None, messages])), copies=copies)


def rates(vector: Array, extension: Extension, asked: list[Load]) -> LoadRates:
    return evaluate(vector, extension, prepare(SHAPE, asked))


@given(parameters(), extensions(), st.lists(situations(), min_size=1, max_size=6))
def test_a_load_that_is_a_situation_has_its_bandwidths(
    vector: Array, extension: Extension, asked: list[Situation]
) -> None:
    expected = situation_rates(vector, SHAPE, *asked)
    found = rates(vector, extension, [load_of(at) for at in asked])
    assert np.allclose(found.streams, expected, rtol=1e-9, atol=1e-9)


@given(parameters(), extensions(), situations())
def test_a_group_in_two_halves_is_the_group(vector: Array, extension: Extension, at: Situation) -> None:
    """Two groups of one socket on one node take the way of many groups, one takes the way of situations."""
    load = load_of(at)
    halves = tuple(
        msgspec.structs.replace(group, count=part)
        for group in load.computing
        for part in (group.count - group.count // 2, group.count // 2)
        if part
    )
    found = [
        rates(vector, extension, [item]).streams
        for item in (load, msgspec.structs.replace(load, computing=halves))
    ]
    assert np.allclose(found[0], found[1], rtol=1e-6, atol=1e-6)


@settings(max_examples=30)
@given(parameters(), extensions(), st.lists(loads(), min_size=2, max_size=5))
def test_asking_for_many_loads_is_asking_for_each(
    vector: Array, extension: Extension, asked: list[Load]
) -> None:
    together = rates(vector, extension, asked)
    for place, load in enumerate(asked):
        one = rates(vector, extension, [load])
        assert np.allclose(together.streams[:, :, place], one.streams[:, :, 0], rtol=1e-12)
        assert np.allclose(together.groups[: len(load.computing), :, place], one.groups[:, :, 0], rtol=1e-12)


@given(parameters(), extensions(), loads())
def test_rates_are_finite_and_no_device_exceeds_what_it_gets_alone(
    vector: Array, extension: Extension, load: Load
) -> None:
    found = rates(vector, extension, [load])
    assert np.isfinite(found.streams).all()
    assert (found.streams >= 0).all()
    assert found.streams[3] <= found.streams[1] * (1 + 1e-9)
    for place, copy in enumerate(load.copies):
        assert found.copies[place, 0, 0] <= copy.demand * (1 + 1e-9)
    assert np.isclose(found.groups.sum(), found.streams[2].sum())
