"""What tracing adds to an MPI call.

    python benchmarks/trace_mpi.py [--mpi openmpi] [--repeat 5] [--libraries FOLDER] [--json]

Two processes over shared memory, in turn: alone, with the interposer preloaded but nothing traced, and
traced. CPU time of a call, ns: MPI_Comm_rank; of Irecv, Send, Wait with oneself, a third; of a ping-pong of
4 B, half; of Irecv, Isend, Waitall of 4 B with each other, a third. A ping-pong waits by polling, which its
CPU time includes. Each number is the least of 40 batches, and the median of the runs. To reach: 200 ns added.

Exit code 1 where it is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from elbowroom.launch import build
from elbowroom.launch.mpi import Mpi, find_mpi, launch_environment

LIMIT = 200.0
SOURCE = Path(__file__).resolve().parents[1] / "lib" / "pmpi" / "benchmark.c"
KINDS = ("alone", "preloaded", "traced")


def once(mpi: Mpi, program: Path, preload: Path, kind: str, folder: str) -> dict[str, float]:
    """What calls take in one run, ns."""
    environment = {**os.environ, **launch_environment()}
    told = [] if kind == "alone" else [f"LD_PRELOAD={preload}"]
    if kind == "traced":
        told += [f"ELBOW_TRACE_DIRECTORY={folder}", f"ELBOW_TRACE_BYTES={64 << 20}"]
    words = [mpi.launcher, "-n", "2", "env", *told, str(program)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120, check=True)
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def measured(mpi: Mpi, preload: Path, repeat: int) -> dict[str, dict[str, float]]:
    """Medians of each kind of run and each call."""
    compiler = Path(mpi.compiler)
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "benchmark"
        wrapper = compiler.with_name(compiler.name.replace("mpicxx", "mpicc"))
        subprocess.run([wrapper, "-O2", "-o", program, SOURCE], check=True)
        runs: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
        for number in range(repeat):
            for kind in KINDS:
                runs[kind].append(once(mpi, program, preload, kind, f"{folder}/{number}"))
    return {
        kind: {name: statistics.median(one[name] for one in found) for name in found[0]}
        for kind, found in runs.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mpi", default="embedded")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument(
        "--libraries", type=Path, help="folder with libelbow_trace_mpi.so; built where not given"
    )
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    mpi = find_mpi(arguments.mpi)
    libraries = arguments.libraries or build.trace_libraries(mpi)
    found = measured(mpi, libraries / "libelbow_trace_mpi.so", arguments.repeat)
    added = {name: found["traced"][name] - alone for name, alone in found["alone"].items()}
    if arguments.json:
        print(json.dumps({"mpi": mpi.name, "ns": found, "added_ns": added, "limit_ns": LIMIT}))
    else:
        print(f"{mpi.name}, ns a call" + " " * 14 + "".join(f"{kind:>12}" for kind in (*KINDS, "added")))
        for name, more in added.items():
            values = [*(found[kind][name] for kind in KINDS), more]
            print(f"{name:<36}" + "".join(f"{value:>12.1f}" for value in values))
    sys.exit(1 if max(added.values()) >= LIMIT else 0)


if __name__ == "__main__":
    main()
