"""`elbowroom fit` and `evaluate`: models from runs, and their errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from elbowroom.cli.answer import Answer
from elbowroom.cli.options import FIGURE, Output
from elbowroom.draw import files
from elbowroom.errors import UsageError
from elbowroom.models.load import LoadRow
from elbowroom.verbs.declaration import Verb, argument, function_of, option
from elbowroom.verbs.model_tables import print_evaluation, print_fit, print_gpu_fit
from elbowroom.verbs.run_options import MODEL, out_option

if TYPE_CHECKING:
    from elbowroom.models.fit import FitDocument
    from elbowroom.models.run_data import FitData
    from elbowroom.results.stores import StoreFactor
    from elbowroom.verbs.model_file import Evaluation, Model
    from elbowroom.verbs.run_folder import Run


class Fit(Verb):
    """Fit all models to runs: parameters with intervals, and their limits.

    Several runs of one machine are fitted together. With runs of the plans `sizes`, `intensity` and `ring` in
    addition to one of `model`, FLOW also predicts other messages and computations. Runs of `gpu` and
    `gpu-overlap` give a model of the accelerator, and `gpu` its copies as a stream of FLOW.
    """

    name = "fit"
    has_tables = True
    fits = True

    run: Run | Path | str | Sequence[Run | Path | str] = argument(metavar="RUN [RUN]...", nargs=-1)
    out: Path | str | None = out_option(
        Output(".json", bare=True),
        "Model file to write; default: models/NAME.json in the first run's folder.",
        "M.json",
        positional=True,
    )
    kernel: str | None = option("Computing kernel, if the run has several.", "KERNEL")
    size: int | None = option("Message size, if the run has several: 64MB.", "SIZE")
    sms: int | None = option("Number of SMs of the accelerator, if its runs do not record it.")
    computing: Callable[[FitData], Sequence[LoadRow]] | None = None
    store_factor: StoreFactor | None = None

    def do(self) -> Model:
        """Fits every model that a run allows, or several of one machine together, and writes M.json (default:
        models/NAME.json in the folder of the first run). `computing`: more measured loads, for that run's
        data; `sms`: multiprocessors of the accelerator, where runs of one do not say it; `store_factor`:
        bytes on the memory bus for a byte of a plain store, if it was measured apart from the runs.

        UsageError where none can be fitted, the runs hold one point only, or are of different machines.
        """
        from elbowroom.verbs.run_folder import Run, open_each
        from elbowroom.verbs.run_models import default_path, fit_runs

        sources = open_each([self.run] if isinstance(self.run, Run | Path | str) else self.run)
        model = fit_runs(
            sources,
            kernel=self.kernel,
            size=self.size,
            sms=self.sms,
            computing=self.computing,
            store_factor=self.store_factor,
            least=2,
        )
        model.save(self.out if self.out is not None else default_path(sources[0]))
        return model

    def document(self, result: Model) -> FitDocument:
        """The file, and the model in it."""
        from elbowroom.models.fit import FitDocument

        return FitDocument(file=str(result.path), model=result.document)

    def print(self, result: Model) -> None:
        """Parameters of each model, and where not to trust them."""
        print_fit(result)
        if result.document.gpu is not None:
            print_gpu_fit(result)

    def answer(self, result: Model) -> Answer:
        from elbowroom.verbs.model_answers import fit_answer

        return fit_answer(result)


fit = function_of(Fit)


class Evaluate(Verb):
    """Compute the mean errors of models on a run, and those of naive models.

    The table has the form of Table 6.1 of Swartvagher's thesis: communication and computation, on the
    placements that the threshold model is calibrated on (samples) and on the others. Of a run of an
    accelerator it has a line for each kind of case.
    """

    name = "evaluate"
    has_tables = True

    path: Path | str = argument(metavar="RUN")
    source: Path | str = argument(metavar="M.json|NAME")
    out: Path | str | None = out_option(FIGURE, "Draw measured points and the model: .png or .svg.", "FIGURE")
    stacked: bool = option("With -o: stack the measured bandwidths, with the model's named points.")
    comp_node: int = option("With --stacked: NUMA node of all data.", "NODE", default=0, show_default=False)
    model_kind: str | None = option(
        "With -o: kind of model to draw; default: the best.", type=MODEL, formerly="--model"
    )

    def do(self) -> Evaluation:
        """The table; the figure is drawn."""
        if self.stacked and self.out is None:
            raise UsageError("needs a file", field="stacked", hint="add -o FIGURE.png")
        evaluation = evaluate(self.path, self.source)
        self._draw(evaluation)
        return evaluation

    def _draw(self, evaluation: Evaluation) -> None:
        from elbowroom.models.evaluate import ErrorTable
        from elbowroom.verbs.model_file import save_panels

        if self.out is None:
            return
        model, run = evaluation.model, evaluation.run
        if not isinstance(evaluation.table, ErrorTable):
            raise UsageError(
                "there is no figure for a run of an accelerator", field="out", hint="leave it out"
            )
        if self.stacked:
            files.save(model.stacked(self.comp_node, run), Path(self.out))
        else:
            save_panels(model, model.panels(model.curves(model=self.model_kind), run), self.out)

    def document(self, result: Evaluation) -> Any:
        """The table and the files; run and model as they were named."""
        from elbowroom.models.evaluate import ErrorTable, EvaluationDocument
        from elbowroom.models.gpu.kind import GpuEvaluationDocument

        fields = {**msgspec.structs.asdict(result.table), "notes": result.notes}
        if not isinstance(result.table, ErrorTable):
            return GpuEvaluationDocument(**fields, run=str(result.run.path), model=str(result.model.path))
        return EvaluationDocument(
            **fields,
            run=str(self.path),
            model=str(self.source),
            published=result.published,
            files=() if self.out is None else (str(self.out),),
        )

    def print(self, result: Evaluation) -> None:
        """A line for each model or kind of case, and the figure's file."""
        print_evaluation(result)
        if self.out is not None:
            click.echo(str(self.out))

    def answer(self, result: Evaluation) -> Answer:
        from elbowroom.verbs.model_answers import evaluation_answer

        return evaluation_answer(result)


def evaluate(run: Run | Path | str, model: Model | Path | str) -> Evaluation:
    """How far each model is from what a run measured: Table 6.1 of the thesis, beside the naive baselines.

    UsageError where the run is from another machine than the model, or measured nothing together.
    """
    from elbowroom.verbs.model_file import evaluation, load_model
    from elbowroom.verbs.run_folder import open

    return evaluation(open(run), load_model(model))
