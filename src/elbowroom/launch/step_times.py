"""How long the kernels of factorizations take on one core (apps/factorizations)."""

from __future__ import annotations

import os

import msgspec

from elbowroom.broadcast.factorizations import StepTimes
from elbowroom.errors import MachineError
from elbowroom.launch import build
from elbowroom.launch.mpi import launch_environment
from elbowroom.launch.processes import run

PATIENCE_S = 300.0
FIRST_GUESS = 5.0
"""Seconds that it takes for tiles of 320 rows, about."""


def times_command(block: int) -> list[str]:
    """The words of the program that times the kernels."""
    return [str(build.application("factorizations-inline")), "times", f"--block={block}"]


def time_steps(block: int) -> StepTimes:
    """The least times of some repetitions, for tiles of `block` rows. MachineError where the program cannot
    be built, or fails.
    """
    command = times_command(block)
    done = run(
        command,
        field="factorizations-inline",
        patience=PATIENCE_S,
        late="give smaller tiles",
        doing="measuring the kernels of factorizations",
        env={**os.environ, **launch_environment()},
    )
    try:
        return msgspec.json.decode(done.stdout, type=StepTimes)
    except msgspec.DecodeError as error:
        raise MachineError(
            f"the program failed (exit code {done.code}): {done.last_line}",
            field="factorizations-inline",
            value=command[0],
            hint="remove it, so that it is built again",
        ) from error
