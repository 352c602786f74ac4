"""Experiments, one file each. A file that declares `EXPERIMENT` is in the registry; nothing else is to be
done.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from elbowroom.errors import UsageError
from elbowroom.experiments.experiment import Experiment
from elbowroom.plan.kernels import closest

_HELPERS = (
    "experiment",
    "wording",
    "panels",
    "regimes",
    "step_table",
    "step_figures",
    "ema_cases",
    "ema_words",
    "ema_figures",
    "ema_table",
    "kernel_rows",
    "kernel_figures",
    "polling_rows",
)

__all__ = ["Experiment", "all", "get", "names"]


def names() -> tuple[str, ...]:
    """The names of all experiments, sorted; imports none of them."""
    return tuple(
        sorted(
            module.name.replace("_", "-")
            for module in pkgutil.iter_modules(__path__)
            if module.name not in _HELPERS
        )
    )


def get(name: str) -> Experiment:
    """The experiment of that name; UsageError with the known ones else."""
    if name not in names():
        raise UsageError("no such experiment", field="experiment", value=name, mend=closest(name, names()))
    experiment: Experiment = import_module(f"{__name__}.{name.replace('-', '_')}").EXPERIMENT
    return experiment


def all() -> tuple[Experiment, ...]:
    """Every experiment, by name."""
    return tuple(get(name) for name in names())
