"""The model of a machine for jobs that share its nodes: a run of the plan `model`, and what 1 to all cores
get from memory.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from elbowroom.api.calibration import fit, pooled
from elbowroom.cli.console import chatter
from elbowroom.errors import UsageError
from elbowroom.launch import build, modes, native
from elbowroom.launch.modes import KernelRate, kernel_rate
from elbowroom.launch.mpi import find_mpi
from elbowroom.launch.topologies import own_topology_xml
from elbowroom.machine.hwloc import read_topology
from elbowroom.machine.identity import SHAPE, check_same, difference
from elbowroom.machine.topology import Machine, here
from elbowroom.measure.core_rates import core_rates, count_starts, first_cores, measured_store_factor
from elbowroom.measure.planned_starts import PlannedStart, PlannedStarts, plan_starts
from elbowroom.measure.progress import Progress
from elbowroom.models.load import LoadRow
from elbowroom.models.run_data import FitData, layout_of
from elbowroom.verbs.model_file import Model
from elbowroom.verbs.run_folder import Run, open

SECONDS, REPEAT = 0.1, 5
_RUN = "elbowroom run model --kernels triad"


def calibrate_for_jobs(
    run: Run | Path | str,
    out: Path | str | None = None,
    *,
    seconds: float = SECONDS,
    repeat: int = REPEAT,
    mpi: str | None = None,
    tell: Callable[[str], object] = chatter,
) -> Model:
    """Measures what the cores of this machine get from memory and what plain stores move over its bus, and
    fits its model to that and to a run of it.

    `out`: default as `fit`. UsageError for a run of another machine or of a virtual one, MachineError where
    the probe fails.
    """
    source = run if isinstance(run, Run) else open(run)
    probe, machine = _place(source, mpi)
    cores = first_cores(machine, layout_of(machine))
    starts = count_starts(len(cores)) * repeat
    with Progress(starts, starts * seconds, tell) as bar:

        def measure(path: Path | str, kernel: str, *words: Any, **options: Any) -> KernelRate:
            found = kernel_rate(path, kernel, *words, **options)
            bar.step(kernel)
            return found

        def computing(data: FitData) -> Sequence[LoadRow]:
            return core_rates(probe, machine, data, seconds=seconds, repeat=repeat, measure=measure)

        stores = measured_store_factor(probe, machine, cores, seconds=seconds, repeat=repeat, measure=measure)
        return fit(source, out, computing=computing, store_factor=stores)


def plan_job_calibration(
    run: Run | Path | str, *, seconds: float = SECONDS, repeat: int = REPEAT, mpi: str | None = None
) -> PlannedStarts:
    """What `calibrate_for_jobs` would build and start; errors as there."""

    def find() -> Iterator[PlannedStart]:
        probe, machine = _place(run if isinstance(run, Run) else open(run), mpi)
        cores = first_cores(machine, layout_of(machine))
        starts = count_starts(len(cores)) * repeat
        yield PlannedStart(
            what=f"the probe, with kernels on 1 to {len(cores)} cores",
            commands=(f"{shlex.quote(str(probe))} kernel …",),
            times=starts,
            seconds=starts * seconds,
        )

    return plan_starts(find)


def _place(source: Run, mpi: str | None) -> tuple[Path, Machine]:
    """The probe, and this machine; UsageError where the run is not of it, or no model can be fitted to it."""
    if source.machine.virtual:
        raise UsageError(
            "is of a virtual machine", field="run", value=str(source.path), hint=f"measure it here: {_RUN}"
        )
    pooled([source], None, None, msgspec.UNSET)  # before minutes of measuring
    probe = build.probe(find_mpi(mpi))
    known = own_topology_xml() if native.is_dry_run() else modes.topology_xml(probe)
    machine = here(read_topology(known))
    shape, own = layout_of(source.machine).shape, layout_of(machine).shape
    check_same(
        difference(shape, own, SHAPE),
        message="is of another machine",
        field="run",
        value=str(source.path),
        hint=f"measure it here: {_RUN}",
        places=("there", "here"),
    )
    return probe, machine
