"""What tracing adds to an MPI call.

    python benchmarks/trace_mpi.py [--mpi openmpi] [--repeat 5] [--libraries FOLDER] [--json]

Two processes over shared memory, in turn: alone, with the interposer preloaded but nothing traced, and
traced. CPU time of a call, ns: MPI_Comm_rank; of Irecv, Send, Wait with oneself, a third; of a ping-pong of
4 B, half; of Irecv, Isend, Waitall of 4 B with each other, a third; of MPI_Testsome over 1,000 requests of
which none is complete, and of the same by the Fortran bindings where mpif90 is there. A ping-pong waits by
polling, which its CPU time includes. Each number is the least of 40 batches, and the median of the runs. To
reach: 200 ns added, and MPI_Testsome 1.2 times as long at most.

Exit code 1 where one is missed.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from command import Command, status

from elbowroom.launch import build
from elbowroom.launch.mpi import Mpi, find_mpi, launch_environment

LIMIT = 200.0
POLLS = ("MPI_Testsome, 1,000 pending", "mpi_testsome of Fortran")
POLL_LIMIT = 1.2
"""Time with a tool / alone."""
SOURCE = Path(__file__).resolve().parents[1] / "lib" / "pmpi" / "benchmark.c"


Told = Callable[[str], list[str]]
"""What the processes of a kind of run are told, as words behind `env`, from a new path that they may use."""


def once(mpi: Mpi, program: Path, batches: int, told: list[str]) -> dict[str, float]:
    """What calls take in one run, ns."""
    environment = {**os.environ, **launch_environment()}
    words = [mpi.launcher, "-n", "2", "env", *told, str(program), str(batches)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120, check=True)
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def c_wrapper(mpi: Mpi) -> Path:
    """The C compiler of an MPI."""
    compiler = Path(mpi.compiler)
    return compiler.with_name(compiler.name.replace("mpicxx", "mpicc"))


def built(mpi: Mpi, folder: Path) -> Path:
    """The program that measures calls; with calls of Fortran where the MPI has a wrapper for it."""
    program, object_file = folder / "benchmark", folder / "benchmark.o"
    compiler = c_wrapper(mpi)
    fortran = shutil.which(compiler.with_name(compiler.name.replace("mpicc", "mpif90")))
    options = ["-DFORTRAN"] if fortran is not None else []
    subprocess.run([compiler, "-O2", *options, "-c", "-o", object_file, SOURCE], check=True)
    subprocess.run([fortran or compiler, "-o", program, object_file], check=True)
    return program


def measured(mpi: Mpi, kinds: Mapping[str, Told], repeat: int, batches: int) -> dict[str, dict[str, float]]:
    """Medians of each kind of run and each call, in ns, each the least of `batches`; the kinds take turns."""
    with tempfile.TemporaryDirectory() as folder:
        program = built(mpi, Path(folder))
        runs: dict[str, list[dict[str, float]]] = {kind: [] for kind in kinds}
        for number in range(repeat):
            for kind, told in kinds.items():
                runs[kind].append(once(mpi, program, batches, told(f"{folder}/{kind}-{number}")))
    return {
        kind: {name: statistics.median(one[name] for one in found) for name in found[0]}
        for kind, found in runs.items()
    }


def is_missed(alone: Mapping[str, float], added: Mapping[str, float], limit: float) -> bool:
    """Whether a call takes more than `limit` ns more, or a poll over many requests too much longer."""
    calls = [more for name, more in added.items() if name not in POLLS]
    polls = [more / alone[name] for name, more in added.items() if name in POLLS]
    return max(calls) > limit or max(polls) > POLL_LIMIT - 1


def print_costs(mpi: Mpi, found: Mapping[str, Mapping[str, float]], added: Mapping[str, float]) -> None:
    """A row for each call: each kind of run, and what the last one adds to the first."""
    print(f"{mpi.name}, ns a call" + " " * 14 + "".join(f"{kind:>12}" for kind in (*found, "added")))
    for name, more in added.items():
        values = [*(kind[name] for kind in found.values()), more]
        print(f"{name:<36}" + "".join(f"{value:>12.1f}" for value in values))


def main() -> None:
    parser = Command(__doc__, smoke="--repeat 1 --batches 2")
    parser.add_argument("--mpi", default="embedded")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--batches", type=int, default=40, help="of 1,000 calls, in each run")
    parser.add_argument(
        "--libraries", type=Path, help="folder with libelbow_trace_mpi.so; built where not given"
    )
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    mpi = find_mpi(arguments.mpi)
    libraries = arguments.libraries or build.trace_libraries(mpi)
    preload = f"LD_PRELOAD={libraries / 'libelbow_trace_mpi.so'}"
    kinds: dict[str, Told] = {
        "alone": lambda _: [],
        "preloaded": lambda _: [preload],
        "traced": lambda path: [preload, f"ELBOW_TRACE_DIRECTORY={path}", f"ELBOW_TRACE_BYTES={64 << 20}"],
    }
    found = measured(mpi, kinds, arguments.repeat, arguments.batches)
    added = {name: found["traced"][name] - alone for name, alone in found["alone"].items()}
    if arguments.json:
        print(json.dumps({"mpi": mpi.name, "ns": found, "added_ns": added, "limit_ns": LIMIT}))
    else:
        print_costs(mpi, found, added)
    sys.exit(status(arguments, is_missed(found["alone"], added, LIMIT)))


if __name__ == "__main__":
    main()
