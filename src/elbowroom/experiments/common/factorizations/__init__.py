"""What the experiments `cholesky` and `qr` share: factorizations as task graphs, whose data reach several
ranks over trees or in a message for each (Swartvagher 2022, sections 4.2.1, 4.4.2 and 4.4.3).
"""

from __future__ import annotations

from functools import partial

import msgspec

from elbowroom.experiments.common.factorizations import points, results
from elbowroom.experiments.experiment import Experiment
from elbowroom.points.factorizations import Task


def experiment_of(task: Task, question: str, keys: type[msgspec.Struct]) -> Experiment:
    """The experiment of that factorization."""
    return Experiment(
        name=task,
        question=question,
        keys=keys,
        expand=partial(points.expand, task=task),
        findings=partial(results.findings, task=task),
        figures=results.figures,
        tables=results.tables,
        needs_starpu=lambda plan: "starpu" in plan.keys.builds,
    )
