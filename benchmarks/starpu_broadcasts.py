"""StarPU-MPI's programs with its own header, and with elbowroom/starpu_mpi.h (lib/starpu_mpi/examples).

    python benchmarks/starpu_broadcasts.py [--rounds 10] [--priorities 0] [--json]

Both take turns, in random order; a ratio is StarPU-MPI's time over that with the other header: the
pseudo-median of the rounds with its 95 % interval of signed ranks. Each run repeats its graph, and the first
repetition does not count. To reach:
- 4 hosts (network namespaces, needs root) behind token buckets of 200 Mbit/s: 1, 4 and 16 MiB to 3
  recipients at least 1.5 times as fast;
- 4 ranks of this machine: no example slower than 1.05 times.

Exit code 1 where one is missed. Needs StarPU-MPI and its MPI; some minutes. Where ranks share cores,
StarPU-MPI's times depend on the scheduler, since its thread polls; the output says so.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from command import Command, status

from elbowroom.errors import ElbowroomError
from elbowroom.launch import build
from elbowroom.launch.launcher import Launch
from elbowroom.launch.mpi import launch_environment
from elbowroom.launch.starpu import find_starpu
from elbowroom.stats.signed_ranks import pseudo_median, rank_interval

RANKS = 4
LINK_MBIT = 200
SIDES = ("starpu", "elbowroom")
GAIN, LOSS = 1.5, 1.05
BLOCKS = {"1 MiB": 363, "4 MiB": 725, "16 MiB": 1449}
"""Tiles of so many rows of numbers."""

STARPU = {
    "STARPU_NCPU": "1",
    "STARPU_NCUDA": "0",
    "STARPU_NOPENCL": "0",
    "STARPU_WORKERS_NOBIND": "1",
    "STARPU_MPI_NOBIND": "1",
    "STARPU_SILENT": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_btl_tcp_sndbuf": "131072",
}
"""One worker a rank, on any core: StarPU's own choice would put the threads of all ranks on the same ones.
MPI yields its core while it waits, and does not call sent what waits in the kernel.
"""

Adapt = Callable[[Launch], Launch]


class Row(NamedTuple):
    """Both sides' seconds (medians), their ratio with its interval, and the least that it may be."""

    what: str
    starpu: float
    elbowroom: float
    ratio: float
    low: float
    high: float
    least: float


def launch(
    program: str, side: str, words: list[Any], ranks: int, home: Path, hosts: tuple[str, ...]
) -> Launch:
    """An example on so many ranks of this machine or, one each, of hosts."""
    mpi = find_starpu().mpi
    env = {**launch_environment(), **STARPU, "STARPU_HOME": str(home)}
    command = [mpi.launcher, "-n", str(ranks), "--oversubscribe", "--bind-to", "none"]
    command += ["--host", ",".join(hosts)] if hosts else []
    command += ["env", *(f"{name}={value}" for name, value in STARPU.items() if name.startswith("STARPU"))]
    command += [
        f"{name}={value}" for name, value in os.environ.items() if name.startswith("ELBOW_BROADCAST_")
    ]
    command += [f"STARPU_HOME={home}", str(build.starpu_examples() / f"{program}-{side}"), *map(str, words)]
    return Launch(command=tuple(command), env=env)


def environment(job: Launch) -> dict[str, str]:
    """That of this program, and what the job adds."""
    return {**os.environ, **job.env}


def output(job: Launch, seconds: float = 300) -> str:
    """What it prints; CalledProcessError where it fails."""
    done = subprocess.run(
        job.command, env=environment(job), capture_output=True, text=True, timeout=seconds, check=False
    )
    if done.returncode != 0:
        print(done.stderr, file=sys.stderr)
        done.check_returncode()
    return done.stdout


def measure_bus(home: Path) -> None:
    """StarPU's measurement of this machine, at its first start, by one rank: StarPU-MPI 1.3.10 aborts where a
    rank reads the file while another one writes it.
    """
    output(launch("stencil", "elbowroom", [1, 1, 1, 0], 1, home, ()))


