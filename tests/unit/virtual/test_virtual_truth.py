"""The truths behind virtual machines: published curves and the network of credits."""

from __future__ import annotations

from itertools import pairwise, product

import pytest

from elbowroom.errors import UsageError
from elbowroom.models import published
from elbowroom.models.curves import Situation, Streams
from elbowroom.models.threshold.law import Parameters, curve
from elbowroom.virtual.credits import Credits, credits
from elbowroom.virtual.machines import PublishedCurves
from elbowroom.virtual.network import Resource, Stream, solve, utilisation
from elbowroom.virtual.truth import generator

NAMES = published.names()
TRUTHS = {name: credits(published.load(name).model) for name in NAMES}


def at(comp_node: int, comm_node: int, n: int, n_other: int = 0) -> Situation:
    return Situation(comp_node=comp_node, comm_node=comm_node, n=n, n_other=n_other)


def of(truth: Credits, comp_node: int, comm_node: int) -> list[Streams]:
    """All n of the first socket, from 0."""
    return [truth.streams(at(comp_node, comm_node, n)) for n in range(truth.shape.cores_first_socket + 1)]


def sides(name: str) -> list[tuple[Parameters, int]]:
    machine = published.load(name)
    return [(machine.used("local"), 0), (machine.used("remote"), machine.numa_per_socket)]


def test_one_stream_alone_gets_its_credits_over_its_latency() -> None:
    memory = Resource(capacity=10_000, delay=0.01)
    stream = Stream(credits=640, latency=0.2, most=1e9, route={"memory": 1})
    (rate,) = solve([stream], {"memory": memory})
    waiting = memory.waiting(rate / memory.capacity)
    assert rate * (stream.latency + waiting) == pytest.approx(stream.credits, rel=1e-9)


def test_a_stream_is_never_faster_than_its_source_issues() -> None:
    stream = Stream(credits=640, latency=0.1, most=5_000, route={"memory": 1})
    assert solve([stream], {"memory": Resource(capacity=100_000, delay=0.01)}) == (5_000,)


def test_a_line_of_double_work_waits_twice() -> None:
    memory = Resource(capacity=10_000, delay=0.01)
    plain = Stream(credits=640, latency=0.1, most=1e9, route={"memory": 1})
    heavy = Stream(credits=640, latency=0.1, most=1e9, route={"memory": 2})
    rates = solve([plain, heavy], {"memory": memory})
    waiting = memory.waiting(utilisation([plain, heavy], rates, {"memory": memory})["memory"])
    latencies = [640 / rate for rate in rates]
    assert latencies == pytest.approx([0.1 + waiting, 0.1 + 2 * waiting], rel=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_alone_one_core_and_the_nic_reach_what_was_published(name: str) -> None:
    for parameters, node in sides(name):
        result = TRUTHS[name].streams(at(node, node, 1))
        assert result[0] == pytest.approx(parameters.b_comp_seq, rel=0.02)
        assert result[1] == pytest.approx(parameters.b_comm_seq, rel=0.005)


@pytest.mark.parametrize("name", NAMES)
def test_all_cores_alone_and_both_together_come_near_what_was_published(name: str) -> None:
    for parameters, node in sides(name):
        result = of(TRUTHS[name], node, node)
        assert max(row[0] for row in result) == pytest.approx(parameters.t_seq_max, rel=0.01)
        assert sum(result[-1][2:]) == pytest.approx(parameters.t_par_max2, rel=0.05)


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"billy"}))
def test_communications_keep_near_alpha_at_worst(name: str) -> None:
    """Not billy: its published alpha of local data comes from a network that is unstable alone (6.3.2)."""
    for parameters, node in sides(name):
        result = of(TRUTHS[name], node, node)
        assert min(row[3] / row[1] for row in result) == pytest.approx(parameters.alpha, abs=0.04)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_carries_more_than_its_capacity(name: str) -> None:
    truth = TRUTHS[name]
    cores, nodes = truth.shape.cores_first_socket, range(truth.shape.nodes)
    for comp, comm, n, other in product(nodes, nodes, (1, cores), (0, cores)):
        streams = truth.network_streams(comp, comm, n, other)
        used = utilisation(streams, solve(streams, truth.resources), truth.resources)
        assert all(share < 1 for share in used.values())


@pytest.mark.parametrize("name", NAMES)
def test_more_cores_never_raise_what_communications_or_one_core_get(name: str) -> None:
    truth = TRUTHS[name]
    nodes = range(truth.shape.nodes)
    for comp, comm in product(nodes, nodes):
        result = of(truth, comp, comm)
        for fewer, more in pairwise(result):
            assert more[3] <= fewer[3] * (1 + 1e-9)
        for stream in (0, 2):
            each = [row[stream] / n for n, row in enumerate(result) if n]
            assert all(more <= fewer * (1 + 1e-9) for fewer, more in pairwise(each))


@pytest.mark.parametrize("name", NAMES)
def test_together_is_never_above_alone(name: str) -> None:
    truth = TRUTHS[name]
    nodes = range(truth.shape.nodes)
    for comp, comm in product(nodes, nodes):
        comp_alone, comm_alone, comp_together, comm_together = truth.streams(at(comp, comm, 9))
        assert comp_together <= comp_alone * (1 + 1e-9)
        assert comm_together <= comm_alone * (1 + 1e-9)


