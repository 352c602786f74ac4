"""A study measured: every run of a paper in one folder, resumed where it was interrupted."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from elbowroom.documents import DocumentFormat
from elbowroom.errors import ElbowroomError, MachineError, UsageError, closest
from elbowroom.experiments.plans import Overrides
from elbowroom.files import disk_error, wrong_kind
from elbowroom.machine.identity import HARDWARE, check_same, difference
from elbowroom.machine.topology import Machine
from elbowroom.measure import session
from elbowroom.measure.budgets import smallest_budget
from elbowroom.measure.manifest import Tell, now
from elbowroom.measure.progress import duration
from elbowroom.measure.results import Results, evaluate
from elbowroom.measure.session import Prepared, Stopped
from elbowroom.measure.source import Where, choose
from elbowroom.signals import ends_as_interrupt
from elbowroom.store.folder import RunFolder, refuse_existing
from elbowroom.studies import STUDIES
from elbowroom.studies.document import lacking
from elbowroom.studies.evidence import Evidence, RunEvidence
from elbowroom.studies.study import Measurement, Study

FILE = "study.json"
REFUSED = "nothing of it can be answered here: "
QUICK = {"repetitions": "5", "window": "0.04", "steady.limit": "0.2"}
"""What every run of a quick study is changed to: the fewest repetitions with an interval, short windows."""


class StudyRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What `study` is asked for: the paper's name, and how its runs are measured. `budget`: seconds for all
    runs together, 0 without limit; `only`: labels of the figures and tables to make, empty for all.
    """

    study: str
    out: str
    where: Where = Where()
    only: tuple[str, ...] = ()
    quick: bool = False
    repeat: int | None = None
    budget: float = 0.0
    seed: int | None = None
    patience: float | None = None


class StudyFolder(msgspec.Struct, frozen=True, kw_only=True):
    """study.json: what the study in this folder was begun with, and on which machine. `reasons`: why runs
    could not be made, by name.
    """

    schema: str = "elbowroom/study-folder"
    version: int = 1
    elbowroom: str = ""
    study: str
    created: str
    where: dict[str, Any] = {}
    only: tuple[str, ...] = ()
    quick: bool = False
    repeat: int | None = None
    budget: float = 0.0
    seed: int | None = None
    machine: Machine
    reasons: dict[str, str] = {}


FOLDER_FORMAT = DocumentFormat(
    kind=StudyFolder,
    schema="elbowroom/study-folder",
    version=1,
    name="study",
    hint="restore it from a copy, or name another folder with -o; the runs below it are not touched",
)


@dataclass
class Conducted:
    """A study after its runs: `reasons` why some were not measured, `failures` of those where a program
    failed.
    """

    study: Study
    folder: Path
    machine: Machine
    results: dict[str, Results] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def evidence(self) -> Evidence:
        """The runs as the statements ask for them."""
        runs = {
            name: RunEvidence(
                name=name,
                experiment=str(item.manifest.plan["experiment"]),
                machine=item.machine,
                points=item.points,
                findings=item.findings,
                notes=item.notes,
                doubt="" if item.verdict.trusted else (item.verdict.reasons or (item.verdict.text,))[0],
            )
            for name, item in self.results.items()
        }
        return Evidence(self.machine, runs, self.reasons | self.failures)


def overrides(request: StudyRequest, measurement: Measurement, machine: Machine) -> Overrides:
    """The keys that a run's plan is changed to."""
    settings = {**measurement.settings, **measurement.scaled(machine)}
    if request.quick:
        settings |= {**QUICK, **measurement.quick}
    return Overrides(settings=settings, repeat=request.repeat)


def command(request: StudyRequest, measurement: Measurement, machine: Machine) -> str:
    """The command line that makes the same run by itself."""
    chosen = overrides(request, measurement, machine)
    words = ["elbowroom", "run", measurement.plan]
    for key, value in chosen.settings.items():
        words += ["--set", f"{key}={value}"]
    words += ["--repeat", str(chosen.repeat)] if chosen.repeat is not None else []
    words += ["--machine", request.where.machine] if request.where.machine else []
    return shlex.join(words)


