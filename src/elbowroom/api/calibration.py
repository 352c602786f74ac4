"""Models from runs: import curves, fit, evaluate, and calibrate with few runs."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from elbowroom.cli.console import chatter
from elbowroom.errors import UsageError
from elbowroom.experiments.plans import Overrides
from elbowroom.files import check_writable, disk_error
from elbowroom.launch import status
from elbowroom.machine.identity import STRICT_SHAPE, check_same, difference
from elbowroom.measure import adaptive
from elbowroom.measure import curves as measured_curves
from elbowroom.measure.adaptive import AdaptiveResult
from elbowroom.measure.planned_starts import PlannedStart, PlannedStarts, plan_starts
from elbowroom.measure.prepared import Request
from elbowroom.measure.source import Where
from elbowroom.models import fit as fitting
from elbowroom.models.base import Provenance
from elbowroom.models.copy_rows import copy_rows
from elbowroom.models.document import Document
from elbowroom.models.evaluate import ErrorTable
from elbowroom.models.gpu.samples import AcceleratorRuns, accelerator_runs
from elbowroom.models.published import MachineErrors
from elbowroom.models.run_data import collect, layout_of
from elbowroom.plan.kernels import find
from elbowroom.points.point import Note
from elbowroom.quantities import duration, format_size
from elbowroom.store.curves import KERNEL, SIZE, read_curves
from elbowroom.verbs.model_file import Evaluation, Model, evaluation, load_model
from elbowroom.verbs.run import dry_run
from elbowroom.verbs.run_folder import Run, open

if TYPE_CHECKING:
    from elbowroom.models.document import Origin
    from elbowroom.models.load import LoadRow
    from elbowroom.models.run_data import FitData
    from elbowroom.results.result import PointResult
    from elbowroom.results.stores import StoreFactor


IMPORTED = "imported"


def import_curves(
    path: Path | str,
    out: Path | str,
    *,
    kernel: str | None = None,
    size: int | None = None,
    command: Sequence[str] = (),
) -> Run:
    """Makes a run folder of curves measured with something else; `kernel` and `size` (bytes) say what the
    file does not.
    """
    curves = read_curves(Path(path))
    notes = []
    if kernel is not None:
        find(kernel)
        curves = msgspec.structs.replace(curves, kernel=kernel)
    if size is not None:
        curves = msgspec.structs.replace(curves, size=size)
    if kernel is None and size is None and (curves.kernel, curves.size) == (KERNEL, SIZE):
        reason = (
            f"neither file nor options name others than {KERNEL} and {format_size(SIZE)}, which are shown"
        )
        notes.append(Note(what="kernel and message size", reason=reason))
    folder, results = measured_curves.import_curves(curves, Path(out), notes=notes, command=command)
    return Run(folder, results)


def fit(
    run: Run | Path | str | Sequence[Run | Path | str],
    out: Path | str | None = None,
    *,
    kernel: str | None = None,
    size: int | None = None,
    sms: int | None = None,
    computing: Callable[[FitData], Sequence[LoadRow]] | None = None,
    store_factor: StoreFactor | None = None,
) -> Model:
    """Fits every model that a run allows, or several of one machine together, and writes M.json (default:
    models/NAME.json in the folder of the first run). `computing`: more measured loads, for that run's data;
    `sms`: multiprocessors of the accelerator, where runs of one do not say it; `store_factor`: bytes on the
    memory bus for a byte of a plain store, if it was measured apart from the runs.

    UsageError where none can be fitted, the runs hold one point only, or are of different machines.
    """
    several = [run] if isinstance(run, Run | Path | str) else list(run)
    sources = [item if isinstance(item, Run) else open(item) for item in several]
    model = _fit(
        sources, kernel=kernel, size=size, sms=sms, computing=computing, store_factor=store_factor, least=2
    )
    model.save(out if out is not None else default_path(sources[0]))
    return model


def _fit(
    sources: Sequence[Run],
    *,
    kernel: str | None = None,
    size: int | None = None,
    sms: int | None = None,
    computing: Callable[[FitData], Sequence[LoadRow]] | None = None,
    store_factor: StoreFactor | None = None,
    least: int = 1,
) -> Model:
    """The model of these runs, which must have `least` points; errors as `fit`."""
    accelerator = accelerator_runs(
        [(item.points(), item.manifest.hello.get("gpu") or {}) for item in sources], sms
    )
    created = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    try:
        collected = pooled(sources, kernel, size, store_factor.measured if store_factor else msgspec.UNSET)
    except UsageError as error:
        if accelerator is None or kernel is not None or size is not None:
            raise
        layout = layout_of(sources[0].machine)
        source = _provenance(sources, layout.nodes, accelerator)
        gpu = fitting.accelerator_part(source)
        reason = error.sentence()
        document = fitting.accelerator_document(gpu, layout.shape, source, reason, created=created)
    else:
        if computing is not None:
            more = (*collected.loads, *computing(collected))
            collected = msgspec.structs.replace(collected, loads=more)
        if accelerator is None and len(collected.curves.rows) + len(collected.loads) < least:
            raise UsageError(
                "has one measured point, which determines no model",
                field="run",
                value=str(sources[0].path),
                hint="measure more numbers of cores: elbowroom run model (on a machine with more cores)",
            )
        source = _provenance(sources, collected.layout.nodes, accelerator, collected)
        with status.computing("fitting the models"):
            document = fitting.fit(collected.curves, source, created=created)
        if store_factor is not None:
            known = (*document.validity, store_factor.sentence)
            document = msgspec.structs.replace(document, validity=known)
    return Model(document)


def _provenance(
    sources: Sequence[Run],
    nodes: tuple[int, ...],
    accelerator: AcceleratorRuns | None,
    collected: FitData | None = None,
) -> Provenance:
    """Where the data of these runs comes from."""
    source = Provenance(
        run=str(sources[0].path),
        plan=", ".join(str(source.manifest.plan.get("name", "")) for source in sources),
        origin=_origin(sources[0]),
        nodes=nodes,
        doubts=tuple(reason for source in sources for reason in source.verdict.reasons),
        with_runs=tuple(str(source.path) for source in sources[1:]),
        accelerator=accelerator,
    )
    if collected is None:
        return source
    return msgspec.structs.replace(
        source,
        left_out=collected.unused if collected.loads else collected.left_out,
        sizes=collected.sizes,
        loads=collected.loads,
        intensity=collected.intensity,
        pattern=collected.pattern,
        store_factor=collected.store_factor,
    )


def pooled(
    runs: Sequence[Run], kernel: str | None, size: int | None, store_factor: float | msgspec.UnsetType
) -> FitData:
    """The points of several runs as if one had measured them; UsageError where no model can be fitted to
    them.
    """
    if not runs:
        raise UsageError("none is given", field="run", hint="name at least one run folder")
    shape = layout_of(runs[0].machine).shape
    points: list[PointResult] = []
    cores: dict[str, tuple[int, ...]] = {}
    for number, run in enumerate(runs):
        check_same(
            difference(layout_of(run.machine).shape, shape, STRICT_SHAPE),
            message="is from another machine than the first run",
            field="run",
            value=str(run.path),
            hint="fit the runs of one machine together, others apart",
        )
        # Points of several runs may have the same id, which must stay that of one point.
        before = f"{run.path.name}/" if number else ""
        points += [msgspec.structs.replace(item, id=before + item.id) for item in run.points()]
        cores |= {before + point.id: point.comp_cores for point in run.manifest.points}
    collected = collect(
        points,
        cores,
        runs[0].machine,
        origin=str(runs[0].path),
        kernel=kernel,
        size=size,
        store_factor=store_factor,
    )
    assert collected.base is not None
    copies, left_out = copy_rows(points, cores, collected.base)
    return msgspec.structs.replace(
        collected, loads=(*collected.loads, *copies), unused={**collected.unused, **left_out}
    )


def evaluate(run: Run | Path | str, model: Model | Path | str) -> Evaluation:
    """How far each model is from what a run measured: Table 6.1 of the thesis, beside the naive baselines.

    UsageError where the run is from another machine than the model, or measured nothing together.
    """
    return evaluation(run if isinstance(run, Run) else open(run), load_model(model))


def default_path(run: Run) -> Path:
    """models/NAME.json in the run folder; the folder is made."""
    name = re.sub(r"[^\w.-]+", "-", run.machine.name).strip(".-") or "machine"
    folder = run.path / "models"
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise disk_error(error, folder, "out") from error
    return folder / f"{name}.json"


def _origin(run: Run) -> Origin:
    if run.machine.virtual:
        return "virtual"
    return "imported" if run.manifest.launcher == IMPORTED else "measured"


class FitDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What `fit --json` prints: the file that was written, and the model in it."""

    schema: str = "elbowroom/fit"
    version: int = 1
    file: str
    model: Document


