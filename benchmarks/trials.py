"""How often `diagnose --try` finds a gain that a changed line allows, and claims one where there is none.

    python benchmarks/trials.py [--runs 200] [--record N --mpi PREFIX] [--noise FILE] [--keep FILE]

The noise is recorded: `--record N` runs a program of this script N times under mpirun here, one after the
other, and --keep keeps its wall times for --noise. Without either it is made up, a normal one of 2 %.

- *none*: four candidates that are the unchanged line. A claim in at most 5 % of the runs.
- *gain*: four candidates, one of which saves `--gain` (10 %). Found in at least 95 %.

A simulated run of a line takes one of the recorded times, less what the line saves; they follow in order from
a random place on, so that drift and bursts stay as they were. A program of 2 s has 75 s for its trials, one
of 20 s has 290 s.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from command import Command, status
from numpy.typing import NDArray

from elbowroom.diagnose.candidates import Candidate
from elbowroom.diagnose.trials import TrialOutcome, try_candidates
from elbowroom.launch.mpi import launch_environment

Floats = NDArray[np.float64]

CANDIDATES = 4
FALSE_MOST, FOUND_LEAST = 0.05, 0.95
CASES = ((2.0, 75.0), (20.0, 290.0))
"""Seconds of a run, and for its trials."""

SOURCE = """
#include <mpi.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  int rank, ranks, steps = atoi(argv[1]);
  volatile double x = 1;
  static char out[8192], in[8192];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int step = 0; step < steps; ++step) {
    for (int i = 0; i < 100000; ++i) x = x * 0.999 + 0.001;
    MPI_Sendrecv(out, sizeof out, MPI_BYTE, ranks - 1 - rank, 0, in, sizeof in, MPI_BYTE, ranks - 1 - rank, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Finalize();
  return 0;
}
"""


def record(runs: int, prefix: str, steps: int) -> list[float]:
    """Wall times (s) of a small program of two ranks, one run after the other."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "program.c"), Path(folder, "program")
        source.write_text(SOURCE)
        subprocess.run([f"{prefix}/bin/mpicc", "-O1", "-o", program, source], check=True)
        env = {**launch_environment(), **os.environ}
        times = []
        for _ in range(runs):
            begin = time.monotonic()
            command = [f"{prefix}/bin/mpirun", "-n", "2", "--bind-to", "none", program, str(steps)]
            subprocess.run(command, check=True, env=env)
            times.append(time.monotonic() - begin)
    return times


def simulated(noise: Floats, gains: Sequence[float], run_s: float, budget_s: float, seed: int) -> str:
    """The line that gains by the trials, empty if none; `noise`: factors of the time of a run."""
    at, now = int(np.random.default_rng(seed).integers(len(noise))), 0.0

    def run(one: Candidate | None, _patience: float | None) -> TrialOutcome:
        nonlocal at, now
        factor = float(noise[at % len(noise)])
        at += 1
        seconds = run_s * factor * (1 - (gains[int(one.typed)] if one is not None else 0.0))
        now += seconds
        return TrialOutcome(None, seconds)

    lines = [
        Candidate(command=(str(i),), cause="placement", what="", typed=str(i)) for i in range(len(gains))
    ]
    best = try_candidates(lines, run, budget_s=budget_s, run_s=run_s, seed=seed, clock=lambda: now).best
    return "" if best is None else best.command


def main() -> int:
    """Prints a row for each case."""
    parser = Command(__doc__, "--runs 3 --record 0", formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200, help="simulated diagnoses of each case")
    parser.add_argument("--record", type=int, default=0, help="first record so many runs here")
    parser.add_argument("--steps", type=int, default=2000, help="of the recorded program")
    parser.add_argument("--mpi", default="/usr", help="prefix of the MPI that records")
    parser.add_argument("--noise", type=Path, help="a file of recorded times, as --keep writes it")
    parser.add_argument("--keep", type=Path, help="where recorded times are written")
    parser.add_argument("--gain", type=float, default=0.1)
    options = parser.parse_args()
    if options.record:
        times = record(options.record, options.mpi, options.steps)
    elif options.noise is not None:
        times = json.loads(options.noise.read_text())
    else:
        times = list(np.exp(np.random.default_rng(1).normal(0, 0.02, 300)))
    if options.keep is not None:
        options.keep.write_text(json.dumps(times))
    noise = np.array(times) / np.median(times)
    spread = float(np.subtract(*np.quantile(noise, (0.75, 0.25))))
    print(f"{len(noise)} recorded runs, quartiles {spread:.1%} apart; load {os.getloadavg()[0]:.1f}")
    print(f"{'run':>6} {'false':>7} {'found':>7} {'wrong':>7}")
    missed = False
    for run_s, budget_s in CASES:
        none, gain = [0.0] * CANDIDATES, [0.0] * (CANDIDATES - 1) + [options.gain]
        seeds = range(options.runs)
        false = np.mean([simulated(noise, none, run_s, budget_s, seed) != "" for seed in seeds])
        answers = [simulated(noise, gain, run_s, budget_s, seed) for seed in seeds]
        right = np.mean([answer == str(CANDIDATES - 1) for answer in answers])
        wrong = np.mean([answer not in ("", str(CANDIDATES - 1)) for answer in answers])
        print(f"{run_s:>4.0f} s {false:>7.1%} {right:>7.1%} {wrong:>7.1%}")
        missed |= bool(false > FALSE_MOST or right < FOUND_LEAST)
    return status(options, missed)


if __name__ == "__main__":
    sys.exit(main())
