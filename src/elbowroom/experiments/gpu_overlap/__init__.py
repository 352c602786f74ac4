"""Kernels of a GPU beside copies by copy engines and by SMs, idle SMs, and products planned for fewer SMs."""

from __future__ import annotations

from elbowroom.experiments.experiment import Experiment
from elbowroom.experiments.gpu_overlap import points, results

EXPERIMENT = Experiment(
    name="gpu-overlap",
    question="What do copies, and SMs that others hold, cost the kernels of a GPU?",
    keys=points.OverlapKeys,
    expand=points.expand,
    findings=results.findings,
    figures=results.figures,
    tables=results.tables,
    data=results.data,
    data_types=results.TYPES,
)