class EvaluationDocument(ErrorTable, frozen=True, kw_only=True):
    """What `evaluate --json` prints: the table, what to know about it, and the published errors of a machine
    of the thesis.
    """

    schema: str = "elbowroom/evaluate"
    version: int = 1
    run: str
    model: str
    notes: tuple[str, ...]
    published: MachineErrors | None
    files: tuple[str, ...]


def evaluation_document(
    evaluated: Evaluation, run: str, model: str, files: Sequence[Path]
) -> EvaluationDocument:
    """A table of errors as one document; `run` and `model` as they were named."""
    return EvaluationDocument(
        **msgspec.structs.asdict(evaluated.table),
        run=run,
        model=model,
        notes=evaluated.notes,
        published=evaluated.published,
        files=tuple(map(str, files)),
    )


class Calibrated(NamedTuple):
    """A calibrated machine: the run folder, how it went, and the model; None where the runs allow none, and
    `unknown` says why among the other things that could not be learned here, one sentence each.
    """

    run: Run
    calibration: AdaptiveResult
    model: Model | None
    unknown: tuple[str, ...]


class CalibrationDocument(AdaptiveResult, frozen=True, kw_only=True):
    """What `calibrate --json` prints: how it went, the files, and the model in `file`."""

    schema: str = "elbowroom/calibrate"
    version: int = 1
    run: str
    file: str | None
    saved: str
    unknown: tuple[str, ...]
    trusted: bool
    virtual: bool
    model: Document | None


