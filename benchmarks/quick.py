"""How long `elbowroom run quick` takes and how wide its intervals are, on this host and beside a neighbour.

    python benchmarks/quick.py [--budget 120s] [--core N] [--keep DIR]

Runs quick four times: in order and with --reverse, each on the host as it is and beside a neighbour that this
script starts: a process that alternates 100 ms of memory traffic (copies of an array far larger than the
cache) and 100 ms of sleep, with the lowest weight (nice 19), on the core of the communication (--core names
another). Prints a line for each run: seconds from the command to the report, the exit code, the largest half
width of `kept`, that of the answer's point, and how far TRIAD alone varies between phases; then the share of
intervals that overlap between the two orders. Exits with 1 where a run took longer than its budget, or fewer
than 95 % of the intervals overlap.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from command import Command, status

import elbowroom
from elbowroom.launch import build
from elbowroom.launch.mpi import find_mpi
from elbowroom.quantities import parse_duration

TRAFFIC_S = SLEEP_S = 0.1
ARRAY_BYTES = 256 << 20
OVERLAP = 0.95


class Measured(NamedTuple):
    """One run of quick: seconds of the whole command, exit code, `kept` (low, high) by point and side."""

    seconds: float
    code: int
    kept: dict[tuple[str, str], tuple[float, float]]
    answer: tuple[str, ...]
    spread: float
    core: int


def neighbour(core: int) -> None:
    """Traffic and sleep in turns, until it is ended."""
    os.sched_setaffinity(0, {core})
    os.nice(19)
    source, target = (np.ones(ARRAY_BYTES // 8) for _ in range(2))
    part = len(source) // 16
    while True:
        end = time.monotonic() + TRAFFIC_S
        place = 0
        while time.monotonic() < end:
            target[place : place + part] = source[place : place + part]
            place = (place + part) % len(source)
        time.sleep(SLEEP_S)


def measure(out: Path, options: argparse.Namespace, reverse: bool) -> Measured:
    """Runs the command and reads what it wrote."""
    words = [sys.executable, "-m", "elbowroom", "run", "quick", "--out", str(out), "--no-open"]
    words += ["--budget", options.budget, *(["--machine", options.machine] if options.machine else [])]
    begun = time.monotonic()
    code = subprocess.run(
        [*words, *["--reverse"] * reverse], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
    ).returncode
    seconds = time.monotonic() - begun
    run = elbowroom.open(out)
    kept = {
        (point.id, name): side.kept.bounds
        for point in run.points()
        for name, side in (("comp", point.comp), ("comm", point.comm))
        if side.kept is not None and side.kept.bounds is not None
    }
    alone = [point.comp.alone for point in run.points() if point.kernel == "triad" and point.comp.alone]
    spread = max(((item.d9 - item.d1) / item.median / 2 for item in alone), default=float("nan"))
    return Measured(seconds, code, kept, run.findings[0].points, spread, run.points()[0].comm_core)


def half_width(ends: tuple[float, float]) -> float:
    """Of an interval."""
    return (ends[1] - ends[0]) / 2


def line(name: str, found: Measured) -> str:
    """What one run was."""
    widest = max(map(half_width, found.kept.values()), default=float("nan"))
    answer = [half_width(ends) for (point, _), ends in found.kept.items() if point in found.answer]
    return (
        f"{name:18} {found.seconds:7.1f} s  exit {found.code}  widest +-{widest:.3f}  "
        f"answer +-{max(answer, default=float('nan')):.3f}  TRIAD alone +-{found.spread:.0%}"
    )


def overlap(first: Measured, second: Measured) -> float:
    """The share of intervals of both runs that overlap."""
    both = first.kept.keys() & second.kept.keys()
    pairs = [(first.kept[key], second.kept[key]) for key in both]
    return sum(a[0] <= b[1] and b[0] <= a[1] for a, b in pairs) / max(1, len(pairs))


def main() -> int:
    """Measures, prints, and says whether it is as it must be."""
    parser = Command(__doc__.splitlines()[0], smoke="--machine henri --hosts quiet")
    parser.add_argument("--budget", default="120s", help="budget of each run")
    parser.add_argument("--core", type=int, help="core of the neighbour; default: the communication's")
    parser.add_argument("--machine", help="a virtual machine answers, as for `elbowroom run`")
    parser.add_argument("--hosts", default="quiet,noisy", help="with a neighbour that disturbs: noisy")
    parser.add_argument("--keep", help="keep the run folders in this folder")
    parser.add_argument("--neighbour", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.neighbour:
        neighbour(options.core)
    limit = parse_duration(options.budget, "budget")
    wrong = False
    build.probe(find_mpi())  # the first run of a checkout builds it, which is not what is timed here
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.keep or temporary)
        core = options.core
        for host in options.hosts.split(","):
            beside = None
            if host == "noisy":
                words = [sys.executable, __file__, "--neighbour", "--core", str(core)]
                beside = subprocess.Popen(words)
            try:
                turns = ("in-order", "reverse")
                runs = [measure(folder / f"{host}-{turn}", options, turn == "reverse") for turn in turns]
            finally:
                if beside is not None:
                    beside.send_signal(signal.SIGKILL)
                    beside.wait()
            for name, found in zip(("in order", "reverse"), runs, strict=True):
                print(line(f"{host}, {name}", found), flush=True)
                wrong |= found.seconds > limit
            core = runs[0].core if options.core is None else options.core
            share = overlap(*runs)
            print(f"{host}: {share:.0%} of {len(runs[0].kept)} intervals overlap", flush=True)
            wrong |= share < OVERLAP
    return status(options, wrong)


if __name__ == "__main__":
    sys.exit(main())
