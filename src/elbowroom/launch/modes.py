"""The probe's modes without MPI: topology, kernels, clock, observers, state."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from elbowroom.errors import MachineError
from elbowroom.launch.processes import run

Mode = Literal["kernels", "clock", "observe", "state"]


def probe_output(probe: Path | str, mode: Mode, patience: float = 60.0) -> dict[str, Any]:
    """What `probe MODE` prints, as an object; MachineError with the probe's own words if it fails."""
    answer = msgspec.json.decode(_run(probe, [mode], patience))
    if isinstance(answer, list):
        return {mode: answer}
    if not isinstance(answer, dict):
        raise MachineError("the probe printed no object", field="probe", value=mode)
    return answer


def topology_xml(probe: Path | str, patience: float = 60.0) -> str:
    """hwloc's description of this machine, as XML with PCI devices."""
    return _run(probe, ["topology", "--xml", "-"], patience)


def _run(probe: Path | str, arguments: list[str], patience: float) -> str:
    command = [str(probe), *arguments]
    done = run(command, field="probe", patience=patience, hint="see `elbowroom doctor`")
    if done.code != 0:
        raise MachineError(
            done.last_line,
            field="probe",
            value=" ".join(command),
            hint="run it by hand, and see `elbowroom doctor`",
        )
    return done.stdout
