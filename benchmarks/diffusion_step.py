"""Time one step of the diffusion solver in one setup: the program that docs/guide/advise.md verifies with.

    python benchmarks/diffusion_step.py --cores 1 --overlap 1 [--variant none] [--cells 2000000] [--steps 40]

Two processes stand for two nodes on the first two cores of this host. With one computing core they compute in
turn on the second core and communicate on the first; with two each has a core of its own, for both.
`--variant none` and `communication` tell T_M and T_N. Prints what one step of both moves and takes, the
median of the steps after a warm-up, set-up excluded, and for how long it computes, the mean.
"""

from __future__ import annotations

import argparse
import os
import sys
from statistics import mean
from typing import Any

from command import Command
from diffusion import answers

from elbowroom.errors import ElbowroomError
from elbowroom.launch.build import application
from elbowroom.launch.mpi import find_mpi

WARMUP = 5


def configuration(chosen: argparse.Namespace) -> dict[str, Any]:
    first, second = sorted(os.sched_getaffinity(0))[:2]
    own = [
        {"rank": rank, "comp_cores": [core], "comm_cores": [core]}
        for rank, core in enumerate((first, second))
    ]
    apart = {"comp_cores": [second], "comm_cores": [first]}
    return {
        "program": {"name": "diffusion", "cells": chosen.cells},
        "scheduling": True,
        **(apart if chosen.cores == 1 else {"placements": own}),
    }


def main() -> int:
    parser = Command(
        "One step of the diffusion solver in one setup.",
        smoke="--cores 1 --overlap 1 --cells 20000 --steps 5",
    )
    parser.add_argument("--cores", type=int, choices=[1, 2], required=True, help="cores that compute")
    parser.add_argument(
        "--overlap", type=int, choices=[0, 1], required=True, help="1: the exchange beside the interior"
    )
    parser.add_argument("--variant", choices=["none", "communication"], help="only one side, alone")
    parser.add_argument("--cells", type=int, default=2_000_000)
    parser.add_argument("--steps", type=int, default=40)
    chosen = parser.parse_args()
    if chosen.overlap and chosen.cores == 2:
        parser.error("with --overlap 1 one of the two cores communicates: --cores 1")
    variant = chosen.variant or ("overlap" if chosen.overlap else "apart")
    steps = {"variant": variant, "comm_threads": 1, "steps": chosen.steps, "warmup": WARMUP}
    request = {"op": "measure", "point": variant, **steps}
    try:
        mpi = find_mpi()
        hello, told = answers(application("diffusion", mpi), mpi, configuration(chosen), [request], ranks=2)
    except ElbowroomError as error:
        print(error.sentence(), file=sys.stderr)
        return error.exit_code
    if told["status"] != "ok":
        print(f"a result of {variant} is wrong", file=sys.stderr)
        return 1
    print(f"{hello['cells']} cells, messages of {hello['halo_bytes']} B a step")
    print(f"step {told['phases'][0]['total']['value'] * 1e-6:.6g} s")
    own = told["phases"][0]
    if "comp" in own:
        parts = (mean(own[side]["batches"]) for side in ("separator", "comp"))
        print(f"computes {sum(parts) * 1e-6:.6g} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
