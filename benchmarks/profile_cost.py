"""What profiling adds to an MPI call and to a run of `cg`, beside a profiler of call sites.

    python benchmarks/profile_cost.py [--mpi openmpi] [--repeat 7] [--seconds 4] [--libraries FOLDER] [--json]

First calls as in trace_mpi.py: alone, with a profiler of call sites preloaded (callsites.c: stack, hash
table, times, as mpiP does it), and profiled. To reach: 100 ns added to each call, and MPI_Testsome over 1,000
pending requests 1.2 times as long at most.
Then the mini-kernel `cg` on two processes that compute (--compute work), the same three kinds in turn: the
added share of its time with the interval over repetitions, and, since that is noisier than the bar, the same
share from its calls and what a call costs. To reach: 0.5 %.

Exit code 1 where one is missed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from command import Command, status
from trace_mpi import POLL, Told, c_wrapper, is_missed, measured, print_costs

from elbowroom.launch import build
from elbowroom.launch.mpi import Mpi, find_mpi, launch_environment
from elbowroom.profile.profile import read_profile
from elbowroom.results.result import Kept
from elbowroom.results.summary import kept

CALL_LIMIT = 100.0
"""ns"""
RUN_LIMIT = 0.005
STEP = 0.02
"""Seconds of computation in a step of `cg`, which has 25 exchanges of 4 KiB and 50 sums."""
CALL_SITES = Path(__file__).with_name("callsites.c")


def told_by_kind(mpi: Mpi, profiler: Path, folder: Path) -> dict[str, Told]:
    """Builds the profiler of call sites in `folder`."""
    sites = folder / "callsites.so"
    subprocess.run([c_wrapper(mpi), "-O2", "-shared", "-fPIC", "-o", sites, CALL_SITES], check=True)

    def profiled(path: str) -> list[str]:
        os.mkdir(path)
        return [f"LD_PRELOAD={profiler}", f"ELBOW_PROFILE_DIRECTORY={path}"]

    return {"alone": lambda _: [], "call sites": lambda _: [f"LD_PRELOAD={sites}"], "profiled": profiled}


def runs_of_cg(
    mpi: Mpi, kinds: Mapping[str, Told], repeat: int, seconds: float, folder: Path
) -> tuple[dict[str, dict[int, list[float]]], int]:
    """Seconds of each kind of run by repetition, and how many calls a process makes."""
    program = build.application("elbow_minikernel", mpi)
    steps = max(1, round(seconds / STEP))
    words = [str(program), "cg", "--compute", "work", "--size", "4096", "--steps", str(steps)]
    words += ["--seconds-per-step", str(STEP)]
    environment = {**os.environ, **launch_environment()}

    def seconds_of(*more: str) -> dict[str, float]:
        """What `cg` prints."""
        line = [mpi.launcher, "-n", "2", *more]
        done = subprocess.run(line, env=environment, capture_output=True, text=True, check=True)
        printed: dict[str, float] = json.loads(done.stdout)
        return printed

    # The same work in all runs: each would determine it by itself.
    words += ["--rate", str(seconds_of(*words)["rate"])]
    times: dict[str, dict[int, list[float]]] = {kind: {} for kind in kinds}
    calls = 0
    for number in range(repeat):
        for kind, told in kinds.items():
            path = folder / f"cg-{kind}-{number}"
            times[kind][number] = [seconds_of("env", *told(str(path)), *words)["seconds"]]
            if path.exists():
                calls = max(rank.calls for rank in read_profile(path).ranks)
    return times, calls


def added_share(found: Kept | None) -> str:
    """In percent, with the interval; `kept` is alone / together of durations."""
    if found is None:
        return "n/a"
    shares = [
        f"{100 * (1 / one - 1):+.2f}" for one in (found.value, found.high, found.low) if one is not None
    ]
    return f"{shares[0]} %" + (f" ({shares[1]} to {shares[2]})" if len(shares) == 3 else "")


def main() -> None:
    parser = Command(__doc__, smoke="--repeat 1 --seconds 0.1 --batches 2")
    parser.add_argument("--mpi", default="embedded")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--batches", type=int, default=40, help="of 1,000 calls, in each run")
    parser.add_argument("--seconds", type=float, default=4.0, help="of one run of cg")
    parser.add_argument("--libraries", type=Path, help="folder with libelbow_profile_mpi.so")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    mpi = find_mpi(arguments.mpi)
    libraries = arguments.libraries or build.trace_libraries(mpi)
    with tempfile.TemporaryDirectory() as name:
        kinds = told_by_kind(mpi, libraries / "libelbow_profile_mpi.so", Path(name))
        costs = measured(mpi, kinds, arguments.repeat, arguments.batches)
        times, calls = runs_of_cg(mpi, kinds, arguments.repeat, arguments.seconds, Path(name))
    added = {call: costs["profiled"][call] - alone for call, alone in costs["alone"].items()}
    worst = max(more for call, more in added.items() if call != POLL)
    ratios = {kind: kept(times["alone"], times[kind], duration=True) for kind in ("call sites", "profiled")}
    run_seconds = min(one for values in times["alone"].values() for one in values)
    counted = calls * worst * 1e-9 / run_seconds
    if arguments.json:
        shares = {kind: added_share(ratio) for kind, ratio in ratios.items()}
        figures = {"ns": costs, "added_ns": added, "cg_s": times, "cg_calls": calls, "cg_added": shares}
        limits = {"call_ns": CALL_LIMIT, "cg": RUN_LIMIT}
        print(json.dumps({"mpi": mpi.name, **figures, "cg_counted": counted, "limits": limits}))
    else:
        print_costs(mpi, costs, added)
        print(f"\ncg, {run_seconds:.2f} s, {calls} calls of a process; added to its time:")
        for kind, ratio in ratios.items():
            print(f"  {kind:<12}{added_share(ratio)}")
        print(f"  profiled, from its calls and the largest cost above: {100 * counted:+.3f} %")
    missed = is_missed(costs["alone"], added, CALL_LIMIT)
    sys.exit(status(arguments, missed or counted > RUN_LIMIT))


if __name__ == "__main__":
    main()
