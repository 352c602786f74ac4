"""Experiments: a package each here, and those that installed packages declare (docs/reference/extend.md)."""

from __future__ import annotations

import pkgutil
from importlib import import_module

from elbowroom import plugins
from elbowroom.errors import UsageError, closest
from elbowroom.experiments.experiment import Experiment
from elbowroom.machine.topology import Machine
from elbowroom.plan.file import Plan
from elbowroom.plan.point import Expansion

__all__ = ["Experiment", "all", "expand", "get", "names", "problems"]

KIND = "experiments"


def built_in() -> tuple[str, ...]:
    """The names of the experiments of elbowroom itself, sorted; imports none of them."""
    modules = pkgutil.iter_modules(__path__)
    return tuple(
        sorted(
            module.name.replace("_", "-") for module in modules if module.ispkg and module.name != "common"
        )
    )


def names() -> tuple[str, ...]:
    """The names of all experiments, sorted; imports none of them."""
    here = built_in()
    return tuple(sorted({*here, *plugins.declared(KIND, here).by_name}))


def get(name: str) -> Experiment:
    """The experiment of that name. UsageError with the known ones if there is none, with the reason if a
    package declares it and it cannot be used.
    """
    here = built_in()
    if name in here:
        experiment = import_module(f"{__name__}.{name.replace('-', '_')}").EXPERIMENT
        assert isinstance(experiment, Experiment)
        return experiment
    added = plugins.declared(KIND, here)
    if name not in added.by_name:
        reasons = [problem for problem in added.problems if repr(name) in problem]
        known = closest(name, {*here, *added.by_name})
        hint = f"{' '.join(reasons)} Uninstall all but one." if reasons else known
        raise UsageError("no such experiment", field="experiment", value=name, hint=hint)
    entry = added.by_name[name]
    loaded = plugins.load(entry)
    if not isinstance(loaded, Experiment) or loaded.name != name:
        raise UsageError(
            f"is no Experiment named {name!r}",
            field=entry.group,
            value=entry.value,
            hint=f"update or uninstall {plugins.package_of(entry)}",
        )
    return loaded


def all() -> tuple[Experiment, ...]:
    """Every experiment that can be used, by name."""
    return tuple(result for result in map(_usable, names()) if isinstance(result, Experiment))


def problems() -> tuple[str, ...]:
    """A sentence on each experiment of an installed package that cannot be used."""
    added = plugins.declared(KIND, built_in())
    failures = [str(result) for result in map(_usable, added.by_name) if isinstance(result, UsageError)]
    return (*added.problems, *failures)


def _usable(name: str) -> Experiment | UsageError:
    try:
        return get(name)
    except UsageError as error:
        return error


def expand(plan: Plan, machine: Machine) -> Expansion:
    """The points and notes of a plan on a machine; UsageError for keys that its experiment does not have."""
    experiment = get(plan.experiment)
    experiment.keys_of(plan)
    return experiment.expand(plan, machine)
