"""Broadcasts over MPI on this machine: what the library adds to MPI, and what trees save.

    python benchmarks/broadcast_mpi.py [--mpi MPI] [--json] [--smoke]

In turns, repetition by repetition, data checked. To reach:
- 2 ranks, 20,000 exchanges of 4 B: at most 1 us above MPI_Send and MPI_Recv, one way;
- 2 ranks, 64 KiB, 256 KiB, 4 MiB and 16 MiB: at most 1.05 of MPI_Ibcast;
- 3 ranks, 20,000 sends that nobody receives yet: at most 5 us for a further one;
- 1,000,000 messages that are waited for by RECEIVED only: the last tenth takes at most 1.2 of the second
  tenth's time, and at most 1 MiB more memory;
- a message to a rank while another one computes in the middle of 4 MiB: at most 1 ms more;
- 8 ranks, 2 MiB: binomial at most 0.5 of a loop of sends. Each rank is a host of its own (network namespaces,
  needs root) with a link of 200 Mbit/s. Beside it 8 ranks in shared memory, where copies cost memory
  bandwidth and not links: to reach the same where each rank has a core; n/a otherwise.

Exit code 1 where one is missed. Needs a quiet machine; a minute. `--smoke` runs all parts but the hosts with
tiny sizes, and judges nothing: that they run.
"""

from __future__ import annotations

import json
import os
import runpy
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from command import Command, status

from elbowroom.broadcast.measured import BenchCase, BroadcastEntry, cases, entries
from elbowroom.launch.executables import JobLaunch, measure_broadcasts
from elbowroom.launch.launcher import Launch

EXCHANGES, BLOCKS = 1000, 20
LARGE = (2**16, 2**18, 4 * 2**20, 16 * 2**20)
OPEN = {"sends": 20_000, "waits": 1_000_000, "computing": 21}
OPEN_SMOKE = {"sends": 200, "waits": 1000, "computing": 1}
TREES = ("flat", "chain", "binary", "binomial", "two")
RANKS, SIZE, SEGMENT = 8, 2 * 2**20, 65536
LINK_MBIT = 200

HOSTS = {"OMPI_MCA_btl_tcp_sndbuf": "131072", "OMPI_MCA_mpi_yield_when_idle": "1"}
"""Bytes that MPI calls sent while they still wait in the kernel. Linux' own limit is some MiB: messages to
several ranks share the link then, and the first one arrives as late as the last one. And all hosts share the
cores of this machine.
"""


class Row(NamedTuple):
    """A value and the most that it may be; None: n/a here, for the reason in `what`."""

    what: str
    value: float
    unit: str
    most: float | None = None


def latency(mpi: str | None, smoke: bool) -> Iterator[Row]:
    """4 B between two ranks."""
    asked = {"exchanges": 10 if smoke else EXCHANGES, "blocks": 1 if smoke else BLOCKS, "size": 4}
    found = measure_broadcasts([], JobLaunch(2, mpi=mpi), latency=asked).latency
    assert found is not None
    added = [ours - plain for ours, plain in zip(found.library, found.mpi, strict=True)]
    yield Row("2 ranks, 4 B one way, MPI", statistics.median(found.mpi) * 1e6, "us")
    yield Row("2 ranks, 4 B one way, library", statistics.median(found.library) * 1e6, "us")
    yield Row("2 ranks, 4 B, what the library adds", statistics.median(added) * 1e6, "us", 1.0)


def beside_ibcast(mpi: str | None, smoke: bool) -> Iterator[Row]:
    """Large data to one recipient."""
    asked = cases(LARGE[:1] if smoke else LARGE, (1,), ("binomial",), repeat=1 if smoke else 101)
    for entry in entries(asked, measure_broadcasts(asked, JobLaunch(2, mpi=mpi))):
        what = f"2 ranks, {entry.size >> 10} KiB"
        yield Row(f"{what}, library", entry.time.median, "us")
        yield Row(f"{what}, MPI_Ibcast", entry.beside.ibcast.median, "us")
        yield Row(f"{what}, library/MPI_Ibcast", entry.time.median / entry.beside.ibcast.median, "", 1.05)


