"""`elbowroom trace overlap` on traces with a known truth: errors, false claims, speed and memory.

python benchmarks/autopsy.py [--traces 1000] [--events 1000000] [--json]

Planted slowdowns of 2 to 50 % are recovered within one point (mean); of 1,000 traces without any at most 5 %
claim an effect; a million events take at most 5 s and 1 GB. Exit code 1 if a bar is missed. The traces are
those of tests/made_overlap.py: noise, outliers, drift, phases, places of a step that differ, several ranks
and streams.
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from command import Command, status

ROOT = Path(__file__).parents[1]
sys.path += [str(ROOT / "src"), str(ROOT / "tests")]

from elbowroom import api  # noqa: E402
from made_overlap import Recipe, kineto, make  # noqa: E402

SLOWDOWNS = (1.02, 1.05, 1.1, 1.2, 1.3, 1.5)
NOISES = (0.02, 0.05, 0.1, 0.2)


def analysed(recipe: Recipe) -> Any:
    """The overlap of one simulated trace, read from a file of Kineto's format."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(kineto(make(recipe)))
        file.flush()
        return api.trace_overlap(file.name)


def planted(slowdown: float, seeds: int = 10) -> tuple[float, float, float]:
    """The mean error of slowdowns, their mean distance, and the share of intervals that hold the truth."""
    errors, held = [], []
    for seed in range(seeds):
        found = analysed(Recipe(seed=seed, ranks=1 + seed % 2, instances=4000, slowdown=slowdown))
        for one in found.classes:
            if one.slowdown is not None:
                errors.append(one.slowdown.value - slowdown)
                held.append(one.slowdown.low <= slowdown <= one.slowdown.high)
    return float(np.mean(errors)), float(np.mean(np.abs(errors))), float(np.mean(held))


def claims(seed: int) -> bool:
    """Whether an effect is claimed in a trace without any."""
    noise = NOISES[seed % len(NOISES)]
    return bool(analysed(Recipe(seed=10_000 + seed, ranks=1 + seed % 2, instances=1200, noise=noise)).effect)


def large(path: Path, events: int) -> None:
    """Repeats a simulated trace, with the host's launches, up to so many events."""
    made = make(Recipe(seed=5, ranks=2, instances=10_000, slowdown=1.1))
    block = json.loads(kineto(made, launches=True))["traceEvents"]
    length = max(event["ts"] + event["dur"] for event in block)
    with path.open("w") as file:
        file.write('{"schemaVersion": 1, "traceEvents": [\n')
        for number in range(events):
            event = dict(block[number % len(block)])
            event["ts"] = round(event["ts"] + number // len(block) * length, 3)
            if event["name"].startswith("ProfilerStep#"):
                event["name"] = f"ProfilerStep#{number}"
            file.write(("" if number == 0 else ",\n") + json.dumps(event))
        file.write("\n]}")


def timed(events: int) -> dict[str, float]:
    """Wall and CPU time, and the peak of memory, of the command on so many events."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.json"
        large(path, events)
        size = path.stat().st_size
        command = [sys.executable, "-m", "elbowroom", "trace", "overlap", str(path), "--json"]
        begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            command,
            check=True,
            stdout=subprocess.DEVNULL,
            env={"PYTHONPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin"},
        )
        wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"MB": size / 1e6, "wall_s": wall, "cpu_s": cpu, "peak_MB": after.ru_maxrss / 1e3}


def main() -> int:
    """Runs all three."""
    parser = Command(__doc__, smoke="--traces 2 --events 20000 --seeds 1")
    parser.add_argument("--traces", type=int, default=1000)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--seeds", type=int, default=10, help="traces of each planted slowdown")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    # First: the peak of memory is that of the largest child so far.
    speed = timed(asked.events)
    recovered = {slowdown: planted(slowdown, asked.seeds) for slowdown in SLOWDOWNS}
    with multiprocessing.Pool(2) as pool:
        claimed = sum(pool.imap_unordered(claims, range(asked.traces), chunksize=8))
    if asked.json:
        print(json.dumps({"speed": speed, "recovered": recovered, "claims": claimed, "traces": asked.traces}))
    else:
        print(f"{asked.events} events, {speed['MB']:.0f} MB of JSON:")
        wall, cpu, peak = speed["wall_s"], speed["cpu_s"], speed["peak_MB"]
        print(f"  {wall:.2f} s, {cpu:.2f} s of CPU time, {peak:.0f} MB of memory")
        print("planted  mean error  mean |error|  intervals that hold it")
        for slowdown, (mean, distance, held) in recovered.items():
            print(f"{slowdown:7.2f}  {mean:+10.4f}  {distance:12.4f}  {held:10.1%}")
        share = claimed / asked.traces
        print(f"traces without an effect that claim one: {claimed} of {asked.traces} ({share:.1%})")
    good = all(abs(mean) <= 0.01 for mean, _, _ in recovered.values()) and claimed <= 0.05 * asked.traces
    return status(asked, not good or speed["wall_s"] > 5 or speed["peak_MB"] > 1000)


if __name__ == "__main__":
    sys.exit(main())
