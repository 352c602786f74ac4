"""A study measured: every run of a paper in one folder, resumed where it was interrupted."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import msgspec

from elbowroom import experiments
from elbowroom.documents import DocumentFormat
from elbowroom.errors import ElbowroomError, MachineError, UsageError, closest
from elbowroom.experiments.experiment import RunPart
from elbowroom.experiments.plans import Overrides, decode, load
from elbowroom.files import disk_error, wrong_kind
from elbowroom.machine.identity import HARDWARE, check_same, difference
from elbowroom.machine.topology import Machine
from elbowroom.measure import campaign
from elbowroom.measure.budgets import smallest_budget
from elbowroom.measure.manifest import Tell, now
from elbowroom.measure.prepare import load_plan, prepare
from elbowroom.measure.prepared import Prepared, Request
from elbowroom.measure.results import Results, evaluate
from elbowroom.measure.source import Where, choose
from elbowroom.plan.file import fields
from elbowroom.progress import Progress
from elbowroom.quantities import duration
from elbowroom.signals import Stopped, ends_as_interrupt
from elbowroom.store.folder import RunFolder, refuse_existing
from elbowroom.studies import STUDIES
from elbowroom.studies.document import lacking
from elbowroom.studies.evidence import Evidence, RunEvidence
from elbowroom.studies.study import Measurement, Study
from elbowroom.version import __version__

FILE = "study.json"
REFUSED = "this machine cannot measure any point of the plan: "
QUICK = {"repetitions": "5", "window": "0.04", "steady.limit": "0.2"}
"""What every run of a quick study is changed to: the fewest repetitions with an interval, short windows."""


class StudySettings(msgspec.Struct, frozen=True, kw_only=True):
    """How the runs of a study are measured. `budget`: seconds for all runs together, 0 without limit; `only`:
    labels of the figures and tables to make, empty for all; `starts`: how often each run starts its program
    anew; `turbo`, `governor`: the conditions of runs whose plans have such, empty for those of the machine.
    """

    only: tuple[str, ...] = ()
    quick: bool = False
    repeat: int | None = None
    starts: int | None = None
    turbo: Literal["", "on", "off"] = ""
    governor: str = ""
    budget: float = 0.0
    seed: int | None = None


class StudyRequest(StudySettings, frozen=True, kw_only=True):
    """What `study` is asked for: the paper's name, and how its runs are measured."""

    study: str
    out: str
    where: Where = Where()
    patience: float | None = None


class StudyFolder(StudySettings, frozen=True, kw_only=True):
    """study.json: what the study in this folder was started with, on which machine and by which release.
    `reasons`: why runs could not be made, by name.
    """

    schema: str = "elbowroom/study-folder"
    version: int = 1
    elbowroom: str = ""
    study: str
    created: str
    where: dict[str, Any] = {}
    machine: Machine
    reasons: dict[str, str] = {}


FOLDER_FORMAT = DocumentFormat(
    kind=StudyFolder,
    schema="elbowroom/study-folder",
    version=1,
    name="study",
    hint="restore it from a copy, or name another folder with -o; the runs below it are not touched",
)


class StudyRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run of a study: a measurement on a number of hosts."""

    name: str
    measurement: Measurement
    hosts: int


def runs_of(study: Study, machine: Machine) -> tuple[StudyRun, ...]:
    """The runs of all measurements: the one on all hosts has the name of its measurement, another one the
    number of hosts behind it (`diffusion-4`).
    """
    return tuple(
        StudyRun(
            name=item.name if count == machine.hosts else f"{item.name}-{count}",
            measurement=item,
            hosts=count,
        )
        for item in study.measurements
        for count in item.hosts(machine)
    )


@dataclass
class Conducted:
    """A study after its runs: `reasons` why some were not measured, `failures` of those where a program
    failed.
    """

    study: Study
    folder: Path
    machine: Machine
    runs: tuple[StudyRun, ...]
    results: dict[str, Results] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def evidence(self) -> Evidence:
        """The measurements as the statements ask for them, each with all its runs."""
        measured: dict[str, list[Results]] = {}
        for run in self.runs:
            if run.name in self.results:
                measured.setdefault(run.measurement.name, []).append(self.results[run.name])
        runs = {name: _joined(name, parts) for name, parts in measured.items()}
        return Evidence(self.machine, runs, by_measurement(self.runs, self.reasons | self.failures))


def _joined(name: str, parts: Sequence[Results]) -> RunEvidence:
    largest = max(parts, key=lambda item: item.machine.hosts)
    doubted = [item.verdict for item in parts if not item.verdict.trusted]
    return RunEvidence(
        name=name,
        experiment=str(largest.manifest.plan["experiment"]),
        machine=largest.machine,
        points=tuple(point for item in parts for point in item.points),
        findings=largest.findings,
        notes=largest.notes,
        doubt=(doubted[0].reasons or (doubted[0].text,))[0] if doubted else "",
        parts=tuple(
            RunPart(name=f"{name} on {item.machine.hosts} hosts", results=item.points, machine=item.machine)
            for item in parts
        ),
    )


def by_measurement(runs: Sequence[StudyRun], reasons: Mapping[str, str]) -> dict[str, str]:
    """Why a measurement has no run at all, by its name; `reasons` are those of runs."""
    of: dict[str, list[str]] = {}
    for run in runs:
        of.setdefault(run.measurement.name, []).append(reasons.get(run.name, ""))
    return {name: texts[-1] for name, texts in of.items() if all(texts)}


def overrides(request: StudyRequest, measurement: Measurement, machine: Machine) -> Overrides:
    """The keys that a run's plan is changed to; `machine` has all hosts of the study."""
    settings = {**measurement.settings, **measurement.scaled(machine)}
    if request.quick:
        settings |= {**QUICK, **measurement.quick}
    known = fields(experiments.get(load(measurement.plan).experiment).keys)
    conditions = {"turbo": request.turbo, "governors": request.governor}
    settings |= {key: value for key, value in conditions.items() if value and key in known}
    return Overrides(settings=settings, repeat=request.repeat, starts=request.starts)


def command(request: StudyRequest, run: StudyRun, machine: Machine) -> str:
    """The command line that makes the same run by itself, on as many hosts."""
    chosen = overrides(request, run.measurement, machine)
    words = ["elbowroom", "run", run.measurement.plan]
    for key, value in chosen.settings.items():
        words += ["--set", f"{key}={value}"]
    words += ["--repeat", str(chosen.repeat)] if chosen.repeat is not None else []
    words += ["--starts", str(chosen.starts)] if chosen.starts is not None else []
    words += ["--machine", request.where.machine] if request.where.machine else []
    return shlex.join(words)


@dataclass(frozen=True)
class Planned:
    """What a study would measure: each run prepared, or the reason why it cannot be made, by name."""

    study: Study
    machine: Machine
    runs: tuple[StudyRun, ...]
    prepared: dict[str, Prepared]
    reasons: dict[str, str]


