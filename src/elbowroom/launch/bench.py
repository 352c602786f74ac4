"""Runs programs that measure a network over MPI by any launcher: a JSON document in, and one out."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from elbowroom.errors import MachineError, UsageError
from elbowroom.launch.launcher import Launch, LaunchRequest
from elbowroom.launch.launchers import build_launch, detect, host_count, missing_program
from elbowroom.launch.mpi import Mpi, find_mpi
from elbowroom.launch.processes import run

PATIENCE_S = 1800.0

Answer = TypeVar("Answer")


class Job(NamedTuple):
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
    build: Callable[[Mpi], Path]
    subject: str


class _Refused(msgspec.Struct):
    error: str


def run_bench(
    bench: Bench,
    job: Job,
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


def bench_launch(bench: Bench, job: Job) -> Launch:
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
        probe=bench.name,
        mpi=mpi,
        hosts=job.hosts,
        hostfile=job.hostfile,
        share_core=each > len(os.sched_getaffinity(0)),
        arguments=(),
    )
    build_launch(name, request)  # a wrong launcher is refused before anything is built
    return build_launch(name, msgspec.structs.replace(request, probe=str(bench.build(mpi))))
