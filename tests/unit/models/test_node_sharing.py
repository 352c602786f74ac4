"""Two jobs in one node's memory and last-level cache, with a model whose answers are known."""

from __future__ import annotations

import numpy as np
import pytest

from elbowroom.errors import UsageError
from elbowroom.models.flow.extras import Extension
from elbowroom.models.flow.loads import evaluate, prepare
from elbowroom.models.load import Computing, Load
from elbowroom.models.node_sharing import CoreDemand, NodeUse, SharedCache, check_use, rates, share_node
from made_node_model import CONTROLLER, CORE, node_model

GIGA = 1e9
CACHE = SharedCache(size=32 << 20, ways=16)


def use(memory: float, *, cores: int = 1, working_set: float = 0.0, reuse: float = 0.0) -> NodeUse:
    """GB/s and MiB."""
    return NodeUse(cores=cores, memory=memory * GIGA, working_set=working_set * 2**20, reuse=reuse * GIGA)


def test_stated_demands_share_as_groups_of_cores_do() -> None:
    document = node_model(dip_local=0.1, rise_local=0.2)
    part = document.models.flow
    assert part is not None
    got = rates(document, [(CoreDemand(cores=2, demand=np.inf), CoreDemand(cores=1, demand=np.inf))])
    load = Load(
        computing=(Computing(socket=0, node=0, count=2), Computing(socket=0, node=0, count=1)), messages=None
    )
    groups = evaluate(part.vectors, Extension(), prepare(document.machine, [load])).groups
    assert got[:, 0, 0] == pytest.approx(groups[:, 0, 0])


def test_jobs_that_ask_for_more_than_memory_has_get_their_share() -> None:
    found = share_node(node_model(), use(10), use(10))
    for one in found.slower:
        assert one.value == pytest.approx(20 / 15)
    assert found.cache is None


def test_where_memory_has_room_nobody_loses() -> None:
    small, large = share_node(node_model(), use(5), use(10, cores=1)).slower
    assert small.value == pytest.approx(1)
    assert large.value == pytest.approx(1)


def test_where_memory_is_full_cores_are_served_by_their_demand() -> None:
    small, large = share_node(node_model(), use(3), use(20, cores=2)).slower
    # THRIFT is 1: the weight of a core is its demand. 23 GB/s are asked of 15.
    assert small.value == pytest.approx(23 / 15)
    # Alone it is limited to 15 already.
    assert large.value == pytest.approx(23 / 20)


def test_a_job_without_memory_traffic_neither_loses_nor_costs_anything() -> None:
    none, other = share_node(node_model(discrepancy=0.05), use(0), use(10)).slower
    assert (none.value, none.low, none.high) == (1, 1, 1)
    assert other.value == pytest.approx(1)
    assert other.low < 1 < other.high


def test_sockets_share_alike() -> None:
    found = share_node(node_model(sockets=2), use(20, cores=2), use(20, cores=2))
    assert found.slower[0].value == pytest.approx(20 / 15)


def test_traffic_counts_in_bytes_on_the_bus() -> None:
    # A triad of 10 GB/s moves 13.3: each core's kernel is as fast, and so is the controller.
    found = share_node(node_model(kernel="triad"), use(40 / 3), use(40 / 3))
    assert found.slower[0].value == pytest.approx(20 / 15)


def test_working_sets_that_fit_together_cost_nothing() -> None:
    found = share_node(node_model(), use(0, working_set=8, reuse=20), use(0, working_set=8, reuse=20), CACHE)
    assert found.cache is not None
    assert found.slower[0].value == pytest.approx(1, abs=0.001)


def test_working_sets_that_do_not_fit_become_memory_traffic() -> None:
    found = share_node(
        node_model(), use(0, working_set=24, reuse=20), use(0, working_set=24, reuse=20), CACHE
    )
    assert found.cache is not None
    alone, beside = found.cache[0]
    assert alone > 0.8
    assert beside < 0.3
    # Where the least recently used lines leave, more than 12 of the 20 GB/s come from memory, of which each
    # gets 7.5; where random ones leave, it is less.
    low, high = found.slower[0].ends(0)
    assert high > 1.6
    assert low < 1.6
    assert low < found.slower[0].value < high
    assert found.slower[0] == found.slower[1]


def test_a_stream_takes_the_cache_from_a_job_that_reuses() -> None:
    cached, stream = share_node(node_model(), use(0, working_set=16, reuse=12), use(10), CACHE).slower
    assert cached.high is not None
    assert cached.high > cached.value > 1.03
    assert stream.value > 1


def test_an_unknown_working_set_leaves_the_cache_out() -> None:
    unknown = NodeUse(cores=1, memory=GIGA)
    assert share_node(node_model(), unknown, use(0, working_set=24, reuse=20), CACHE).cache is None


def test_what_the_model_cannot_follow_is_in_the_interval() -> None:
    wide, narrow = (
        share_node(node_model(discrepancy=0.1), use(memory), use(10)).slower[0] for memory in (10, 1)
    )
    assert wide.high / wide.value == pytest.approx(np.exp(1.645 * 0.1), rel=0.01)
    assert 1 < narrow.high / narrow.value < 1.03


@pytest.mark.parametrize(
    ("job", "field", "words"),
    [
        (use(1, cores=5), "model", "5 ranks on a node, and made has 4 cores"),
        (use(16), "memory", "more than 1 core of made reach"),
        (use(31, cores=4), "memory", "more than 4 cores of made reach"),
    ],
)
def test_what_no_job_on_that_machine_does_is_refused(job: NodeUse, field: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as error:
        check_use(node_model(), job, field=field, name="cg")
    assert error.value.field == field
    assert CONTROLLER > CORE
