"""Two jobs that really share this machine's memory and last-level cache: predicted beside measured.

    python benchmarks/shared_memory.py [--model M.json] [--repeat 5] [--seconds 0.6] [--json]
                                       [--jobs memory,cache,private,registers]

M.json: elbowroom run model --kernels triad --out RUN; elbowroom colocate fit RUN -o M.json.

Each job is one process of elbow_minikernel `ep --compute work`, a triad over a working set: `memory` 8 times
the last-level cache, `cache` 0.6 times, `half` 0.3 times, `private` 256 KiB and `registers` 12 KiB. The last
two use neither, and must not be predicted to lose. A job is profiled alone, on core 0. What it does to memory
follows from its code: 32 B on the bus for each element (docs/design/method.md, rule 9). It is stated, since
virtual machines have no counters.

Measured: the job on core 0, alone and beside the other one on core 1 that computes without end, in turn, in
random order of the pairs. A slowdown is the ratio of the times of the same work, with its interval over the
repetitions. Beside the forecast, the error of expecting no slowdown at all.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import tempfile
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

import msgspec
from command import Command

from elbowroom.api import record_profile
from elbowroom.launch import build
from elbowroom.launch.mpi import find_mpi, launch_environment
from elbowroom.machine.identity import read_host
from elbowroom.stats.summary import kept
from elbowroom.verbs.colocate_predict import ForecastDocument, forecast_colocation

BUS_BYTES = 32
"""Of a triad's element, in memory: two reads, a write, and the read of the line that is written."""
STEPS = 20
WARM = 0.3
"""Seconds that a companion computes before its job is started."""
ENDLESS = 1_000_000
Pair = tuple[str, str]


class Job(NamedTuple):
    """A job: bytes of its arrays, and elements in a second alone."""

    name: str
    working_set: int
    rate: float


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A job beside a companion: slowdowns, each with an interval."""

    job: str
    companion: str
    predicted: tuple[float, float, float]
    measured: tuple[float, float | None, float | None]

    @property
    def error(self) -> float:
        return abs(self.predicted[0] / self.measured[0] - 1)


def working_sets() -> dict[str, int]:
    llc = read_host().cache or 32 << 20
    return {
        "memory": 8 * llc,
        "cache": int(0.6 * llc),
        "half": int(0.3 * llc),
        "private": 256 << 10,
        "registers": 12 << 10,
    }


class Bench:
    """Runs mini-kernels, one process each, pinned."""

    def __init__(self, seconds: float) -> None:
        self.program = str(build.application("elbow_minikernel", find_mpi("embedded")))
        self.environment = {**os.environ, **launch_environment()}
        self.seconds = seconds

    def words(self, core: int, working_set: int, rate: float | None, steps: int = STEPS) -> list[str]:
        words = ["taskset", "-c", str(core), self.program, "ep", "--compute", "work"]
        words += ["--working-set", str(working_set), "--steps", str(steps)]
        words += ["--seconds-per-step", repr(self.seconds / STEPS)]
        return words if rate is None else [*words, "--rate", repr(rate)]

    def run(self, words: list[str]) -> dict[str, float]:
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True, check=True)
        found: dict[str, float] = json.loads(done.stdout)
        return found

    @contextlib.contextmanager
    def beside(self, job: Job | None) -> Iterator[None]:
        """With a companion that computes, or with none."""
        if job is None:
            yield
            return
        words = self.words(1, job.working_set, job.rate, ENDLESS)
        process = subprocess.Popen(words, env=self.environment, stdout=subprocess.DEVNULL)
        try:
            time.sleep(WARM)
            yield
            if process.poll() is not None:
                raise RuntimeError(f"{job.name} ended beside its job")
        finally:
            process.kill()
            process.wait()


def profiled(bench: Bench, names: list[str], folder: Path) -> dict[str, Job]:
    """Each job alone: how fast it is, and its profile."""
    jobs = {}
    for name in names:
        size = working_sets()[name]
        rates = [bench.run(bench.words(0, size, None))["rate"] for _ in range(3)]
        jobs[name] = Job(name, size, sorted(rates)[1])
        record_profile(
            bench.words(0, size, jobs[name].rate),
            folder / f"{name}.prof",
            stdout=subprocess.DEVNULL,
            mpi="embedded",
        )
    return jobs


def predicted(jobs: dict[str, Job], folder: Path, model: str) -> ForecastDocument:
    """The forecast, with what the jobs' code says of memory and cache."""
    memory, cache = [], []
    for job in jobs.values():
        traffic = f"{job.rate * BUS_BYTES:.0f}B/s"
        memory.append(f"{job.name}={traffic if job.name == 'memory' else '0'}")
        reused = traffic if job.name in ("cache", "half") else "0"
        cache.append(f"{job.name}={job.working_set}@{reused}")
    return forecast_colocation(
        [folder / f"{name}.prof" for name in jobs], model=model, memory=memory, cache=cache
    )


