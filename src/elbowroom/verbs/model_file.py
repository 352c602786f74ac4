"""Model files and published machines: loading, predicting, advising, and what runs measured of a model's
benchmark.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from elbowroom import display
from elbowroom.advise import job as jobs
from elbowroom.advise.advisor import advise as advised
from elbowroom.advise.collectives import with_measurements
from elbowroom.advise.job import Job
from elbowroom.documents import parse_toml
from elbowroom.draw import files
from elbowroom.errors import UsageError, closest
from elbowroom.files import read_text
from elbowroom.frames import Frame, frame
from elbowroom.machine.identity import STRICT_SHAPE, check_same, difference
from elbowroom.models import figures, published
from elbowroom.models import load as load_file
from elbowroom.models.base import MeasuredCases
from elbowroom.models.copy_rows import base_of, copy_rows
from elbowroom.models.curves import Shape, Situation
from elbowroom.models.evaluate import NO_CONTENTION, ErrorTable, evaluate_document
from elbowroom.models.gpu.samples import links, samples
from elbowroom.models.load import Load, LoadPrediction, Prediction
from elbowroom.models.predict import FittedModel, chosen, situations
from elbowroom.models.published import of_published
from elbowroom.models.registry import fitted_models
from elbowroom.models.run_data import collect, layout_of
from elbowroom.models.threshold.law import side
from elbowroom.quantities import plural
from elbowroom.store.models import read_model, write_model

if TYPE_CHECKING:
    from elbowroom.advise.advice import Advice
    from elbowroom.draw.figure import Figure
    from elbowroom.models.document import Document
    from elbowroom.models.gpu.kind import GpuErrorTable
    from elbowroom.models.published import MachineErrors
    from elbowroom.models.run_data import FitData
    from elbowroom.verbs.run_protocols import MeasuredRun


HARDLY = 0.02
"""Mean loss of a run below which the errors of models show nothing."""


class Model:
    """A fitted model file, or a published machine: `document` is what M.json holds."""

    def __init__(self, document: Document, path: Path | None = None) -> None:
        self.document = document
        self.path = path
        self._fitted: dict[tuple[str | None, bool], FittedModel] = {}

    def __repr__(self) -> str:
        path = None if self.path is None else str(self.path)
        return f"Model({path!r}, machine={self.machine.name!r})"

    __str__, _repr_html_ = display.text, display.html

    @property
    def machine(self) -> Shape:
        """What is known of the machine's shape."""
        return self.document.machine

    @property
    def validity(self) -> tuple[str, ...]:
        """Where not to trust it, one sentence each."""
        return self.document.validity

    def name(self, name: str | None = None) -> str:
        """The model that answers: the one asked for, else the best it has."""
        return chosen(self.document, name)

    def predict(
        self,
        n: int,
        comp_node: int,
        comm_node: int,
        *,
        n_other: int = 0,
        model: str | None = None,
        faithful: bool = False,
        size: int | None = None,
    ) -> Prediction:
        """The four bandwidths (MB/s, 90 % intervals) while `n` cores of the first socket and `n_other` of the
        second compute on data of `comp_node` and messages arrive in `comm_node`.

        UsageError for cores and nodes outside the machine. `faithful`: the thesis' equations to the letter;
        `size`: bytes of a message, where the model knows of other sizes.
        """
        at = Situation(comp_node=comp_node, comm_node=comm_node, n=n, n_other=n_other)
        return self.fitted(model, faithful=faithful).predict((at,), size)[0]

    def curves(
        self,
        *,
        n: int | None = None,
        comp_node: int | None = None,
        comm_node: int | None = None,
        n_other: int = 0,
        model: str | None = None,
        faithful: bool = False,
        size: int | None = None,
    ) -> list[Prediction]:
        """Predictions for all that is not given: every n from 1, every node that the model can answer for."""
        at = situations(self.machine, n=n, n_other=n_other, comp_node=comp_node, comm_node=comm_node)
        if comp_node is None and comm_node is None:
            at = tuple(item for item in at if self.fitted(model).answers(item))
        return self.answers(at, model=model, faithful=faithful, size=size)

    def frame(self) -> Frame:
        """All predictions of `curves`, a row each: cores, nodes, and the four bandwidths with intervals."""
        return frame(self.curves())

    def answers(
        self,
        situations: Sequence[Situation],
        *,
        model: str | None = None,
        faithful: bool = False,
        size: int | None = None,
    ) -> list[Prediction]:
        """One prediction for each situation, in order."""
        return self.fitted(model, faithful=faithful).predict(situations, size)

    def fitted(self, name: str | None = None, *, faithful: bool = False) -> FittedModel:
        """The model of that name, else the best one there is, made once."""
        if (name, faithful) not in self._fitted:
            self._fitted[name, faithful] = FittedModel(self.document, name, faithful=faithful)
        return self._fitted[name, faithful]

    def predict_load(self, load: Load, *, model: str | None = None) -> LoadPrediction:
        """Bandwidths (MB/s, 90 % intervals) of all that happens at once: several groups of cores, arithmetic
        intensities, messages of any size, direction and number of threads, accelerators' copies.

        UsageError for what the machine has not, and for questions that the model has no runs for.
        """
        return self.predict_loads((load,), model=model)[0]

    def predict_loads(self, loads: Sequence[Load], *, model: str | None = None) -> list[LoadPrediction]:
        """One prediction for each load, in order; thousands at once are meant."""
        return self.fitted(model).predict_loads(loads)

    def advise(self, job: Job | Mapping[str, Any] | Path | str, *, model: str | None = None) -> Advice:
        """How a job (its file, or plain data as that would give it) should run on this machine."""
        return advise(self, job, name=model)

    def save(self, path: Path | str) -> Path:
        """Writes the file M.json, whole or not at all."""
        self.path = Path(path)
        write_model(self.path, self.document)
        return self.path

    def panels(self, predictions: Sequence[Prediction], run: MeasuredRun | None = None) -> tuple[Figure, ...]:
        """A figure for each placement (thesis, Figs 6.2-6.10), with what `run` measured as points."""
        rows = () if run is None else curves_of(run, self).curves.rows
        far = self.machine.numa_per_socket
        return figures.panels(self.machine, predictions, rows, calibrated={(0, 0), (far, far)})

    def stacked(self, node: int, run: MeasuredRun | None = None, *, faithful: bool = False) -> Figure:
        """Both bandwidths stacked over n with the named points of the threshold model (thesis, Fig. 6.1)."""
        part = self.document.models.threshold
        if part is None:
            raise UsageError("needs the threshold model, which is not in it", field="stacked")
        parameters = side(part.model(self.machine), node, "comp_node")
        if run is None:
            predictions = self.curves(comp_node=node, comm_node=node, model="threshold", faithful=faithful)
            streams = [
                (
                    item.situation.n,
                    (
                        item.comp_alone.value,
                        item.comm_alone.value,
                        item.comp_together.value,
                        item.comm_together.value,
                    ),
                )
                for item in predictions
            ]
            return figures.stacked(self.machine, node, parameters, streams, source="model")
        measured = []
        for row in curves_of(run, self).curves.rows:
            at, values = row.situation, row.streams
            if at.comp_node == node == at.comm_node and not at.n_other and None not in values:
                measured.append((at.n, tuple(value for value in values if value is not None)))
        if not measured:
            raise UsageError("was not measured with data of both on it", field="comp_node", value=node)
        return figures.stacked(self.machine, node, parameters, measured, source="measured")  # type: ignore[arg-type]


