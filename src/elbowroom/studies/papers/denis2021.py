"""Denis, Jeannot, Swartvagher: Interferences between Communications and Computations in Distributed HPC
Systems, ICPP 2021.
"""

from __future__ import annotations

from elbowroom.studies import frequency, memory, pressure, runtime
from elbowroom.studies.study import Study

STUDY = Study(
    name="denis2021",
    paper="Denis, Jeannot, Swartvagher: Interferences between Communications and Computations (ICPP 2021)",
    page="docs/papers/paper-denis2021.md",
    measurements=(
        *frequency.MEASUREMENTS,
        *memory.MEASUREMENTS,
        *pressure.MEASUREMENTS,
        *runtime.MEASUREMENTS,
    ),
    exhibits=(*frequency.EXHIBITS, *memory.EXHIBITS, *pressure.EXHIBITS, *runtime.EXHIBITS),
)
