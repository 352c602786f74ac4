"""Extraneous memory accesses: how memory accesses between two messages, outside the message buffers, affect
the next message (Tan and Jarvis 2012).
"""

from __future__ import annotations

from elbowroom.experiments.ema import cases, figures, points, results
from elbowroom.experiments.experiment import Experiment

EXPERIMENT = Experiment(
    name="ema",
    question=(
        "How do memory accesses between two messages, outside the message buffers, affect the next message?"
    ),
    keys=points.EmaKeys,
    expand=points.expand,
    findings=results.findings,
    figures=figures.figures,
    tables=results.tables,
    data=cases.data,
    data_types=cases.TYPES,
)
