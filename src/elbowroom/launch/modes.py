"""The probe's modes without MPI: topology, kernels, clock, observers, state."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, Literal

import msgspec

from elbowroom.errors import MachineError

Mode = Literal["kernels", "clock", "observe", "state"]


def probe_output(probe: Path | str, mode: Mode, patience: float = 60.0) -> dict[str, Any]:
    """What `probe MODE` prints, as an object; raises MachineError with the probe's own words when it
    fails.
    """
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
    value = " ".join([str(probe), *arguments])
    try:
        done = subprocess.run(
            [str(probe), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=patience,
            check=False,
        )
    except OSError as error:
        raise MachineError(f"cannot be started ({error.strerror})", field="probe", value=value) from error
    except subprocess.TimeoutExpired as error:
        raise MachineError(f"did not end within {patience:.0f} s", field="probe", value=value) from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise MachineError(
            said[-1] if said else f"ended with exit code {done.returncode}", field="probe", value=value
        )
    return done.stdout
