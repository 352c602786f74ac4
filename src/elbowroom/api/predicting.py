"""Fitting, evaluating and asking models; curves in and out, as Python sees them."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from elbowroom.api.runs import Run, open
from elbowroom.errors import UsageError

if TYPE_CHECKING:
    from elbowroom.advise.advice import Advice
    from elbowroom.advise.job import Job
    from elbowroom.draw.figure import Figure
    from elbowroom.model.curves import Shape, Situation
    from elbowroom.model.document import Document, ModelName, Origin
    from elbowroom.model.load import Load, LoadPrediction
    from elbowroom.model.prediction import Prediction
    from elbowroom.model.published import MachineErrors
    from elbowroom.predict.collecting import Collected
    from elbowroom.predict.evaluating import Predictor, Table
    from elbowroom.stats.result import PointResult

IMPORTED = "imported"


class Model:
    """A fitted model file, or a published machine: `document` is what M.json holds."""

    def __init__(self, document: Document, path: Path | None = None) -> None:
        self.document = document
        self.path = path

    @property
    def machine(self) -> Shape:
        """What is known of the machine's shape."""
        return self.document.machine

    @property
    def validity(self) -> tuple[str, ...]:
        """Where not to trust it, one sentence each."""
        return self.document.validity

    def name(self, name: ModelName | None = None) -> ModelName:
        """The model that answers: the one asked for, else the best it has."""
        from elbowroom.predict.answering import chosen

        return chosen(self.document, name)

    def predict(
        self,
        n: int,
        comp_node: int,
        comm_node: int,
        *,
        n_other: int = 0,
        model: ModelName | None = None,
        faithful: bool = False,
        size: int | None = None,
    ) -> Prediction:
        """The four bandwidths (MB/s, 90 % intervals) while `n` cores of the first socket and `n_other` of the
        second compute on data of `comp_node` and messages arrive in `comm_node`.

        UsageError for cores and nodes outside the machine. `faithful`: the thesis' equations to the letter;
        `size`: bytes of a message, where the model knows of other sizes.
        """
        from elbowroom.model.curves import Situation

        at = Situation(comp_node=comp_node, comm_node=comm_node, n=n, n_other=n_other)
        return self.answers((at,), model=model, faithful=faithful, size=size)[0]

    def curves(
        self,
        *,
        n: int | None = None,
        comp_node: int | None = None,
        comm_node: int | None = None,
        n_other: int = 0,
        model: ModelName | None = None,
        faithful: bool = False,
        size: int | None = None,
    ) -> list[Prediction]:
        """Predictions for all that is not given: every n from 1, every node that the model can answer for."""
        from elbowroom.predict.answering import answerable, situations

        at = situations(self.machine, n=n, n_other=n_other, comp_node=comp_node, comm_node=comm_node)
        if comp_node is None and comm_node is None:
            at = answerable(self.document, at, model)
        return self.answers(at, model=model, faithful=faithful, size=size)

    def answers(
        self,
        asked: Sequence[Situation],
        *,
        model: ModelName | None = None,
        faithful: bool = False,
        size: int | None = None,
    ) -> list[Prediction]:
        """One prediction for each situation, in order."""
        from elbowroom.predict.answering import predict as answered

        return answered(self.document, asked, name=model, faithful=faithful, size=size)

    def predict_load(self, load: Load, *, model: ModelName | None = None) -> LoadPrediction:
        """Bandwidths (MB/s, 90 % intervals) of all that happens at once: several groups of cores, arithmetic
        intensities, messages of any size, direction and number of threads, accelerators' copies.

        UsageError for what the machine has not, and for questions that the model has no runs for.
        """
        return self.predict_loads((load,), model=model)[0]

    def predict_loads(self, loads: Sequence[Load], *, model: ModelName | None = None) -> list[LoadPrediction]:
        """One prediction for each load, in order; thousands at once are meant."""
        from elbowroom.predict.loading import predict_loads

        return predict_loads(self.document, loads, name=model)

    def advise(self, job: Job | Mapping[str, Any] | Path | str, *, model: ModelName | None = None) -> Advice:
        """How a job (its file, or plain data as that would give it) should run on this machine."""
        from elbowroom.api.advising import advise

        return advise(self, job, name=model)

    def save(self, path: Path | str) -> Path:
        """Writes the file M.json, whole or not at all."""
        from elbowroom.store.models import write_model

        self.path = Path(path)
        write_model(self.path, self.document)
        return self.path

    def panels(self, predictions: Sequence[Prediction], run: Run | None = None) -> tuple[Figure, ...]:
        """A figure for each placement (thesis, Figs 6.2-6.10), with what `run` measured as points."""
        from elbowroom.predict.figures import panels

        rows = () if run is None else curves_of(run, self).curves.rows
        far = self.machine.numa_per_socket
        return panels(self.machine, predictions, rows, calibrated={(0, 0), (far, far)})

    def stacked(self, node: int, run: Run | None = None, *, faithful: bool = False) -> Figure:
        """Both bandwidths stacked over n with the named points of the threshold model (thesis, Fig. 6.1)."""
        from elbowroom.model.threshold import side
        from elbowroom.predict.figures import stacked

        part = self.document.models.threshold
        if part is None:
            raise UsageError("needs the threshold model, which is not in it", field="stacked")
        parameters = side(part.model(self.machine), node, "comp_node")
        if run is None:
            said = self.curves(comp_node=node, comm_node=node, model="threshold", faithful=faithful)
            streams = [
                (
                    one.situation.n,
                    (
                        one.comp_alone.value,
                        one.comm_alone.value,
                        one.comp_together.value,
                        one.comm_together.value,
                    ),
                )
                for one in said
            ]
            return stacked(self.machine, node, parameters, streams, source="model")
        measured = []
        for row in curves_of(run, self).curves.rows:
            at, values = row.situation, row.streams
            if at.comp_node == node == at.comm_node and not at.n_other and None not in values:
                measured.append((at.n, tuple(value for value in values if value is not None)))
        if not measured:
            raise UsageError("was not measured with data of both on it", field="comp_node", value=node)
        return stacked(self.machine, node, parameters, measured, source="measured")  # type: ignore[arg-type]


