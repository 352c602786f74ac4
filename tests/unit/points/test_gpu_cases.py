"""A case of an accelerator: its request, and what an accelerator or a machine cannot answer."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from elbowroom.errors import UsageError
from elbowroom.machine.gpu import Device, GpuFacts, GpuLibrary
from elbowroom.machine.state import Failure
from elbowroom.points.gpu import GpuCase
from elbowroom.points.point import Point, Steady
from elbowroom.points.unit import Unit
from studies import SMALL

FACTS = GpuFacts(
    cuda="12.8",
    devices=1,
    device=Device(name="d", pci="", sms=132, capability=90, memory=80_000_000_000),
    stand_in=False,
    batch_copies=True,
    management=Failure(reason="no NVML"),
    compiler=GpuLibrary(path="nvrtc"),
    gemm=GpuLibrary(path="cublaslt"),
)
MISSING = Failure(reason="libnvrtc.so was not found", hint="install it")


def point(case: GpuCase, **others: Any) -> Point:
    fields = {"kernel": "none", "n": 0, "size": case.bytes, "metric": "bandwidth", "comm_core": 0}
    return Point(plan="p", comp_node=0, comm_node=0, workload=case, **(fields | others))


def idle(k: int, **how: Any) -> GpuCase:
    return GpuCase(victim="gemm", mover="sm_idle", sms=k, **how)


def with_device(**changes: Any) -> GpuFacts:
    return msgspec.structs.replace(FACTS, device=msgspec.structs.replace(FACTS.device, **changes))


@pytest.mark.parametrize(
    ("case", "facts", "reason"),
    [
        (idle(131), FACTS, ""),
        (idle(132), FACTS, "k = 132: the device has 132 SMs; k is at most 131"),
        (idle(200), FACTS, "k = 200: the device has 132 SMs"),
        (idle(4), MISSING, "libnvrtc.so was not found; install it"),
        (idle(4), msgspec.structs.replace(FACTS, compiler=MISSING), "kernels cannot be compiled: libnvrtc"),
        (idle(4), msgspec.structs.replace(FACTS, gemm=MISSING), "no matrix products: libnvrtc"),
        (
            GpuCase(victim="gemm", mover="copy", direction="d2d", bytes=1),
            msgspec.structs.replace(FACTS, batch_copies=False),
            "cannot leave copies inside the device to a copy engine; update",
        ),
        (
            GpuCase(victim="copy", mover="messages", direction="h2d", bytes=1),
            msgspec.structs.replace(FACTS, compiler=MISSING, gemm=MISSING),
            "",
        ),
        (
            GpuCase(victim="triad", mover="copy", direction="h2d", bytes=1, victim_bytes=90 << 30),
            FACTS,
            "its buffers take 96.6 GB, and the device has 80 GB",
        ),
        (idle(4), with_device(prohibited=True), "prohibits programs"),
        (idle(4, holders="pairs"), FACTS, ""),
        (idle(4), with_device(capability=89), ""),
        (
            idle(4, holders="pairs"),
            with_device(capability=89),
            "compute capability 8.9 has no clusters of blocks, which hold SMs in pairs; name holders=single",
        ),
    ],
)
def test_what_an_accelerator_cannot_answer_is_refused_with_the_reason(
    case: GpuCase, facts: GpuFacts | Failure, reason: str
) -> None:
    refusal = case.refusal(facts)
    assert reason in refusal
    assert bool(refusal) == bool(reason)


@pytest.mark.parametrize(
    ("case", "field"),
    [
        (GpuCase(victim="gemm", mover="sm_idle", sms=0), "sms"),
        (idle(5, holders="pairs"), "sms"),
        (GpuCase(victim="gemm", mover="copy", direction="h2d", bytes=0), "copy_sizes"),
        (GpuCase(victim="gemm", mover="copy", direction="h2d", bytes=1, node=7), "pinned_nodes"),
        (GpuCase(victim="gemm", mover="copy", direction="h2d", bytes=1 << 50), "copy_sizes"),
    ],
)
def test_what_no_accelerator_could_answer_is_a_usage_error(case: GpuCase, field: str) -> None:
    with pytest.raises(UsageError) as refused:
        case.validate(point(case), SMALL)
    assert refused.value.field == field


def test_the_core_that_submits_work_cannot_compute() -> None:
    case = GpuCase(victim="cores", mover="copy", direction="h2d", bytes=1, submit_core=1)
    with pytest.raises(UsageError, match="submits work to the device"):
        case.validate(point(case, kernel="triad", n=1, comp_cores=(1,)), SMALL)


def test_a_request_has_the_sides_as_gpu_bench_takes_them() -> None:
    case = GpuCase(
        victim="cores", mover="copy", direction="both", bytes=64, node=1, messages=True, submit_core=3
    )
    asked = point(
        case, kernel="triad", n=2, comp_cores=(0, 1), comm_core=4, peer_cores=(5,), working_set=96, size=8
    )
    request: Any = case.request(asked, Unit(point=asked.id, repetition=1), Steady())
    assert set(request["sequence"]) == {"A", "B", "C", "AB", "AC", "BC", "ABC"}
    assert request["sequence"] == request["sequence"][::-1]
    assert request["case"]["a"] == {
        "kind": "cores", "kernel": "triad", "cores": [0, 1], "node": 0, "cursor": 1, "bytes": 96,
    }  # fmt: skip
    assert request["case"]["b"] == {"kind": "copy", "direction": "both", "bytes": 64, "node": 1}
    assert request["case"]["c"]["peer_core"] == 5
    assert request["core"] == 3


@pytest.mark.parametrize(
    ("how", "keys", "words"),
    [
        ({}, {}, ""),
        ({"holders": "pairs"}, {"pairs": True}, ", in pairs"),
        ({"plan_for": "others"}, {"plan_others": True}, ", planned for others"),
        (
            {"holders": "pairs", "plan_for": "others"},
            {"pairs": True, "plan_others": True},
            ", in pairs, planned for others",
        ),
    ],
)
def test_how_sms_are_held_is_in_request_title_and_id(
    how: dict[str, Any], keys: dict[str, bool], words: str
) -> None:
    case = idle(8, **how)
    sides: Any = case.case(point(case))
    assert sides["b"] == {"kind": "sm_idle", "sms": 8, **keys}
    assert "sm_target" not in sides["a"]
    assert case.title == f"GEMM beside 8 idle SMs{words}"
    assert (case.id(point(case)) == idle(8).id(point(idle(8)))) == (not how)


@pytest.mark.parametrize("mover", ["sm_idle", "sm_target"])
def test_a_mover_without_a_rate_has_no_phase_alone(mover: Any) -> None:
    case = GpuCase(victim="gemm", mover=mover, sms=2)
    assert set(case.sequence(point(case))) == {"A", "AB"}


def test_a_product_planned_for_fewer_sms_takes_the_memory_of_two() -> None:
    alone = idle(4).device_bytes
    assert idle(4, plan_for="others").device_bytes == 2 * alone
    assert GpuCase(victim="gemm", mover="sm_target", sms=4).device_bytes == 2 * alone
