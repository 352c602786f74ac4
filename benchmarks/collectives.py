"""The time of a blocking collective, beside the definitions of OSU and IMB, and a hand-written loop.

    python benchmarks/collectives.py [--mpi MPI] [--ranks 2] [--repeat 15] [--pages huge] [--json]

The probe measures each collective in a repetition; then benchmarks/collectives.c, a loop of the same calls
between the same barriers, does. Both run in turns, each in processes of its own that sleep meanwhile. Printed
are, in us and as ratios of medians over repetitions with 95 % intervals:

- ours: mean over iterations from the last arrival to the last departure, on one clock;
- OSU: mean over ranks and iterations of the time of the call; IMB: the largest mean of a rank (t_max), both
  from the same samples as ours;
- slowest: the median of the slowest rank's time of the call, by the probe and by the loop.

To reach: ours within 5 % of OSU's or IMB's, and the probe's slowest within 5 % of the loop's. Exit code 1
where one is missed. Needs a quiet machine; a minute.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from command import Command, status

from elbowroom.launch.build import probe
from elbowroom.launch.launcher import LaunchRequest
from elbowroom.launch.launchers import build_launch
from elbowroom.launch.mpi import Mpi, find_mpi
from elbowroom.launch.session import Session
from elbowroom.plan.point import Unit
from elbowroom.stats.overlap.samples import collective_time

LOOP = Path(__file__).with_suffix(".c")
OPERATIONS = ("bcast", "reduce", "allreduce", "allgather", "alltoall")
SIZES = (1024, 65536, 1 << 20)
ITERATIONS = 50
TOLERANCE = 0.05
PATIENCE = 120.0

Ask = Callable[[str, int], dict[str, float]]


def request(mpi: Mpi, ranks: int, program: str, arguments: tuple[str, ...]) -> LaunchRequest:
    cores = len(os.sched_getaffinity(0))
    return LaunchRequest(
        ranks=ranks,
        ranks_per_host=ranks,
        probe=program,
        mpi=mpi,
        share_core=ranks > cores,
        arguments=arguments,
    )


def of_probe(session: Session, ranks: int) -> Ask:
    """Asks the probe; all values in s."""
    cores = sorted(os.sched_getaffinity(0))
    places = [
        {
            "rank": rank,
            "comp_cores": [],
            "comm_cores": [cores[rank % len(cores)]],
            "comp_node": 0,
            "comm_node": 0,
        }
        for rank in range(ranks)
    ]

    def ask(operation: str, size: int) -> dict[str, float]:
        wanted: dict[str, Any] = {
            "op": "measure",
            "point": operation,
            "repetition": 0,
            "sequence": ["B"],
            "kernel": "none",
            "size": size,
            "comm_cores": [cores[0]],
            "placements": places,
            "overlap": {"operation": operation, "form": "blocking", "iterations": ITERATIONS},
        }
        answer = session.ask(Unit(point=operation, repetition=0), wanted, PATIENCE)
        if not answer.get("validated"):
            raise SystemExit(f"the probe answered: {str(answer)[:300]}")
        times = answer["overlap"]["message"]
        enter, leave = (np.asarray(times[name], dtype=float) for name in ("enter", "leave"))
        spent = leave - enter
        return {
            "ours": float(collective_time(enter, leave).mean()),
            "OSU": float(spent.mean()),
            "IMB": float(spent.mean(axis=0).max()),
            "slowest": float(np.median(spent.max(axis=1))),
        }

    return ask


def of_loop(process: subprocess.Popen[str]) -> Ask:
    """Asks the loop."""

    def ask(operation: str, size: int) -> dict[str, float]:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{operation} {size} {ITERATIONS}\n")
        process.stdin.flush()
        mean, most, slowest = (float(word) for word in process.stdout.readline().split())
        return {"OSU": mean, "IMB": most, "slowest": slowest}

    return ask


def ratio(above: list[float], below: list[float], draws: np.random.Generator) -> tuple[float, float, float]:
    """Of the medians, with a 95 % bootstrap interval over repetitions."""
    both = np.array([above, below])
    drawn = draws.integers(0, both.shape[1], (2000, both.shape[1]))
    ratios = np.median(both[0][drawn], axis=1) / np.median(both[1][drawn], axis=1)
    low, high = np.percentile(ratios, (2.5, 97.5))
    return float(np.median(both[0]) / np.median(both[1])), float(low), float(high)


def compared(ours: Ask, loop: Ask, repeat: int) -> list[dict[str, Any]]:
    """A row for each collective and size."""
    cases = [(operation, size) for operation in OPERATIONS for size in SIZES]
    values: dict[tuple[str, int], list[tuple[dict[str, float], dict[str, float]]]] = {c: [] for c in cases}
    for _ in range(repeat):
        for case in cases:
            values[case].append((ours(*case), loop(*case)))
    draws = np.random.default_rng(1)
    rows = []
    for (operation, size), pairs in values.items():
        mine = {name: [one[name] for one, _ in pairs] for name in ("ours", "OSU", "IMB", "slowest")}
        theirs = [other["slowest"] for _, other in pairs]
        rows.append(
            {
                "operation": operation,
                "size": size,
                "us": float(np.median(mine["ours"])) * 1e6,
                "ours/OSU": ratio(mine["ours"], mine["OSU"], draws),
                "ours/IMB": ratio(mine["ours"], mine["IMB"], draws),
                "probe/loop": ratio(mine["slowest"], theirs, draws),
            }
        )
    return rows


def reached(row: dict[str, Any]) -> bool:
    """Whether both goals are, as far as the intervals tell."""

    def near(name: str) -> bool:
        _, low, high = row[name]
        return bool(low <= 1 + TOLERANCE and high >= 1 - TOLERANCE)

    return (near("ours/OSU") or near("ours/IMB")) and near("probe/loop")


def main() -> int:
    parser = Command(__doc__, smoke="--repeat 1")
    parser.add_argument("--mpi", help="as `elbowroom run --mpi`; default: the embedded one")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--pages", choices=["huge", "small"], default="huge", help="of the loop's buffers")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    mpi = find_mpi(asked.mpi)
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder) / "loop")
        subprocess.run([mpi.compiler, "-x", "c", "-O2", str(LOOP), "-o", program], check=True)
        launch = build_launch("local", request(mpi, asked.ranks, str(probe(mpi)), ("measure",)), {})
        session = Session(launch, ranks=asked.ranks, mpi=mpi)
        other = build_launch("local", request(mpi, asked.ranks, program, (asked.pages,)), {})
        process = subprocess.Popen(
            other.command,
            env={**os.environ, **other.env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            rows = compared(of_probe(session, asked.ranks), of_loop(process), asked.repeat)
        finally:
            session.close()
            process.communicate("end 0 0\n")
    if asked.json:
        print(json.dumps(rows))
    for row in rows if not asked.json else ():
        ratios = ", ".join(
            f"{name} {row[name][0]:.3f} ({row[name][1]:.3f} to {row[name][2]:.3f})"
            for name in ("ours/OSU", "ours/IMB", "probe/loop")
        )
        mark = "" if reached(row) else "  MISSED"
        print(f"{row['operation']:10} {row['size']:8} B {row['us']:10.2f} us  {ratios}{mark}")
    return status(asked, not all(reached(row) for row in rows))


if __name__ == "__main__":
    sys.exit(main())
