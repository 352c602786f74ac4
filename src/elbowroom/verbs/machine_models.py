"""The model of the machine that a program was profiled on: given, from an earlier run, or measured now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from elbowroom.errors import ElbowroomError, UsageError
from elbowroom.machine.identity import check_same, difference
from elbowroom.models.registry import fitted_models
from elbowroom.verbs.model_file import Model, load_model

RUNS = "runs"
MEASURING = 120.0
"""Seconds that measuring a model may take, unless a user says otherwise."""
NEAR = 2.0
"""A model of messages of one size is used for sizes up to so many times larger or smaller."""
Origin = Literal["given", "earlier", "measured"]


class MachineModel(NamedTuple):
    """A model, where it is from, and whether its measurements can be trusted (None: not known here)."""

    model: Model
    origin: Origin
    trusted: bool | None = None


class _Host(msgspec.Struct, frozen=True):
    name: str


def model_of_machine(
    hosts: Sequence[str],
    size: int,
    given: Model | Path | str | None = None,
    *,
    budget: float = MEASURING,
    name: str = "diagnose",
    tell: Callable[[str], object],
) -> MachineModel:
    """The model of the machine of these hosts, for messages of `size` bytes: the one `given`, else the newest
    in runs/ that suits, else one that is measured now, in `budget` seconds, into runs/NAME-PLAN; a run that
    was begun there is continued.

    UsageError for a model of another machine, and for several hosts without one; MachineError where nothing
    could be fitted.
    """
    if given is not None:
        model = load_model(given)
        check_machine(model, hosts, given)
        return MachineModel(model, "given")
    earlier = earlier_model(hosts, size)
    if earlier is not None:
        return MachineModel(earlier, "earlier")
    if len(set(hosts)) > 1:
        raise UsageError(
            f"none is given for the hosts {', '.join(dict.fromkeys(hosts))}",
            field="model",
            hint="measure one between two of them: elbowroom calibrate --hosts A,B -o M.json; then give "
            "--profile P --model M.json",
        )
    # Not on top: it takes the whole of measuring and fitting along.
    from elbowroom.verbs.calibrate import measure_model

    measured, trusted = measure_model(size, tell, budget=budget, folder=Path(RUNS), name=name)
    return MachineModel(measured, "measured", trusted)


def check_machine(model: Model, hosts: Sequence[str], given: object) -> None:
    """UsageError where the profile is not of the model's machine; nodes of a cluster count as one machine."""
    for host in hosts:
        other = difference(model.machine, _Host(host), ("name",), cluster=not model.machine.virtual)
        check_same(
            other,
            message="is the model of another machine than the profile's",
            field="model",
            value=str(given),
            hint="give the model of the machine that the program ran on, or leave it out",
            places=("in the model", "in the profile"),
        )


def earlier_model(hosts: Sequence[str], size: int, folder: Path | str = RUNS) -> Model | None:
    """The newest model in the runs of a folder that was measured on this machine for such messages."""
    suitable: list[Model] = []
    for path in sorted(Path(folder).glob("*/models/*.json")):
        try:
            model = load_model(path)
            check_machine(model, hosts, path)
        except ElbowroomError:
            continue
        if model.document.calibration.origin == "measured" and _suits(model, size) and len(set(hosts)) == 1:
            suitable.append(model)
    return max(suitable, key=lambda model: model.document.created, default=None)


def _suits(model: Model, size: int) -> bool:
    if not fitted_models(model.document):
        return False  # an accelerator alone
    calibrated = model.document.calibration.size
    return model.document.message_size is not None or max(size / calibrated, calibrated / size) <= NEAR
