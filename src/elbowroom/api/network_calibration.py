"""Calibration of a node's NIC: what n senders get together (docs/reference/profile-md)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from elbowroom.errors import UsageError
from elbowroom.launch.bench import Job, bench_launch
from elbowroom.launch.launcher import Launch
from elbowroom.launch.launchers import host_count
from elbowroom.launch.mpi import find_mpi
from elbowroom.launch.network_bench import NETWORK_BENCH, measure_network
from elbowroom.launch.nic import NicSettings, behind, emulated
from elbowroom.measure.planned_starts import PlannedStart, PlannedStarts, plan_starts
from elbowroom.profile.calibration import CALIBRATION, Case, cases
from elbowroom.profile.calibration import Calibration as Calibration
from elbowroom.profile.calibration import CalibrationRow as CalibrationRow
from elbowroom.profile.calibration import calibration as summarise
from elbowroom.profile.curve import NicCurve

DEFAULT_SIZES = (1024, 16384, 262144, 4194304)

MOST_RANKS = 1024
MOST_SIZE = 2**30


def calibrate_network(
    sizes: Sequence[int] = DEFAULT_SIZES,
    *,
    ranks: int | None = None,
    nic: NicSettings | None = None,
    repeat: int = 5,
    seconds: float = 0.1,
    launcher: str | None = None,
    mpi: str | None = None,
    hosts: Sequence[str] = (),
    hostfile: str | None = None,
) -> Calibration:
    """Measures 1, 2, … senders of a node at once, to another node and inside the node, over sizes (B).

    `ranks`: of all nodes together (default: one for each core of two nodes); `nic`: an emulated one
    (docs/reference/nic.md), else all ranks of a host are one node's. `seconds` of each of the `repeat`
    measurements of a case. UsageError for what cannot be measured, MachineError where it fails.
    """
    asked, job = _cases(sizes, ranks, nic, Job(0, launcher, mpi, tuple(hosts), hostfile))
    with contextlib.nullcontext() if nic is None else emulated(nic):
        measured = measure_network(asked, job, repeat=repeat, seconds=seconds, adapt=_adapt(nic))
    return summarise(asked, measured, find_mpi(mpi).name)


def plan_network_calibration(
    sizes: Sequence[int] = DEFAULT_SIZES,
    *,
    ranks: int | None = None,
    nic: NicSettings | None = None,
    repeat: int = 5,
    seconds: float = 0.1,
    launcher: str | None = None,
    mpi: str | None = None,
    hosts: Sequence[str] = (),
    hostfile: str | None = None,
) -> PlannedStarts:
    """What `calibrate_network` would build and start; errors as there."""

    def find() -> Iterator[PlannedStart]:
        asked, job = _cases(sizes, ranks, nic, Job(0, launcher, mpi, tuple(hosts), hostfile))
        launch = _adapt(nic)(bench_launch(NETWORK_BENCH, job))
        yield PlannedStart(
            what=f"senders of messages: {len(asked)} cases, {repeat} repetitions each",
            commands=(launch.line(),),
            seconds=len(asked) * repeat * seconds,
        )

    return plan_starts(find)


def _adapt(nic: NicSettings | None) -> Callable[[Launch], Launch]:
    return (lambda launch: launch) if nic is None else (lambda launch: behind(launch, nic))


def _cases(
    sizes: Sequence[int], ranks: int | None, nic: NicSettings | None, where: Job
) -> tuple[list[Case], Job]:
    """What is measured, and the job whose ranks measure it."""
    for size in sizes:
        if not 1 <= size <= MOST_SIZE:
            raise UsageError("is not between 1 B and 1 GiB", field="sizes", value=size, hint="give 1KiB,4MiB")
    if nic is not None and (where.hosts or where.hostfile):
        raise UsageError(
            "is emulated on this host only", field="nic", hint="leave --hosts and --hostfile out"
        )
    job = where._replace(ranks=_ranks(ranks, where.hosts, where.hostfile, nic))
    name = job.launcher or "local"
    on_host = -(-job.ranks // max(1, host_count(name, job.hosts, job.hostfile, os.environ)))
    each = nic.ranks_per_node if nic else on_host
    return cases(tuple(sorted(set(sizes))), min(each, job.ranks)), job


def _ranks(ranks: int | None, hosts: Sequence[str], hostfile: str | None, nic: NicSettings | None) -> int:
    cores = len(os.sched_getaffinity(0))
    default = 2 * nic.ranks_per_node if nic else max(2, 2 * cores if hosts or hostfile else cores)
    count = default if ranks is None else ranks
    if not 2 <= count <= MOST_RANKS:
        raise UsageError(f"is not between 2 and {MOST_RANKS}", field="ranks", value=count, hint="give 8")
    return count


def save_calibration(calibration: Calibration, file: str | Path) -> None:
    """Writes what `load_calibration` reads."""
    CALIBRATION.write(Path(file), calibration)


def load_curve(file: str | Path) -> NicCurve:
    """The curve between nodes in such a file; UsageError where there is none."""
    curve = load_calibration(file).curve
    if curve is None:
        raise UsageError(
            "holds no curve between nodes", field="curve", value=str(file), hint="calibrate on two nodes"
        )
    return curve


def load_calibration(file: str | Path) -> Calibration:
    """From the file of `profile calibrate -o`; UsageError where it is none."""
    return CALIBRATION.read(Path(file))
