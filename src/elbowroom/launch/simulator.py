"""Runs the simulators of single requests (core/simulate), clocks (lib/clock) and broadcasts (lib/broadcast):
executables that are built on first use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from elbowroom.broadcast.simulated import BroadcastRequest, SimulatedBroadcast
from elbowroom.errors import MachineError, UsageError
from elbowroom.launch import build
from elbowroom.launch.processes import run
from elbowroom.trace.simulated_clocks import SimulatedClocks
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


class _Refused(msgspec.Struct):
    error: str


def simulate_clocks(request: Mapping[str, Any]) -> SimulatedClocks:
    """What becomes of the clocks that are asked for (docs/reference/clock.md says what both hold).

    UsageError where the request cannot be met, MachineError when the simulator cannot be built or dies.
    """
    path = build.clock_simulator()
    done = run(
        [str(path)],
        field="clock-simulator",
        given=msgspec.json.encode(request) + b"\n",
        patience=PATIENCE_S,
        late="try again with fewer clocks",
    )
    try:
        if done.code == 0:
            return msgspec.json.decode(done.stdout, type=SimulatedClocks)
        refused = msgspec.json.decode(done.stdout, type=_Refused)
    except msgspec.DecodeError as error:
        raise MachineError(
            f"the simulator of clocks failed (exit code {done.code}): {done.last_line}",
            field="clock-simulator",
            value=str(path),
            hint="remove it, so that it is built again",
        ) from error
    raise UsageError(refused.error)


def simulate_broadcast(request: BroadcastRequest) -> SimulatedBroadcast:
    """When the recipients have the data; MachineError when the simulator cannot be built or dies."""
    path = build.broadcast_simulator()
    words = [f"--{name}={value}" for name, value in msgspec.structs.asdict(request).items()]
    done = run(
        [str(path), *words],
        field="broadcast-simulator",
        patience=PATIENCE_S,
        late="try again with fewer recipients",
    )
    try:
        return msgspec.json.decode(done.stdout, type=SimulatedBroadcast)
    except msgspec.DecodeError as error:
        raise MachineError(
            f"the simulator of broadcasts failed (exit code {done.code}): {done.last_line}",
            field="broadcast-simulator",
            value=str(path),
            hint="remove it, so that it is built again",
        ) from error
