"""Asks `gpu-bench` about the accelerator of this machine (docs/reference/gpu.md)."""

from __future__ import annotations

import ctypes
import os
import sysconfig
from collections.abc import Callable
from pathlib import Path

import msgspec

from elbowroom.errors import MachineError
from elbowroom.launch import build
from elbowroom.launch.processes import run
from elbowroom.machine.assessment import Failure
from elbowroom.machine.gpu import GpuFacts, parse_gpu_facts

DRIVER = "libcuda.so.1"

_PATIENCE = 120.0  # s: the driver of a sleeping device takes several to start, kernels some to compile


def gpu_facts(program: Callable[[], Path] | None = None) -> GpuFacts | Failure:
    """What there is: driver, device, link, clocks, compiler, matrix products. `program` returns what prints
    it: gpu-bench, or gpu-streams.

    Without a driver nothing is built or started. MachineError where the program cannot be built or dies.
    """
    missing = missing_driver()
    if missing is not None:
        return missing
    done = run(
        [str((program or build.gpu_bench)()), "facts", *map(str, wheel_folders())],
        field="gpu-bench",
        patience=_PATIENCE,
    )
    try:
        return parse_gpu_facts(done.stdout.encode())
    except msgspec.DecodeError as error:
        raise MachineError(
            f"it failed (exit code {done.code}): {done.last_line or error}",
            field="gpu-bench",
            hint="see `nvidia-smi`",
        ) from None


def missing_driver() -> Failure | None:
    """Why the CUDA driver, or the file that ELBOWROOM_CUDA names, cannot be loaded; None where it can."""
    try:
        ctypes.CDLL(os.environ.get("ELBOWROOM_CUDA") or DRIVER)
    except OSError as error:
        return Failure(
            reason=f"no CUDA driver: {error}",
            hint=f"install NVIDIA's driver, or name its {DRIVER} by ELBOWROOM_CUDA",
        )
    return None


def wheel_folders() -> list[Path]:
    """Where wheels of NVIDIA's put NVRTC and cuBLASLt in this Python environment (nvidia/*/lib)."""
    roots = dict.fromkeys((sysconfig.get_path("purelib"), sysconfig.get_path("platlib")))
    return sorted(folder for root in roots for folder in Path(root).glob("nvidia/*/lib") if folder.is_dir())
