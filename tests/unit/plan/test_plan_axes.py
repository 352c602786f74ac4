"""Plans expand for a machine: who sits where, in which order, what the probe is asked, what is refused."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from elbowroom import experiments
from elbowroom.errors import UsageError
from elbowroom.experiments.plans import Overrides, apply, load, names
from elbowroom.machine.topology import Cache, Machine
from elbowroom.plan.axes import expand, is_control
from elbowroom.plan.file import Plan
from elbowroom.plan.kernels import KERNELS
from elbowroom.plan.order import closing_points, estimate, measured, order_units
from elbowroom.plan.placement import MIB, far_node, near_node, seats, working_set
from elbowroom.plan.validation import validate
from elbowroom.points.point import Point, Steady
from elbowroom.points.unit import Unit
from elbowroom.stats.signed_ranks import FEWEST
from studies import HENRI, SMALL, machine


def plan(**more: object) -> Plan:
    return Plan(name="test", experiment="cores", **more)  # type: ignore[arg-type]


def test_on_two_cores_both_ranks_share_core_0_and_the_kernel_has_core_1() -> None:
    for point in expand(plan(), SMALL).points:
        assert (point.comm_cores, point.peer_cores, point.comp_cores) == ((0,), (0,), (1,))


def test_on_one_host_with_four_cores_the_peer_has_a_core_of_its_own() -> None:
    point = expand(plan(), machine(8)).points[0]
    assert (point.comm_cores, point.peer_cores) == ((7,), (6,))
    assert point.comp_cores == (0, 1, 2, 3, 4, 5)


def test_with_two_hosts_all_cores_but_the_last_compute_in_logical_order() -> None:
    point = expand(plan(), HENRI).points[0]
    assert (point.comm_core, point.n) == (35, 35)
    assert point.comp_cores == tuple(range(35))


def test_computing_cores_skip_a_communication_core_in_their_midst() -> None:
    point = expand(plan(comm_cores=(3,), n=(5,)), HENRI).points[0]
    assert point.comp_cores == (0, 1, 2, 4, 5)


def test_cores_outside_the_cpuset_are_not_used() -> None:
    here = msgspec.structs.replace(HENRI, allowed=(0, 1, 2, 3))
    point = expand(plan(), here).points[0]
    assert {*point.comp_cores, *point.comm_cores} == {0, 1, 2, 3}


def test_cores_named_for_computing_are_not_taken_for_communication() -> None:
    points = expand(apply(load("quick"), Overrides(comp_cores=(0,))), SMALL).points
    assert {point.comm_core for point in points} == {1}
    validate(points, SMALL)


def test_communication_threads_take_neighbouring_cores_and_are_not_computing_cores() -> None:
    found = seats(HENRI, 35, 4)
    assert found is not None
    assert found.comm_cores == (35, 34, 33, 32)
    assert not set(found.comm_cores) & set(found.comp_cores)


def test_the_first_socket_only_computes_where_the_plan_says_so() -> None:
    points = expand(plan(pool="socket", n=("every",)), HENRI).points
    assert max(point.n for point in points) == 18
    assert all(core < 18 for point in points for core in point.comp_cores)


def test_near_is_the_node_of_the_nic_and_far_is_on_another_socket() -> None:
    assert (near_node(HENRI), far_node(HENRI)) == (0, 3)
    other = machine(36, 4, 2, nic=3, hosts=2)
    assert near_node(other) == 3
    assert far_node(other) in (0, 1)
    assert far_node(SMALL) is None


def test_far_is_a_note_on_a_machine_of_one_node() -> None:
    expansion = expand(plan(comp_nodes=("near", "far"), comm_cores=("near", "far")), machine(8))
    assert {note.what for note in expansion.notes} >= {
        "data far from the NIC",
        "communication thread far from the NIC",
    }
    assert {point.comp_node for point in expansion.points} == {0}


def test_more_cores_than_there_are_become_a_note() -> None:
    expansion = expand(plan(n=(1, 20)), SMALL)
    assert [note.what for note in expansion.notes] == ["n = 20"]
    assert {point.n for point in expansion.points} == {1}


def test_a_control_is_added_at_the_largest_n_and_size() -> None:
    points = expand(plan(n=("every",), sizes=(4, 64_000_000)), HENRI).points
    control = [point for point in points if point.role == "control"]
    assert [(point.kernel, point.n, point.size) for point in control] == [("prime", 35, 64_000_000)]


def test_no_control_is_added_where_the_plan_measures_one() -> None:
    points = expand(plan(kernels=("triad", "prime")), HENRI).points
    assert all(point.role == "point" for point in points)
    assert sum(is_control(point, list(points)) for point in points) == 1


def test_sizes_have_neighbours_a_few_bytes_away() -> None:
    sizes = {point.size for point in expand(plan(sizes=(4, 1024, 1536), around=3), SMALL).points}
    assert sizes == {4, 1021, 1024, 1027, 1536}


def test_a_cursor_belongs_to_kernels_that_have_one() -> None:
    points = expand(plan(kernels=("triad", "triad_cursor"), cursors=(1, 8), control=False), SMALL).points
    assert {(point.kernel, point.cursor) for point in points} == {
        ("triad", 1),
        ("triad_cursor", 1),
        ("triad_cursor", 8),
    }


def test_small_messages_are_latencies_and_large_ones_bandwidths() -> None:
    metrics = {point.size: point.metric for point in expand(plan(sizes=(4, 65535, 65536)), SMALL).points}
    assert metrics == {4: "latency", 65535: "latency", 65536: "bandwidth"}


def test_only_round_trips_have_a_latency() -> None:
    ring = experiments.get("ring").expand(apply(load("ring"), Overrides(sizes=(4, 65536))), HENRI).points
    assert {point.metric for point in ring} == {"bandwidth"}
    with pytest.raises(UsageError, match="only the pattern pingpong makes round trips"):
        validate(expand(plan(pattern="ring", metric="latency"), HENRI).points, HENRI)


def test_the_working_set_is_four_caches_unless_memory_is_short() -> None:
    triad = KERNELS["triad"]
    assert working_set(triad, 1, 0, HENRI) == 100 * MIB
    assert working_set(KERNELS["memset_nt"], 1, 0, HENRI) == 256 * MIB
    assert working_set(KERNELS["prime"], 1, 0, HENRI) == 0
    assert working_set(triad, 35, 0, HENRI) * 35 <= 16 << 30
    short = msgspec.structs.replace(
        HENRI, nodes=tuple(msgspec.structs.replace(node, memory=1 << 30) for node in HENRI.nodes)
    )
    assert working_set(triad, 35, 0, short) * 35 <= 1 << 29
    bare = msgspec.structs.replace(HENRI, caches=())
    assert working_set(triad, 1, 0, bare) == 1 << 30


def test_a_cache_resident_working_set_fits_in_the_private_cache() -> None:
    caches = (*HENRI.caches, Cache(level=2, size=MIB, cores=(0,)))
    assert (
        working_set(KERNELS["triad_cache"], 1, 0, msgspec.structs.replace(HENRI, caches=caches)) == MIB // 2
    )


def test_threads_in_the_shared_cache_take_a_quarter_of_it_together() -> None:
    kernel = KERNELS["triad_llc"]
    assert working_set(kernel, 1, 0, HENRI) == HENRI.last_level_cache // 4
    assert working_set(kernel, 4, 0, HENRI) * 4 <= HENRI.last_level_cache // 4
    assert working_set(kernel, 1, 0, msgspec.structs.replace(HENRI, caches=())) == 2 * MIB


def test_every_repetition_visits_every_point_once() -> None:
    points = expand(plan(n=("every",)), HENRI).points
    units = [unit for unit in order_units(points, 4, seed=1) if not unit.closing]
    assert Counter((unit.point, unit.repetition) for unit in units) == {
        (point.id, repetition): 1 for point in points for repetition in range(4)
    }
    assert [unit.repetition for unit in units] == sorted(unit.repetition for unit in units)


def test_each_repetition_has_an_order_of_its_own() -> None:
    points = expand(plan(n=("every",)), HENRI).points
    units = order_units(points, 2, seed=1)
    first = [unit.point for unit in units[: len(points)]]
    second = [unit.point for unit in units[len(points) : 2 * len(points)]]
    assert first != second


def test_reverse_turns_each_repetition_round() -> None:
    points = expand(plan(n=("every",)), HENRI).points
    forth, back = order_units(points, 3, seed=7), order_units(points, 3, seed=7, reverse=True)
    for start in range(0, 3 * len(points), len(points)):
        assert forth[start : start + len(points)] == back[start : start + len(points)][::-1]


def test_closing_units_hold_every_computation_and_every_communication() -> None:
    points = expand(load("placement"), HENRI).points
    chosen = closing_points(points)
    assert {(p.kernel, p.n, p.comp_node) for p in chosen} == {(p.kernel, p.n, p.comp_node) for p in points}
    assert {(p.size, p.comm_node, p.comm_core) for p in chosen} == {
        (p.size, p.comm_node, p.comm_core) for p in points
    }
    assert len(chosen) < len(points) / 4
    units = order_units(points, 1, seed=1)
    assert [unit.point for unit in units if unit.closing]
    assert not any(unit.closing for unit in units[: len(points)])


def test_a_request_asks_what_the_protocol_says() -> None:
    point = expand(plan(sizes=(64 * MIB,)), SMALL).points[0]
    message = point.workload.request(point, Unit(point=point.id, repetition=3), Steady())
    assert message["op"] == "measure"
    assert (message["point"], message["repetition"]) == (point.id, 3)
    assert message["sequence"] == ["A", "B", "AB", "AB", "B", "A"]
    assert (message["comp_cores"], message["comm_cores"], message["peer_cores"]) == ([1], [0], [0])
    assert message["steady"] == {"window": 7, "cov": 0.05, "limit": 1.0}
    assert "placements" not in message


def test_a_closing_request_measures_the_baselines_only() -> None:
    point = expand(plan(), SMALL).points[0]
    closing = Unit(point=point.id, repetition=0, closing=True)
    assert set(point.workload.request(point, closing, Steady())["sequence"]) == {"A", "B"}  # type: ignore[call-overload]
    bare = expand(plan(kernels=("none",), control=False), SMALL).points[0]
    assert set(bare.workload.request(bare, closing, Steady())["sequence"]) == {"B"}  # type: ignore[call-overload]


def test_quick_has_an_interval_of_every_point_in_half_of_its_budget_on_two_cores() -> None:
    quick = load("quick")
    points = experiments.get("quick").expand(quick, SMALL).points
    units = order_units(points, FEWEST, quick.seed)
    assert quick.budget == 120
    assert estimate(points, units) <= 60
    assert measured(points, units) >= 0.7 * estimate(points, units)


def test_large_messages_take_longer_than_the_window() -> None:
    slow = expand(plan(sizes=(4_000_000_000,), control=False), HENRI).points
    fast = expand(plan(sizes=(4,), control=False), HENRI).points
    assert estimate(slow, order_units(slow, 2, 1)) > 2 * estimate(fast, order_units(fast, 2, 1))


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize(
    "here", [SMALL, machine(8, nic=0), machine(8, 2, 2), HENRI], ids=["2", "8", "2x4", "henri"]
)
def test_every_named_plan_gives_valid_points_on_every_machine(name: str, here: Machine) -> None:
    chosen = load(name)
    expansion = experiments.get(chosen.experiment).expand(chosen, here)
    validate(expansion.points, here, hosts=chosen.hosts)
    assert len({point.id for point in expansion.points}) == len(expansion.points)
    assert any(point.kernel == "prime" for point in expansion.points)
    assert all(note.reason for note in expansion.notes)
    assert len({note.what for note in expansion.notes}) == len(expansion.notes)


def point(**more: object) -> Point:
    return msgspec.structs.replace(expand(plan(control=False, sizes=(4,)), machine(8, 2)).points[0], **more)


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("comp_cores", {"comp_cores": (0, 9)}),
        ("comp_cores", {"comp_cores": (1, 1)}),
        ("comp_cores", {"comp_cores": ()}),
        ("comm_core", {"comm_cores": (9,)}),
        ("comm_core", {"comm_cores": (0,)}),
        ("peer_core", {"peer_cores": (0,)}),
        ("peer_core", {"peer_cores": (77,)}),
        ("comp_node", {"comp_node": 2}),
        ("comm_node", {"comm_node": 5}),
        ("sizes", {"size": 0}),
        ("sizes", {"size": -4}),
        ("sizes", {"size": 1 << 40}),
        ("working_set", {"working_set": 1 << 40}),
        ("kernels", {"kernel": "traid"}),
        ("metric", {"metric": "speed"}),
    ],
)
def test_a_point_that_cannot_be_measured_is_refused(field: str, changes: dict[str, object]) -> None:
    with pytest.raises(UsageError) as error:
        validate([point(**changes)], machine(8, 2))
    assert error.value.field == field
    assert error.value.hint


def test_a_core_outside_the_cpuset_is_refused_with_the_cpuset() -> None:
    here = msgspec.structs.replace(machine(8, 2), allowed=(0, 1, 7))
    with pytest.raises(UsageError, match="outside the cpuset"):
        validate([point()], here)


def test_a_hardware_thread_is_no_core() -> None:
    two_threads = machine(8)
    cores = tuple(
        msgspec.structs.replace(core, pus=(core.number, core.number + 8)) for core in two_threads.cores
    )
    with pytest.raises(UsageError, match="second hardware thread of core 1"):
        validate([point(comp_cores=(9,))], msgspec.structs.replace(two_threads, cores=cores))


def test_two_threads_on_one_core_are_measured_on_purpose_only() -> None:
    shared = point(comm_cores=(0,))
    validate([shared], machine(8, 2), scheduling=True)
    with pytest.raises(UsageError, match="scheduling"):
        validate([shared], machine(8, 2))


def test_more_ranks_than_slots_are_refused() -> None:
    with pytest.raises(UsageError) as error:
        validate([point()], machine(8, 2), slots=1)
    assert error.value.field == "slots"


def test_a_plan_for_two_hosts_is_refused_on_one() -> None:
    with pytest.raises(UsageError, match="needs 2 hosts"):
        validate([point()], machine(8, 2), hosts=2)


def test_nothing_to_measure_is_refused() -> None:
    with pytest.raises(UsageError, match="nothing to measure"):
        validate([], SMALL)


def test_strong_scaling_splits_the_array_of_one_core_among_all() -> None:
    weak, strong = (
        {
            point.n: point.working_set
            for point in expand(plan(n=("every",), scaling=scaling), HENRI).points
            if point.role == "point"
        }
        for scaling in ("weak", "strong")
    )
    assert strong[1] == weak[1]
    assert all(0 <= strong[1] - n * size < 64 * n for n, size in strong.items())


def test_strong_scaling_splits_a_named_working_set() -> None:
    points = expand(plan(n=(4,), scaling="strong", working_set=2**30), HENRI).points
    assert {point.working_set for point in points if point.role == "point"} == {2**28}


def test_all_ranks_compute_where_a_plan_says_so() -> None:
    points = expand(plan(n=(4,), computing_ranks="all"), HENRI).points
    assert {point.computing_ranks for point in points} == {"all"}


def test_all_ranks_of_a_single_host_cannot_compute_on_the_same_cores() -> None:
    with pytest.raises(UsageError, match="two hosts") as caught:
        expand(plan(n=(1,), computing_ranks="all"), SMALL)
    assert caught.value.field == "computing_ranks"


def test_a_thread_far_from_the_nic_is_the_default_one_on_a_machine_of_one_node() -> None:
    expansion = expand(
        plan(n=(1,), comm_cores=("far",)), msgspec.structs.replace(HENRI, nodes=HENRI.nodes[:1])
    )
    assert {point.comm_core for point in expansion.points} == {35}
    assert any("core 35 communicates" in note.reason for note in expansion.notes)


def test_both_kernels_of_the_paper_are_in_its_plans() -> None:
    for name in ("cores", "placement", "sizes"):
        assert set(load(name).kernels) == {"triad", "copy"}
