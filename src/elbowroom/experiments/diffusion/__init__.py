"""A real program: an explicit finite-volume solver whose interior overlaps its exchange (Langguth et al.
2018, sections IV and V), and what the overlap model says of its steps.
"""

from __future__ import annotations

from elbowroom.experiments.diffusion import figures, points, results
from elbowroom.experiments.experiment import Experiment

EXPERIMENT = Experiment(
    name=points.NAME,
    question=(
        "Does overlapping communication and computation pay in a real program (3D diffusion), "
        "and does the model predict it?"
    ),
    keys=points.DiffusionKeys,
    model=lambda plan: str(plan.keys.model),
    expand=points.expand,
    findings=results.findings,
    figures=figures.figures,
    tables=results.tables,
    data=results.data,
    data_types=results.TYPES,
    join=results.join,
)
