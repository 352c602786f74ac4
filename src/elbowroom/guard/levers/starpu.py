"""The lever `starpu`: the order of tasks of a program over StarPU while large messages move.

A preloaded library wraps the scheduling policy that StarPU chose (lib/guard/starpu). Memory-bound are the
codelets that ELBOW_GUARD_MEMORY_BOUND and _COMPUTE_BOUND in the environment mark, and those whose
tasks took more processor time beside messages; the library learns this while the lever does not act, too.
"""

from __future__ import annotations

from pathlib import Path

from elbowroom.guard.inside import InsideLever
from elbowroom.guard.lever import GuardedProgram, LeverAccess
from elbowroom.launch import build
from elbowroom.launch.starpu import installed

LIBRARY = "libelbow_guard_starpu.so"


class StarpuOrder(InsideLever):
    """Memory-bound tasks of StarPU and large messages, one after the other. `prefer`: memory-bound tasks run
    where there are no others; `spare`: the half of the workers that is next to the NIC waits instead, for
    0.1 s at most; `hold`: all workers wait.
    """

    name = "starpu"
    number = 1

    def missing(self, program: GuardedProgram) -> str | None:
        """Programs that are not linked with StarPU, or with one that is not installed with its headers."""
        if "starpu" not in program.libraries:
            return "no program of the command is linked with StarPU"
        if not any(installed(module) for module in build.STARPU_MODULES):
            return "StarPU's headers are not installed (Debian: libstarpu-dev)"
        return None

    def settings(self, program: GuardedProgram) -> tuple[str, ...]:
        """From the one that costs nothing where it is wrong to the strictest."""
        return ("prefer", "spare", "hold")

    def memory_bound_cores(self, setting: str, access: LeverAccess) -> tuple[int, int]:
        """All workers at most; under `spare` the half of them that is far from the NIC."""
        workers = len(access.cores())
        return workers, workers // 2 if setting == "spare" else 0

    def preloads(self, program: GuardedProgram) -> tuple[Path, ...]:
        """The library around StarPU's policy."""
        return (build.trace_libraries() / LIBRARY,)


LEVER = StarpuOrder()
