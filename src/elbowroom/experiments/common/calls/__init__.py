"""What the experiments on calls of MPI beside a fixed amount of computation have in common."""

from __future__ import annotations

import msgspec

from elbowroom.experiments.common.calls.points import expand
from elbowroom.experiments.common.calls.results import figures, findings, tables
from elbowroom.experiments.experiment import Experiment


def experiment_of(name: str, question: str, keys: type[msgspec.Struct]) -> Experiment:
    """The experiment of that name."""
    return Experiment(
        name=name,
        question=question,
        keys=keys,
        expand=expand,
        findings=findings,
        figures=figures,
        tables=tables,
    )
