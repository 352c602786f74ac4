"""Runs the program that measures broadcasts over MPI (lib/broadcast), by any launcher."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from elbowroom.broadcast.measured import Case, Measured
from elbowroom.launch import build
from elbowroom.launch.bench import Bench, Job, run_bench
from elbowroom.launch.launcher import Launch

BROADCAST_BENCH = Bench("broadcast-bench", build.broadcast_bench, "broadcasts")


def measure_broadcasts(
    cases: Sequence[Case],
    job: Job,
    *,
    beside: bool = True,
    latency: Mapping[str, int] | None = None,
    open_costs: Mapping[str, int] | None = None,
    adapt: Callable[[Launch], Launch] = lambda launch: launch,
) -> Measured:
    """Measures all cases in one job; `beside`: MPI's own broadcasts of the same data, too. `latency`:
    `exchanges` of a message of `size` bytes between two ranks, in `blocks`. `open_costs`: `sends` that
    are open at once, `waits` one after another, and repetitions of a message while another rank is
    `computing` (3 ranks). `adapt` changes the command line.
    UsageError where the ranks cannot be started so, MachineError where the program cannot be built or dies.
    """
    request = {"cases": cases, "beside": beside, "latency": latency or {}, "open": open_costs or {}}
    return run_bench(BROADCAST_BENCH, job, request, Measured, adapt)