def plan(request: StudyRequest, tell: Tell = lambda _: None) -> Planned:
    """What a study would measure; nothing is started or written. UsageError for settings that no run could
    have.
    """
    if request.budget and (request.starts or 1) > 1:
        raise UsageError(
            "cannot be given with --budget: several starts measure all their repetitions",
            field="starts",
            value=request.starts,
            hint="leave one of the two out",
        )
    study = narrowed(STUDIES.get(request.study), request.only)
    machine = choose(request.where).machine()
    for name, value in (("turbo", request.turbo), ("governor", request.governor)):
        if value and name not in machine.permitted:
            reason = machine.refused.get(name, "a virtual machine has no frequencies" * machine.virtual)
            raise UsageError(
                "cannot be set on this machine", field=name, value=value, hint=reason or "leave it out"
            )
    if request.governor and request.governor not in machine.governors:
        hint = closest(request.governor, machine.governors)
        raise UsageError("unknown governor", field="governor", value=request.governor, hint=hint)
    runs = runs_of(study, machine)
    prepared: dict[str, Prepared] = {}
    reasons: dict[str, str] = {}
    for run in runs:
        reasons[run.name] = lacking(run.measurement, machine)
        if reasons[run.name]:
            continue
        try:
            run_request = _run_request(request, run, machine, None)
            plan, run_request = load_plan(run_request, tell)
            prepared[run.name] = prepare(run_request, plan, choose(run_request.where))
        except ElbowroomError as error:
            reasons[run.name] = error.message.removeprefix(REFUSED)
    if request.budget and not machine.virtual:
        prepared, short = within_budget(prepared, request.budget)
        reasons |= short
    return Planned(
        study, machine, runs, prepared, {name: reason for name, reason in reasons.items() if reason}
    )


def unobserved(where: Where) -> dict[str, str]:
    """What cannot be observed there, with the reasons."""
    observers = choose(where).observers()
    return {name: str(item["reason"]) for name, item in observers.items() if item.get("status") == "n/a"}


def within_budget(
    prepared: Mapping[str, Prepared], budget: float
) -> tuple[dict[str, Prepared], dict[str, str]]:
    """The runs that can be measured in their shares of a budget, in s, with these; why the others cannot.
    UsageError where none can.
    """
    total = sum(item.seconds for item in prepared.values())
    shares = {name: budget * item.seconds / max(total, 1e-9) for name, item in prepared.items()}
    needed = {name: smallest_budget(item) for name, item in prepared.items()}
    fitting = [name for name in prepared if needed[name] <= shares[name]]
    if prepared and not fitting:
        least = min(budget * needed[name] / max(shares[name], 1e-9) for name in prepared)
        raise UsageError(
            f"is too short for any of the {len(prepared)} runs",
            field="budget",
            value=f"{budget:g} s",
            hint=f"give at least {duration(1.05 * least)}, or choose figures with --only",
        )
    limited = {name: msgspec.structs.replace(prepared[name], budget=shares[name]) for name in fitting}
    return limited, {
        name: f"its share of the budget, {shares[name]:.0f} s, is too short: it needs {needed[name]} s"
        for name in prepared
        if name not in limited
    }


def _run_request(request: StudyRequest, run: StudyRun, machine: Machine, budget: float | None) -> Request:
    changed = overrides(request, run.measurement, machine)
    if budget is not None:
        changed = msgspec.structs.replace(changed, budget=budget)
    where = request.where
    if run.hosts < machine.hosts:
        where = msgspec.structs.replace(where, most_hosts=run.hosts)
    return Request(
        plan=run.measurement.plan,
        overrides=changed,
        where=where,
        out=str(run_path(Path(request.out), run.name)),
        seed=request.seed,
        patience=request.patience,
        command=("elbowroom", "study", request.study),
        start=time.monotonic(),
    )


def narrowed(study: Study, only: Sequence[str]) -> Study:
    """The study with the figures and tables of those labels and their runs; all where none is named.
    UsageError for a label that it does not have.
    """
    labels = [exhibit.label for exhibit in study.exhibits]
    for label in only:
        if label not in labels:
            raise UsageError(
                f"is not a figure or table of {study.name}",
                field="only",
                value=label,
                hint=closest(label, labels),
            )
    if not only:
        return study
    exhibits = tuple(exhibit for exhibit in study.exhibits if exhibit.label in only)
    names = {name for exhibit in exhibits for name in exhibit.runs}
    measurements = tuple(item for item in study.measurements if item.name in names)
    return replace(study, measurements=measurements, exhibits=exhibits)


def run_path(folder: Path, name: str) -> Path:
    """The folder of a run of a study."""
    return folder / "runs" / name


