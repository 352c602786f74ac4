"""Asks `gpu-bench` about the accelerator of this machine (docs/reference/gpu-bench.md)."""

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
from elbowroom.machine.gpu import GpuFacts, parse_gpu_facts
from elbowroom.machine.state import Failure

DRIVER = "libcuda.so.1"
LIBRARIES = "ELBOWROOM_CUDA_LIBRARIES"

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
        [str((program or build.gpu_bench)()), "facts", *map(str, library_folders())],
        field="gpu-bench",
        patience=_PATIENCE,
        doing="looking at the accelerator",
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


def library_folders() -> list[Path]:
    """Where NVRTC and cuBLASLt may be: the folders that ELBOWROOM_CUDA_LIBRARIES names, separated by colons,
    and where wheels of NVIDIA's put them in this Python environment (nvidia/*/lib).
    """
    named = [Path(folder) for folder in os.environ.get(LIBRARIES, "").split(os.pathsep) if folder]
    roots = dict.fromkeys((sysconfig.get_path("purelib"), sysconfig.get_path("platlib")))
    wheels = (folder for root in roots for folder in Path(root).glob("nvidia/*/lib") if folder.is_dir())
    return [*named, *sorted(wheels)]
