"""Experiments: a package each here, and those that installed packages declare (docs/reference/extend.md)."""

from __future__ import annotations

import pkgutil
from importlib import import_module

from elbowroom import plugins
from elbowroom.experiments.experiment import Experiment
from elbowroom.machine.topology import Machine
from elbowroom.plan.axes import due_messages
from elbowroom.plan.file import Plan
from elbowroom.points.point import Expansion

__all__ = ["EXPERIMENTS", "Experiment", "all", "expand", "get", "names"]


def _built_in() -> tuple[str, ...]:
    """The names of the experiments of elbowroom itself, sorted; imports none of them."""
    modules = pkgutil.iter_modules(__path__)
    return tuple(
        sorted(
            module.name.replace("_", "-") for module in modules if module.ispkg and module.name != "common"
        )
    )


def _own(name: str) -> Experiment:
    experiment = import_module(f"{__name__}.{name.replace('-', '_')}").EXPERIMENT
    assert isinstance(experiment, Experiment)
    return experiment


EXPERIMENTS = plugins.Registry(
    "experiments", "experiment", built_in=_built_in, own=_own, added=plugins.instance_of(Experiment)
)
names, get, all = EXPERIMENTS.names, EXPERIMENTS.get, EXPERIMENTS.all


def expand(plan: Plan, machine: Machine) -> Expansion:
    """The points and notes of a plan on a machine."""
    expansion = get(plan.experiment).expand(plan, machine)
    return due_messages(expansion, plan.message_period) if plan.message_period else expansion
