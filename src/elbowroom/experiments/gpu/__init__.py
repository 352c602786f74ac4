"""Copies between host and GPU beside computing cores, beside messages, and all three at once."""

from __future__ import annotations

from elbowroom.experiments.experiment import Experiment
from elbowroom.experiments.gpu import figures, findings, points, tables

EXPERIMENT = Experiment(
    name="gpu",
    question="What do copies between host and GPU, computing cores and messages cost each other?",
    keys=points.GpuKeys,
    expand=points.expand,
    findings=findings.findings,
    figures=figures.figures,
    tables=tables.tables,
    data=tables.data,
    data_types=tables.TYPES,
)
