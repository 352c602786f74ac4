"""Runs the simulator of clocks: an executable that is built on first use (lib/clock)."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from typing import Any

import msgspec

from elbowroom.errors import MachineError, UsageError
from elbowroom.launch import build
from elbowroom.trace.simulated_clocks import SimulatedClocks

PATIENCE_S = 600.0


class _Refused(msgspec.Struct):
    error: str


def simulate_clocks(request: Mapping[str, Any]) -> SimulatedClocks:
    """What becomes of the clocks that are asked for (docs/clock.md says what both hold).

    UsageError where the request cannot be met, MachineError when the simulator cannot be built or dies.
    """
    path = build.clock_simulator()
    try:
        done = subprocess.run(
            [str(path)],
            input=msgspec.json.encode(request) + b"\n",
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MachineError(
            f"the simulator of clocks did not answer ({error})",
            field="clock-simulator",
            value=str(path),
            mend="try again with fewer clocks",
        ) from error
    try:
        if done.returncode == 0:
            return msgspec.json.decode(done.stdout, type=SimulatedClocks)
        refused = msgspec.json.decode(done.stdout, type=_Refused)
    except msgspec.DecodeError as error:
        said = (done.stderr or done.stdout)[-300:].decode(errors="replace")
        raise MachineError(
            f"the simulator of clocks failed (exit code {done.returncode}): {said or error}",
            field="clock-simulator",
            value=str(path),
            mend="remove it, so that it is built again",
        ) from error
    raise UsageError(refused.error)
