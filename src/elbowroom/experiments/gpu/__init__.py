"""Copies between host and GPU beside computing cores, beside messages, and all three at once."""

from __future__ import annotations

from elbowroom.experiments.experiment import Experiment
from elbowroom.experiments.gpu import points, results

EXPERIMENT = Experiment(
    name="gpu",
    question="What do copies between host and GPU, computing cores and messages cost each other?",
    keys=points.GpuKeys,
    expand=points.expand,
    findings=results.findings,
    figures=results.figures,
    tables=results.tables,
    data=results.data,
    data_types=results.TYPES,
)
