"""The doctor's lines of an accelerator, from what gpu-bench prints."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from elbowroom.machine import gpu
from elbowroom.machine.gpu import GpuFacts, Management, look_at_gpu, parse_gpu_facts
from elbowroom.machine.state import Failure

PRINTED: dict[str, Any] = {
    "cuda": "12.8",
    "devices": 2,
    "stand_in": False,
    "batch_copies": True,
    "device": {
        "name": "NVIDIA H200",
        "pci": "0000:65:00.0",
        "sms": 132,
        "capability": 90,
        "memory": 150_000_000_000,
        "exclusive": False,
        "prohibited": False,
        "node": 1,
    },
    "management": {
        "driver": "570.86.15",
        "link": {"generation": 5, "generation_max": 5, "width": 16, "width_max": 16},
        "clocks_mhz": {"sm": 345, "sm_max": 1980, "memory": 3201, "memory_max": 3201},
        "processes": [],
    },
    "compiler": {"version": "12.8", "path": "/x/libnvrtc.so.12"},
    "gemm": {"path": "/x/libcublasLt.so.12"},
}
NO_WHEEL = {"unknown": "libnvrtc.so.12: cannot open", "hint": "pip install elbowroom[cuda]"}


def _facts(**changes: Any) -> GpuFacts:
    facts = parse_gpu_facts(msgspec.json.encode({**PRINTED, **changes}))
    assert isinstance(facts, GpuFacts)
    return facts


def _device(**changes: Any) -> GpuFacts:
    return _facts(device={**PRINTED["device"], **changes})


def _management(**changes: Any) -> GpuFacts:
    return _facts(management={**PRINTED["management"], **changes})


@pytest.mark.parametrize(
    ("look", "text"),
    [
        (
            gpu.device_line,
            "NVIDIA H200, 132 SMs, compute capability 9.0, 150.0 GB; driver 570.86.15, CUDA 12.8; "
            "the first of 2 devices",
        ),
        (gpu.link_line, "PCIe generation 5 x16 now, at most generation 5 x16; NUMA node 1"),
        (
            gpu.clocks_line,
            "SMs 345 of 1980 MHz, memory 3201 of 3201 MHz (they rise under load; read, never set)",
        ),
        (gpu.processes_line, "no other process is on the device"),
        (gpu.compiler_line, "kernels are compiled by NVRTC 12.8 (/x/libnvrtc.so.12)"),
        (gpu.gemm_line, "matrix products by cuBLASLt (/x/libcublasLt.so.12)"),
    ],
)
def test_a_device_that_is_as_it_should_be_is_ok(look: gpu.Look, text: str) -> None:
    line = look(_facts())
    assert (line.status, line.text) == ("ok", text)


@pytest.mark.parametrize(
    ("look", "facts", "text", "hint"),
    [
        (gpu.device_line, _facts(stand_in=True), "a stand-in for tests", "ELBOWROOM_CUDA"),
        (gpu.device_line, _device(prohibited=True), "prohibits programs", "administrator"),
        (gpu.device_line, _facts(batch_copies=False), "use its SMs", "12.8"),
        (gpu.device_line, _facts(connections=8), "CUDA_DEVICE_MAX_CONNECTIONS is 8", "unset it"),
        (gpu.device_line, _facts(graphs=False), "without graphs", "11.4"),
        (
            gpu.link_line,
            _management(link={"generation": 5, "generation_max": 5, "width": 8, "width_max": 16}),
            "PCIe generation 5 x8 now, at most generation 5 x16",
            "wider slot",
        ),
        (gpu.processes_line, _management(processes=[7]), "1 other process is on the device (ids 7)", "wait"),
        (
            gpu.processes_line,
            _facts(
                device={**PRINTED["device"], "exclusive": True},
                management={**PRINTED["management"], "processes": [7, 8]},
            ),
            "2 other processes are on the device, which takes one process only (ids 7, 8)",
            "wait",
        ),
    ],
)
def test_what_spoils_a_measurement_is_a_warning_with_a_hint(
    look: gpu.Look, facts: GpuFacts, text: str, hint: str
) -> None:
    line = look(facts)
    assert line.status == "warn"
    assert text in line.text
    assert hint in line.hint


@pytest.mark.parametrize(
    ("look", "facts", "text"),
    [
        (gpu.link_line, _management(link={}), "NVML does not know the link; NUMA node 1"),
        (gpu.link_line, _facts(management=NO_WHEEL), "cannot open; NUMA node 1"),
        (gpu.clocks_line, _management(clocks_mhz={}), "NVML does not know the clocks"),
        (gpu.clocks_line, _facts(management=NO_WHEEL), "cannot open"),
        (gpu.processes_line, _management(processes=None), "a container hides it"),
        (gpu.processes_line, _facts(management=NO_WHEEL), "cannot open"),
        (
            gpu.compiler_line,
            _facts(compiler=NO_WHEEL),
            "kernels cannot be compiled: libnvrtc.so.12: cannot open",
        ),
        (gpu.gemm_line, _facts(gemm=NO_WHEEL), "no matrix products"),
    ],
)
def test_what_is_missing_is_not_applicable_with_the_reason(
    look: gpu.Look, facts: GpuFacts, text: str
) -> None:
    line = look(facts)
    assert line.status == "n/a"
    assert text in line.text


def test_a_node_that_the_kernel_does_not_say_is_unknown() -> None:
    assert "NUMA node unknown" in gpu.link_line(_device(node=None)).text


def test_without_a_device_the_reason_is_given_once_and_the_hint_on_each_line() -> None:
    missing = parse_gpu_facts('{"unknown": "the driver finds no device", "hint": "see nvidia-smi"}')
    assert missing == Failure(reason="the driver finds no device", hint="see nvidia-smi")
    first = look_at_gpu(missing, gpu.device_line, first=True)
    other = look_at_gpu(missing, gpu.link_line)
    assert (first.status, first.text, first.hint) == ("n/a", missing.reason, missing.hint)
    assert (other.status, other.hint) == ("n/a", missing.hint)
    assert missing.reason not in other.text


def test_a_part_that_is_present_is_parsed_as_such() -> None:
    assert isinstance(_facts().management, Management)
    assert _facts(gemm=NO_WHEEL).gemm == Failure(reason=NO_WHEEL["unknown"], hint=NO_WHEEL["hint"])
