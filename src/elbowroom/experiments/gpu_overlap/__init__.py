"""Kernels of a GPU beside copies by copy engines and by SMs, idle SMs, and products planned for fewer SMs."""

from __future__ import annotations

from elbowroom.experiments.experiment import Experiment
from elbowroom.experiments.gpu_overlap import figures, findings, points, tables

EXPERIMENT = Experiment(
    name="gpu-overlap",
    question="What do copies, and SMs that others hold, cost the kernels of a GPU?",
    keys=points.OverlapKeys,
    expand=points.expand,
    findings=findings.findings,
    figures=figures.figures,
    tables=tables.tables,
    data=tables.data,
    data_types=tables.TYPES,
)
