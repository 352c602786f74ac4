"""`elbowroom calibrate`: a model from few points, each chosen for the most information; and the model of the
machine of a profile: given, from an earlier run, or measured so.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from elbowroom import display
from elbowroom.cli.answer import Answer, command_line
from elbowroom.cli.console import chatter, print_list, print_wrapped
from elbowroom.cli.options import Output
from elbowroom.cli.tables import new_table, print_table
from elbowroom.errors import ElbowroomError, MachineError, UsageError
from elbowroom.experiments.plans import Overrides
from elbowroom.files import check_writable
from elbowroom.launch.planned_starts import PlannedStart
from elbowroom.machine.identity import check_same, difference
from elbowroom.models.registry import fitted_models
from elbowroom.quantities import duration, format_size, percent
from elbowroom.signals import TimeIsUp, time_limit
from elbowroom.verbs.declaration import Verb, dry_run_option, function_of, included, option, request_of
from elbowroom.verbs.fit import fit
from elbowroom.verbs.model_tables import calibration_line, shape_line
from elbowroom.verbs.run import dry_run, resume, run
from elbowroom.verbs.run_options import (
    Launching,
    PlanChanges,
    Virtual,
    out_option,
    place,
    seed_option,
    timeout_option,
)
from elbowroom.verbs.run_tables import machine_line

if TYPE_CHECKING:
    from elbowroom.measure.adaptive import AdaptiveResult
    from elbowroom.measure.prepared import Request
    from elbowroom.verbs.model_file import Model
    from elbowroom.verbs.run_folder import Run

REASONS = {
    "narrow": "the intervals are narrow enough",
    "budget": "the budget is used up",
    "complete": "every point of the full sweep was measured",
    "nothing": "no point gave bandwidths that a model can be fitted to",
}


class Calibrated(NamedTuple):
    """A calibrated machine: the run folder, how it went, and the model; None where the runs allow none, and
    `unknown` says why among the other things that could not be learned here, one sentence each.
    """

    run: Run
    calibration: AdaptiveResult
    model: Model | None
    unknown: tuple[str, ...]

    def __repr__(self) -> str:
        return f"Calibrated(run={self.run!r}, model={self.model!r})"

    def __str__(self) -> str:
        return display.text(self)

    def _repr_html_(self) -> str:
        return display.html(self)


class Calibrate(Verb):
    """Measure a few points, each chosen for the most information, and fit the models to them.

    Starts with a few placements and numbers of computing cores, fits a model, and then measures the point
    that narrows the predictions most. Reports the time saved compared to measuring every point.
    """

    name = "calibrate"
    has_tables = True
    fits = True
    resumed = "calibration"
    with_resume = (
        "points", "half_width", "out", "launching", "patience", "report", "seconds", "command", "tell",
    )  # fmt: skip

    points: int = option("Measure at most this many points.", "N", default=24, formerly="--budget")
    half_width: float = option(
        "Stop when nine of ten 90 % intervals are at most ±PERCENT.",
        "PERCENT",
        default="3.0",
    )
    out: Path | str | None = out_option(
        Output(".json", bare=True),
        "Model file to write; default: models/NAME.json in the run folder.",
        "M.json",
    )
    run: str | None = option(
        "Folder of the run; default runs/calibrate-DATE. Never overwritten.",
        "RUN",
        spelled="--run-out",
        formerly="--run",
    )
    resume: Path | str | None = option(
        "Continue a calibration, for instance with a smaller --half-width.", "RUN", in_python=False
    )
    plan: str = option("Plan whose points to choose from; default: model.", "PLAN", default="model")
    virtual: Virtual = included(Virtual)
    changes: PlanChanges = included(
        PlanChanges,
        only=("kernels", "sizes", "repeat", "settings", "overrides"),
        own={
            "kernels": {
                "spelled": "--kernel",
                "formerly": "--kernels",
                "metavar": "KERNEL",
                "help": "Computing kernel; default: the plan's.",
            },
            "sizes": {
                "spelled": "--size",
                "formerly": "--sizes",
                "metavar": "SIZE",
                "help": "Message size: 64MB; default: the plan's.",
            },
        },
    )
    launching: Launching = included(Launching)
    seed: int | None = seed_option("Seed of the order, of the draws and of the noise.")
    patience: float | None = timeout_option()
    report: bool = option("Write no report.html.", spelled="--no-report", default=True)
    dry_run: bool = dry_run_option()
    seconds: float = 0.0
    command: Sequence[str] = ()
    tell: Callable[[str], object] = chatter

    def do(self) -> Calibrated:
        """Measures only what teaches most of `plan`, and fits every model to it.

        Ends after `points` points (a placement with a number of computing cores each), or as soon as nine of
        ten predictions have a 90 % interval of at most the relative `half_width`, or when no further point
        fits into `seconds` (0: no limit). `run` names the new run folder, `out` the model's file (default:
        models/NAME.json in the run folder); the rest as of `elbowroom.run`.
        """
        from elbowroom.measure import adaptive
        from elbowroom.verbs.run_folder import Run

        goal = adaptive.Goal(budget=self.points, half_width=self.half_width, seconds=self.seconds)
        if self.out is not None:
            check_writable(Path(self.out))
        if self.resume is None:
            folder, results, calibration = adaptive.start(self._request(), goal, self.tell)
        else:
            folder, results, calibration = adaptive.resume(
                Path(self.resume), goal, self.tell, where=place(self.launching), patience=self.patience
            )
        return self._fitted(Run(folder, results), calibration)

    def _request(self) -> Request:
        from elbowroom.measure.prepared import Request

        return Request(
            plan=self.plan,
            overrides=self.changes.as_overrides(),
            where=place(self.launching, self.virtual, self.seed),
            out=self.run,
            seed=self.seed,
            patience=self.patience,
            command=tuple(self.command),
        )

    def _fitted(self, run: Run, calibration: AdaptiveResult) -> Calibrated:
        """The model of the run, then its report, which shows the model too."""
        from elbowroom.verbs.run_models import default_path, fit_runs

        unknown = [f"{note.what}: {note.reason}" for note in run.manifest.notes]
        model = None
        try:
            # One point may be all that a small machine has; the model says how little it knows.
            model = fit_runs([run])
        except UsageError as error:
            unknown.append(f"no model: {error.sentence()}")
        else:
            model.save(self.out if self.out is not None else default_path(run))
            unknown += model.validity
        if self.report:
            run.report()
        return Calibrated(run, calibration, model, tuple(unknown))

    def planned_starts(self) -> Iterator[PlannedStart]:
        """The points of the plan that it would measure at most."""
        launching, virtual = self.launching, self.virtual
        prepared = dry_run(
            self.plan,
            overrides=self.changes.as_overrides(),
            launcher=launching.launcher,
            mpi=launching.mpi,
            hosts=launching.hosts,
            hostfile=launching.hostfile,
            machine=virtual.machine,
            noise=virtual.noise,
            seed=self.seed,
        )
        points = len(prepared.expansion.points)
        yield PlannedStart(
            what=f"at most {min(self.points, points)} of {points} points of the plan {self.plan}, "
            f"{prepared.plan.repetitions} repetitions each",
            commands=prepared.commands,
            seconds=prepared.seconds * min(1.0, self.points / points),
        )

    def document(self, result: Calibrated) -> Any:
        """How it went, the files and the model."""
        from elbowroom.measure.adaptive import CalibrationDocument

        return CalibrationDocument(
            **msgspec.structs.asdict(result.calibration),
            run=str(result.run.path),
            file=None if result.model is None else str(result.model.path),
            saved=saved(result.calibration),
            unknown=result.unknown,
            trusted=result.run.verdict.trusted,
            virtual=result.run.machine.virtual,
            model=None if result.model is None else result.model.document,
        )

    def print(self, result: Calibrated) -> None:
        """The chosen points, and what the model does not know."""
        _print_calibrated(result)

    def answer(self, result: Calibrated) -> Answer:
        """What was measured, how narrow the intervals are, and the model that came of it."""
        from elbowroom.verbs.model_answers import predict_command, source_of

        calibration, model, reasons = result.calibration, result.model, result.run.verdict.reasons
        why = REASONS[calibration.reason]
        if calibration.width is not None and model is not None:
            goal = f"at most ±{percent(calibration.width)} (goal: {percent(calibration.goal.half_width)})"
            why = f"nine of ten 90 % intervals are {goal}: {why}"
        following = command_line("calibrate", "--resume", result.run.path)
        if model is not None and not reasons:
            following = predict_command(source_of(model), model.machine)
        return Answer(
            f"Cannot be trusted: {reasons[0]}" if reasons else saved(calibration),
            f"{why[:1].upper()}{why[1:]}.",
            following,
            "yellow" if reasons else "",
        )

    def trusted(self, result: Calibrated) -> bool:
        return result.run.verdict.trusted


calibrate = function_of(Calibrate)


def resume_calibration(path: Path | str, **options: Any) -> Calibrated:
    """Goes on with a calibration that was stopped, or one that shall use more runs or be narrower; `options`:
    `points`, `half_width`, `seconds`, `out`, `patience`, `report`, `tell` and where to measure, as of
    `calibrate`.
    """
    result: Calibrated = request_of(Calibrate, {"resume": path, **options}).do()
    return result


def saved(calibration: AdaptiveResult) -> str:
    """What was measured against the full sweep, in a sentence."""
    if calibration.runs == calibration.full_runs:
        plural = "s" if calibration.runs != 1 else ""
        return f"{calibration.runs} point{plural} measured, which is every point: nothing was saved."
    return (
        f"{calibration.runs} points instead of {calibration.full_runs}: about "
        f"{duration(calibration.seconds)} of measuring instead of {duration(calibration.full_seconds)}."
    )


def _print_calibrated(done: Calibrated) -> None:
    calibration = done.calibration
    if done.model is None:
        print_wrapped(machine_line(done.run.machine), style="bold")
    else:
        print_wrapped(shape_line(done.model.machine), style="bold")
        print_wrapped(calibration_line(done.model.document.calibration))
    print()
    table = new_table(">run", ">comp node", ">comm node", ">n", "chosen")
    for number, step in enumerate(calibration.steps, start=1):
        at = step.situation
        cores = f"{at.n}+{at.n_other}" if at.n_other else str(at.n)
        why = "initial point" if step.width is None else f"90 % intervals were ±{step.width:.1%}"
        table.add_row(str(number), str(at.comp_node), str(at.comm_node), cores, why)
    print_table(table)
    if done.unknown:
        print()
        print_wrapped("What the model does not know, and its limits:")
    print_list(done.unknown, indent="  ")
    print()
    print_wrapped(f"run: {done.run.path}")
    if done.model is not None:
        print_wrapped(f"model: {done.model.path}")


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
        from elbowroom.verbs.model_file import load_model

        model = load_model(given)
        check_machine(model, hosts, given)
        return MachineModel(model, "given")
    earlier = earlier_models(hosts, size).newest
    if earlier is not None:
        return MachineModel(earlier, "earlier")
    if len(set(hosts)) > 1:
        raise UsageError(
            f"none is given for the hosts {', '.join(dict.fromkeys(hosts))}",
            field="model",
            hint="measure one between two of them: elbowroom calibrate --hosts A,B -o M.json; then give "
            "--profile P --model M.json",
        )
    measured, trusted = measure_model(size, tell, budget=budget, folder=Path(RUNS), name=name)
    return MachineModel(measured, "measured", trusted)


def check_machine(model: Model, hosts: Sequence[str], given: object, where: str = "profile") -> None:
    """UsageError where hosts of the profile, or `where` else they are named, are not the model's machine;
    nodes of a cluster count as one.
    """
    for host in hosts:
        other = difference(model.machine, _Host(host), ("name",), cluster=not model.machine.virtual)
        check_same(
            other,
            message=f"is the model of another machine than the {where}'s",
            field="model",
            value=str(given),
            hint="give the model of the machine that the program ran on, or leave it out",
            places=("in the model", f"in the {where}"),
        )


class EarlierModels(NamedTuple):
    """The newest model that suits, and why each of the others does not: its file and a reason."""

    newest: Model | None
    refused: tuple[tuple[str, str], ...] = ()

    def sentence(self) -> str:
        """Why none of them is used; empty where one is, or there are none."""
        if self.newest is not None or not self.refused:
            return ""
        named = "; ".join(f"{path} {reason}" for path, reason in self.refused[:_NAMED])
        more = len(self.refused) - _NAMED
        return f"No earlier model is used: {named}{f'; and {more} more' if more > 0 else ''}."


_NAMED = 2
"""Earlier models whose reasons are given."""


def earlier_models(hosts: Sequence[str], size: int, folder: Path | str = RUNS) -> EarlierModels:
    """The models in the runs of a folder, for messages of `size` bytes between processes of these hosts."""
    from elbowroom.verbs.model_file import load_model

    suitable: list[Model] = []
    refused = []
    for path in sorted(Path(folder).glob("*/models/*.json")):
        try:
            model = load_model(path)
            check_machine(model, hosts, path)
        except ElbowroomError as error:
            refused.append((str(path), error.message))
            continue
        reason = _unsuitable(model, hosts, size)
        if reason:
            refused.append((str(path), reason))
        else:
            suitable.append(model)
    newest = max(suitable, key=lambda model: model.document.created, default=None)
    return EarlierModels(newest, tuple(refused))


def _unsuitable(model: Model, hosts: Sequence[str], size: int) -> str:
    """Why a model of this machine is not used; empty where it is."""
    calibration = model.document.calibration
    if calibration.origin != "measured":
        return "was not measured"
    if not fitted_models(model.document):
        return "has models of an accelerator only"
    if len(set(hosts)) > 1:
        return "was not measured between several hosts"
    calibrated = calibration.size
    if model.document.message_size is None and max(size / calibrated, calibrated / max(size, 1)) > NEAR:
        own, others = format_size(calibrated), format_size(size)
        return f"is for messages of {own}, and most bytes are in messages of {others}"
    return ""


BUDGET = 8
"""Points of the short calibration; what it saves is in docs/guide/calibrate.md."""
HALF_WIDTH = 0.05
FEW_CORES = 4
"""On so few cores too few numbers of computing cores are measured for a model: several message sizes take
their place, and all cores computing alone, of which the communication core is a large part.
"""
SIZES = (256, 4096, 65_536, 1 << 20, 16 << 20, 64_000_000)
FITTING = 4.0
"""Seconds of a core in which a model of so few points is fitted, about."""
MOST_FITTING = 0.3
"""Share of a budget that is kept for it at most."""
_LOOK = 0.05


class NoModel(MachineError):
    """The machine's model could not be measured in the time: there was too little of it, or the machine too
    busy.
    """


def measure_model(
    size: int, tell: Callable[[str], object], *, budget: float, folder: Path, name: str
) -> tuple[Model, bool]:
    """Measures a model of this machine with few points, for messages of `size` bytes, within `budget`
    seconds, by runs NAME-PLAN in `folder`, of which those that are there are continued; and whether the first
    can be trusted. Building does not count. NoModel where nothing could be fitted in this time.
    """
    from elbowroom.measure.budgets import BudgetClock

    clock = BudgetClock()
    clock.limit(budget)
    size = min(max(size, SIZES[0]), SIZES[-1])
    tell(
        f"No model of this machine for messages of {format_size(size)} is in {folder}/: measuring one, at "
        f"most {duration(budget)} (--budget). Ctrl-C stops that and leaves the profile and the job; --model "
        "M.json takes another one."
    )
    cores = [core.number for core in dry_run("quick").machine.cores]
    kept = min(MOST_FITTING * budget, FITTING * slowness())
    folders = [folder / f"{name}-model"]
    if len(cores) > FEW_CORES:
        runs = [_calibrated(folders[0], size, clock.left() - kept, tell)]
    else:
        few = _few(cores, size)
        folders = [folder / f"{name}-{plan}" for plan, _, _ in few]
        if not folders[0].exists():
            _check_budget(few, budget, kept)
        runs, shares = [], 1.0
        for place, (plan, points, share) in zip(folders, few, strict=True):
            left = max(0.0, clock.left() - kept) * share / shares
            try:
                runs.append(_measured(plan, points, place, left, tell))
            except UsageError as error:
                if error.field != "budget":
                    raise
                why = f"{duration(budget)} are too short while this machine is busy"
                raise _no_model(why, folders) from error
            shares -= share
    try:
        with time_limit(clock.left()):
            model = fit(runs)
    except UsageError as error:
        raise _no_model(error.message, folders) from error
    except TimeIsUp:
        raise _no_model(f"no time was left of {duration(budget)} to fit it", folders) from None
    # A run of one side alone has no control.
    return model, runs[0].verdict.trusted


def _no_model(why: str, folders: Sequence[Path]) -> NoModel:
    return NoModel(
        f"could not be measured: {why}",
        field="model",
        hint="when nothing else runs, diagnose the profile again with more --budget, which continues with "
        + " and ".join(str(folder) for folder in folders if folder.exists()),
    )


def slowness() -> float:
    """How many times as long as on a core of its own this process computes now."""
    start, computed = time.monotonic(), time.process_time()
    while time.process_time() - computed < _LOOK:
        pass
    return max(1.0, (time.monotonic() - start) / _LOOK)


def _calibrated(folder: Path, size: int, budget: float, tell: Callable[[str], object]) -> Run:
    goal: dict[str, Any] = {"points": BUDGET, "half_width": HALF_WIDTH, "seconds": budget, "report": False}
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
    from elbowroom.verbs.run_folder import open

    done = open(folder)
    limit = done.manifest.budget
    if not done.manifest.finished or (limit is not None and limit.left_out):
        done = resume(folder, budget=budget, report=False, tell=tell)
    return done


def _check_budget(few: Sequence[tuple[str, Overrides, float]], budget: float, kept: float) -> None:
    """UsageError where a share of the budget, without what is kept, is too short for its run, before any is
    measured.
    """
    from elbowroom.measure.budgets import smallest_budget

    needed = [smallest_budget(dry_run(plan, overrides=points)) / share for plan, points, share in few]
    if budget - kept < max(needed):
        raise UsageError(
            "is too short to measure a model of this machine",
            field="budget",
            value=f"{budget:g} s",
            hint=f"give at least {math.ceil(max(needed) + kept)}s, or --model M.json",
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
