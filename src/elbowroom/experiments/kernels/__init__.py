"""Conjugate gradients and matrix products on two processes: what sends keep of their bandwidth while they
compute, and how long cores wait for memory (Denis et al. 2021, section 6, Fig. 10; Swartvagher 2022, 5.5).
"""

from __future__ import annotations

from elbowroom.experiments.experiment import Experiment
from elbowroom.experiments.kernels import points, results

EXPERIMENT = Experiment(
    name=points.NAME,
    question=(
        "How much bandwidth do sends keep beside conjugate gradients and matrix products, and "
        "how long do cores wait for memory?"
    ),
    keys=points.KernelsKeys,
    expand=points.expand,
    findings=results.findings,
    figures=results.figures,
    tables=results.tables,
    needs_starpu=lambda plan: "starpu" in plan.keys.builds,
)
