"""The model of a machine for jobs that share its nodes: a run of the plan `model`, and what 1 to all cores
get from memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from elbowroom.api.calibration import fit
from elbowroom.api.models import Model
from elbowroom.api.runs import Run, open
from elbowroom.errors import UsageError
from elbowroom.launch import build, modes
from elbowroom.launch.mpi import find_mpi
from elbowroom.machine.hwloc import read_topology
from elbowroom.machine.identity import SHAPE, check_same, difference
from elbowroom.machine.topology import here
from elbowroom.measure.core_rates import core_rates, first_cores, measured_store_factor
from elbowroom.models.load import LoadRow
from elbowroom.models.run_data import FitData, layout_of

SECONDS, REPEAT = 0.1, 5
_RUN = "elbowroom run model --kernels triad"


def calibrate_for_jobs(
    run: Run | Path | str,
    out: Path | str | None = None,
    *,
    seconds: float = SECONDS,
    repeat: int = REPEAT,
    mpi: str | None = None,
) -> Model:
    """Measures what the cores of this machine get from memory and what plain stores move over its bus, and
    fits its model to that and to a run of it.

    `out`: default as `fit`. UsageError for a run of another machine or of a virtual one, MachineError where
    the probe fails.
    """
    source = run if isinstance(run, Run) else open(run)
    if source.machine.virtual:
        raise UsageError(
            "is of a virtual machine", field="run", value=str(source.path), hint=f"measure it here: {_RUN}"
        )
    probe = build.probe(find_mpi(mpi))
    machine = here(read_topology(modes.topology_xml(probe)))
    shape, own = layout_of(source.machine).shape, layout_of(machine).shape
    check_same(
        difference(shape, own, SHAPE),
        message="is of another machine",
        field="run",
        value=str(source.path),
        hint=f"measure it here: {_RUN}",
        places=("there", "here"),
    )

    def computing(data: FitData) -> Sequence[LoadRow]:
        return core_rates(probe, machine, data, seconds=seconds, repeat=repeat)

    cores = first_cores(machine, layout_of(machine))
    stores = measured_store_factor(probe, machine, cores, seconds=seconds, repeat=repeat)
    return fit(source, out, computing=computing, store_factor=stores)
