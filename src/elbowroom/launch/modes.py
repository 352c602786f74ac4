"""The probe's modes without MPI: topology, kernels, clock, observers, state."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from elbowroom.errors import MachineError
from elbowroom.launch.processes import run
from elbowroom.quantities import format_cores

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


class KernelRate(msgspec.Struct, frozen=True, kw_only=True):
    """A repetition of `probe kernel`: the rate of all cores together, in `unit`."""

    rate: float
    unit: str
    status: str


def kernel_rate(
    probe: Path | str, kernel: str, cores: Sequence[int], *, cursor: int, working_set: int, seconds: float
) -> KernelRate:
    """One repetition of a kernel on these cores, without MPI; `working_set`: bytes of each core.

    MachineError with the probe's own words if it fails.
    """
    arguments = {
        "kernel": kernel,
        "cores": format_cores(cores),
        "cursor": cursor,
        "working-set": working_set,
        "seconds": seconds,
        "repeat": 1,
    }
    words = [word for name, value in arguments.items() for word in (f"--{name}", str(value))]
    return msgspec.json.decode(_run(probe, ["kernel", *words], 60.0 + 10 * seconds), type=KernelRate)


def _run(probe: Path | str, arguments: list[str], patience: float) -> str:
    command = [str(probe), *arguments]
    done = run(
        command,
        field="probe",
        patience=patience,
        hint="see `elbowroom doctor`",
        doing=f"running the probe ({arguments[0]})",
    )
    if done.code != 0:
        raise MachineError(
            done.last_line,
            field="probe",
            value=" ".join(command),
            hint="run it by hand, and see `elbowroom doctor`",
        )
    return done.stdout
