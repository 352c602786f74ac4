"""The diffusion step on cores and an accelerator against the split of Langguth et al. (2018, section VI).

    python benchmarks/gpu_diffusion.py [--cells N] [--cores 1,2,3] [--w 0.5,0.8] [--steps N] [--device 0]
                                       [--stand-in] [--json]

`diffusion split` gives a share w of the cells to the accelerator and passes the halo through host memory.
From steps on the cores alone (w = 0) and on the accelerator alone (w = 1), `best_split` predicts the best w
and the steps with all others. Exit code 1 where a field is wrong, or a predicted step is off by more than
15 %.

`--stand-in`: on the stand-in of the driver (lib/gpu) in place of an accelerator. Fields are then right or
wrong, and no time means anything.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
from command import Command, status
from device_bundle import stand_in_folder

from elbowroom.launch.build import application
from elbowroom.models.overlap.law import AcceleratedNode

MOST_ERROR = 0.15
"""Largest error of the model in the paper's Table II, rounded up: 13.9 %."""
WARM = 3
"""Steps that are not counted."""


def split(options: Any, w: float) -> dict[str, Any]:
    """What `diffusion split` measured with this share on the accelerator."""
    words = [str(application("diffusion")), "split", "--cells", str(options.cells), "--cores", options.cores]
    words += ["--w", str(w), "--steps", str(options.steps + WARM), "--device", str(options.device)]
    environment = dict(os.environ)
    if options.stand_in:
        folder = stand_in_folder()
        words += ["--libraries", str(folder)]
        environment["ELBOWROOM_CUDA"] = str(folder / "libcuda.so.1")
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        sys.exit(f"gpu_diffusion: {done.stdout or done.stderr}")
    record: dict[str, Any] = json.loads(done.stdout)
    return record


def step_s(record: dict[str, Any]) -> float:
    """The median step."""
    return float(np.median(record["step_s"][WARM:]))


def main() -> int:
    parser = Command(__doc__, smoke="--stand-in --cells 5000 --steps 3 --w 0.5")
    parser.add_argument("--cells", type=int, default=5_000_000)
    parser.add_argument("--cores", default="0", help="that compute, as 1,2,3")
    parser.add_argument("--w", default="0.25,0.5,0.75,0.9", help="shares besides the predicted best one")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--stand-in", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    ends = {w: split(options, w) for w in (0.0, 1.0)}
    cells = ends[0.0]["cells"]
    node = AcceleratedNode(
        work=cells,
        p_comp=cells / step_s(ends[0.0]),
        p_acc=cells / step_s(ends[1.0]),
        t_comm=0.0,
        l_comp=1.0,
        l_comm=1.0,
    )
    best = round(node.best_split().w, 4)
    shares = sorted({best, *map(float, options.w.split(","))})
    records = {**ends, **{w: split(options, w) for w in shares}}
    rows = [
        {
            "w": w,
            "measured_s": step_s(record),
            "predicted_s": node.split(w).total,
            "error": node.split(w).total / step_s(record) - 1,
            "same_field": record["checksum"] == ends[0.0]["checksum"] and record["valid"],
        }
        for w, record in sorted(records.items())
    ]
    device = ends[1.0]["device"]
    if options.json:
        print(json.dumps({"device": device, "cells": cells, "predicted_w": best, "rows": rows}, indent=1))
    else:
        print(f"{cells} cells on {device}: predicted best share on the accelerator {best:.4f}")
        for row in rows:
            same = "same field" if row["same_field"] else "another field"
            times = f"{1e3 * row['measured_s']:.3g} ms, predicted {1e3 * row['predicted_s']:.3g}"
            print(f"w {row['w']:.4f}: {times} ({row['error']:+.1%}), {same}")
    if not all(row["same_field"] for row in rows):
        return 1
    return status(options, [row for row in rows if abs(row["error"]) > MOST_ERROR])


if __name__ == "__main__":
    sys.exit(main())
