"""Runs the program that measures what n senders of a node get together (lib/profile/bench)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from elbowroom.launch import build
from elbowroom.launch.bench import Bench, Job, run_bench
from elbowroom.launch.launcher import Launch
from elbowroom.profile.calibration import Case, MeasuredCases

NETWORK_BENCH = Bench("network-bench", build.network_bench, "the network")


def measure_network(
    cases: Sequence[Case],
    job: Job,
    *,
    repeat: int,
    seconds: float,
    adapt: Callable[[Launch], Launch] = lambda launch: launch,
) -> MeasuredCases:
    """Measures all cases `repeat` times in turns, each for `seconds`. Errors: those of `run_bench`."""
    request = {"cases": cases, "repeat": repeat, "seconds": seconds}
    return run_bench(NETWORK_BENCH, job, request, MeasuredCases, adapt)
