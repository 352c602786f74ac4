"""The lever `threads`: how many threads OpenMP's parallel regions have, by phase of a step.

A phase is the stretch of a step between two MPI calls. The library in each rank (lib/pmpi/guard) calls
omp_set_num_threads where a phase begins; a table on its file of steps says how many (steering.py).
"""

from __future__ import annotations

from elbowroom.guard.lever import GuardedProgram, Lever, LeverAccess


class Threads(Lever):
    """The number of threads by phase."""

    name = "threads"
    number = 0
    only_named = True

    def missing(self, program: GuardedProgram) -> str | None:
        """Programs without OpenMP have no threads that it sets."""
        return None

    def settings(self, program: GuardedProgram) -> tuple[str, ...]:
        """The best number of each phase, which the guard finds first."""
        return ("by phase",)

    def read(self, access: LeverAccess) -> str:
        """The numbers that the parallel regions had."""
        raise NotImplementedError


LEVER = Threads()
