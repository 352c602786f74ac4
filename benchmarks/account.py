"""The account of a made profile with many calls: CPU seconds and memory, from files to the account.

The job: ranks on one node that compute, exchange with two neighbours (2 MPI_Irecv, 2 MPI_Isend, MPI_Waitall)
and reduce. MPI_Irecv and MPI_Isend leave records of operations, and none of calls.
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

CALLS_OF_STEP = 6
RECORDS_OF_STEP = 6
STEP_NS, WAIT_NS, REDUCE_NS = 60_000, 8_000, 4_000
NAMES = ("MPI_Irecv", "MPI_Isend", "MPI_Waitall", "MPI_Allreduce")
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
        own["peer"], own["call"], own["kind"], own["flags"] = peers[peer], name, kind, f.SPAN
    own = records[:, 4]
    own["begin"], own["end"], own["peer"], own["call"] = wait, end, -1, 2
    own["kind"], own["flags"] = f.COMPLETION, f.CALL
    own = records[:, 5]
    own["begin"], own["end"] = end + 2000, end + 2000 + REDUCE_NS
    own["bytes"], own["peer"], own["call"], own["kind"], own["flags"] = 8, -ranks - 1, 3, f.COLLECTIVE, f.CALL
    _write_file(path, rank, ranks, records.ravel(), int(end[-1]) + 10**6)


def _write_file(path: Path, rank: int, ranks: int, records: np.ndarray, end: int) -> None:
    head = np.zeros(1, f.HEADER)
    calls = np.zeros(len(NAMES), f.CALL_KIND)
    calls["name"] = [name.encode() for name in NAMES]
    nodes_at = f.HEADER_BYTES
    calls_at = nodes_at + 4 * ranks
    windows_at = calls_at + calls.nbytes
    values = {
        "magic": f.MAGIC, "version": 1, "header_bytes": f.HEADER_BYTES, "rank": rank, "size": ranks,
        "nodes": 1, "local_rank": rank, "local_size": ranks, "pid": 100 + rank,
        "start_wall_ns": 17 * 10**17, "start_ns": 10**9 - 1000, "end_ns": end, "window_ns": 10**6,
        "records": len(records), "written": len(records), "calls": len(records), "call_kinds": len(NAMES),
        "nodes_at": nodes_at, "calls_at": calls_at, "windows_at": windows_at, "records_at": windows_at,
        "host": b"node", "mpi": b"Made MPI 1.0",
    }  # fmt: skip
    for name, value in values.items():
        head[name] = value
    with path.open("wb") as file:
        file.write(head.tobytes().ljust(f.HEADER_BYTES, b"\0"))
        file.write(np.zeros(ranks, "<i4").tobytes())
        file.write(calls.tobytes())
        records.tofile(file)


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
