"""A virtual GPU: its SMs, memory and link, against published figures, and what it refuses."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.errors import UsageError
from elbowroom.launch.virtual import load
from elbowroom.machine.gpu import GpuFacts
from elbowroom.points.gpu import GpuCase
from elbowroom.points.point import Point, Steady
from elbowroom.points.unit import Unit
from elbowroom.virtual.answers import VirtualMachine
from elbowroom.virtual.definition import decode, encode
from elbowroom.virtual.gpu import Gpu, GpuSide, sides_of
from elbowroom.virtual.gpu_answers import free_sms, gpu_rates, grid, refuse_case, waves
from elbowroom.virtual.machines import MACHINES

PUBLISHED = Path(__file__).parents[2] / "data" / "gpu_published.csv"
DEFINITION = MACHINES.get("h200-nvl")
EXACT = VirtualMachine(DEFINITION, noise=0)
HOST = EXACT.gpu_host()
GPU = Gpu()

UP = GpuSide(kind="gemm", m=8192, n=4096, k=7168)
DOWN = GpuSide(kind="gemm", m=8192, n=7168, k=2048)
TRIAD = GpuSide(kind="triad", bytes=3 << 30)
CHAIN = GpuSide(kind="chain", launches=50)


def copy(direction: str, size: int = 64 << 20, node: int = -1) -> GpuSide:
    return GpuSide(kind="copy", direction=direction, bytes=size, node=node)


def sm_copy(sms: int, direction: str = "hbm", pace_mb_s: float = 0) -> GpuSide:
    """In pairs, as published."""
    return GpuSide(
        kind="sm_copy", sms=sms, direction=direction, bytes=1 << 28, pace_mb_s=pace_mb_s, pairs=True
    )


def idle(sms: int) -> GpuSide:
    """In pairs, as published."""
    return GpuSide(kind="sm_idle", sms=sms, pairs=True)


def cores(count: int, kernel: str = "memset_nt") -> GpuSide:
    return GpuSide(kind="cores", kernel=kernel, cores=tuple(range(count)), node=0)


def value(*sides: GpuSide, gpu: Gpu = GPU) -> float:
    """Of the first side, while all run."""
    first = gpu_rates(gpu, HOST, sides)[0]
    assert first is not None
    return first.value


def kept(victim: GpuSide, *movers: GpuSide, gpu: Gpu = GPU) -> float:
    """Of a product that is planned for all SMs when alone."""
    alone = msgspec.structs.replace(victim, sm_target=0)
    return value(victim, *movers, gpu=gpu) / value(alone, gpu=gpu)


# SMs


def test_every_sm_is_held_once() -> None:
    for pairs in (True, False):
        held = range(0, GPU.sms + 1, 2)
        assert all(sum(free_sms(GPU, count, pairs=pairs)) == GPU.sms - count for count in held)


def test_pairs_are_taken_from_the_gpcs_whose_sm_numbers_were_recorded() -> None:
    """Four TPCs of the largest GPCs first, then those of six GPCs: SMs 124-131, then 0-11 (k = 8 and 20)."""
    assert free_sms(GPU, 8, pairs=True) == (16, 16, 16, 16, 16, 16, 14, 14)
    assert free_sms(GPU, 20, pairs=True) == (14,) * 8


def test_a_plan_has_the_largest_clusters_that_divide_it_and_fit() -> None:
    assert [grid(GPU, target).size for target in (132, 124, 116, 112, 100, 7)] == [2, 2, 4, 8, 4, 1]


def test_held_sms_may_leave_a_product_without_a_cluster() -> None:
    assert waves(GPU, 1024, 112, free_sms(GPU, 112)) == 0


# Against the published figures: the shape of `UP` was used to set the device up, that of `DOWN` was not


def published(victim: str, shape: str, mover: str) -> list[dict[str, str]]:
    rows = csv.DictReader(PUBLISHED.read_text(encoding="ascii").splitlines())
    return [row for row in rows if (row["victim"], row["shape"], row["mover"]) == (victim, shape, mover)]


@pytest.mark.parametrize(("victim", "shape"), [(UP, "8192x4096x7168"), (DOWN, "8192x7168x2048")])
def test_a_product_planned_for_fewer_sms_is_within_three_points_of_the_published_one(
    victim: GpuSide, shape: str
) -> None:
    for row in published("gemm", shape, "sm_target"):
        planned = kept(victim, GpuSide(kind="sm_target", sms=int(row["sms"])))
        assert planned == pytest.approx(float(row["kept"]), abs=0.03)


@pytest.mark.parametrize("victim", [UP, DOWN])
def test_a_product_beside_20_held_sms_keeps_less_than_beside_32(victim: GpuSide) -> None:
    """As published, 49 % and 65 %: its clusters of eight fit badly on what is left."""
    shares = [kept(msgspec.structs.replace(victim, sm_target=132 - k), idle(k)) for k in (20, 32)]
    assert shares[0] == pytest.approx(0.5, abs=0.05)
    assert shares[0] < shares[1] - 0.1


def test_bytes_that_sms_copy_inside_the_device_cost_a_product_nothing_beyond_the_sms() -> None:
    planned = msgspec.structs.replace(UP, sm_target=116)
    assert kept(planned, sm_copy(16)) == pytest.approx(kept(planned, idle(16)), abs=0.01)


def test_stores_of_sms_to_the_host_stop_a_product_and_a_copy_engine_does_not() -> None:
    stored = [kept(msgspec.structs.replace(UP, sm_target=132 - k), sm_copy(k, "host")) for k in (4, 8, 20)]
    assert stored[0] == pytest.approx(0.342, abs=0.02)
    assert stored[1] < 0.25
    assert stored[2] < 0.05
    assert kept(UP, copy("d2h")) > 0.99


def test_stores_that_the_link_carries_do_not_wait() -> None:
    assert kept(UP, sm_copy(4, "host", pace_mb_s=5000)) == pytest.approx(kept(UP, idle(4)), abs=0.01)


def test_a_copy_inside_the_device_costs_a_triad_what_it_takes_of_the_memory() -> None:
    assert kept(TRIAD, copy("d2d")) == pytest.approx(0.97, abs=0.01)
    assert kept(TRIAD, copy("d2h")) == pytest.approx(0.993, abs=0.005)


def test_idle_sms_cost_a_triad_less_than_their_share() -> None:
    for k, share in ((4, 0.972), (20, 0.926), (32, 0.92)):
        assert kept(TRIAD, idle(k)) == pytest.approx(share, abs=0.035)
        assert kept(TRIAD, idle(k)) > 1 - k / 132


@pytest.mark.parametrize(("size", "rate"), [(65_536, 46_500), (262_144, 70_900), (1 << 20, 81_600)])
def test_small_copies_inside_the_device_have_the_published_rates(size: int, rate: float) -> None:
    assert value(copy("d2d", size)) == pytest.approx(rate, rel=0.01)


# Everything else


def test_a_launch_takes_longer_only_behind_stores_to_the_host() -> None:
    assert value(CHAIN, copy("both"), idle(8)) == value(CHAIN)
    assert value(CHAIN, sm_copy(4, "host")) > 2 * value(CHAIN)


def test_copies_in_both_directions_share_the_link() -> None:
    assert value(copy("both")) < value(copy("h2d")) + value(copy("d2h"))
    assert value(copy("h2d"), copy("h2d")) == pytest.approx(value(copy("h2d")) / 2, rel=0.01)


def test_copies_cost_cores_that_fill_the_same_node() -> None:
    assert kept(cores(24), copy("both", node=0)) < 0.9
    assert kept(cores(24), copy("both", node=1)) > 0.99
    assert kept(cores(24, "prime"), copy("both", node=0)) == 1


def test_all_three_streams_on_one_node_get_less_than_in_pairs() -> None:
    messages = GpuSide(kind="messages", bytes=64 << 20, core=31, peer_core=31)
    assert value(messages, cores(16), copy("both")) < value(messages, copy("both")) < value(messages)
    assert value(cores(16), copy("both"), messages) < value(cores(16), messages) < value(cores(16))


@given(
    st.sampled_from([UP, DOWN, TRIAD, copy("h2d"), copy("d2d"), cores(8)]),
    st.one_of(
        st.builds(idle, st.integers(1, 100)),
        st.builds(sm_copy, st.integers(1, 100), st.sampled_from(["hbm", "host"]), st.floats(0, 1e5)),
        st.builds(copy, st.sampled_from(["h2d", "d2h", "both", "d2d"]), st.integers(1, 1 << 30)),
    ),
)
def test_a_mover_never_makes_a_victim_faster(victim: GpuSide, mover: GpuSide) -> None:
    assert kept(victim, mover) <= 1 + 1e-9


# The machine


CASE: dict[str, Any] = {
    "a": {"kind": "gemm", "m": 8192, "n": 4096, "k": 7168},
    "b": {"kind": "copy", "direction": "d2d", "bytes": 1 << 26},
    "name": "gemm beside a copy",
    "first": "a",
}


def asked(case: dict[str, Any], *sequence: str) -> dict[str, Any]:
    return {"op": "measure", "sequence": list(sequence), "case": case}


def test_an_answer_has_the_sides_of_each_phase_and_says_that_it_is_virtual() -> None:
    record = EXACT.answer(Unit(point="p", repetition=0), asked(CASE, "A", "B", "AB"))
    alone, mover, together = record["phases"]
    assert ("comp" in alone, "comm" in alone) == (True, False)
    assert ("comp" in mover, "comm" in mover) == (False, True)
    assert together["comp"]["rate"] == pytest.approx(alone["comp"]["rate"], rel=0.01)
    assert together["comm"]["unit"] == "MB/s"
    assert all("virtual" in flags for flags in (record["flags"], alone["flags"]))


def test_the_streams_of_a_case_of_three_have_names() -> None:
    case = {
        "a": {"kind": "cores", "kernel": "triad", "cores": [0, 1], "node": 0, "cursor": 1},
        "b": {"kind": "copy", "direction": "h2d", "bytes": 1 << 26},
        "c": {"kind": "messages", "bytes": 1 << 20, "latency": True, "core": 31, "peer_core": 31},
    }
    record = EXACT.answer(Unit(point="p", repetition=0), asked(case, "ABC", "BC", "AB"))
    every, pair, two = record["phases"]
    assert {name: stream["unit"] for name, stream in every["streams"].items()} == {
        "cores": "MB/s",
        "copies": "MB/s",
        "messages": "us",
    }
    assert set(pair["streams"]) == {"copies", "messages"}
    assert "comp" not in every
    assert two["comp"]["rate"] == two["streams"]["cores"]["value"]


def test_noise_is_of_the_seed_and_has_mean_one() -> None:
    def rates(seed: int) -> list[float]:
        machine = VirtualMachine(DEFINITION, noise=0.01, seed=seed)
        record = machine.answer(Unit(point="p", repetition=0), asked(CASE, *["A"] * 50))
        return [phase["comp"]["rate"] for phase in record["phases"]]

    assert rates(1) == rates(1) != rates(2)
    assert sum(rates(1)) / 50 == pytest.approx(value(UP), rel=0.005)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"b": {"kind": "sm_idle", "sms": 132}}, "132 SMs would be held, but virtual H200 NVL"),
        ({"b": {"kind": "sm_idle", "sms": 131}}, "no SMs are left that a product fits on"),
        ({"b": {"kind": "nvlink"}}, "does not know this side"),
        ({"b": {"kind": "copy", "direction": "sideways", "bytes": 1}}, "no copies in the direction sideways"),
        ({"b": {"kind": "copy", "direction": "d2d", "engine": "plain", "bytes": 1}}, "copy engine"),
        ({"a": {"kind": "cores", "kernel": "polling", "cores": [0], "node": 0}}, "no list of tasks"),
        ({"a": {"kind": "cores", "kernel": "triad", "cores": list(range(33)), "node": 0}}, ""),
    ],
)
def test_what_a_virtual_gpu_does_not_know_is_refused_in_a_sentence(
    change: dict[str, Any], reason: str
) -> None:
    refusal = refuse_case(Gpu(name="virtual H200 NVL"), HOST, CASE | change)
    assert reason in refusal
    assert bool(reason) == bool(refusal)


def point(**case: Any) -> Point:
    known: dict[str, Any] = {"victim": "gemm", "mover": "sm_idle", "sms": 8}
    return Point(
        plan="gpu-overlap",
        kernel="none",
        n=0,
        size=0,
        comp_node=0,
        comm_node=0,
        comm_core=0,
        metric="bandwidth",
        workload=GpuCase(**(known | case)),
    )


@pytest.mark.parametrize(
    ("machine", "case", "reason"),
    [
        ("henri", {}, "this virtual machine has no GPU"),
        ("h200-nvl", {"sms": 132}, "k = 132: the device has 132 SMs; k is at most 131"),
        ("h200-nvl", {"sms": 131}, "no SMs are left that a product fits on"),
        ("h200-nvl", {}, ""),
        ("h200-nvl:published", {}, ""),
    ],
)
def test_a_point_that_cannot_be_answered_has_the_reason(
    machine: str, case: dict[str, Any], reason: str
) -> None:
    refusal = VirtualMachine(load(machine).definition).refuse(point(**case))
    assert reason in refusal
    assert bool(reason) == bool(refusal)


@pytest.mark.parametrize(
    ("case", "share"),
    [
        ({}, 8 / 9),
        ({"mover": "sm_target", "sms": 20}, 0.8),
        ({"mover": "copy", "sms": 0, "direction": "d2h", "bytes": 1 << 26}, 1.0),
        ({"first": "mover"}, 8 / 9),
        ({"sms": 20}, 0.8),
        ({"sms": 20, "plan_for": "others"}, 0.5),
        ({"sms": 4}, 8 / 9),
        ({"sms": 4, "holders": "pairs"}, 1.0),
    ],
)
def test_what_a_point_of_the_workload_asks_for_is_answered_phase_by_phase(
    case: dict[str, Any], share: float
) -> None:
    asked_point = point(**case)
    unit = Unit(point=asked_point.id, repetition=0)
    record = EXACT.answer(unit, asked_point.workload.request(asked_point, unit, Steady()))
    rates = {phase["phase"]: phase["comp"]["rate"] for phase in record["phases"] if "comp" in phase}
    assert rates["AB"] / rates["A"] == pytest.approx(share, abs=0.01)


def test_a_device_whose_memory_cannot_carry_its_requests_is_refused_in_a_sentence() -> None:
    weak = Gpu(hbm=1e-6, sm_bytes=1 << 30)
    assert "memory of this GPU" in refuse_case(weak, HOST, {"a": {"kind": "triad"}, "b": CASE["b"]})


def test_the_facts_of_a_virtual_gpu_name_its_sms_and_no_clock() -> None:
    facts = GPU.facts(1)
    assert isinstance(facts, GpuFacts)
    assert (facts.device.sms, facts.device.node, facts.batch_copies) == (132, 1, True)


def test_a_machine_with_a_gpu_is_written_and_read_back() -> None:
    assert decode(encode(DEFINITION), "h200-nvl") == DEFINITION
    assert "[gpu]" in encode(DEFINITION)
    assert "gpu" not in encode(MACHINES.get("henri"))


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("hbm = 0", "gpu.hbm"),
        ("sms = 132", "gpu"),
        ("gpcs = []", "gpu.gpcs"),
        ('h2d = "fast"', "gpu.h2d"),
    ],
)
def test_a_wrong_value_of_the_gpu_is_refused_by_its_name(line: str, field: str) -> None:
    text = encode(MACHINES.get("henri")) + f"\n[gpu]\n{line}\n"
    with pytest.raises(UsageError) as raised:
        decode(text, "mine.toml")
    assert field in raised.value.sentence()


def test_sides_of_a_case_come_in_the_order_of_their_letters() -> None:
    assert list(sides_of({"b": CASE["b"], "a": CASE["a"]})) == ["a", "b"]