class Evaluation(NamedTuple):
    """A model beside a run: `table` as Table 6.1 of the thesis, `left_out` points of the run by reason."""

    run: Run
    model: Model
    table: Table
    left_out: dict[str, int]

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know before believing the table."""
        known, found = self.model.document.calibration, []
        fitted = [Path(path).resolve() for path in (known.run, *known.with_runs) if path]
        if self.run.path.resolve() in fitted:
            found.append("The model was fitted to this very run: its errors are how well it fits.")
        if self.run.machine.virtual:
            found.append("The run is virtual: nothing here was measured on hardware.")
        found += [
            f"Left out: {count} point{'s' if count > 1 else ''}, {reason}."
            for reason, count in self.left_out.items()
        ]
        return tuple(found)

    @property
    def published(self) -> MachineErrors | None:
        """The errors of Table 6.1 where the run's machine is one of the thesis."""
        from elbowroom.model import published

        name = self.model.machine.name
        return published.load(name).errors if name in published.names() else None


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
    import msgspec

    from elbowroom.campaign.importing import import_curves as imported
    from elbowroom.plan.kernels import find
    from elbowroom.plan.point import Note
    from elbowroom.plan.sizes import format_size
    from elbowroom.store.curves import KERNEL, SIZE, read_curves

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
    folder, results = imported(curves, Path(out), notes=notes, command=command)
    return Run(folder, results)


def curves_of(
    run: Run, model: Model | None = None, *, kernel: str | None = None, size: int | None = None
) -> Collected:
    """What a run says to models: bandwidths by placement and cores, and what was left out.

    With a model, those of its kernel and message size; UsageError where the run is of another machine.
    """
    from elbowroom.predict.collecting import collect

    if model is not None:
        known = model.document.calibration
        kernel, size = kernel or known.kernel, size or known.size
    found = collect(
        run.points(),
        {point.id: point.comp_cores for point in run.manifest.points},
        run.machine,
        origin=str(run.path),
        kernel=kernel,
        size=size,
    )
    if model is not None:
        _same_machine(found.curves.shape, model.machine)
    return found


def _same_machine(run: Shape, model: Shape) -> None:
    """Refuses a model of a machine with another name or shape."""
    other = _difference(run, model)
    if other is not None:
        field, mine, its = other
        raise UsageError(
            f"is of another machine: {field} is {its!r} there and {mine!r} in the run",
            field="model",
            value=model.name,
            mend="fit this run: elbowroom fit RUN -o M.json",
        )


def _difference(one: Shape, other: Shape) -> tuple[str, object, object] | None:
    """The first field in which two machines differ, and its values; None for the same machine."""
    for field in ("name", "cores_first_socket", "numa_per_socket", "sockets", "virtual"):
        if getattr(one, field) != getattr(other, field):
            return field, getattr(one, field), getattr(other, field)
    return None


