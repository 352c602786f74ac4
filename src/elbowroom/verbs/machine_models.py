"""The model of the machine that a program was profiled on: given, from an earlier run, or measured now."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from elbowroom.errors import ElbowroomError, MachineError, UsageError
from elbowroom.experiments.plans import Overrides
from elbowroom.machine.identity import check_same, difference
from elbowroom.measure.budgets import smallest_budget
from elbowroom.models.registry import fitted_models
from elbowroom.quantities import duration, format_size
from elbowroom.verbs.calibrate import calibrate, resume_calibration
from elbowroom.verbs.fit import fit
from elbowroom.verbs.model_file import Model, load_model
from elbowroom.verbs.run import dry_run, resume, run
from elbowroom.verbs.run_folder import Run, open

RUNS = "runs"
BUDGET = 8
"""Points of the short calibration; what it saves is in docs/guide/calibrate.md."""
HALF_WIDTH = 0.05
MEASURING = 120.0
"""Seconds that measuring a model may take, unless a user says otherwise."""
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
    return measured_model(size, tell, budget=budget, name=name)


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


def measured_model(size: int, tell: Callable[[str], object], *, budget: float, name: str) -> MachineModel:
    """Measures a model of this machine with few points, for messages of `size` bytes, within `budget`
    seconds; runs of that name that were begun are continued.
    """
    size = min(max(size, SIZES[0]), SIZES[-1])
    tell(
        f"No model of this machine for messages of {format_size(size)} is in {RUNS}/: measuring one, at most "
        f"{duration(budget)} (--budget). Ctrl-C stops that and leaves the profile and the job; --model "
        "M.json takes another one."
    )
    cores = [core.number for core in dry_run("quick").machine.cores]
    folders = [Path(RUNS) / f"{name}-model"]
    if len(cores) > FEW_CORES:
        runs = [_calibrated(folders[0], size, budget, tell)]
    else:
        few = _few(cores, size)
        folders = [Path(RUNS) / f"{name}-{plan}" for plan, _, _ in few]
        if not folders[0].exists():
            _check_budget(few, budget)
        runs = [
            _measured(plan, points, folder, share * budget, tell)
            for folder, (plan, points, share) in zip(folders, few, strict=True)
        ]
    try:
        model = fit(runs)
    except UsageError as error:
        raise MachineError(
            f"could not be measured: {error.message}",
            field="model",
            hint="when nothing else runs, remove these folders and diagnose again with more --budget: "
            + " ".join(map(str, folders)),
        ) from error
    # A run of one side alone has no control.
    return MachineModel(model, "measured", runs[0].verdict.trusted)


def _calibrated(folder: Path, size: int, budget: float, tell: Callable[[str], object]) -> Run:
    goal: dict[str, Any] = {"budget": BUDGET, "half_width": HALF_WIDTH, "seconds": budget, "report": False}
    if (folder / "manifest.json").exists():
        return resume_calibration(folder, tell=tell, **goal).run
    done: Run = calibrate(run=str(folder), overrides=Overrides(sizes=(size,)), tell=tell, **goal).run
    return done


def _measured(
    plan: str, points: Overrides, folder: Path, budget: float, tell: Callable[[str], object]
) -> Run:
    """The run in the folder, measured, or continued where it was stopped."""
    if not (folder / "manifest.json").exists():
        limited = msgspec.structs.replace(points, budget=budget)
        done: Run = run(plan, out=str(folder), overrides=limited, report=False, tell=tell)
        return done
    done = open(folder)
    if not done.manifest.finished:
        done = resume(folder, budget=budget, report=False, tell=tell)
    return done


def _check_budget(few: Sequence[tuple[str, Overrides, float]], budget: float) -> None:
    """UsageError where a share of the budget is too short for its run, before any is measured."""
    needed = [smallest_budget(dry_run(plan, overrides=points)) / share for plan, points, share in few]
    if budget < max(needed):
        raise UsageError(
            "is too short to measure a model of this machine",
            field="budget",
            value=f"{budget:g} s",
            hint=f"give at least {math.ceil(max(needed))}s, or --model M.json",
        )


def _few(cores: Sequence[int], size: int) -> list[tuple[str, Overrides, float]]:
    """What is measured on few cores, and each run's share of the time: sizes beside computation, and all
    cores computing alone.
    """
    alone = {"pattern": "pingpong", "sequence": "A,B,B,A", "scheduling": "true", "n": str(len(cores))}
    every = tuple(reversed(cores))
    return [
        ("sizes", Overrides(sizes=tuple(sorted({*SIZES, size})), settings={"n": "all", "around": "0"}), 0.6),
        ("model", Overrides(kernels=("triad",), sizes=(size,), comp_cores=every, settings=alone), 0.4),
    ]
