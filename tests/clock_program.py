"""lib/clock's clock_benchmark: two processes of one computer, their clocks shifted by time namespaces."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from elbowroom.launch.mpi import Mpi, find_mpi, launch_environment

ROOT = Path(__file__).resolve().parents[1]
SHIFT = 100_000  # s
SOURCES = ("clock", "job_clock", "correction", "envelope", "tree")


def build(folder: Path, mpi: Mpi | None = None) -> Path:
    """The program, compiled for the MPI (default: the embedded one)."""
    mpi = mpi or find_mpi()
    program = folder / "clock_benchmark"
    files = [ROOT / "lib/clock/benchmark.cpp", *(ROOT / f"lib/clock/{name}.cpp" for name in SOURCES)]
    files += [ROOT / "core/observe/clock.cpp", ROOT / "core/machine/system_files.cpp"]
    includes = [f"-I{ROOT / name}" for name in ("include", "core", "lib")]
    command = [mpi.compiler, "-std=c++20", "-O2", *includes, *map(str, files), "-o", str(program)]
    wrapper = {"OMPI_CXX": os.environ.get("CXX", "c++"), "MPICH_CXX": os.environ.get("CXX", "c++")}
    subprocess.run(command, check=True, env={**os.environ, **wrapper})
    return program


def run(
    program: Path, count: int, *, tcp: bool = False, shift: int = SHIFT, mpi: Mpi | None = None
) -> dict[str, Any]:
    """What the program prints when the clock of its second process is `shift` s ahead; CalledProcessError
    where the system refuses (time namespaces are root's).
    """
    mpi = mpi or find_mpi()
    shared = "sm" if mpi.major >= 5 else "vader"
    settings = {
        "ELBOW_CLOCK": "raw",
        "OMPI_MCA_pml": "ob1",
        "OMPI_MCA_btl": f"self,{'tcp' if tcp else shared}",
        "OMPI_MCA_smsc": "^cma,xpmem,knem",
        "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    }
    one = [str(program), str(count)]
    elsewhere = ["unshare", "-T", "--monotonic", str(shift), "--boottime", str(shift), *one]
    command = [mpi.launcher, "--bind-to", "core", "-n", "1", *one, ":", "-n", "1", *elsewhere]
    environment = {**os.environ, **launch_environment(), **settings}
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, text=True, check=True, timeout=120
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found
