"""Counts of calls and messages by tests/mpi/pmpi_counter.c, which knows nothing of elbowroom's tracer."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from elbowroom.launch.mpi import Mpi

SOURCE = Path(__file__).parent / "mpi" / "pmpi_counter.c"


class Counts(NamedTuple):
    """What one process called, and the messages and bytes that it posted."""

    rank: int
    pid: int
    calls: Counter[str]
    messages: int
    bytes: int


def c_wrapper(mpi: Mpi) -> Path:
    """The compiler of C programs for this MPI."""
    compiler = Path(mpi.compiler)
    return compiler.with_name(compiler.name.replace("mpicxx", "mpicc"))


def build_counter(mpi: Mpi, folder: Path) -> Path:
    """The library to preload; PMPI_COUNTER names the folder that it writes into."""
    library = folder / "libcounter.so"
    command = [c_wrapper(mpi), "-w", "-O1", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    return library


def read_counts(folder: Path) -> list[Counts]:
    """Of every process that reached MPI_Finalize or MPI_Abort, by rank and process."""
    found = []
    for path in folder.glob("counter-*.txt"):
        _, rank, pid = path.stem.split("-")
        calls: Counter[str] = Counter()
        messages = size = 0
        for name, *numbers in (line.split() for line in path.read_text().splitlines()):
            if name == "sent":
                messages, size = map(int, numbers)
            else:
                calls[name] = int(numbers[0])
        found.append(Counts(int(rank), int(pid), calls, messages, size))
    return sorted(found)
