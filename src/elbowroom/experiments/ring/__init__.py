"""A ring of processes beside TRIAD, one per node, socket or core: the loss ratios (Langguth et al. 2018,
section III).
"""

from __future__ import annotations

from elbowroom.experiments.experiment import Experiment
from elbowroom.experiments.ring.points import RingKeys, expand
from elbowroom.experiments.ring.results import figures, findings, tables

EXPERIMENT = Experiment(
    name="ring",
    question=(
        "How much MPI and memory bandwidth is lost when every rank passes 4 MB around a ring "
        "while TRIAD runs?"
    ),
    keys=RingKeys,
    expand=expand,
    findings=findings,
    figures=figures,
    tables=tables,
)
