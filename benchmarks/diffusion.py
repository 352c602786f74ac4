"""The diffusion solver's rate against TRIAD's: the same threads, the same number of bytes, interleaved.

    python benchmarks/diffusion.py [--repeat 9] [--cores 1] [--resolution 140] [--reorder tiles] [--json]

One process computes without communication (`none`): its rate is the algorithmic bytes of a step (rows, old
and new values) over the time of separator and interior. TRIAD is STREAM's, inside the same program, on
arrays of as many bytes. Prints the ratio of the medians with its paired bootstrap interval; aim: 0.8 or more.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
from command import Command

from elbowroom.errors import ElbowroomError, MachineError
from elbowroom.launch.build import application
from elbowroom.launch.launchers import LaunchRequest, build_launch
from elbowroom.launch.mpi import Mpi, find_mpi
from elbowroom.stats.interval import Kept, Summary
from elbowroom.stats.summary import kept, summarise

STEPS = 5  # of one measurement; its median counts


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """Rates in MB/s, one value a repetition, and solver over TRIAD."""

    cores: str
    cells: int
    step_bytes: float
    vectors: str
    flags: list[str]
    diffusion: Summary
    triad: Summary
    ratio: Kept | None


def cores_of(text: str) -> list[int]:
    cores = [int(part) for part in text.split(",") if part.strip().isdigit()]
    if not cores or not set(cores) <= os.sched_getaffinity(0):
        raise argparse.ArgumentTypeError(f"'{text}' must be some of this process' cores; write 1 or 0,1")
    return cores


def configuration(chosen: argparse.Namespace) -> dict[str, Any]:
    """The communication thread only waits: it may share the last computing core where there is no other."""
    free = sorted(os.sched_getaffinity(0) - set(chosen.cores))
    return {
        "program": {"name": "diffusion", "resolution": chosen.resolution, "reorder": chosen.reorder},
        "comp_cores": chosen.cores,
        "comm_cores": free[:1] or chosen.cores[-1:],
        "scheduling": not free,
    }


def answers(
    program: Path, mpi: Mpi, settings: dict[str, Any], requests: list[dict[str, Any]], ranks: int = 1
) -> list[Any]:
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(settings, file)
        file.flush()
        words = ("measure", "--config", file.name)
        request = LaunchRequest(
            ranks=ranks, ranks_per_host=ranks, probe=str(program), mpi=mpi, arguments=words
        )
        launch = build_launch("local", request)
        done = subprocess.run(
            launch.command,
            input="".join(json.dumps(request) + "\n" for request in [*requests, {"op": "quit"}]),
            capture_output=True,
            text=True,
            env={**os.environ, **launch.env},
        )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    wrong = [line["message"] for line in lines if line["record"] == "error"]
    if wrong or len(lines) != len(requests) + 1:
        raise MachineError(f"the solver failed: {wrong or done.stderr[-300:]}")
    return lines


def rate(answer: dict[str, Any]) -> float:
    """MB/s of the median step."""
    if answer["status"] != "ok":
        raise MachineError(f"a result of {answer['point']} is wrong")
    [phase] = answer["phases"]
    sides = (phase[side]["batches"] for side in ("separator", "comp"))
    return float(answer["moved_bytes"] / median(map(sum, zip(*sides, strict=True))))


def measure(chosen: argparse.Namespace) -> Result:
    mpi = find_mpi()
    sides = ("none", "triad")
    requests = [
        {"op": "measure", "point": side, "variant": side, "steps": STEPS, "warmup": 1}
        for repetition in range(chosen.repeat)
        for side in (sides if repetition % 2 == 0 else sides[::-1])
    ]
    hello, *told = answers(application("diffusion", mpi), mpi, configuration(chosen), requests)
    rates: dict[str, dict[int, list[float]]] = {side: {} for side in sides}
    for index, answer in enumerate(told):
        rates[answer["point"]][index // 2] = [rate(answer)]
    return Result(
        cores=",".join(map(str, chosen.cores)),
        cells=hello["cells"],
        step_bytes=hello["parts"][0]["step_bytes"],
        vectors=hello["vectors"],
        flags=sorted({flag for answer in told for flag in answer["flags"]}),
        diffusion=summarise([value for values in rates["none"].values() for value in values], "MB/s"),
        triad=summarise([value for values in rates["triad"].values() for value in values], "MB/s"),
        ratio=kept(rates["triad"], rates["none"]),
    )


def show(result: Result, load: tuple[float, float, float]) -> None:
    flags = ", ".join(result.flags) or "none"
    print(f"cores {result.cores}; load {load[0]:.2f} before, {os.getloadavg()[0]:.2f} after; flags: {flags}")
    print(f"{result.cells} cells, {result.step_bytes * 1e-6:.0f} MB a step, {result.vectors}")
    print(f"diffusion {result.diffusion.median:9.0f} MB/s")
    print(f"TRIAD     {result.triad.median:9.0f} MB/s")
    if result.ratio is not None:
        print(f"ratio     {ratio_text(result.ratio)}")


def ratio_text(ratio: Kept) -> str:
    """Few repetitions give no interval."""
    ends = "" if ratio.low is None else f" [{ratio.low:.3f}, {ratio.high:.3f}]"
    return f"{ratio.value:.3f}{ends}"


def main() -> int:
    parser = Command("The diffusion solver's rate against TRIAD's.", smoke="--repeat 1 --resolution 20")
    parser.add_argument("--repeat", type=int, default=9, help="interleaved repetitions of each side")
    parser.add_argument("--cores", type=cores_of, default="1", help="cores that compute")
    parser.add_argument("--resolution", type=int, default=140, help="cubes each way; 140: 1.05 GB a step")
    parser.add_argument("--reorder", default="tiles", help="tiles, natural, hilbert or rcm")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    chosen = parser.parse_args()
    if chosen.repeat < 1 or chosen.resolution < 1:
        parser.error("--repeat and --resolution must be positive")
    load = os.getloadavg()
    try:
        result = measure(chosen)
    except ElbowroomError as error:
        print(error, file=sys.stderr)
        return 1
    if chosen.json:
        print(msgspec.json.encode(result).decode())
    else:
        show(result, load)
    return 0


if __name__ == "__main__":
    sys.exit(main())