def calibration_document(done: Calibrated) -> CalibrationDocument:
    """A calibration as one document."""
    return CalibrationDocument(
        **msgspec.structs.asdict(done.calibration),
        run=str(done.run.path),
        file=None if done.model is None else str(done.model.path),
        saved=saved(done.calibration),
        unknown=done.unknown,
        trusted=done.run.verdict.trusted,
        virtual=done.run.machine.virtual,
        model=None if done.model is None else done.model.document,
    )


def saved(calibration: AdaptiveResult) -> str:
    """What was measured against the full sweep, in a sentence."""
    if calibration.runs == calibration.full_runs:
        plural = "s" if calibration.runs != 1 else ""
        return f"{calibration.runs} point{plural} measured, which is every point: nothing was saved."
    return (
        f"{calibration.runs} points instead of {calibration.full_runs}: about "
        f"{duration(calibration.seconds)} of measuring instead of {duration(calibration.full_seconds)}."
    )


def calibrate(
    *,
    budget: int = 24,
    half_width: float = 0.03,
    seconds: float = 0.0,
    plan: str = "model",
    out: Path | str | None = None,
    run: str | None = None,
    overrides: Overrides | None = None,
    launcher: str | None = None,
    mpi: str | None = None,
    hosts: Sequence[str] = (),
    hostfile: str | None = None,
    machine: str | None = None,
    noise: float | None = None,
    seed: int | None = None,
    patience: float | None = None,
    command: Sequence[str] = (),
    report: bool = True,
    tell: Callable[[str], object] = chatter,
) -> Calibrated:
    """Measures only what teaches most of `plan`, and fits every model to it.

    Ends after `budget` runs (a placement with a number of computing cores each), or as soon as nine of ten
    predictions have a 90 % interval of at most the relative `half_width`, or when no further run fits into
    `seconds` (0: no limit). `run` names the new run folder,
    `out` the model's file (default: models/NAME.json in the run folder); the rest as of `elbowroom.run`.
    """
    where = Where.of(launcher, mpi, hosts, hostfile, machine, noise, seed)
    request = Request(
        plan=plan,
        overrides=overrides or Overrides(),
        where=where,
        out=run,
        seed=seed,
        patience=patience,
        command=tuple(command),
    )
    goal = adaptive.Goal(budget=budget, half_width=half_width, seconds=seconds)
    if out is not None:
        check_writable(Path(out))
    folder, results, calibration = adaptive.start(request, goal, tell)
    return _fitted(Run(folder, results), calibration, out, report)


