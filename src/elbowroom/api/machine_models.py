"""The model of the machine that a program was profiled on: given, from an earlier run, or measured now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from elbowroom.api.calibration import calibrate, fit
from elbowroom.api.measurement import dry_run, run
from elbowroom.api.models import Model, load_model
from elbowroom.errors import ElbowroomError, MachineError, UsageError
from elbowroom.experiments.plans import Overrides
from elbowroom.machine.identity import check_same, difference
from elbowroom.plan.sizes import format_size

RUNS = "runs"
BUDGET = 8
"""Points of the short calibration; what it saves is in docs/guide/calibrate.md."""
HALF_WIDTH = 0.05
NEAR = 2.0
"""A model of messages of one size is used for sizes up to so many times larger or smaller."""
FEW_CORES = 4
"""On so few cores too few numbers of computing cores are measured for a model: several message sizes take
their place, and all cores computing alone, of which the communication core is a large part.
"""
SIZES = (256, 4096, 65_536, 1 << 20, 16 << 20, 64_000_000)

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
    tell: Callable[[str], object],
) -> MachineModel:
    """The model of the machine of these hosts, for messages of `size` bytes: the one `given`, else the newest
    in runs/ that suits, else one that is measured now.

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
    return measured_model(size, tell)


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
    found: list[Model] = []
    for path in sorted(Path(folder).glob("*/models/*.json")):
        try:
            model = load_model(path)
            check_machine(model, hosts, path)
        except ElbowroomError:
            continue
        if model.document.calibration.origin == "measured" and _suits(model, size) and len(set(hosts)) == 1:
            found.append(model)
    return max(found, key=lambda model: model.document.created, default=None)


def _suits(model: Model, size: int) -> bool:
    if not model.document.names():
        return False  # an accelerator alone
    calibrated = model.document.calibration.size
    return model.document.message_size is not None or max(size / calibrated, calibrated / size) <= NEAR


def measured_model(size: int, tell: Callable[[str], object]) -> MachineModel:
    """Measures a model of this machine with few points, for messages of `size` bytes."""
    size = min(max(size, SIZES[0]), SIZES[-1])
    tell(
        f"No model of this machine for messages of {format_size(size)} is in {RUNS}/: measuring one. Ctrl-C "
        "stops that and leaves the profile and the job; --model M.json takes another one."
    )
    cores = [core.number for core in dry_run("quick").machine.cores]
    if len(cores) > FEW_CORES:
        sizes = Overrides(sizes=(size,))
        done = calibrate(budget=BUDGET, half_width=HALF_WIDTH, overrides=sizes, report=False, tell=tell)
        runs = [done.run]
    else:
        runs = [run(plan, overrides=points, report=False, tell=tell) for plan, points in _few(cores, size)]
    try:
        model = fit(runs)
    except UsageError as error:
        raise MachineError(
            f"could not be measured: {error.message}",
            field="model",
            hint="measure again when nothing else runs: elbowroom diagnose --profile P",
        ) from error
    # A run of one side alone has no control.
    return MachineModel(model, "measured", runs[0].verdict.trusted)


def _few(cores: Sequence[int], size: int) -> list[tuple[str, Overrides]]:
    """What is measured on few cores: sizes beside computation, and all cores computing alone. About a
    minute.
    """
    alone = {"pattern": "pingpong", "sequence": "A,B,B,A", "scheduling": "true", "n": str(len(cores))}
    every = tuple(reversed(cores))
    return [
        ("sizes", Overrides(sizes=tuple(sorted({*SIZES, size})), settings={"n": "all", "around": "0"})),
        ("model", Overrides(kernels=("triad",), sizes=(size,), comp_cores=every, settings=alone)),
    ]
