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


def time_steps(block: int) -> StepTimes:
    """The least times of some repetitions, for tiles of `block` rows. MachineError where the program cannot
    be built, or fails.
    """
    path = build.application("factorizations-inline")
    done = run(
        [str(path), "times", f"--block={block}"],
        field="factorizations-inline",
        patience=PATIENCE_S,
        late="give smaller tiles",
        env={**os.environ, **launch_environment()},
    )
    try:
        return msgspec.json.decode(done.stdout, type=StepTimes)
    except msgspec.DecodeError as error:
        raise MachineError(
            f"the program failed (exit code {done.code}): {done.last_line}",
            field="factorizations-inline",
            value=str(path),
            hint="remove it, so that it is built again",
        ) from error