def measured(
    bench: Bench, jobs: dict[str, Job], repeat: int
) -> dict[Pair, dict[str, dict[int, list[float]]]]:
    """Seconds alone and together of each job beside each companion, by repetition."""
    times: dict[Pair, dict[str, dict[int, list[float]]]] = {
        pair: {"alone": {}, "together": {}} for pair in product(jobs, jobs)
    }
    order = random.Random(0)
    for number in range(repeat):
        for pair in order.sample(list(times), len(times)):
            kinds = ["alone", "together"]
            for kind in kinds if number % 2 == 0 else kinds[::-1]:
                job = jobs[pair[0]]
                with bench.beside(jobs[pair[1]] if kind == "together" else None):
                    found = bench.run(bench.words(0, job.working_set, job.rate))
                times[pair][kind][number] = [found["seconds"]]
    return times


def rows(forecast: ForecastDocument, times: dict[Pair, dict[str, dict[int, list[float]]]]) -> list[Row]:
    slower = {}
    for one in forecast.pairs:
        slower[one.a, one.b] = one.slowdown_a
        slower[one.b, one.a] = one.slowdown_b
    found = []
    for pair, kinds in times.items():
        ratio = kept(kinds["alone"], kinds["together"], duration=True)
        assert ratio is not None
        ends = [None if end is None else 1 / end for end in (ratio.high, ratio.low)]
        forecasted = slower[pair]
        found.append(
            Row(
                job=pair[0],
                companion=pair[1],
                predicted=(forecasted.value, forecasted.low, forecasted.high),
                measured=(1 / ratio.value, ends[0], ends[1]),
            )
        )
    return found


def print_measured(times: dict[Pair, dict[str, dict[int, list[float]]]]) -> None:
    """Without a forecast to compare with."""
    for (job, companion), kinds in times.items():
        ratio = kept(kinds["alone"], kinds["together"], duration=True)
        assert ratio is not None
        print(f"{job:<10} {companion:<10} {1 / ratio.value:.2f}")


def main() -> None:
    parser = Command(__doc__, smoke="--repeat 1 --seconds 0.1 --jobs registers")
    parser.add_argument("--model", help="of this machine; without it nothing is predicted")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.6, help="of a job alone")
    parser.add_argument("--jobs", default="memory,cache,half,private,registers")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    bench = Bench(arguments.seconds)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        jobs = profiled(bench, arguments.jobs.split(","), folder)
        times = measured(bench, jobs, arguments.repeat)
        if arguments.model is None:
            print_measured(times)
            return
        forecast = predicted(jobs, folder, arguments.model)
        found = rows(forecast, times)
    error = sum(row.error for row in found) / len(found)
    naive = sum(abs(1 / row.measured[0] - 1) for row in found) / len(found)
    if arguments.json:
        figures = {"rows": msgspec.to_builtins(found), "error": error, "no_contention": naive}
        print(json.dumps({**figures, "jobs": [job._asdict() for job in jobs.values()]}))
        return
    for job in jobs.values():
        print(f"{job.name:<10} {job.working_set / 2**20:8.2f} MiB {job.rate * BUS_BYTES / 1e9:6.1f} GB/s")
    for note in forecast.notes:
        print(f"- {note}")
    print(f"\n{'job':<10} {'beside':<10} {'predicted':<22} {'measured':<22} error")
    for row in found:
        print(
            f"{row.job:<10} {row.companion:<10} {_text(row.predicted)} {_text(row.measured)} {row.error:5.1%}"
        )
    print(f"\nmean error {error:.1%}; of expecting no slowdown {naive:.1%}")


def _text(value: tuple[float, float | None, float | None]) -> str:
    ends = "no interval" if value[1] is None or value[2] is None else f"{value[1]:.2f} to {value[2]:.2f}"
    return f"{f'{value[0]:.2f} ({ends})':<22}"


if __name__ == "__main__":
    main()
