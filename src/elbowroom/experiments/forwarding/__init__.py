"""A kernel on the cores of a rank that forwards broadcasts, by kind of tree (Swartvagher 2022, 4.4.3: binary
trees may be better than binomial ones because a node is involved in each broadcast for a shorter time).
"""

from __future__ import annotations

from elbowroom.experiments.experiment import Experiment
from elbowroom.experiments.forwarding import points, results

EXPERIMENT = Experiment(
    name=points.NAME,
    question=(
        "What does forwarding broadcasts cost the computing cores of an inner node, and does a binomial tree "
        "cost more than a binary one?"
    ),
    keys=points.ForwardingKeys,
    expand=points.expand,
    findings=results.findings,
    figures=results.figures,
    tables=results.tables,
    model=lambda plan: str(plan.keys.model),
)
