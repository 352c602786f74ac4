"""Programs behind an emulated NIC (docs/reference/nic.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO

from elbowroom.launch import recorder
from elbowroom.launch.nic import NicSettings as NicSettings
from elbowroom.launch.nic import check as check
from elbowroom.launch.nic import emulated, prepare
from elbowroom.measure.planned_starts import PlannedStart, PlannedStarts, plan_starts


def run_behind_nic(command: Sequence[str], nic: NicSettings, *, stdout: IO[bytes] | int | None = None) -> int:
    """Runs `command` with its ranks behind an emulated NIC, and gives its exit code, as a shell does.

    What the program prints stays its own. UsageError where there is no such command or the settings are
    wrong, MachineError where it cannot be started or the library cannot be built.
    """
    prepared = prepare(command, nic)
    with emulated(nic):
        return recorder.run(prepared, stdout)


def plan_behind_nic(command: Sequence[str], nic: NicSettings) -> PlannedStarts:
    """What `run_behind_nic` would build and start; errors as there."""
    return plan_starts(
        lambda: [PlannedStart(what="the program, behind the NIC", commands=(prepare(command, nic).line(),))]
    )
