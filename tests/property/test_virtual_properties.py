"""The network of credits, whatever streams and resources it is made of."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elbowroom.machine.layout import regular_machine
from elbowroom.models import published
from elbowroom.models.curves import Situation
from elbowroom.models.load import Computing, Copy, Load
from elbowroom.models.load import Messages as Sent
from elbowroom.plan.kernels import KERNELS
from elbowroom.virtual import machines
from elbowroom.virtual.credits import credits
from elbowroom.virtual.definition import Plain
from elbowroom.virtual.hosts import answers
from elbowroom.virtual.laws import Exchange, Work, answer
from elbowroom.virtual.loads import load_streams
from elbowroom.virtual.network import Resource, Stream, solve, utilisation

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
            assert under_way == pytest.approx(stream.credits, rel=1e-9)


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


DEFINITION = machines.of_name("henrisubnuma")
CURVES = machines.truth_of(DEFINITION)
KERNEL_NAMES = [name for name, kernel in KERNELS.items() if kernel.moves_memory]


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(KERNEL_NAMES),
    st.integers(1, 1024),
    st.integers(1, 18),
    st.integers(0, 18),
    st.integers(0, 3),
    st.sampled_from(["pingpong", "receive", "ring"]),
    st.integers(1, 100_000_000),
    st.integers(1, 8),
)
def test_communications_and_latency_never_gain_by_computation(
    kernel: str, cursor: int, n: int, other: int, node: int, pattern: str, size: int, threads: int
) -> None:
    work = Work(kernel=kernel, cursor=cursor, cores=(n, other), comp_node=node)
    messages = Exchange(size=size, comm_node=node, pattern=pattern, threads=threads)
    double = msgspec.structs.replace(messages, size=2 * size)
    native = [answers(TRUTHS["henrisubnuma"], DEFINITION, ((work, sent),))[0] for sent in (messages, double)]
    by_laws = [answer(CURVES, DEFINITION, work, sent) for sent in (messages, double)]
    for said, larger in (native, by_laws):
        assert 0 < said.comm_together <= said.comm_alone * (1 + 1e-9)
        assert said.latency_together >= said.latency_alone * (1 - 1e-9)
        assert larger.comm_alone >= said.comm_alone * (1 - 1e-9)
        assert larger.latency_alone > said.latency_alone


@settings(max_examples=60, deadline=None)
@given(st.floats(1, 1e5), st.floats(1, 1e6), st.floats(1, 1e5), st.floats(0.01, 1), st.integers(1, 128))
def test_four_numbers_make_parameters_that_hold_together(
    core: float, memory: float, nic: float, kept: float, cores: int
) -> None:
    p = Plain(core=core, memory=memory, nic=nic, kept=kept).parameters(cores)
    assert 1 <= p.n_par_max <= p.n_seq_max <= cores
    assert p.t_seq_max <= cores * core
    assert p.t_par_max == p.t_par_max2 <= cores * core + nic
    assert p.t_par_max >= nic * (1 - 1e-12)


@st.composite
def loads(draw: st.DrawFn) -> Load:
    sockets = draw(st.lists(st.sampled_from([0, 1]), max_size=2, unique=True))
    node = st.integers(0, 3)
    return Load(
        computing=tuple(
            Computing(
                socket=socket,
                node=draw(node),
                count=draw(st.integers(1, 18)),
                intensity=draw(st.just(0.0) | st.floats(1e-3, 100)),
            )
            for socket in sockets
        ),
        messages=draw(
            st.builds(
                Sent,
                node=node,
                direction=st.sampled_from(["receive", "send", "both"]),
                size=st.none() | st.integers(1, 10**9),
                threads=st.integers(1, 32),
            )
        ),
        copies=tuple(draw(st.lists(st.builds(Copy, node=node, demand=st.floats(1, 30_000)), max_size=1))),
    )


@settings(max_examples=60, deadline=None)
@given(loads())
def test_whatever_a_node_does_nobody_gets_more_than_alone_or_nothing(load: Load) -> None:
    """But for a little: who is slowed leaves more to a third."""
    found = load_streams(TRUTHS["henrisubnuma"], load)
    assert 0 < found.comm_together <= found.comm_alone * 1.01
    assert found.comp_together <= found.comp_alone * 1.01
    assert all(rate > 0 for rate in (*found.groups, *found.copies))
    for rate, copy in zip(found.copies, load.copies, strict=True):
        assert rate <= copy.demand


@st.composite
def layouts(draw: st.DrawFn) -> tuple[tuple[int, int], ...]:
    """Cores and NUMA nodes of each socket; all but the first may lack memory, or cores."""
    first = draw(st.tuples(st.integers(1, 128), st.integers(1, 16)))
    if draw(st.booleans()):
        return (first,) * draw(st.integers(1, 4))
    more = st.tuples(st.integers(0, 128), st.integers(0, 8)).filter(lambda socket: socket != (0, 0))
    return (first, *draw(st.lists(more, max_size=3)))


@settings(max_examples=25, deadline=None)
@given(layouts(), st.data())
def test_a_machine_of_any_sockets_nodes_and_cores_has_answers(
    layout: tuple[tuple[int, int], ...], data: st.DataObject
) -> None:
    machine = machines.simulated(
        regular_machine(name="x", model="", cores_per_socket=1, numa_per_socket=1, sockets=1, layout=layout)
    )
    definition = machines.generic(machine)
    truth = machines.truth_of(definition)
    nodes, shape = st.integers(0, definition.shape.nodes - 1), definition.shape
    at = Situation(
        comp_node=data.draw(nodes),
        comm_node=data.draw(nodes),
        n=data.draw(st.integers(1, shape.cores_first_socket)),
        n_other=data.draw(st.integers(0, shape.cores_other)),
    )
    comp_alone, comm_alone, comp, comm = truth.streams(at)
    # Together cores may get more: where messages hold up those of one socket, others gain.
    assert comp > 0
    assert comp_alone > 0
    assert 0 < comm <= comm_alone * (1 + 1e-9)
    assert sum(shape.spread(at.n, at.n_other)) == at.n + at.n_other
    assert [shape.socket(node) for node in range(shape.nodes)] == sorted(
        machine.socket_of[node.package] for node in machine.nodes
    )