class Evaluation(NamedTuple):
    """A model beside a run: `table` as Table 6.1 of the thesis, or of the cases of an accelerator; `left_out`
    points of the run by reason.
    """

    run: MeasuredRun
    model: Model
    table: ErrorTable | GpuErrorTable
    left_out: dict[str, int]

    def __repr__(self) -> str:
        return f"Evaluation(run={self.run!r}, model={self.model!r})"

    def __str__(self) -> str:
        return display.text(self)

    def _repr_html_(self) -> str:
        return display.html(self)

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know before believing the table."""
        known, notes = self.model.document.calibration, []
        fitted = [Path(path).resolve() for path in (known.run, *known.with_runs) if path]
        if self.run.path.resolve() in fitted:
            notes.append("The model was fitted to this very run: its errors are how well it fits.")
        if self.run.machine.virtual:
            notes.append("The run is virtual: nothing here was measured on hardware.")
        notes += [f"Left out: {plural(count, 'point')}, {reason}." for reason, count in self.left_out.items()]
        return tuple(notes + self._undecided())

    def _undecided(self) -> list[str]:
        """That the run cannot tell these models from one that knows of no contention, where it is so."""
        if not isinstance(self.table, ErrorTable):
            worse = ", ".join(line.family for line in self.table.lines if not line.better)
            return [f"No closer than a rule without a fit: {worse}."] if worse else []
        naive = next((line.average for line in self.table.lines if line.model == NO_CONTENTION), None)
        models = [line.average for line in self.table.lines if not line.baseline and line.average is not None]
        if naive is None or not models:
            return []
        if naive < HARDLY:
            return [
                f"Hardly anything slowed down in this run: expecting no contention is off by {naive:.1%}, so "
                "small errors do not show that a model predicts interference."
            ]
        if min(models) >= naive:
            return [f"No model is closer than expecting no contention, which is off by {naive:.1%}."]
        return []

    @property
    def published(self) -> MachineErrors | None:
        """The errors of Table 6.1 where the run's machine is one of the thesis."""
        name = self.model.machine.name
        return published.load(name).errors if name in published.names() else None