def turns(program: str, words: list[int], asked: argparse.Namespace, home: Path, adapt: Adapt,
          hosts: tuple[str, ...] = ()) -> dict[str, list[float]]:  # fmt: skip
    """Seconds of each side, one a round: the median of a run's repetitions but the first."""
    seconds: dict[str, list[float]] = {side: [] for side in SIDES}
    words = [*words, asked.repeats + 1, asked.priorities]
    for _ in range(asked.rounds):
        for side in random.sample(SIDES, 2):
            said = output(adapt(launch(program, side, words, RANKS, home, hosts)))
            times = [float(line.split()[1]) for line in said.splitlines() if line.startswith("seconds")]
            seconds[side].append(float(np.median(times[1:])))
    return seconds


def row_of(what: str, seconds: dict[str, list[float]], least: float) -> Row:
    logs = np.log(np.array(seconds["starpu"]) / np.array(seconds["elbowroom"]))
    low, high = rank_interval(logs, 0.95) or (-np.inf, np.inf)
    ratio, low, high = (float(np.exp(log)) for log in (pseudo_median(logs), low, high))
    starpu, elbowroom = (float(np.median(seconds[side])) for side in SIDES)
    return Row(what, starpu, elbowroom, ratio, low, high, least)


def between_hosts(asked: argparse.Namespace, folder: Path) -> Iterator[Row]:
    """Broadcasts between emulated hosts."""
    tools = runpy.run_path(str(Path(__file__).parents[1] / "tests" / "linked_hosts.py"))
    try:
        with tools["linked_hosts"](folder, "abcd") as hosts:
            for name in hosts.names:
                hosts.limit(name, LINK_MBIT)
            addresses = tuple(hosts.addresses.values())
            for size, block in BLOCKS.items():
                seconds = turns("broadcast", [1, block], asked, folder, hosts.on_first, addresses)
                what = f"{RANKS} hosts, {LINK_MBIT} Mbit/s, {size} to {RANKS - 1}"
                yield row_of(what, seconds, GAIN)
    except tools["NoHostsError"] as error:
        print(f"{RANKS} hosts: n/a ({error})", file=sys.stderr)


def on_this_machine(asked: argparse.Namespace, folder: Path) -> Iterator[Row]:
    """The examples on ranks of this machine."""
    measure_bus(folder)
    cores = len(os.sched_getaffinity(0))
    where = f"{RANKS} ranks" if cores >= 2 * RANKS else f"{RANKS} ranks share {cores} cores"
    for program in ("cholesky", "lu", "stencil"):
        seconds = turns(program, [asked.tiles, asked.block], asked, folder, lambda job: job)
        what = f"{where}, {program}, {asked.tiles} x {asked.tiles} tiles of {asked.block} x {asked.block}"
        yield row_of(what, seconds, 1 / LOSS)


def line(row: Row) -> str:
    """As it is printed."""
    missed = ": MISSED" if row.ratio < row.least else ""
    return (
        f"{row.what:<58} {row.starpu * 1e3:>9.1f} ms {row.elbowroom * 1e3:>9.1f} ms  "
        f"{row.ratio:.2f} ({row.low:.2f} to {row.high:.2f}), at least {row.least:.2f}{missed}"
    )


def main() -> int:
    parser = Command(__doc__, smoke="--rounds 1 --repeats 1 --tiles 2 --block 16 --parts machine")
    parser.add_argument("--rounds", type=int, default=10, help="of both sides")
    parser.add_argument("--repeats", type=int, default=3, help="of the graph in a run, that count")
    parser.add_argument("--tiles", type=int, default=8, help="rows and columns of the examples")
    parser.add_argument("--block", type=int, default=96, help="rows and columns of a tile")
    parser.add_argument("--priorities", type=int, choices=(0, 1), default=1, help="0: tasks have none")
    parser.add_argument("--parts", choices=("hosts", "machine", "both"), default="both")
    parser.add_argument("--json", action="store_true")
    asked: argparse.Namespace = parser.parse_args()
    try:
        build.starpu_examples()
    except ElbowroomError as error:
        print(f"{error.sentence()}: not measured")
        return 0
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        parts = {"hosts": between_hosts(asked, Path(name)), "machine": on_this_machine(asked, Path(name))}
        for part, measured in parts.items():
            for row in measured if asked.parts in (part, "both") else ():
                rows.append(row)
                if not asked.json:
                    print(line(row), flush=True)
    if asked.json:
        print(json.dumps([row._asdict() for row in rows], indent=1))
    return status(asked, [row for row in rows if row.ratio < row.least])


if __name__ == "__main__":
    sys.exit(main())
