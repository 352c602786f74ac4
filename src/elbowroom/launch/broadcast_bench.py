"""Runs the program that measures broadcasts over MPI (lib/broadcast), by any launcher."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from elbowroom.broadcast.measured import Case, Measured
from elbowroom.errors import MachineError, UsageError
from elbowroom.launch import build
from elbowroom.launch.launcher import Launch, LaunchRequest
from elbowroom.launch.launchers import build_launch, detect, host_count, missing_program
from elbowroom.launch.mpi import find_mpi
from elbowroom.launch.processes import run

PATIENCE_S = 1800.0


class Job(NamedTuple):
    """Where the ranks run: `launcher` as `run --launcher` names it (None: that of the allocation, or local),
    `mpi` as `find_mpi` does.
    """

    ranks: int
    launcher: str | None = None
    mpi: str | None = None
    hosts: tuple[str, ...] = ()
    hostfile: str | None = None


class _Refused(msgspec.Struct):
    error: str


def measure_broadcasts(
    cases: Sequence[Case],
    job: Job,
    *,
    beside: bool = True,
    latency: Mapping[str, int] | None = None,
    adapt: Callable[[Launch], Launch] = lambda launch: launch,
) -> Measured:
    """Measures all cases in one job; `beside`: MPI's own broadcasts of the same data, too. `latency`:
    `exchanges` of a message of `size` bytes between two ranks, in `blocks`. `adapt` changes the command line.
    UsageError where the ranks cannot
    be started so, MachineError where the program cannot be built or dies.
    """
    request = {"cases": cases, "beside": beside, "latency": latency or {}}
    launch = adapt(bench_launch(job))
    done = run(
        launch.command,
        field="broadcast-bench",
        given=msgspec.json.encode(request) + b"\n",
        env={**os.environ, **launch.env},
        patience=PATIENCE_S,
        leaves_nothing=True,
        late="try again with fewer repetitions",
    )
    return _answer(done.stdout, done.code, done.last_line)


def bench_launch(job: Job) -> Launch:
    """The command line that starts the program's ranks."""
    mpi = find_mpi(job.mpi)
    name = job.launcher or ("mpiexec" if job.hosts or job.hostfile else detect(os.environ))
    missing = missing_program(name, mpi)
    if missing:
        raise MachineError(missing, field="launcher", value=name, hint="choose another --launcher")
    hosts = host_count(name, job.hosts, job.hostfile, os.environ)
    each = -(-job.ranks // hosts)
    request = LaunchRequest(
        ranks=job.ranks,
        ranks_per_host=each,
        probe="broadcast-bench",
        mpi=mpi,
        hosts=job.hosts,
        hostfile=job.hostfile,
        share_core=each > len(os.sched_getaffinity(0)),
        arguments=(),
    )
    build_launch(name, request)  # a wrong launcher is refused before anything is built
    return build_launch(name, msgspec.structs.replace(request, probe=str(build.broadcast_bench(mpi))))


def _answer(printed: str, code: int, last_line: str) -> Measured:
    lines: list[Any] = [line for line in printed.splitlines() if line.startswith("{")]
    try:
        return msgspec.json.decode(lines[-1], type=Measured)
    except (IndexError, msgspec.DecodeError):
        pass
    try:
        refused = msgspec.json.decode(lines[-1], type=_Refused)
    except (IndexError, msgspec.DecodeError):
        raise MachineError(
            f"the benchmark of broadcasts failed (exit code {code}): {last_line}",
            field="broadcast-bench",
            hint="try fewer ranks or another --mpi",
        ) from None
    raise UsageError(refused.error)
