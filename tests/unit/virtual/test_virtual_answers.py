"""What a virtual machine answers: the laws around its truth, its noise, and the form of its records."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from elbowroom.models.curves import Situation
from elbowroom.plan.kernels import KERNELS
from elbowroom.points.point import Placement, Point, Steady
from elbowroom.points.unit import Unit
from elbowroom.virtual.answers import VirtualMachine
from elbowroom.virtual.laws import CYCLES_PER_ITEM, Exchange, ProcessRates, Work, answer
from elbowroom.virtual.machines import of_name
from elbowroom.virtual.truth import FLAG

LARGE = 64_000_000
HENRI = of_name("henri")
EXACT = VirtualMachine(HENRI, noise=0)
TRUTH = EXACT.truth


def of(
    kernel: str = "memset_nt",
    n: int = 18,
    size: int = LARGE,
    *,
    other: int = 0,
    cursor: int = 1,
    node: int = 0,
    pattern: str = "receive",
    **more: Any,
) -> ProcessRates:
    work = Work(kernel=kernel, cursor=cursor, cores=(n, other), comp_node=node)
    return answer(TRUTH, HENRI, work, Exchange(size=size, comm_node=node, pattern=pattern, **more))


def point(**changes: Any) -> Point:
    known: dict[str, Any] = {
        "plan": "p",
        "kernel": "triad",
        "n": 3,
        "size": LARGE,
        "comp_node": 0,
        "comm_node": 0,
        "comm_core": 35,
        "metric": "bandwidth",
        "comp_cores": (0, 1, 2),
        "comm_cores": (35,),
    }
    return Point(**(known | changes))


def asked(machine: VirtualMachine, repetition: int = 0, **changes: Any) -> dict[str, Any]:
    chosen = point(**changes)
    unit = Unit(point=chosen.id, repetition=repetition)
    return machine.answer(unit, chosen.workload.request(chosen, unit, Steady()))


def test_memset_beside_large_receptions_is_the_truth_itself() -> None:
    for n, node in ((1, 0), (14, 0), (18, 1)):
        said = of(n=n, node=node)
        found = said.comp_alone, said.comm_alone, said.comp_together, said.comm_together
        assert found == pytest.approx(TRUTH.streams(Situation(comp_node=node, comm_node=node, n=n)))


@pytest.mark.parametrize("kernel", [name for name, facts in KERNELS.items() if facts.moves_memory])
def test_a_kernel_moves_on_the_bus_what_memset_moves(kernel: str) -> None:
    facts, said, memset = KERNELS[kernel], of(kernel), of()
    share = facts.algorithmic_bytes / facts.bus_bytes
    assert said.comp_alone == pytest.approx(memset.comp_alone * share)  # type: ignore[operator]
    assert said.comp_together == pytest.approx(memset.comp_together * share)  # type: ignore[operator]
    assert said.comm_together == pytest.approx(memset.comm_together)


@pytest.mark.parametrize(
    "kernel", [name for name, facts in KERNELS.items() if not (facts.moves_memory or facts.pool)]
)
def test_a_kernel_without_memory_traffic_loses_nothing_and_takes_nothing(kernel: str) -> None:
    said = of(kernel)
    assert said.comp_together == said.comp_alone == pytest.approx(18 * (of(kernel, 1).comp_alone or 0))
    assert said.comm_together == said.comm_alone
    assert kernel in CYCLES_PER_ITEM


def test_computation_leaves_the_memory_bound_at_the_peak_of_its_cores_and_messages_recover() -> None:
    said = [of("triad_cursor", cursor=cursor) for cursor in (1, 16, 64, 256, 1024)]
    peak = 2.3e3 * 4  # Mflop/s and core
    kept = [one.comm_together / one.comm_alone for one in said]
    assert said[0].comp_alone == of("triad").comp_alone
    assert kept == sorted(kept)
    assert kept[0] < 0.93
    assert kept[-1] == pytest.approx(1)
    # TRIAD counts 24 B and two flops an item and repetition.
    assert said[-1].comp_alone == pytest.approx(18 * 24 * peak / (2 * 1024), rel=1e-6)


def test_between_whole_counts_the_weight_of_cores_is_interpolated() -> None:
    one = TRUTH.streams(Situation(comp_node=0, comm_node=0, n=1))[0]
    cursor = 256
    share = 32 * 2.3e3 * 4 / (2 * cursor) / one
    weight = 18 * share
    assert int(weight) != weight
    below, above = (
        TRUTH.streams(Situation(comp_node=0, comm_node=0, n=int(weight) + more))[2] for more in (0, 1)
    )
    part = weight - int(weight)
    assert of("triad_cursor", cursor=cursor).comp_together == pytest.approx(
        ((1 - part) * below + part * above) * 24 / 32
    )


def test_bandwidth_rises_with_message_size_up_to_that_of_large_ones() -> None:
    rates = [of(size=size, pattern="pingpong").comm_alone for size in (4, 1024, 65536, 1 << 20, LARGE)]
    assert rates == sorted(rates)
    assert rates[0] == pytest.approx(4 / HENRI.near_latency_us, rel=0.01)
    assert rates[-1] == pytest.approx(11481.1, rel=0.001)


def test_computation_loses_less_to_small_messages() -> None:
    lost = []
    for size in (4, 65536, LARGE):
        said = of(size=size, pattern="pingpong")
        assert said.comp_alone is not None
        assert said.comp_together is not None
        lost.append(1 - said.comp_together / said.comp_alone)
    assert lost == sorted(lost)
    assert lost[0] < 0.001
    assert lost[-1] > 0.1


def test_latency_grows_by_half_of_what_large_messages_lose() -> None:
    said, large = of(size=4, pattern="pingpong"), of()
    kept = large.comm_together / large.comm_alone
    assert said.latency_alone == pytest.approx(HENRI.near_latency_us, rel=0.001)
    assert said.latency_together / said.latency_alone == pytest.approx(1 + (1 / kept - 1) / 2, rel=0.001)


def test_a_communication_thread_far_from_the_nic_has_the_longer_latency() -> None:
    assert of(size=4, far=True).latency_alone == pytest.approx(HENRI.far_latency_us, rel=0.001)


def test_more_threads_send_more_until_the_nic_is_full() -> None:
    one, two, many = (of(size=4096, pattern="ring", threads=k).comm_alone for k in (1, 2, 16))
    assert two == pytest.approx(2 * one)
    assert many == pytest.approx(11481.1)


def test_processes_of_a_host_share_the_nic() -> None:
    whole, half = of(pattern="ring"), of(pattern="ring", share=0.5)
    assert half.comm_alone == pytest.approx(whole.comm_alone / 2, rel=0.001)
    assert half.comp_together > whole.comp_together  # type: ignore[operator]


def test_a_record_has_the_phases_asked_for_and_is_virtual_throughout() -> None:
    record = asked(EXACT)
    assert [phase["phase"] for phase in record["phases"]] == ["A", "B", "AB", "AB", "B", "A"]
    assert [("comp" in phase, "comm" in phase) for phase in record["phases"][:3]] == [
        (True, False),
        (False, True),
        (True, True),
    ]
    assert record["flags"] == [FLAG]
    assert all(phase["flags"] == [FLAG] and phase["measured_s"] == 0 for phase in record["phases"])


def test_without_a_kernel_there_is_communication_only() -> None:
    record = asked(EXACT, kernel="none", n=0, comp_cores=())
    assert all("comp" not in phase and "comm" in phase for phase in record["phases"])


def test_a_latency_is_in_microseconds() -> None:
    comm = asked(EXACT, metric="latency", size=4)["phases"][1]["comm"]
    # Core 35 is not on the NIC's socket.
    assert (comm["value"], comm["unit"]) == (pytest.approx(HENRI.far_latency_us, rel=0.001), "us")


def test_cores_of_the_second_socket_count_as_such() -> None:
    record = asked(EXACT, kernel="memset_nt", comp_cores=(0, 1, 18, 19, 20), n=5)
    found = TRUTH.streams(Situation(comp_node=0, comm_node=0, n=2, n_other=3))
    assert record["phases"][2]["comp"]["rate"] == pytest.approx(found[2], rel=1e-3)


def test_where_every_rank_computes_each_is_told() -> None:
    record = asked(EXACT, pattern="ring", computing_ranks="all")
    ranks = record["phases"][2]["ranks"]
    assert [rank["rank"] for rank in ranks] == [0, 1]
    assert ranks[0]["comp"] == record["phases"][2]["comp"] == ranks[1]["comp"]


def test_processes_per_socket_are_answered_each_at_its_place() -> None:
    places = tuple(
        Placement(rank=rank, comp_cores=(18 * (rank % 2),), comm_cores=(17 + 18 * (rank % 2),),
                  comp_node=rank % 2, comm_node=rank % 2)
        for rank in range(4)
    )  # fmt: skip
    record = asked(EXACT, pattern="ring", processes="socket", placements=places, computing_ranks="all")
    ranks = record["phases"][1]["ranks"]
    assert len(ranks) == 4
    assert ranks[0]["comm"]["value"] == pytest.approx(11481.1 / 2, rel=0.001)


def test_the_same_seed_answers_alike_in_any_order_and_another_does_not() -> None:
    noisy = [VirtualMachine(HENRI, noise=0.02, seed=seed) for seed in (7, 7, 8)]
    forth = [asked(noisy[0], repetition) for repetition in (0, 1, 2)]
    back = [asked(noisy[1], repetition) for repetition in (2, 1, 0)]
    assert forth == back[::-1]
    assert forth[0] != asked(noisy[2], 0)
    assert forth[0]["phases"] != forth[1]["phases"]


def test_every_phase_and_side_has_noise_of_its_own() -> None:
    phases = asked(VirtualMachine(HENRI, noise=0.02))["phases"]
    exact = asked(EXACT)["phases"]
    factors = {
        phase[side][key] / known[side][key]
        for phase, known in zip(phases, exact, strict=True)
        for side, key in (("comp", "rate"), ("comm", "value"))
        if side in phase
    }
    assert len(factors) == 8
    assert all(0.9 < factor < 1.1 for factor in factors)


def test_what_no_law_covers_is_refused_with_the_reason() -> None:
    assert EXACT.refuse(point()) == ""
    assert "none is simulated" in EXACT.refuse(point(scheduling=True))
    for kernel in ("polling", "paused"):
        assert "no list of tasks is simulated" in EXACT.refuse(point(kernel=kernel))


def test_a_side_that_is_not_known_is_refused_with_the_reason() -> None:
    for truth in ("published", "credits"):
        half = VirtualMachine(msgspec.structs.replace(HENRI, remote=None, truth=truth))
        assert half.refuse(point()) == ""
        assert "remote" in half.refuse(point(comp_node=1, comm_node=1))