def plan(
    request: StudyRequest, tell: Tell = lambda _: None
) -> tuple[Study, Machine, dict[str, Prepared], dict[str, str]]:
    """What a study would measure: each run prepared, or the reason why it cannot be made; nothing is started
    or written.
    """
    study = narrowed(STUDIES.get(request.study), request.only)
    machine = choose(request.where).machine()
    prepared: dict[str, Prepared] = {}
    reasons: dict[str, str] = {}
    for measurement in study.measurements:
        reasons[measurement.name] = lacking(measurement, machine)
        if reasons[measurement.name]:
            continue
        try:
            asked = session.settled(_run_request(request, measurement, machine, None), tell)
            prepared[measurement.name] = session.prepare(asked, choose(asked.where))
        except ElbowroomError as error:
            reasons[measurement.name] = error.message.removeprefix(REFUSED)
    if request.budget and not machine.virtual:
        prepared, short = within_budget(prepared, request.budget)
        reasons |= short
    return study, machine, prepared, {name: reason for name, reason in reasons.items() if reason}


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


def _run_request(
    request: StudyRequest, measurement: Measurement, machine: Machine, budget: float | None
) -> session.Request:
    changed = overrides(request, measurement, machine)
    if budget is not None:
        changed = msgspec.structs.replace(changed, budget=budget)
    return session.Request(
        plan=measurement.plan,
        overrides=changed,
        where=request.where,
        out=str(run_path(Path(request.out), measurement.name)),
        seed=request.seed,
        patience=request.patience,
        command=("elbowroom", "study", request.study),
        begun=time.monotonic(),
    )