def test_communications_lose_before_the_cores_do() -> None:
    result = of(TRUTHS["henri"], 0, 0)
    first = [next(n for n, row in enumerate(result) if row[k + 2] < 0.99 * row[k]) for k in (1, 0)]
    assert first[0] < first[1]


def test_cores_of_the_second_socket_have_an_uplink_of_their_own() -> None:
    truth = TRUTHS["henrisubnuma"]
    alone = truth.streams(at(0, 3, 4))
    beside = truth.streams(at(0, 3, 4, 4))
    assert alone[0] < beside[0] < 2 * alone[0] * (1 + 1e-9)


def test_both_sockets_computing_leave_communications_less() -> None:
    truth = TRUTHS["henri"]
    assert truth.streams(at(0, 0, 18, 18))[3] < truth.streams(at(0, 0, 18))[3]


def test_every_node_of_a_socket_has_a_controller_of_its_own() -> None:
    truth = TRUTHS["henrisubnuma"]
    same, other = truth.streams(at(1, 1, 18)), truth.streams(at(1, 0, 18))
    assert same[3] < 0.9 * same[1]
    assert other[3] == pytest.approx(other[1], rel=0.01)


def test_without_computing_cores_communications_are_as_alone() -> None:
    comp_alone, comm_alone, comp_together, comm_together = TRUTHS["henri"].streams(at(0, 1, 0))
    assert (comp_alone, comp_together) == (0, 0)
    assert comm_together == comm_alone == pytest.approx(11459.6, rel=0.001)


@pytest.mark.parametrize("name", NAMES)
def test_the_published_curves_are_the_thesis_model_to_the_letter(name: str) -> None:
    model = published.load(name).model
    truth = PublishedCurves(model)
    counts = range(1, truth.shape.cores_first_socket + 1)
    for comp, comm in product(range(truth.shape.nodes), repeat=2):
        answer = [truth.streams(at(comp, comm, n)) for n in counts]
        assert answer == [tuple(row) for row in curve(model, comp, comm, counts, faithful=True).tolist()]


def test_the_published_curves_know_one_computing_socket() -> None:
    with pytest.raises(UsageError, match=r"both sockets.*henri:credits"):
        PublishedCurves(published.load("henri").model).streams(at(0, 0, 3, 1))


@pytest.mark.parametrize(
    ("situation", "field"),
    [
        (at(2, 0, 1), "comp_node"),
        (at(0, -1, 1), "comm_node"),
        (at(0, 0, 19), "n"),
        (at(0, 0, 1, 19), "n_other"),
    ],
)
def test_what_the_machine_has_not_is_refused_by_name(situation: Situation, field: str) -> None:
    for truth in (TRUTHS["henri"], PublishedCurves(published.load("henri").model)):
        with pytest.raises(UsageError) as refused:
            truth.streams(situation)
        assert refused.value.field == field


def test_the_same_seed_gives_the_same_sample_in_any_order() -> None:
    truth = TRUTHS["henri"]
    requested = [at(0, 0, n) for n in (3, 7, 11)]

    def samples(order: list[Situation]) -> dict[Situation, Streams]:
        return {s: truth.sample(s, 0.03, generator(5, truth.shape, s, 2)) for s in order}

    assert samples(requested) == samples(requested[::-1])


@pytest.mark.parametrize(
    "other", [(6, "henri", 7, 2), (5, "bora", 7, 2), (5, "henri", 8, 2), (5, "henri", 7, 3)]
)
def test_another_seed_machine_situation_or_repetition_has_other_noise(
    other: tuple[int, str, int, int],
) -> None:
    def factor(seed: int, name: str, n: int, repetition: int) -> float:
        return float(generator(seed, TRUTHS[name].shape, at(0, 0, n), repetition).normal())

    assert factor(5, "henri", 7, 2) != factor(*other)


def test_without_noise_a_sample_is_exact() -> None:
    truth = TRUTHS["bora"]
    assert truth.sample(at(1, 1, 9), 0, generator(1, truth.shape, at(1, 1, 9))) == truth.streams(at(1, 1, 9))


def test_noise_is_relative_independent_and_of_the_size_asked() -> None:
    import numpy

    truth, where = TRUTHS["henri"], at(0, 0, 9)
    exact = numpy.array(truth.streams(where))
    drawn = numpy.array([truth.sample(where, 0.03, generator(1, truth.shape, where, r)) for r in range(400)])
    factors = drawn / exact
    assert factors.std(axis=0) == pytest.approx([0.03] * 4, rel=0.15)
    assert factors.mean(axis=0) == pytest.approx([1] * 4, abs=0.006)
    assert abs(numpy.corrcoef(factors.T) - numpy.eye(4)).max() < 0.2


@pytest.mark.parametrize("noise", [-0.01, 0.21, float("nan")])
def test_noise_that_is_no_standard_deviation_is_refused(noise: float) -> None:
    truth, where = TRUTHS["henri"], at(0, 0, 1)
    with pytest.raises(UsageError, match="noise"):
        truth.sample(where, noise, generator(1, truth.shape, where))
