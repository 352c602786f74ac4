"""The lever `progress`: what makes messages progress in the ranks beside their own calls.

The library in each rank (lib/pmpi/guard/progress.cpp) knows the threads that MPI_Init started, and which of
them use processor time, and writes the control variable of the MPI Tools interface that says how often the
library gives up its core while it waits (MPICH: MPIR_CVAR_POLLS_BEFORE_YIELD; Open MPI 4 has none that may be
written while a program runs).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from elbowroom.guard.inside import InsideLever
from elbowroom.guard.lever import GuardedProgram


class ProgressLever(InsideLever):
    """`away`: the library's threads run on cores of no rank; `idle`: they get the processor time that nothing
    else wants, so that they are off while all cores compute; `yield`: waiting gives up the core at each poll.
    """

    name = "progress"
    number = 3
    refusals: ClassVar[Mapping[int, str]] = {
        1: "MPI_Init started no thread that works; MPICH has one with MPICH_ASYNC_PROGRESS=1",
        2: "all cores are those of ranks",
        3: "this MPI has no control variable of its polling that may be written while it runs",
        4: "is not allowed",
    }

    def missing(self, program: GuardedProgram) -> str | None:
        """The ranks say it when they run."""
        return None

    def settings(self, program: GuardedProgram) -> tuple[str, ...]:
        """All three; calibration drops those that the ranks do not have."""
        return ("away", "idle", "yield")


LEVER = ProgressLever()
