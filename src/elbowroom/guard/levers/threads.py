"""The lever `threads`: how many threads OpenMP's parallel regions have, by phase of a step.

A phase is the stretch of a step between two MPI calls. The library in each rank (lib/pmpi/guard) calls
omp_set_num_threads where a phase begins; a table in its file of steps says how many (step_file.py). The
numbers that the regions had are seen there, too: asked against got is measured in the trials by which the
numbers are found (thread_search.py).
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from elbowroom.guard.lever import GuardedProgram, Lever, LeverAccess, LeverReading

MOST = 255


class Threads(Lever):
    """The number of threads by phase."""

    name = "threads"
    number = 0
    only_named = True

    def missing(self, program: GuardedProgram) -> str | None:
        """Whether the program has OpenMP is known when it runs (a library may bring it)."""
        return None

    def environment(self, program: GuardedProgram) -> Mapping[str, str]:
        """The library in the ranks then looks at each parallel region."""
        return {"ELBOW_GUARD_THREADS": "1"}

    def settings(self, program: GuardedProgram) -> tuple[str, ...]:
        """The best number of each phase, which the guard finds first."""
        return ("by phase",)

    def read(self, access: LeverAccess) -> str:
        """The trials read it."""
        return "by phase"

    def calibrate(self, setting: str, access: LeverAccess) -> LeverReading:
        """Nothing yet: the trials show what was got."""
        return LeverReading(setting=setting, requested=setting, got=setting, works=True)


def candidates(own: int, processes: tuple[int, ...]) -> tuple[int, ...]:
    """Numbers of threads that are worth a trial: powers of two up to the cores of a rank, these, and half and
    twice of what it has.
    """
    cores = min((len(os.sched_getaffinity(process)) for process in processes), default=own)
    powers = {1 << bit for bit in range(cores.bit_length())}
    return tuple(sorted(count for count in powers | {cores, own // 2} if 0 < count <= min(cores, MOST)))


LEVER = Threads()
