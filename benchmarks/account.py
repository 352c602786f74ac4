"""The account of a made profile with many calls: CPU seconds and memory, from files to the account.

The job: ranks on one node that compute, exchange with two neighbours (2 MPI_Irecv, 2 MPI_Isend, MPI_Waitall)
and reduce. MPI_Irecv and MPI_Isend leave records of operations, and none of calls. Each call has a site, and
every second millisecond a sample says what the scheduler did with the thread, as in files of the profiler.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from elbowroom.profile import rank_file as f
from elbowroom.profile import rank_tables as t

CALLS_OF_STEP = 6
RECORDS_OF_STEP = 6
STEP_NS, WAIT_NS, REDUCE_NS = 60_000, 8_000, 4_000
NAMES = ("MPI_Irecv", "MPI_Isend", "MPI_Waitall", "MPI_Allreduce")
SAMPLE_NS, SHARED_NS = 2_000_000, 40_000
"""Between samples, and what the thread waits in the run queue in every tenth of these times."""
GOAL_S, GOAL_MB = 5.0, 300.0


def write_rank(path: Path, rank: int, ranks: int, steps: int) -> None:
    """The file of a rank: `steps` of six records each, with times that vary."""
    records = np.zeros((steps, RECORDS_OF_STEP), f.RECORD)
    noise = np.random.default_rng(rank)
    begin = 10**9 + np.arange(steps) * STEP_NS + noise.integers(0, 3000, steps)
    wait = begin + 40_000 + noise.integers(0, 2000, steps)
    end = wait + WAIT_NS + noise.integers(0, 1000, steps)
    peers = [(rank - 1) % ranks, (rank + 1) % ranks]
    for at, (name, kind, peer) in enumerate(
        [(0, f.POSTED_RECEIVE, 0), (0, f.POSTED_RECEIVE, 1), (1, f.POSTED_SEND, 0), (1, f.POSTED_SEND, 1)]
    ):
        own = records[:, at]
        own["begin"], own["end"], own["bytes"] = begin + 300 * at, end, 8192
        own["peer"], own["call"], own["kind"], own["flags"] = peers[peer], len(NAMES) + name, kind, f.SPAN
    own = records[:, 4]
    own["begin"], own["end"], own["peer"], own["call"] = wait, end, -1, len(NAMES) + 2
    own["kind"], own["flags"] = f.COMPLETION, f.CALL
    own = records[:, 5]
    own["begin"], own["end"] = end + 2000, end + 2000 + REDUCE_NS
    own["bytes"], own["peer"], own["call"] = 8, -ranks - 1, len(NAMES) + 3
    own["kind"], own["flags"] = f.COLLECTIVE, f.CALL
    ends = int(end[-1]) + 10**6
    both = np.concatenate([records.ravel(), _samples(rank, 10**9, ends)])
    _write_file(path, rank, ranks, both[np.argsort(both["end"], kind="stable")], ends)


def _samples(rank: int, begin: int, end: int) -> np.ndarray:
    """Records of the scheduler's samples of the only thread."""
    edges = np.arange(begin, end, SAMPLE_NS)
    ran = np.zeros(len(edges) - 1, f.RECORD)
    ran["begin"], ran["end"], ran["peer"], ran["kind"] = edges[:-1], edges[1:], rank, f.RAN
    ran["bytes"] = SAMPLE_NS
    shared = ran[::10]
    shared["bytes"] -= SHARED_NS
    waited = shared.copy()
    waited["bytes"], waited["peer"], waited["kind"] = SHARED_NS, -1, f.WAITED
    return np.concatenate([ran, waited])


def _write_file(path: Path, rank: int, ranks: int, records: np.ndarray, end: int) -> None:
    head = np.zeros(1, f.HEADER)
    calls = np.zeros(len(NAMES), t.CALL_KIND)
    calls["name"] = [name.encode() for name in NAMES]
    sites = np.zeros(len(NAMES), t.SITE)
    sites["call"], sites["offset"] = range(len(NAMES)), 64 * np.arange(1, len(NAMES) + 1)
    threads = np.zeros(1, t.THREAD)
    threads["thread"], threads["cpus"], threads["first"], threads["last"] = 100 + rank, 1, rank, rank
    tables = {
        "nodes": np.zeros(ranks, "<i4"),
        "threads": threads,
        "modules": np.array([(0, 1, 1, b"/made/program")], t.MODULE),
        "calls": calls,
        "sites": sites,
        "windows": np.zeros(0, f.WINDOW),
        "records": records,
    }
    values = {
        "magic": f.MAGIC, "version": f.VERSION, "header_bytes": f.HEADER_BYTES, "rank": rank, "size": ranks,
        "nodes": 1, "local_rank": rank, "local_size": ranks, "pid": 100 + rank,
        "start_wall_ns": 17 * 10**17, "start_ns": 10**9 - 1000, "end_ns": end, "window_ns": 10**6,
        "records": len(records), "written": len(records), "calls": len(records), "call_kinds": len(NAMES),
        "threads": 1, "thread_room": 1, "modules": 1, "module_room": 1, "sites": len(NAMES),
        "site_room": len(NAMES), "cpu_limit": -1.0, "host": b"node", "mpi": b"Made MPI 1.0",
    }  # fmt: skip
    at = f.HEADER_BYTES
    for name, table in tables.items():
        values[f"{name}_at"] = at
        at += table.nbytes
    for name, value in values.items():
        head[name] = value
    with path.open("wb") as file:
        file.write(head.tobytes().ljust(f.HEADER_BYTES, b"\0"))
        for table in tables.values():
            table.tofile(file)


def account(folder: Path) -> None:
    """Read and account for a profile; prints CPU seconds, and MB at most."""
    from elbowroom.diagnose.account import account_of
    from elbowroom.profile.profile import read_profile
    from elbowroom.profile.steps import find_edges

    begin = time.process_time()
    profile = read_profile(folder)
    result = account_of(profile, find_edges(profile))
    seconds = time.process_time() - begin
    lengths = np.diff(result.edges)[:, None] / result.steps_per_row
    assert abs(result.seconds.sum(axis=2) - lengths).max() < 1e-3 * result.step_s
    assert profile.scheduled is not None
    assert profile.scheduled.waited_ns is not None
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{seconds:.2f} {megabytes:.0f} {result.count}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=float, default=1e7)
    parser.add_argument("--ranks", type=int, default=16)
    parser.add_argument("--smoke", action="store_true", help="a few calls")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder:
        account(options.folder)
        return 0
    calls = 2e4 if options.smoke else options.calls
    steps = int(calls / options.ranks / CALLS_OF_STEP)
    with tempfile.TemporaryDirectory() as folder:
        for rank in range(options.ranks):
            write_rank(Path(folder, f"rank-{rank:06d}.profile"), rank, options.ranks, steps)
        one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        words = [sys.executable, __file__, "--folder", folder]
        done = subprocess.run(words, capture_output=True, text=True, check=True, env={**os.environ, **one})
    seconds, megabytes, found = done.stdout.split()
    calls = steps * options.ranks * CALLS_OF_STEP
    print(f"{calls:.3g} calls of {options.ranks} ranks, {found} steps; load {os.getloadavg()[0]:.1f}")
    good = float(seconds) <= GOAL_S and float(megabytes) <= GOAL_MB
    print(f"{seconds} s of CPU time (goal {GOAL_S:.0f})")
    print(f"{megabytes} MB (goal {GOAL_MB:.0f}){'' if good else ': missed'}")
    return 0 if good or options.smoke else 1


if __name__ == "__main__":
    sys.exit(main())