def beside_open(mpi: str | None, smoke: bool) -> Iterator[Row]:
    """What is not to depend on what else is open."""
    found = measure_broadcasts([], JobLaunch(3, mpi=mpi), open_costs=OPEN_SMOKE if smoke else OPEN).open
    assert found is not None
    yield Row("a further send, the first tenth", found.send[0] * 1e6, "us")
    yield Row("a further send, the last tenth", found.send[-1] * 1e6, "us", 5.0)
    yield Row("a message waited for, the second tenth", found.wait[1] * 1e6, "us")
    yield Row("a message waited for, last/second tenth", found.wait[-1] / found.wait[1], "", 1.2)
    yield Row("memory, last tenth above second", found.memory[-1] - found.memory[1], "MiB", 1.0)
    more = statistics.median(found.beside) - statistics.median(found.alone)
    yield Row("256 KiB, no rank computes", statistics.median(found.alone) * 1e3, "ms")
    yield Row("256 KiB, what a computing rank adds", more * 1e3, "ms", 1.0)


def trees(where: str, found: list[BroadcastEntry], most: float | None) -> Iterator[Row]:
    """All trees beside the loop of sends."""
    beside = found[0].beside
    for name, time in (
        ("loop of sends", beside.sends),
        ("MPI_Bcast", beside.bcast),
        ("MPI_Ibcast", beside.ibcast),
    ):
        yield Row(f"{where}, {name}", time.median / 1e3, "ms")
    for entry in found:
        tree = f"{entry.tree}, {entry.segment >> 10} KiB segments" if entry.segment else entry.tree
        yield Row(f"{where}, {tree}", entry.time.median / 1e3, "ms")
        if tree == "binomial":
            yield Row(f"{where}, binomial/loop", entry.time.median / beside.sends.median, "", most)


def asked_of_trees(repeat: int, size: int = SIZE, ranks: int = RANKS) -> list[BenchCase]:
    whole = cases((size,), (ranks - 1,), TREES, repeat=repeat)
    cut = cases((size,), (ranks - 1,), ("chain", "binary", "two"), segment=SEGMENT, repeat=repeat)
    return whole + cut


def in_shared_memory(mpi: str | None, smoke: bool) -> Iterator[Row]:
    cores = len(os.sched_getaffinity(0))
    ranks = 3 if smoke else RANKS
    asked = asked_of_trees(1, SEGMENT * 2, ranks) if smoke else asked_of_trees(21)
    found = list(entries(asked, measure_broadcasts(asked, JobLaunch(ranks, mpi=mpi))))
    enough = cores >= ranks
    where = f"{ranks} ranks, {cores} cores" if enough else f"{ranks} ranks share {cores} cores"
    yield from trees(where, found, 0.5 if enough else None)


def behind_links(folder: Path) -> Iterator[Row]:
    """The embedded MPI over TCP."""
    tools = runpy.run_path(str(Path(__file__).parents[1] / "tests" / "linked_hosts.py"))
    asked = asked_of_trees(7)
    try:
        with tools["linked_hosts"](folder, "abcdefgh"[:RANKS]) as hosts:
            for name in hosts.names:
                hosts.limit(name, LINK_MBIT)
            job = JobLaunch(RANKS, "mpiexec", None, tuple(hosts.addresses.values()))

            def adapt(launch: Launch) -> Launch:
                first: Launch = hosts.on_first(launch)
                return msgspec.structs.replace(first, env={**first.env, **HOSTS})

            found = list(entries(asked, measure_broadcasts(asked, job, adapt=adapt)))
    except tools["NoHostsError"] as error:
        print(f"{RANKS} hosts: n/a ({error})", file=sys.stderr)
        return
    yield from trees(f"{RANKS} hosts, {LINK_MBIT} Mbit/s", found, 0.5)


def main() -> int:
    parser = Command(__doc__, smoke="")
    parser.add_argument("--mpi", help="as `elbowroom run --mpi`; default: the embedded one")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        parts = (
            latency(asked.mpi, asked.smoke),
            beside_ibcast(asked.mpi, asked.smoke),
            beside_open(asked.mpi, asked.smoke),
            in_shared_memory(asked.mpi, asked.smoke),
            () if asked.smoke else behind_links(Path(folder)),
        )
        rows = [row for part in parts for row in part]
    missed = [row for row in rows if row.most is not None and row.value > row.most]
    if asked.json:
        told: list[dict[str, Any]] = [row._asdict() for row in rows]
        print(json.dumps(told, indent=1))
        return status(asked, missed)
    for row in rows:
        bound = "" if row.most is None else f"  (at most {row.most:g}{': MISSED' if row in missed else ''})"
        print(f"{row.what:<48} {row.value:>10.3f} {row.unit:<2}{bound}")
    return status(asked, missed)


if __name__ == "__main__":
    sys.exit(main())