def curves_of(
    run: MeasuredRun, model: Model | None = None, *, kernel: str | None = None, size: int | None = None
) -> FitData:
    """What a run says to models: bandwidths by placement and cores, and what was left out.

    With a model, those of its kernel and message size; UsageError where the run is from another machine.
    """
    if model is not None:
        known = model.document.calibration
        kernel, size = kernel or known.kernel, size or known.size
    collected = collect(
        run.points(),
        {point.id: point.comp_cores for point in run.manifest.points},
        run.machine,
        origin=str(run.path),
        kernel=kernel,
        size=size,
    )
    if model is not None:
        same_machine(collected.curves.shape, model.machine)
    return collected


def same_machine(run: Shape, model: Shape) -> None:
    """Refuses a model of a machine with another name or shape."""
    check_same(
        difference(model, run, STRICT_SHAPE),
        field="model",
        value=model.name,
        hint="fit this run: elbowroom fit RUN -o M.json",
        places=("there", "in the run"),
    )


def evaluation(run: MeasuredRun, model: Model) -> Evaluation:
    """How far each model is from what a run measured, as `evaluate`."""
    cases, left_out = _cases_of(run, model)
    if cases is not None:
        return Evaluation(run, model, evaluate_document(model.document, cases), left_out)
    collected = curves_of(run, model)
    return Evaluation(run, model, evaluate_document(model.document, collected.curves), collected.left_out)


def _cases_of(run: MeasuredRun, model: Model) -> tuple[MeasuredCases | None, dict[str, int]]:
    """What a run measured of an accelerator, None if nothing; points that are left out, by reason."""
    points = run.points()
    measured, left_out = samples(points)
    if not measured and not links(points):
        return None, {}
    layout = layout_of(run.machine)
    same_machine(layout.shape, model.machine)
    if not fitted_models(model.document):
        return MeasuredCases(samples=measured), left_out
    known = model.document.calibration
    cores = {point.id: point.comp_cores for point in run.manifest.points}
    copies, _ = copy_rows(points, cores, base_of(known.kernel, known.size, layout))
    return MeasuredCases(samples=measured, copies=copies), left_out