def request_of(path: Path | str) -> StudyRequest:
    """The request that the study in a folder was started with; UsageError where there is none."""
    folder = Path(path)
    if not (folder / FILE).exists():
        what = wrong_kind(folder, "folder") or "is not the folder of a study (it has no study.json)"
        raise UsageError(what, field="resume", value=str(path), hint="name the folder a study was written to")
    known = FOLDER_FORMAT.read(folder / FILE)
    try:
        narrowed(STUDIES.get(known.study), known.only)
    except UsageError as error:
        release = f"elbowroom {known.elbowroom}" if known.elbowroom else "another release"
        raise UsageError(
            f"was started by {release}, and elbowroom {__version__} does not know its {error.field} "
            f"{error.value!r}",
            field="study",
            value=str(folder),
            hint=f"continue it with {release}, or start a new study with -o",
        ) from error
    where = Where.stored(known.where, folder / FILE)
    return StudyRequest(study=known.study, out=str(folder), where=where, **_settings(known))


def _settings(of: StudySettings) -> dict[str, Any]:
    return {name: getattr(of, name) for name in StudySettings.__struct_fields__}


SETTINGS = ("study", "where", *StudySettings.__struct_fields__)


def _opened(request: StudyRequest, machine: Machine) -> StudyFolder:
    """The study's folder, made or gone on with; UsageError where it is of other settings or another machine,
    and nothing is changed then.
    """
    folder = Path(request.out)
    if not (folder / FILE).exists():
        refuse_existing(folder)
        return StudyFolder(
            elbowroom=__version__,
            study=request.study,
            created=now(),
            where=msgspec.to_builtins(request.where),
            machine=machine,
            **_settings(request),
        )
    before = request_of(folder)
    for name in SETTINGS:
        if getattr(before, name) != getattr(request, name):
            raise UsageError(
                f"the study in {folder} was started with {_shown(getattr(before, name))}",
                field="paper" if name == "study" else name,
                value=_shown(getattr(request, name)),
                hint="continue it with --resume, or choose another folder with -o",
            )
    known = FOLDER_FORMAT.read(folder / FILE)
    check_same(
        difference(machine, known.machine, HARDWARE),
        message=f"was started on another machine ({known.machine.name})",
        field="study",
        value=str(folder),
        hint="continue there, or choose another folder with -o",
    )
    return known


def _shown(value: object) -> str:
    if isinstance(value, Where):
        given = {name: item for name, item in msgspec.to_builtins(value).items() if item}
        return ", ".join(f"{name} {item}" for name, item in given.items()) or "the default launcher"
    if isinstance(value, tuple):
        return ", ".join(value) or "all figures"
    if isinstance(value, bool):
        return "--quick" if value else "all repetitions"
    return "the default" if value in (None, 0.0) else str(value)


def conduct(request: StudyRequest, tell: Tell) -> Conducted:
    """Measures the runs of a study that its folder lacks, and judges them all.

    What cannot be made here is left out with the reason; a program that fails is a failure of its run, and
    the others are measured. UsageError for a folder of other settings or of another machine.
    """
    narrowed(STUDIES.get(request.study), request.only)
    folder = Path(request.out)
    state = _opened(request, choose(request.where).machine())
    planned = plan(request)
    _check_release(folder, state, planned)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_error(error, folder, "out") from error
    FOLDER_FORMAT.write(folder / FILE, msgspec.structs.replace(state, reasons=planned.reasons), own=True)
    done = Conducted(planned.study, folder, planned.machine, planned.runs, reasons=planned.reasons)
    clock = _Clock(request.budget, {name: item.seconds for name, item in planned.prepared.items()})
    total = sum(clock.left.values())
    tell(f"{planned.study.name}: {len(planned.prepared)} runs, about {duration(request.budget or total)}")
    try:
        seconds = {name: item.seconds for name, item in planned.prepared.items()}
        with ends_as_interrupt(), Progress(len(seconds), request.budget or total, what="runs") as bar:
            for number, name in enumerate(planned.prepared, 1):
                run = next(item for item in planned.runs if item.name == name)
                _conduct_run(request, done, run, clock, tell, f"run {number} of {len(planned.prepared)}")
                bar.step(seconds[name] * (request.budget or total) / max(total, 1e-9))
    except (Stopped, KeyboardInterrupt) as stopped:
        raise Stopped(
            "stopped; what was measured is kept",
            field="study",
            value=str(folder),
            hint=f"continue with: elbowroom study --resume {shlex.quote(str(folder))}",
        ) from stopped
    return done


