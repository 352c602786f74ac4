"""gpu-bench as a program: without a driver, and against the stand-in."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from elbowroom.launch import build, gpu
from elbowroom.machine.gpu import GpuFacts, GpuLibrary, Management, parse_gpu_facts
from elbowroom.machine.state import Failure

FOLDER = os.environ.get("ELBOWROOM_GPU_STAND_IN", "")
needs_stand_in = pytest.mark.skipif(
    not FOLDER or not Path(FOLDER, "stand_in", "libcuda.so.1").exists(),
    reason="the stand-in driver is not built (./elbowroom test builds it)",
)


@pytest.fixture
def plant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Plants settings of the stand-in for the programs that are started next."""

    def write(**settings: Any) -> Path:
        folder = Path(FOLDER, "stand_in")
        path = tmp_path / "stand-in.json"
        path.write_text(json.dumps(settings))
        monkeypatch.setenv("ELBOW_STAND_IN", str(path))
        monkeypatch.setenv("ELBOWROOM_CUDA", str(folder / "libcuda.so.1"))
        monkeypatch.setenv("ELBOWROOM_NVML", str(folder / "libnvidia-ml.so.1"))
        return folder

    return write


def _bench(*words: str, given: str = "") -> tuple[int, list[Any]]:
    done = subprocess.run(
        [str(build.gpu_bench()), *words], input=given, capture_output=True, text=True, timeout=60, check=False
    )
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def test_without_a_driver_nothing_is_built_and_the_reason_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELBOWROOM_CUDA", "/nowhere/libcuda.so.1")
    monkeypatch.setattr(build, "gpu_bench", lambda: pytest.fail("it was built"))
    facts = gpu.gpu_facts()
    assert isinstance(facts, Failure)
    assert "/nowhere/libcuda.so.1" in facts.reason
    assert "ELBOWROOM_CUDA" in facts.hint


def test_folders_of_wheels_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("cublas", "cuda_nvrtc"):
        (tmp_path / "nvidia" / name / "lib").mkdir(parents=True)
    monkeypatch.setattr(gpu.sysconfig, "get_path", lambda name: str(tmp_path))
    assert [folder.parent.name for folder in gpu.library_folders()] == ["cublas", "cuda_nvrtc"]


@needs_stand_in
def test_facts_of_the_stand_in_say_that_it_is_one(plant: Any) -> None:
    folder = plant(sms=12, processes=[4711], link_width=8)
    code, lines = _bench("facts", str(folder))
    assert code == 0
    facts = parse_gpu_facts(json.dumps(lines[0]))
    assert isinstance(facts, GpuFacts)
    assert (facts.stand_in, facts.device.name, facts.device.sms) == (True, "stand-in", 12)
    assert isinstance(facts.management, Management)
    assert facts.management.processes == (4711,)
    assert facts.management.link.width == 8
    assert facts.compiler == GpuLibrary(version="12.8", path=str(folder / "libnvrtc.so.12"))
    assert facts.gemm == GpuLibrary(path=str(folder / "libcublasLt.so.12"))


@needs_stand_in
@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"driver_version": 10020}, "the driver supports CUDA 10.2"),
        ({"devices": 0}, "the driver finds no device"),
    ],
)
def test_a_driver_that_cannot_be_used_is_the_doctors_reason(
    plant: Any, settings: dict[str, Any], reason: str
) -> None:
    plant(**settings)
    facts = gpu.gpu_facts()
    assert isinstance(facts, Failure)
    assert reason in facts.reason


@needs_stand_in
def test_a_request_is_answered_line_by_line_and_a_wrong_one_is_refused_with_exit_code_2(plant: Any) -> None:
    plant(rates={"h2d": 10e9})
    request = {"repeat": 1, "seconds": 0.002, "cases": [{"a": {"kind": "copy", "bytes": 1 << 20}}]}
    code, lines = _bench("measure", given=json.dumps(request) + "\n")
    assert code == 0
    assert lines[0]["gpu"]["stand_in"] is True
    assert lines[-1]["a"]["alone"] == pytest.approx(10e3, rel=0.01)
    code, lines = _bench("measure", given='{"cases": [{"a": {"kind": "spin"}}]}\n')
    assert code == 2
    assert "kind spin is not one of" in lines[0]["error"]


@needs_stand_in
def test_without_a_driver_every_case_of_a_request_is_not_applicable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELBOWROOM_CUDA", "/nowhere/libcuda.so.1")
    code, lines = _bench("measure", given='{"cases": [{"a": {"kind": "copy"}}, {"a": {"kind": "triad"}}]}\n')
    assert code == 0
    assert [line["status"] for line in lines if "case" in line] == ["n/a", "n/a"]
    assert all("/nowhere" in line["reason"] for line in lines if "case" in line)
