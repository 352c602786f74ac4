"""What StarPU-MPI adds to the latency of MPI, at all sizes and placements (Denis et al. 2021, sections 5.1 to
5.3, Figure 8; Swartvagher 2022, 5.4.1 and 5.4.2, Figure 5.12).
"""

from __future__ import annotations

from elbowroom.experiments.experiment import Experiment
from elbowroom.experiments.runtime_overhead import points, results

EXPERIMENT = Experiment(
    name="runtime-overhead",
    question=(
        "How much more does a message cost through a task runtime (StarPU-MPI) than through "
        "MPI, at which sizes and placements?"
    ),
    expand=points.expand,
    findings=results.findings,
    figures=results.figures,
    tables=results.tables,
    needs_starpu=lambda plan: True,
    keys=points.OverheadKeys,
)