def predict(
    model: Model | Path | str,
    n: int,
    comp_node: int,
    comm_node: int,
    *,
    n_other: int = 0,
    name: str | None = None,
    faithful: bool = False,
    size: int | None = None,
) -> Prediction:
    """The four bandwidths (MB/s, 90 % intervals) that a model (M.json, or a published machine) predicts, as
    `Model.predict` does with the model `name`.
    """
    return load_model(model).predict(
        n, comp_node, comm_node, n_other=n_other, model=name, faithful=faithful, size=size
    )


def load_model(source: Model | Path | str) -> Model:
    """A model from its file, or the published machine of that name (appendix E of the thesis).

    UsageError where it is neither, is damaged, or was written by a newer release.
    """
    if isinstance(source, Model):
        return source
    path = Path(source)
    if path.is_file():
        return Model(read_model(path), path)
    if str(source) in published.names():
        return Model(of_published(str(source)))
    if path.suffix or path.parent != Path():
        return Model(read_model(path), path)
    raise UsageError(
        "is neither a file nor a published machine",
        field="model",
        value=str(source),
        hint=closest(str(source), published.names()),
    )


def read_load(path: Path | str) -> Load:
    """A load from its file (docs/guide/predict-loads.md); UsageError names the key, its value and a hint."""
    return load_file.decode(read_text(Path(path), field="load", hint="name a TOML file"), str(path))


def save_panels(model: Model, panels: Sequence[Figure], path: Path | str) -> Path:
    """Writes panels as one figure: a row for each node of the communications' data, as the thesis does."""
    machine = model.machine
    # All placements of the nodes that a model can answer for: as many columns as rows.
    columns = math.isqrt(len(panels))
    with_points = any(series.drawn == "points" for figure in panels for series in figure.series)
    points = ("simulated points, " if machine.virtual else "measured points, ") if with_points else ""
    name = f"{machine.name}{' (virtual)' if machine.virtual else ''}"
    files.save_panels(
        panels, Path(path), columns=columns, title=f"{name}: {points}predicted lines with 90 % intervals"
    )
    return Path(path)


def load_job(source: Job | Mapping[str, Any] | Path | str, *, collectives: MeasuredRun | None = None) -> Job:
    """A job from its file (docs/reference/advice.md), or from plain data as that file would give it.

    `collectives`: a run of the plan `collectives`, which says how long the job's collective takes. UsageError
    tells field, value and hint of what is wrong.
    """
    if isinstance(source, Job):
        if collectives is not None:
            raise UsageError("is for a job's file or data", field="collectives", hint="leave it out")
        return source
    if isinstance(source, Mapping):
        return jobs.of_data(
            source if collectives is None else with_measurements(source, collectives.points())
        )
    path = Path(source)
    text = read_text(path, field="job", hint="name a TOML file, see `elbowroom help advise`")
    if collectives is None:
        return jobs.decode(text, path.name)
    data = parse_toml(text, field="job", where=path.name)
    return jobs.of_data(with_measurements(data, collectives.points()), path.name)


def advise(
    model: Model | Path | str,
    job: Job | Mapping[str, Any] | Path | str,
    *,
    name: str | None = None,
    collectives: MeasuredRun | None = None,
) -> Advice:
    """How a job should run on the machine of a model (M.json, or a published machine): the best setup of all
    that it may choose, what each change gains with its 90 % interval, and why.

    `collectives`: a run of the plan `collectives`, for a job with a collective operation. See `sentence`,
    `now`, `advised`, `choices`, `configurations` of what is returned. UsageError where
    the job does not fit the machine, leaves nothing to choose, or asks what the model has no runs for.
    """
    loaded = load_model(model)
    source = str(loaded.path) if loaded.path is not None else loaded.machine.name
    return advised(loaded.document, load_job(job, collectives=collectives), model=source, name=name)