def plan_calibration(
    *,
    budget: int = 24,
    plan: str = "model",
    overrides: Overrides | None = None,
    launcher: str | None = None,
    mpi: str | None = None,
    hosts: Sequence[str] = (),
    hostfile: str | None = None,
    machine: str | None = None,
    noise: float | None = None,
    seed: int | None = None,
) -> PlannedStarts:
    """What `calibrate` would build and start at most; errors as there."""

    def find() -> Iterator[PlannedStart]:
        prepared = dry_run(
            plan,
            overrides=overrides,
            launcher=launcher,
            mpi=mpi,
            hosts=hosts,
            hostfile=hostfile,
            machine=machine,
            noise=noise,
            seed=seed,
        )
        points = len(prepared.expansion.points)
        yield PlannedStart(
            what=f"at most {min(budget, points)} of {points} points of the plan {plan}, "
            f"{prepared.plan.repetitions} repetitions each",
            commands=prepared.commands,
            seconds=prepared.seconds * min(1.0, budget / points),
        )

    return plan_starts(find)


def resume_calibration(
    path: Path | str,
    *,
    budget: int = 24,
    half_width: float = 0.03,
    seconds: float = 0.0,
    out: Path | str | None = None,
    launcher: str | None = None,
    mpi: str | None = None,
    hosts: Sequence[str] = (),
    hostfile: str | None = None,
    patience: float | None = None,
    report: bool = True,
    tell: Callable[[str], object] = chatter,
) -> Calibrated:
    """Goes on with a calibration that was stopped, or one that shall use more runs or be narrower."""
    where = Where.of(launcher, mpi, hosts, hostfile)
    goal = adaptive.Goal(budget=budget, half_width=half_width, seconds=seconds)
    if out is not None:
        check_writable(Path(out))
    folder, results, calibration = adaptive.resume(Path(path), goal, tell, where=where, patience=patience)
    return _fitted(Run(folder, results), calibration, out, report)


def _fitted(run: Run, calibration: AdaptiveResult, out: Path | str | None, report: bool) -> Calibrated:
    """The model of the run, then its report, which shows the model too."""
    unknown = [f"{note.what}: {note.reason}" for note in run.manifest.notes]
    model = None
    try:
        # One point may be all that a small machine has; the model says how little it knows.
        model = _fit([run])
    except UsageError as error:
        unknown.append(f"no model: {error.sentence()}")
    else:
        model.save(out if out is not None else default_path(run))
        unknown += model.validity
    if report:
        run.report()
    return Calibrated(run, calibration, model, tuple(unknown))