def narrowed(study: Study, only: Sequence[str]) -> Study:
    """The study with the figures and tables of those labels and their runs; all where none is named.
    UsageError for a label that it does not have.
    """
    labels = [exhibit.label for exhibit in study.exhibits]
    for label in only:
        if label not in labels:
            raise UsageError(
                f"is no figure or table of {study.name}",
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


def begun(path: Path | str) -> StudyRequest:
    """The request that the study in a folder was begun with; UsageError where there is none."""
    folder = Path(path)
    if not (folder / FILE).exists():
        what = wrong_kind(folder, "folder") or "is not the folder of a study (it has no study.json)"
        raise UsageError(what, field="resume", value=str(path), hint="name the folder a study was written to")
    known = FOLDER_FORMAT.read(folder / FILE)
    return StudyRequest(
        study=known.study,
        out=str(folder),
        where=msgspec.convert(known.where, Where),
        only=known.only,
        quick=known.quick,
        repeat=known.repeat,
        budget=known.budget,
        seed=known.seed,
    )


SETTINGS = ("study", "where", "only", "quick", "repeat", "budget", "seed")


def _opened(request: StudyRequest, machine: Machine) -> StudyFolder:
    """The study's folder, made or gone on with; UsageError where it is of other settings or another machine,
    and nothing is changed then.
    """
    folder = Path(request.out)
    if not (folder / FILE).exists():
        refuse_existing(folder)
        return StudyFolder(
            study=request.study,
            created=now(),
            where=msgspec.to_builtins(request.where),
            only=request.only,
            quick=request.quick,
            repeat=request.repeat,
            budget=request.budget,
            seed=request.seed,
            machine=machine,
        )
    before = begun(folder)
    for name in SETTINGS:
        if getattr(before, name) != getattr(request, name):
            raise UsageError(
                f"the study in {folder} was begun with {_shown(getattr(before, name))}",
                field="paper" if name == "study" else name,
                value=_shown(getattr(request, name)),
                hint="continue it with --resume, or choose another folder with -o",
            )
    known = FOLDER_FORMAT.read(folder / FILE)
    check_same(
        difference(machine, known.machine, HARDWARE),
        message=f"was begun on another machine ({known.machine.name})",
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
    study, machine, prepared, reasons = plan(request)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_error(error, folder, "out") from error
    FOLDER_FORMAT.write(folder / FILE, msgspec.structs.replace(state, reasons=reasons), own=True)
    done = Conducted(study=study, folder=folder, machine=machine, reasons=reasons)
    clock = _Clock(request.budget, {name: item.seconds for name, item in prepared.items()})
    total = sum(clock.estimates.values())
    tell(f"{study.name}: {len(prepared)} runs, about {duration(request.budget or total)}")
    try:
        with ends_as_interrupt():
            for number, name in enumerate(prepared, 1):
                _conduct_run(request, done, name, clock, tell, f"run {number} of {len(prepared)}")
    except (Stopped, KeyboardInterrupt) as stopped:
        raise Stopped(
            "stopped; what was measured is kept",
            field="study",
            value=str(folder),
            hint=f"continue with: elbowroom study --resume {shlex.quote(str(folder))}",
        ) from stopped
    return done


def _conduct_run(
    request: StudyRequest, done: Conducted, name: str, clock: _Clock, tell: Tell, number: str
) -> None:
    """Measures one run; what cannot be made is a reason, and a program that fails a failure. Errors of a run
    that was begun before are raised: it must not look as if it had never been measured.
    """
    measurement = next(item for item in done.study.measurements if item.name == name)
    try:
        done.results[name] = _measured(request, measurement, done.machine, clock, tell, number)
    except UsageError as error:
        if (run_path(done.folder, name) / "manifest.json").exists():
            raise
        done.reasons[name] = error.message
    except MachineError as error:
        done.failures[name] = error.message
        tell(f"{name} failed: {error.message}")


class _Clock:
    """Time of a study: what each run is estimated to take, what runs took in relation to that, and the part
    of the budget that each gets.
    """

    def __init__(self, budget: float, estimates: Mapping[str, float]) -> None:
        self.budget, self.estimates = budget, dict(estimates)
        self.left = dict(estimates)
        self._begun = time.monotonic()
        self._estimated = self._spent = 0.0

    def share(self, name: str) -> float | None:
        """Seconds of the budget for a run; None without a budget."""
        if not self.budget:
            return None
        remaining = max(0.0, self.budget - (time.monotonic() - self._begun))
        return remaining * self.estimates[name] / max(sum(self.left.values()), 1e-9)

    def remaining(self) -> float:
        """Seconds that all runs not yet done will take, at the rate of those that are."""
        rate = self._spent / self._estimated if self._estimated > 1.0 else 1.0
        if self.budget:
            return max(0.0, self.budget - (time.monotonic() - self._begun))
        return rate * sum(self.left.values())

    def close(self, name: str, seconds: float) -> None:
        """A run is done; `seconds` it took now, 0 where it was done before."""
        estimate = self.left.pop(name, 0.0)
        if seconds > 0:
            self._estimated += estimate
            self._spent += seconds


def _measured(
    request: StudyRequest,
    measurement: Measurement,
    machine: Machine,
    clock: _Clock,
    tell: Callable[[str], object],
    number: str,
) -> Results:
    """The results of one run: as they are where it is finished, else begun or gone on with."""
    path = run_path(Path(request.out), measurement.name)
    started, before = time.monotonic(), (path / "manifest.json").exists()
    try:
        if before and RunFolder.open(path).manifest.finished:
            started = time.monotonic()
            return evaluate(RunFolder.open(path))
        tell(f"{number}: {measurement.name} ({measurement.plan}), {duration(clock.remaining())} left")
        if before:
            return session.resume(path, tell, patience=request.patience)[1]
        asked = _run_request(request, measurement, machine, clock.share(measurement.name))
        return session.start(asked, tell)[1]
    finally:
        spent = time.monotonic() - started
        clock.close(measurement.name, spent if not before else 0.0)
