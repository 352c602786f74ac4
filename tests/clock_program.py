"""lib/clock's benchmarks and example: processes of one computer, their clocks shifted by time namespaces or
by a shim.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import elbowroom
from elbowroom.launch.mpi import Mpi, find_mpi, launch_environment

ROOT = Path(__file__).resolve().parents[1]
CLOCK = ROOT / "lib" / "clock"
SHIFT = 100_000  # s
SOURCES = ("clock", "job_clock", "correction", "envelope", "tree")


def build(folder: Path, mpi: Mpi | None = None, level: str = "-O0") -> Path:
    """The benchmarks of lib/clock as one program for the MPI (default: the embedded one); what is measured is
    built with `level` -O2.
    """
    return _linked(folder, "clock_benchmark", ["benchmark.cpp", "shim_benchmark.cpp"], mpi, level)


def build_example(folder: Path, mpi: Mpi | None = None) -> Path:
    """lib/clock/example.c, which is C."""
    return _linked(folder, "clock_example", ["example.c"], mpi, "-O0")


def _linked(folder: Path, name: str, sources: list[str], mpi: Mpi | None, level: str) -> Path:
    mpi = mpi or find_mpi()
    library = folder / "library.cpp"
    files = [f"lib/clock/{source}.cpp" for source in SOURCES]
    files += ["core/base/clock.cpp", "core/base/system_files.cpp"]
    # One file takes half the compiler's time.
    library.write_text("".join(f'#include "{ROOT / file}"\n' for file in files))
    objects = [_compiled(folder, source, mpi, level) for source in (library, *map(CLOCK.joinpath, sources))]
    program = folder / name
    _compile(mpi, [*map(str, objects), "-o", str(program)])
    return program


def _compiled(folder: Path, source: Path, mpi: Mpi, level: str) -> Path:
    """An object, made once in a folder."""
    made = folder / f"{source.stem}.o"
    if not made.exists():
        includes = [f"-I{ROOT / name}" for name in ("include", "core", "lib")]
        language = ["-x", "c", "-std=c99"] if source.suffix == ".c" else ["-std=c++20"]
        warnings = ["-Wall", "-Wextra", "-Werror", f'-DELBOWROOM_VERSION="{elbowroom.__version__}"']
        warnings += ["-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX"]
        _compile(mpi, [*language, level, *warnings, *includes, "-c", str(source), "-o", str(made)])
    return made


def _compile(mpi: Mpi, words: list[str]) -> None:
    wrapper = {"OMPI_CXX": os.environ.get("CXX", "c++"), "MPICH_CXX": os.environ.get("CXX", "c++")}
    subprocess.run([mpi.compiler, *words], check=True, env={**os.environ, **wrapper})


def run(
    program: Path, count: int, *, tcp: bool = False, shift: int = SHIFT, mpi: Mpi | None = None
) -> dict[str, Any]:
    """What the program prints when the clock of its second process is `shift` s ahead; CalledProcessError
    where the system refuses (time namespaces are root's).
    """
    one = [str(program), str(count)]
    elsewhere = ["unshare", "-T", "--monotonic", str(shift), "--boottime", str(shift), *one]
    found: dict[str, Any] = json.loads(_started([one, elsewhere], tcp, mpi or find_mpi()))
    return found


def run_shim(
    program: Path, kind: str, messages: int, every: float, *, tcp: bool = False, mpi: Mpi | None = None
) -> dict[str, Any]:
    """What the program prints on two ranks, whose clocks are `affine` or make `steps`."""
    one = [str(program), kind, str(messages), str(every)]
    found: dict[str, Any] = json.loads(_started([one, one], tcp, mpi or find_mpi()))
    return found


def run_example(program: Path, ranks: int, mpi: Mpi | None = None) -> dict[str, Any]:
    """What the example prints."""
    found: dict[str, Any] = json.loads(_started([[str(program)]] * ranks, False, mpi or find_mpi()))
    return found


def _started(ranks: list[list[str]], tcp: bool, mpi: Mpi) -> str:
    """What is printed by ranks that are started together, each with its own command."""
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
    command = [mpi.launcher, "--bind-to", "core"]
    for place, rank in enumerate(ranks):
        command += [*([":"] if place else []), "-n", "1", *rank]
    environment = {**os.environ, **launch_environment(), **settings}
    return subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, text=True, check=True, timeout=120
    ).stdout
