"""The network of credits beside intensity, messages of a size, directions, both sockets and copies."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import msgspec
import pytest

from elbowroom.errors import UsageError
from elbowroom.models import published
from elbowroom.models.curves import Situation
from elbowroom.models.load import Computing, Copy, Load, Messages, load_of
from elbowroom.virtual.credits import credits
from elbowroom.virtual.loads import load_streams
from elbowroom.virtual.machines import of_name, truth_of
from elbowroom.virtual.truth import LoadStreams

NAMES = published.names()
TRUTHS = {name: credits(published.load(name).model) for name in NAMES}
HENRI = TRUTHS["henri"]
PEAK = 2.3e3 * 4  # Mflop/s of a core
NEAR = 1.39  # us
CORES = Computing(socket=0, node=0, count=17)


def of(*computing: Computing, copies: tuple[Copy, ...] = (), **messages: Any) -> LoadStreams:
    sent = Messages(**messages) if messages else None
    return load_streams(HENRI, Load(computing=computing, messages=sent, copies=copies))


def kept(found: LoadStreams) -> tuple[float, float]:
    return found.comp_together / found.comp_alone, found.comm_together / found.comm_alone


@pytest.mark.parametrize("name", NAMES)
def test_a_situation_said_as_a_load_is_answered_alike(name: str) -> None:
    truth = TRUTHS[name]
    nodes, cores = range(truth.shape.nodes), truth.shape.cores_first_socket
    for comp, comm, n, other in product(nodes, nodes, (0, 1, cores), (0, cores)):
        situation = Situation(comp_node=comp, comm_node=comm, n=n, n_other=other)
        found = load_streams(truth, load_of(situation))
        said = found.comp_alone, found.comm_alone, found.comp_together, found.comm_together
        assert said == pytest.approx(truth.streams(situation), rel=1e-9)


def test_a_definition_is_asked_like_its_truth() -> None:
    definition = msgspec.structs.replace(of_name("henri"), truth="credits", near_latency_us=3.0)
    load = Load(computing=(CORES,), messages=Messages(node=0, size=4))
    found = load_streams(definition, load)
    assert found == load_streams(truth_of(definition), load)
    assert found.comm_alone == pytest.approx(4 / 3.0, rel=1e-3)


def test_a_core_computes_at_its_peak_where_memory_is_nothing_to_it() -> None:
    intensity = 1e4
    rate = of(Computing(socket=0, node=0, count=3, intensity=intensity)).comp_alone
    assert rate * intensity == pytest.approx(3 * PEAK, rel=2e-3)


def test_at_the_ridge_a_core_is_slower_than_its_memory_and_its_arithmetic() -> None:
    one = of(Computing(socket=0, node=0, count=1)).comp_alone
    ridge = PEAK / one
    found = of(Computing(socket=0, node=0, count=1, intensity=ridge)).comp_alone
    assert 0.6 * one < found < 0.95 * one


def test_messages_recover_as_intensity_rises() -> None:
    shares = [
        kept(of(msgspec.structs.replace(CORES, intensity=intensity), node=0))[1]
        for intensity in (0.0, 0.5, 2.0, 4.0, 16.0)
    ]
    assert all(more > less for less, more in pairwise(shares))
    assert shares[-1] > 0.99


def test_a_message_takes_its_latency_and_its_bytes() -> None:
    large = of(node=0).comm_alone
    for size in (4, 1000, 30_000, 10**6):
        time = size / of(node=0, size=size).comm_alone
        assert time >= NEAR + size / large - 1e-9
        assert time == pytest.approx(NEAR + size / large, rel=0.1)


def test_endless_messages_are_the_largest() -> None:
    assert of(CORES, node=0, size=10**12).comm_together == pytest.approx(of(CORES, node=0).comm_together)


def test_a_small_message_comes_later_beside_computation() -> None:
    found = of(CORES, node=0, size=4)
    assert 1.02 < found.comm_alone / found.comm_together < 1.5
    assert kept(found)[0] > 0.999


def test_computation_loses_more_to_larger_messages() -> None:
    shares = [kept(of(CORES, node=0, size=size))[0] for size in (64, 4096, 65536, 10**7)]
    assert all(more < less for less, more in pairwise(shares))


def test_threads_fill_the_wire_and_no_more() -> None:
    one, two, four, many = (of(node=0, size=4096, threads=k).comm_alone for k in (1, 2, 4, 64))
    assert 1.5 * one < two < 2 * one
    assert two < four < many < of(node=0).comm_alone * (1 + 1e-9)
    assert many > 0.95 * of(node=0).comm_alone


def test_sending_is_another_stream_than_receiving() -> None:
    receive, send = (of(CORES, node=0, direction=way) for way in ("receive", "send"))
    assert send.comm_alone == pytest.approx(receive.comm_alone)
    assert send.comp_together > receive.comp_together  # on henri a written line costs 1.5 of a read one


def test_both_directions_are_nearly_twice_one_alone_and_cost_computation_more() -> None:
    receive, both = (of(CORES, node=0, direction=way) for way in ("receive", "both"))
    assert both.comm_alone == pytest.approx(2 * receive.comm_alone, rel=0.01)
    assert both.comp_together < receive.comp_together


def test_groups_on_nodes_of_their_own_are_told_apart() -> None:
    here, there = Computing(socket=0, node=0, count=9), Computing(socket=1, node=1, count=4, intensity=1.0)
    found = of(here, there, node=0)
    assert sum(found.groups) == pytest.approx(found.comp_together)
    assert found.groups[1] == pytest.approx(of(there).comp_alone, rel=0.01)


def test_two_groups_of_alike_cores_are_one() -> None:
    halves = of(msgspec.structs.replace(CORES, count=8), msgspec.structs.replace(CORES, count=9), node=0)
    whole = of(CORES, node=0)
    assert halves.comp_together == pytest.approx(whole.comp_together, rel=1e-9)
    assert halves.comm_together == pytest.approx(whole.comm_together, rel=1e-9)


def test_a_copy_alone_runs_at_its_demand_and_beside_others_takes_from_them() -> None:
    copy = Copy(node=0, demand=9000.0)
    alone, beside = of(copies=(copy,)), of(CORES, node=0, copies=(copy,))
    assert alone.copies == (pytest.approx(9000.0),)
    assert beside.copies[0] < 9000
    without = of(CORES, node=0)
    assert beside.comp_together < without.comp_together
    assert beside.comm_together < without.comm_together


def test_copies_share_the_root_complex_with_messages() -> None:
    found = of(node=0, copies=(Copy(node=1, demand=12_000.0), Copy(node=0, demand=12_000.0)))
    assert found.comm_together < 0.99 * found.comm_alone


def test_nothing_at_work_gets_nothing() -> None:
    assert of() == LoadStreams(comp_alone=0, comm_alone=0, comp_together=0, comm_together=0)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"computing": (Computing(socket=2, node=0, count=1),)}, "computing.socket"),
        ({"computing": (Computing(socket=0, node=2, count=1),)}, "computing.node"),
        ({"computing": (Computing(socket=0, node=0, count=0),)}, "computing.count"),
        ({"computing": (CORES, msgspec.structs.replace(CORES, count=2))}, "computing.count"),
        ({"computing": (msgspec.structs.replace(CORES, intensity=-1.0),)}, "computing.intensity"),
        ({"messages": Messages(node=-1)}, "messages.node"),
        ({"messages": Messages(node=0, size=0)}, "messages.size"),
        ({"messages": Messages(node=0, threads=0)}, "messages.threads"),
        ({"copies": (Copy(node=5, demand=1.0),)}, "copies.node"),
        ({"copies": (Copy(node=0, demand=0.0),)}, "copies.demand"),
    ],
)
def test_a_load_that_the_machine_cannot_have_is_refused_by_name(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(UsageError) as refused:
        load_streams(HENRI, Load(**changes))
    assert refused.value.field == field


def test_the_published_curves_say_nothing_of_loads() -> None:
    with pytest.raises(UsageError, match="henri:credits"):
        load_streams(of_name("henri"), Load(computing=(CORES,)))
