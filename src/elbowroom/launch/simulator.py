"""Runs the simulator of single requests: an executable that is built on first use (core/simulate)."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from elbowroom.errors import MachineError
from elbowroom.launch import build
from elbowroom.model.simulated import Observation

PATIENCE_S = 600.0


def simulate(machine: Mapping[str, Any], experiments: Sequence[Mapping[str, Any]]) -> list[Observation]:
    """What the experiments see on that machine, in order (docs/simulate.md says what both hold).

    MachineError when the simulator cannot be built, dies or refuses.
    """
    request = msgspec.json.encode({"node": machine, "experiments": list(experiments)})
    path = build.simulator()
    try:
        done = subprocess.run(
            [str(path)], input=request + b"\n", capture_output=True, timeout=PATIENCE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MachineError(
            f"the simulator did not answer ({error})", field="simulator", value=str(path), mend="try again"
        ) from error
    lines = done.stdout.splitlines()
    if done.returncode == 0 and len(lines) == len(experiments):
        return [msgspec.json.decode(line, type=Observation) for line in lines]
    said = lines[-1] if lines else done.stderr[-500:]
    raise MachineError(
        f"the simulator failed (exit code {done.returncode}): {said.decode(errors='replace')}",
        field="simulator",
        value=str(path),
        mend="remove it, so that it is built again",
    )
