"""What a guard that only observes costs a program: `elbowroom guard --observe`.

    python benchmarks/guard_observe.py [--seconds 60] [--starts 9] [--mpi openmpi] [--real-time] [--json]

Runs of different processes cannot show half a percent on a virtual machine: their times differ by 20 % and
more. So steps of conjugate gradients on two processes, as in profile_cost.py, run under the guard: blocks of
five steps whose calls the guard sees (MPI_*) take turns with blocks of the same calls past it (PMPI_*), and
the added share is the median of their ratios, with a 95 % interval by bootstrap. The guard's own process
works in both kinds of blocks: the processor time that its receipt names is added in full, as if all ranks
waited for it. To reach: both together within 0.5 %. What the start costs (library, board, the guard's own
process) is the median of pairs of a program that ends at once, in seconds, and is no part of that.

Some two minutes; needs two cores that nothing else uses. Exit code 1 where the goal is missed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from command import Command, run_in_real_time, status
from profile_cost import printed, program_of_cg, share_added, turns_of_cg

from elbowroom.launch.mpi import Mpi, find_mpi, launch_environment
from elbowroom.stats.signed_ranks import pseudo_median, rank_interval

LIMIT = 0.005


def guarded(receipt: Path) -> list[str]:
    """What a command is observed by."""
    return [sys.executable, "-m", "elbowroom", "guard", "--observe", "--receipt", str(receipt), "--"]


def seconds_of(words: Sequence[str]) -> float:
    """Of a command from its start to its end."""
    begin = time.monotonic()
    subprocess.run(words, env={**os.environ, **launch_environment()}, capture_output=True, check=True)
    return time.monotonic() - begin


def start(mpi: Mpi, program: str, receipt: Path, pairs: int) -> tuple[float, tuple[float, float] | None]:
    """Seconds that the guard adds to a program that ends at once, with their 95 % interval."""
    plain = [mpi.launcher, "-n", "2", program, "0"]
    added = []
    for number in range(pairs):
        both = [plain, [*guarded(receipt), *plain]]
        times = [seconds_of(words) for words in both[:: 1 if number % 2 else -1]]
        added.append((times[1] - times[0]) * (1 if number % 2 else -1))
    return pseudo_median(np.array(added)), rank_interval(np.array(added))


def main() -> int:
    parser = Command(__doc__, smoke="--seconds 0.5 --starts 1")
    parser.add_argument("--mpi", default="embedded")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--starts", type=int, default=9, help="pairs of programs that end at once")
    parser.add_argument("--real-time", action="store_true", help="with a real-time priority; as root")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.real_time:
        run_in_real_time()
    mpi = find_mpi(options.mpi)
    with tempfile.TemporaryDirectory() as name:
        program, receipt = program_of_cg(mpi, Path(name)), Path(name) / "receipt.json"
        calls, turns = turns_of_cg(mpi, [program, str(options.seconds)], guarded(receipt))
        found = json.loads(receipt.read_text())
        added, ends = start(mpi, program, receipt, options.starts)
    share = share_added(turns)
    own = found["guard_seconds"] / float(turns.sum())
    interval = "no interval" if ends is None else f"{ends[0]:+.2f} to {ends[1]:+.2f} s"
    if options.json:
        print(json.dumps({"added": share, "guard": own, "steps": found["steps"], "start_s": added}))
    else:
        print(f"calls, {calls / float(np.median(turns[:, 1])):.0f} per second of a process: {printed(share)}")
        print(f"the guard itself: {own:.3%} of a core, over {float(turns.sum()):.0f} s")
        print(f"both together: at most {share[2] + own:.3%} (goal: {LIMIT:.1%})")
        print(f"start: {added:+.2f} s ({interval})")
    return status(options, share[2] + own > LIMIT or not found["steps"])


if __name__ == "__main__":
    sys.exit(main())