def _check_release(folder: Path, state: StudyFolder, planned: Planned) -> None:
    """UsageError where a run in the folder has another plan than this release gives it: statements would be
    judged by points that were measured for others.
    """
    for name, prepared in planned.prepared.items():
        path = run_path(folder, name)
        if not (path / "manifest.json").exists():
            continue
        plans = (decode(RunFolder.open(path).manifest.plan), prepared.plan)
        theirs, ours = (msgspec.to_builtins(item.plain()) for item in plans)
        changed = sorted(
            key for key in (ours.keys() | theirs.keys()) - {"budget"} if ours.get(key) != theirs.get(key)
        )
        if changed:
            release = state.elbowroom or "an earlier release"
            raise UsageError(
                f"its run {name} was measured by elbowroom {release} with another plan than elbowroom "
                f"{__version__} has ({', '.join(changed)})",
                field="study",
                value=str(folder),
                hint="read it with that release, or measure again into another folder: -o FOLDER",
            )


class _Clock:
    """Time of a study: what each run is estimated to take, what runs took in relation to that, and the part
    of the budget that each gets.
    """

    def __init__(self, budget: float, estimates: Mapping[str, float]) -> None:
        self.budget, self.left = budget, dict(estimates)
        self._start = time.monotonic()
        self._estimated = self._spent = 0.0

    def share(self, name: str) -> float | None:
        """Seconds of the budget for a run; None without a budget."""
        if not self.budget:
            return None
        return self.remaining() * self.left[name] / max(sum(self.left.values()), 1e-9)

    def remaining(self) -> float:
        """Seconds that all runs not yet done will take, at the rate of those that are."""
        if self.budget:
            return max(0.0, self.budget - (time.monotonic() - self._start))
        rate = self._spent / self._estimated if self._estimated > 1.0 else 1.0
        return rate * sum(self.left.values())

    def close(self, name: str, seconds: float) -> None:
        """A run is done; `seconds` it took now, 0 where it was done before."""
        estimate = self.left.pop(name, 0.0)
        if seconds > 0:
            self._estimated += estimate
            self._spent += seconds


def _conduct_run(
    request: StudyRequest, done: Conducted, run: StudyRun, clock: _Clock, tell: Tell, number: str
) -> None:
    """Takes the results of one run as they are if it is finished, else begins it or goes on with it. What
    cannot be made is a reason, and a program that fails a failure. Errors of a run that was begun before are
    raised: it must not look as if it had never been measured.
    """
    path, started = run_path(done.folder, run.name), time.monotonic()
    before = (path / "manifest.json").exists()
    try:
        if before and RunFolder.open(path).manifest.finished:
            done.results[run.name] = evaluate(RunFolder.open(path))
            return
        tell(f"{number}: {run.name} ({run.measurement.plan}), {duration(clock.remaining())} left")
        if before:
            _, done.results[run.name] = campaign.resume(path, tell, patience=request.patience)
        else:
            run_request = _run_request(request, run, done.machine, clock.share(run.name))
            _, done.results[run.name] = campaign.start(run_request, tell)
    except UsageError as error:
        if (path / "manifest.json").exists():
            raise
        done.reasons[run.name] = error.message
    except MachineError as error:
        done.failures[run.name] = error.message
        tell(f"{run.name} failed: {error.message}")
    finally:
        clock.close(run.name, 0.0 if before else time.monotonic() - started)
