"""The lever `taskflow`: the order of tasks of a program over elbow_taskflow while large messages move.

The library itself reads the setting (lib/taskflow/restraint.cpp). Which kernels are memory-bound it knows as
the lever `starpu` does: by ELBOW_GUARD_MEMORY_BOUND and _COMPUTE_BOUND, and by how long tasks take beside
messages. Its broadcasts send the data of the highest priority first at all times, so that needs no lever.
"""

from __future__ import annotations

from elbowroom.guard.inside import InsideLever
from elbowroom.guard.lever import GuardedProgram, LeverAccess, LeverReading


class TaskflowOrder(InsideLever):
    """`prefer`: memory-bound tasks start where there are no others; `hold`: they wait, for 0.1 s at most."""

    name = "taskflow"
    number = 2

    def missing(self, program: GuardedProgram) -> str | None:
        """Whether a program has a task graph is known when it runs."""
        return None

    def settings(self, program: GuardedProgram) -> tuple[str, ...]:
        """From the one that costs nothing where it is wrong on."""
        return ("prefer", "hold")

    def memory_bound_cores(self, setting: str, access: LeverAccess) -> tuple[int, int]:
        """All workers at most."""
        return len(access.cores()), 0

    def calibrate(self, setting: str, access: LeverAccess) -> LeverReading:
        """Ranks with a task graph say so on the board."""
        if not self.written_by_ranks(access):
            got = "n/a: no rank has a task graph of elbow_taskflow"
            return LeverReading(setting=setting, requested=setting, got=got, works=False)
        return super().calibrate(setting, access)


LEVER = TaskflowOrder()
