"""What looking for an accelerator costs a command on a machine that has none.

    python benchmarks/gpu_startup.py GPU_BENCH [--repeat 100] [--json]

GPU_BENCH is the program `gpu-bench`, already built. Alternating, so that the state of the machine cancels:

- `gpu-bench facts`, which looks for the driver, beside `gpu-bench` without arguments, which prints how to use
  it;
- in a fresh Python that has what `elbowroom doctor` loads anyway, the import of `elbowroom.launch.gpu` and
  its look for the driver.

Prints medians with 95 % intervals. Exit code 1 if one of the two is above 5 ms. On a machine with a driver it
says so and measures nothing, since a driver takes longer.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from command import Command, status

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from elbowroom.launch import build  # noqa: E402
from elbowroom.launch.gpu import missing_driver  # noqa: E402
from elbowroom.stats.bootstrap import estimate  # noqa: E402

BAR_MS = 5.0
RESAMPLES = 2000
LOOK = """
import time
import elbowroom.launch.build, elbowroom.launch.processes, elbowroom.machine.doctor
begun = time.perf_counter()
from elbowroom.launch import build  # noqa: E402
from elbowroom.launch.gpu import missing_driver
assert missing_driver() is not None
print(time.perf_counter() - begun)
"""


def seconds(command: Sequence[str]) -> float:
    """Wall time of a process."""
    begun = time.perf_counter()
    subprocess.run(command, capture_output=True, check=False)
    return time.perf_counter() - begun


def look_seconds() -> float:
    """Import and look, as a fresh Python times them itself."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-c", LOOK], capture_output=True, check=True, text=True, env=environment
    )
    return float(done.stdout)


def median_ms(values: Sequence[float]) -> dict[str, float]:
    """The median with its 95 % interval, ms."""
    array = 1e3 * np.asarray(values)
    drawn = np.random.default_rng(1).choice(array, (RESAMPLES, array.size))
    interval = estimate(float(np.median(array)), np.median(drawn, axis=1))
    return {"value": interval.value, "low": interval.low, "high": interval.high}


def main() -> int:
    """Prints both costs."""
    parser = Command(__doc__.partition("\n")[0], smoke="--repeat 2")
    parser.add_argument("gpu_bench", nargs="?", help="a built gpu-bench; default: it is built")
    parser.add_argument("--repeat", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    if missing_driver() is None:
        print("there is a CUDA driver: nothing is measured")
        return 0
    program = asked.gpu_bench or str(build.gpu_bench())
    facts, plain, looks = [], [], []
    for _ in range(asked.repeat):
        plain.append(seconds([program]))
        facts.append(seconds([program, "facts"]))
        looks.append(look_seconds())
    costs = {
        "gpu-bench facts less gpu-bench": median_ms(np.subtract(facts, plain)),
        "import and look in Python": median_ms(looks),
    }
    if asked.json:
        print(json.dumps({"bar_ms": BAR_MS, "load": os.getloadavg()[0], "costs_ms": costs}))
    else:
        print(f"load {os.getloadavg()[0]:.2f}, {asked.repeat} repetitions, at most {BAR_MS:g} ms")
        for name, cost in costs.items():
            print(f"{name:<32} {cost['value']:.2f} ms ({cost['low']:.2f} to {cost['high']:.2f})")
    return status(asked, any(cost["value"] > BAR_MS for cost in costs.values()))


if __name__ == "__main__":
    sys.exit(main())
