"""A real program: an explicit finite-volume solver whose interior overlaps its exchange (Langguth et al.
2018, sections IV and V), and what the overlap model says of its steps.
"""

from __future__ import annotations

from elbowroom.experiments.diffusion import data, figures, findings, joined, points, tables
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
    findings=findings.findings,
    figures=figures.figures,
    tables=tables.tables,
    data=data.data,
    data_types=data.TYPES,
    join=joined.join,
)