def fit(
    run: Run | Path | str | Sequence[Run | Path | str],
    out: Path | str | None = None,
    *,
    kernel: str | None = None,
    size: int | None = None,
) -> Model:
    """Fits every model that a run allows, or several of one machine together, and writes M.json (default:
    models/NAME.json in the folder of the first run).

    UsageError where none can be fitted, or the runs are of different machines.
    """
    from elbowroom.predict import fitting

    several = [run] if isinstance(run, Run | Path | str) else list(run)
    sources = [item if isinstance(item, Run) else open(item) for item in several]
    found = _pooled(sources, kernel, size)
    document = fitting.fit(
        found.curves,
        fitting.Source(
            run=str(sources[0].path),
            plan=", ".join(str(source.manifest.plan.get("name", "")) for source in sources),
            origin=_origin(sources[0]),
            nodes=found.layout.nodes,
            left_out=found.unused if found.loads else found.left_out,
            doubts=tuple(reason for source in sources for reason in source.verdict.reasons),
            sizes=found.sizes,
            loads=found.loads,
            intensity=found.intensity,
            pattern=found.pattern,
            with_runs=tuple(str(source.path) for source in sources[1:]),
        ),
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )
    model = Model(document)
    model.save(out if out is not None else default_path(sources[0]))
    return model


def _pooled(runs: Sequence[Run], kernel: str | None, size: int | None) -> Collected:
    """The points of several runs as if one had measured them."""
    import msgspec

    from elbowroom.predict.collecting import collect, layout

    if not runs:
        raise UsageError("none is given", field="run", mend="name at least one run folder")
    shape = layout(runs[0].machine).shape
    points: list[PointResult] = []
    cores: dict[str, tuple[int, ...]] = {}
    for number, run in enumerate(runs):
        other = _difference(layout(run.machine).shape, shape)
        if other is not None:
            field, its, first = other
            raise UsageError(
                f"is of another machine than the first run: {field} is {its!r} here and {first!r} there",
                field="run",
                value=str(run.path),
                mend="fit the runs of one machine together, others apart",
            )
        # Points of several runs may have the same id, which must stay that of one point.
        before = f"{run.path.name}/" if number else ""
        points += [msgspec.structs.replace(item, id=before + item.id) for item in run.points()]
        cores |= {before + point.id: point.comp_cores for point in run.manifest.points}
    return collect(points, cores, runs[0].machine, origin=str(runs[0].path), kernel=kernel, size=size)


def evaluate(run: Run | Path | str, model: Model | Path | str) -> Evaluation:
    """How far each model is from what a run measured: Table 6.1 of the thesis, beside the naive baselines.

    UsageError where the run is of another machine than the model, or measured nothing together.
    """
    from elbowroom.predict.answering import predictor
    from elbowroom.predict.evaluating import evaluate as evaluated

    source, asked = (run if isinstance(run, Run) else open(run)), load_model(model)
    found = curves_of(source, asked)
    predictors: dict[str, Predictor] = {
        name: predictor(asked.document, name) for name in asked.document.names()
    }
    if "threshold" in predictors:
        predictors["threshold, faithful"] = predictor(asked.document, "threshold", faithful=True)
    return Evaluation(source, asked, evaluated(found.curves, predictors), found.left_out)


def default_path(run: Run) -> Path:
    """models/NAME.json in the run folder; the folder is made."""
    name = re.sub(r"[^\w.-]+", "-", run.machine.name).strip(".-") or "machine"
    folder = run.path / "models"
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        from elbowroom.store.files import disk_error

        raise disk_error(error, folder, "out") from error
    return folder / f"{name}.json"


def _origin(run: Run) -> Origin:
    if run.machine.virtual:
        return "virtual"
    return "imported" if run.manifest.launcher == IMPORTED else "measured"


def load_model(source: Model | Path | str) -> Model:
    """A model from its file, or the published machine of that name (appendix E of the thesis).

    UsageError where it is neither, is damaged, or was written by a newer release.
    """
    from elbowroom.model import published
    from elbowroom.plan.kernels import closest
    from elbowroom.predict.fitting import of_published
    from elbowroom.store.models import read_model

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
        mend=closest(str(source), published.names()),
    )


def read_load(path: Path | str) -> Load:
    """A load from its file (docs/predict.md); UsageError names the key, its value and what mends it."""
    from elbowroom.predict.load_file import decode

    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise UsageError(
            f"cannot be read ({reason})", field="load", value=str(path), mend="name a TOML file"
        ) from error
    return decode(text, str(path))


def save_figure(figure: Figure, path: Path | str) -> Path:
    """Writes one figure as .png or .svg."""
    from elbowroom.draw.files import save

    save(figure, Path(path))
    return Path(path)


def save_panels(model: Model, figures: Sequence[Figure], path: Path | str) -> Path:
    """Writes panels as one figure: a row for each node of the communications' data, as the thesis does."""
    from elbowroom.draw.files import save_panels as save

    machine = model.machine
    # All placements of the nodes that a model can answer for: as many columns as rows.
    columns = math.isqrt(len(figures))
    seen = any(series.drawn == "points" for figure in figures for series in figure.series)
    points = ("simulated points, " if machine.virtual else "measured points, ") if seen else ""
    name = f"{machine.name}{' (virtual)' if machine.virtual else ''}"
    save(figures, Path(path), columns=columns, title=f"{name}: {points}predicted lines with 90 % intervals")
    return Path(path)
