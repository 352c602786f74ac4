"""Executables that take a request and answer it in JSON: benchmarks of a network over MPI (lib/broadcast,
lib/profile/bench), by any launcher; the simulators of single requests (core/simulate), broadcasts
(lib/broadcast) and task graphs (lib/taskflow); and the kernels of factorizations on one core
(apps/factorizations). All are built on first use.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from elbowroom.broadcast import measured
from elbowroom.broadcast.factorizations import (
    ELEMENT,
    INNER_BLOCK,
    STEPS,
    FactorizationBounds,
    FactorizationRequest,
    KernelTimes,
    SimulatedFactorization,
)
from elbowroom.broadcast.network import Network
from elbowroom.broadcast.simulated import PLATFORMS, BroadcastRequest, SimulatedBroadcast, usual_segment
from elbowroom.errors import MachineError, UsageError
from elbowroom.launch import build
from elbowroom.launch.launcher import Launch, LaunchRequest
from elbowroom.launch.launchers import build_launch, check_program, detect, host_count
from elbowroom.launch.mpi import find_mpi, launch_environment
from elbowroom.launch.processes import run
from elbowroom.profile import curve
from elbowroom.virtual.simulated import Observation

PATIENCE_S = 1800.0

Answer = TypeVar("Answer")


class JobLaunch(NamedTuple):
    """Where the ranks run: `launcher` as `run --launcher` names it (None: that of the allocation, or local),
    `mpi` as `find_mpi` does.
    """

    ranks: int
    launcher: str | None = None
    mpi: str | None = None
    hosts: tuple[str, ...] = ()
    hostfile: str | None = None


class Bench(NamedTuple):
    """A program: its name, what builds it for an MPI, and what it measures, for errors."""

    name: str
    build: Callable[..., Path]
    subject: str


class _Refused(msgspec.Struct):
    error: str


def run_bench(
    bench: Bench,
    job: JobLaunch,
    request: Mapping[str, Any],
    answer: type[Answer],
    adapt: Callable[[Launch], Launch] = lambda launch: launch,
) -> Answer:
    """What the program answers to `request`. `adapt` changes the command line. UsageError where the ranks
    cannot be started so or the request is refused, MachineError where the program cannot be built or dies.
    """
    launch = adapt(bench_launch(bench, job))
    done = run(
        launch.command,
        field=bench.name,
        given=msgspec.json.encode(request) + b"\n",
        env={**os.environ, **launch.env},
        patience=PATIENCE_S,
        leaves_nothing=True,
        late="try again with fewer repetitions",
        doing=f"measuring {bench.subject}",
    )
    lines: list[Any] = [line for line in done.stdout.splitlines() if line.startswith("{")]
    try:
        return msgspec.json.decode(lines[-1], type=answer)
    except (IndexError, msgspec.DecodeError):
        pass
    try:
        refused = msgspec.json.decode(lines[-1], type=_Refused)
    except (IndexError, msgspec.DecodeError):
        raise MachineError(
            f"the benchmark of {bench.subject} failed (exit code {done.code}): {done.last_line}",
            field=bench.name,
            hint="try fewer ranks or another --mpi",
        ) from None
    raise UsageError(refused.error)


def bench_launch(bench: Bench, job: JobLaunch) -> Launch:
    """The command line that starts the program's ranks."""
    mpi = find_mpi(job.mpi)
    name = job.launcher or ("mpiexec" if job.hosts or job.hostfile else detect(os.environ))
    check_program(name, mpi)
    hosts = host_count(name, job.hosts, job.hostfile, os.environ)
    each = -(-job.ranks // hosts)
    request = LaunchRequest(
        ranks=job.ranks,
        ranks_per_host=each,
        probe=bench.name,
        mpi=mpi,
        hosts=job.hosts,
        hostfile=job.hostfile,
        share_core=each > len(os.sched_getaffinity(0)),
        arguments=(),
    )
    build_launch(name, request)  # a wrong launcher is refused before anything is built
    return build_launch(name, msgspec.structs.replace(request, probe=str(bench.build(mpi=mpi))))


BROADCAST_BENCH = Bench("broadcast-bench", build.broadcast_bench, "broadcasts")


def measure_broadcasts(
    cases: Sequence[measured.BenchCase],
    job: JobLaunch,
    *,
    beside: bool = True,
    latency: Mapping[str, int] | None = None,
    open_costs: Mapping[str, int] | None = None,
    adapt: Callable[[Launch], Launch] = lambda launch: launch,
) -> measured.Measured:
    """Measures all cases in one job; `beside`: MPI's own broadcasts of the same data, too. `latency`:
    `exchanges` of a message of `size` bytes between two ranks, in `blocks`. `open_costs`: `sends` that
    are open at once, `waits` one after another, and repetitions of a message while another rank is
    `computing` (3 ranks). `adapt` changes the command line.
    UsageError where the ranks cannot be started so, MachineError where the program cannot be built or dies.
    """
    request = {"cases": cases, "beside": beside, "latency": latency or {}, "open": open_costs or {}}
    return run_bench(BROADCAST_BENCH, job, request, measured.Measured, adapt)


NETWORK_BENCH = Bench("network-bench", build.network_bench, "the network")


def measure_network(
    cases: Sequence[curve.MessageCase],
    job: JobLaunch,
    *,
    repeat: int,
    seconds: float,
    adapt: Callable[[Launch], Launch] = lambda launch: launch,
) -> curve.CalibrationTimes:
    """Measures all cases `repeat` times in turns, each for `seconds`. Errors: those of `run_bench`."""
    request = {"cases": cases, "repeat": repeat, "seconds": seconds}
    return run_bench(NETWORK_BENCH, job, request, curve.CalibrationTimes, adapt)


def _answer_of(
    command: Sequence[str],
    answer: type[Answer],
    *,
    name: str,
    subject: str,
    patience: float,
    late: str,
    given: bytes = b"",
    doing: str = "simulating",
    env: Mapping[str, str] | None = None,
) -> Answer:
    """What an executable without MPI prints. MachineError where it dies, or prints something else."""
    done = run(command, field=name, given=given, env=env, patience=patience, late=late, doing=doing)
    try:
        if done.code == 0:
            return msgspec.json.decode(done.stdout, type=answer)
    except msgspec.DecodeError:
        pass
    raise _failure(name, command[0], f"{subject} failed (exit code {done.code}): {done.last_line}")


def _failure(name: str, path: str, text: str) -> MachineError:
    return MachineError(text, field=name, value=path, hint="remove it, so that it is built again")


SIMULATION_PATIENCE_S = 600.0
FACTORIZATION_PATIENCE_S = 7200.0


def simulate(machine: Mapping[str, Any], experiments: Sequence[Mapping[str, Any]]) -> list[Observation]:
    """What the experiments see on that machine, in order (docs/reference/simulator.md says what both hold).

    MachineError when the simulator cannot be built, dies or refuses.
    """
    request = msgspec.json.encode({"node": machine, "experiments": list(experiments)})
    path = build.simulator()
    done = run(
        [str(path)],
        field="simulator",
        given=request + b"\n",
        patience=SIMULATION_PATIENCE_S,
        doing="simulating",
    )
    lines = done.stdout.splitlines()
    if done.code == 0 and len(lines) == len(experiments):
        return [msgspec.json.decode(line, type=Observation) for line in lines]
    message = lines[-1] if lines else done.last_line
    raise _failure("simulator", str(path), f"the simulator failed (exit code {done.code}): {message}")


def simulate_broadcast(request: BroadcastRequest) -> SimulatedBroadcast:
    """When the recipients have the data; UsageError for a platform that SimGrid cannot use, MachineError when
    the simulator cannot be built or dies.
    """
    path = build.broadcast_simulator()
    done = run(
        [str(path), *_broadcast_words(request)],
        field="broadcast-simulator",
        patience=SIMULATION_PATIENCE_S,
        late="try again with fewer recipients",
        doing="simulating",
    )
    try:
        if done.code == 0:
            return msgspec.json.decode(done.stdout, type=SimulatedBroadcast)
        reason = msgspec.json.decode(done.stdout, type=_Refused).error
    except msgspec.DecodeError as error:
        reason = f"the simulator of broadcasts failed (exit code {done.code}): {done.last_line}"
        if request.platform in PLATFORMS:
            raise _failure("broadcast-simulator", str(path), reason) from error
    raise UsageError(
        f"cannot be used: {reason.rstrip('.')}",
        field="platform",
        value=request.platform,
        hint=f"name a platform of SimGrid, or {', '.join(PLATFORMS)}",
    )


def simulate_factorization(request: FactorizationRequest) -> SimulatedFactorization:
    """How long it takes; MachineError when the simulator cannot be built or dies."""
    return _answer_of(
        [str(build.taskflow_simulator()), *_factorization_words(request)],
        SimulatedFactorization,
        name="taskflow-simulator",
        subject="the simulator of task graphs",
        patience=FACTORIZATION_PATIENCE_S,
        late="try again with fewer tiles",
    )


def bound_factorization(request: FactorizationRequest) -> FactorizationBounds:
    """What it needs at least, by its task graph alone: without segments. MachineError as above."""
    return _answer_of(
        [str(build.taskflow_simulator()), *_factorization_words(request), "--bounds"],
        FactorizationBounds,
        name="taskflow-simulator",
        subject="the simulator of task graphs",
        patience=FACTORIZATION_PATIENCE_S,
        late="try again with fewer tiles",
    )


def _factorization_words(request: FactorizationRequest) -> Iterator[str]:
    block = request.times.block
    values = {
        "task": request.task,
        "rows": request.rows,
        "columns": request.columns,
        "grid-rows": request.grid[0],
        "grid-columns": request.grid[1],
        "tile": ELEMENT * block * block,
        "factor": ELEMENT * block * min(block, INNER_BLOCK),
        "workers": request.workers,
        "times": ",".join(str(request.times.seconds[step]) for step in STEPS),
        "bandwidth": request.bandwidth,
        "latency": request.latency,
        "overhead": request.overhead,
        "sharing": request.sharing,
        "segment": request.segment or usual_segment(request.tree, ELEMENT * block * block),
    }
    yield from (f"--{name}={value}" for name, value in values.items())
    yield "--no-broadcasts" if request.tree == "none" else f"--tree={request.tree}"
    if not request.priorities:
        yield "--no-priorities"
    if not request.early:
        yield "--wait-released"


def _broadcast_words(request: BroadcastRequest) -> Iterator[str]:
    values = {
        name: getattr(request, name)
        for name in (
            "recipients", "size", "bandwidth", "latency", "overhead", "tree", "segment", "window",
        )
    }  # fmt: skip
    values["segment"] = request.segment or usual_segment(request.tree, request.size)
    if request.platform == "fat-tree":
        values |= {"racks": request.racks, "uplink": request.uplink}
    elif request.platform != "star":
        values["platform"] = request.platform
    if request.priorities:
        values["priorities"] = ",".join(map(str, request.priorities))
    yield from (f"--{name}={value}" for name, value in values.items())
    if request.order != "rank":
        yield "--shuffled"
    if request.order == "rack":
        yield "--known-racks"


class BroadcastCase(msgspec.Struct, frozen=True, kw_only=True):
    """A broadcast whose time is to be predicted: tree `auto` for the best one, a `window` of 0 for the
    library's.
    """

    size: int
    recipients: int
    tree: str = "auto"
    segment: int = 0
    window: int = 0


class PredictedBroadcast(msgspec.Struct, frozen=True, kw_only=True):
    """The way, s until the last recipient has the data, and the bytes that the busiest recipient forwards;
    `choosing` and `predicting`: s that the model took for it; `edges`: (from, to, depth, step) of each
    message, with places of the list of recipients, and -1 for the root; empty where they were not asked for.
    """

    tree: str
    edges: tuple[tuple[int, int, int, int], ...]
    segment: int
    received: float
    forwarded: int
    choosing: float
    predicting: float


def predict_broadcasts(
    network: Network, cases: Sequence[BroadcastCase], *, edges: bool = False
) -> list[PredictedBroadcast]:
    """What lib/broadcast's cost model says, in order; with `edges`, all messages, too. MachineError when it
    cannot be built or dies.
    """
    return _answer_of(
        [str(build.broadcast_costs())],
        list[PredictedBroadcast],
        name="broadcast-costs",
        subject="the cost model of broadcasts",
        patience=SIMULATION_PATIENCE_S,
        late="try again with fewer recipients",
        given=msgspec.json.encode({"network": network, "cases": cases, "edges": edges}),
    )


STEPS_PATIENCE_S = 300.0
FIRST_GUESS = 5.0
"""Seconds that it takes for tiles of 320 rows, about."""


def times_command(block: int) -> list[str]:
    """The words of the program that times the kernels."""
    return [str(build.application("factorizations-inline")), "times", f"--block={block}"]


def time_steps(block: int) -> KernelTimes:
    """The least times of some repetitions, for tiles of `block` rows. MachineError where the program cannot
    be built, or fails.
    """
    return _answer_of(
        times_command(block),
        KernelTimes,
        name="factorizations-inline",
        subject="the program",
        patience=STEPS_PATIENCE_S,
        late="give smaller tiles",
        doing="measuring the kernels of factorizations",
        env={**os.environ, **launch_environment()},
    )
