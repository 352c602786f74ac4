"""Runs the simulator of single requests: an executable that is built on first use (core/simulate)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from elbowroom.errors import MachineError
from elbowroom.launch import build
from elbowroom.launch.processes import run
from elbowroom.virtual.simulated import Observation

PATIENCE_S = 600.0


def simulate(machine: Mapping[str, Any], experiments: Sequence[Mapping[str, Any]]) -> list[Observation]:
    """What the experiments see on that machine, in order (docs/guide/simulate.md says what both hold).

    MachineError when the simulator cannot be built, dies or refuses.
    """
    request = msgspec.json.encode({"node": machine, "experiments": list(experiments)})
    path = build.simulator()
    done = run([str(path)], field="simulator", given=request + b"\n", patience=PATIENCE_S)
    lines = done.stdout.splitlines()
    if done.code == 0 and len(lines) == len(experiments):
        return [msgspec.json.decode(line, type=Observation) for line in lines]
    raise MachineError(
        f"the simulator failed (exit code {done.code}): {lines[-1] if lines else done.last_line}",
        field="simulator",
        value=str(path),
        hint="remove it, so that it is built again",
    )
