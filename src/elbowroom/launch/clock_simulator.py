"""Runs the simulator of clocks: an executable that is built on first use (lib/clock)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from elbowroom.errors import MachineError, UsageError
from elbowroom.launch import build
from elbowroom.launch.processes import run
from elbowroom.trace.simulated_clocks import SimulatedClocks

PATIENCE_S = 600.0


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
