"""`elbowroom predict-step`: how long a step takes that computes and communicates at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import click

from elbowroom.cli.answer import Answer, command_line
from elbowroom.cli.console import print_list, print_wrapped
from elbowroom.cli.options import FIGURE
from elbowroom.cli.tables import new_table, print_table
from elbowroom.draw.figure import Figure
from elbowroom.draw.files import save
from elbowroom.errors import UsageError
from elbowroom.models.overlap.documents import step_document, step_table_document
from elbowroom.models.overlap.figures import over_time, plane, scaling
from elbowroom.models.overlap.fluid import PredictedStep, predicted_step
from elbowroom.models.overlap.law import (
    RIVALS,
    AcceleratedNode,
    OverlappedStep,
    Trial,
    WorkSplit,
    deviations,
    worth,
)
from elbowroom.quantities import number, parse_size_or_none, parse_time
from elbowroom.verbs.declaration import Verb, argument, option
from elbowroom.verbs.run_options import MODEL, out_option

if TYPE_CHECKING:
    from elbowroom.verbs.model_file import Model

FigureName = Literal["plane", "time", "scaling"]

RIVAL_NAMES = {"total": "overlap model", "naive_max": "longer of the two", "naive_sum": "one after the other"}

MEGA = 1e6
"""B/s in a MB/s."""

_ANYWHERE = {"out", "figure"}
_WITH = {
    "numbers": {"t_comp", "t_comm", "l_comp", "l_comm", "work", "p_comp", "p_acc", "w", "w_limit"},
    "table": {"table", "l_comp", "l_comm"},
    "model": {
        "source", "cores", "cores_other", "comp_node", "comm_node", "comp_bytes", "comm_bytes", "model_kind",
        "faithful", "p_acc", "w", "w_limit", "split",
    },
}  # fmt: skip
_MODES = {"numbers": "times and ratios (a model is missing)", "table": "--table", "model": "a model"}
_FOR_SPLIT = ("work", "p_comp", "p_acc")


class StepAnswer(NamedTuple):
    """A step, its best and its given split of the work, and the prediction that it comes from."""

    step: OverlappedStep
    best: WorkSplit | None = None
    given: WorkSplit | None = None
    predicted: PredictedStep | None = None


class PredictStep(Verb):
    """Predict how long a step takes that overlaps computation and communication.

    Uses times alone and loss ratios; or a model (M.json, or a published machine) and the bytes of a step; or
    a table of measured steps. With accelerators, it also gives the best split of the work.
    """

    name = "predict-step"
    has_tables = True

    source: Path | str | None = argument(None, metavar="[M.json|NAME]")
    t_comp: float | None = option(
        "Time of the computation alone: 2ms, or a number in any unit.", "TIME", parse=parse_time
    )
    t_comm: float | None = option("Time of the communication alone, likewise.", "TIME", parse=parse_time)
    l_comp: float | None = option("Bandwidth of the computation, alone / together.", "RATIO")
    l_comm: float | None = option("Bandwidth of the communication, alone / together.", "RATIO")
    work: float | None = option("Work to split between CPU and accelerators.", "W")
    p_comp: float | None = option("With --work: work of the CPU per unit of time.", "P")
    p_acc: float | None = option("Work of all accelerators per unit of time; with a model in MB/s.", "P")
    w: float | None = option("With --p-acc: also evaluate this share on the accelerators.", "SHARE")
    w_limit: float | None = option(
        "Largest share that the accelerators' memory holds: their memory / the data of all work.", "SHARE"
    )
    split: bool = option("With a model: as --p-acc, the measured rate of its accelerator.")
    table: Path | str | None = option("Steps from a CSV file, or published ones: langguth2018.")
    cores: int | None = option("With a model: computing cores of the first socket.")
    cores_other: int | None = option("With a model: computing cores of the second socket.", "M")
    comp_node: int | None = option("NUMA node of the computation's data.", "NODE")
    comm_node: int | None = option("NUMA node of the message buffers.", "NODE")
    comp_bytes: int | None = option(
        "Bytes that all computing cores move in a step: 2GB.", "SIZE", parse=parse_size_or_none
    )
    comm_bytes: int | None = option(
        "Bytes of the messages that arrive in a step: 64MB.", "SIZE", parse=parse_size_or_none
    )
    model_kind: str | None = option(
        "Kind of model; default: the best available.", type=MODEL, formerly="--model"
    )
    faithful: bool = option("Use the thesis' equations exactly as printed.")
    out: Path | str | None = out_option(FIGURE, "Draw a figure: .png or .svg.")
    figure: FigureName | None = option(
        "With -o: the plane of times (default), performance over time, or bars of few to many subdomains.",
        type=click.Choice(get_args(FigureName)),
    )

    def do(self) -> StepAnswer | list[Trial]:
        """The step of times or of a model, or those of a table; the figure is drawn."""
        mode = "model" if self.source is not None else "table" if self.table is not None else "numbers"
        for member in self.members:
            if member.given(self) and member.name not in _WITH[mode] | _ANYWHERE:
                raise UsageError(
                    f"cannot be combined with {_MODES[mode]}",
                    field=member.name,
                    value=member.value(self),
                    hint="leave one out",
                )
        if self.figure is not None and self.out is None:
            raise UsageError("no file is named for it", field="figure", value=self.figure, hint="add -o FILE")
        if mode == "table":
            assert self.table is not None
            trials = overlap_table(self.table, l_comp=self.l_comp, l_comm=self.l_comm)
            self._draw([(trial.label, trial.step) for trial in trials])
            return trials
        answer = self._of_model() if mode == "model" else self._of_numbers()
        self._draw([("", answer.step)], "s" if mode == "model" else "")
        return answer

    def _draw(self, steps: Sequence[tuple[str, OverlappedStep]], unit: str = "") -> None:
        if self.out is not None:
            save(overlap_figure(steps, figure=self.figure or "plane", unit=unit), Path(self.out))

    def _needed(self, name: str) -> Any:
        value = getattr(self, name)
        if value is None:
            raise UsageError("is missing", field=name, hint=f"give --{name.replace('_', '-')}")
        return value

    def _of_numbers(self) -> StepAnswer:
        ratios = {name: self._needed(name) for name in ("t_comm", "l_comp", "l_comm")}
        best, given = None, None
        if any(getattr(self, name) is not None for name in (*_FOR_SPLIT, "w", "w_limit")):
            rates = {name: self._needed(name) for name in _FOR_SPLIT}
            node = AcceleratedNode(**rates, **ratios, **self._limit)
            best, given = node.best_split(), None if self.w is None else node.split(self.w)
        if best is not None and self.t_comp is None:
            return StepAnswer(best.step, best, given)
        return StepAnswer(overlap(t_comp=self._needed("t_comp"), **ratios), best, given)

    def _of_model(self) -> StepAnswer:
        for name in ("cores", "comp_node", "comm_node", "comp_bytes", "comm_bytes"):
            self._needed(name)
        assert self.source is not None
        predicted = overlap_predicted(
            self.source,
            cores=self._needed("cores"),
            cores_other=self.cores_other or 0,
            comp_node=self._needed("comp_node"),
            comm_node=self._needed("comm_node"),
            comp_bytes=self._needed("comp_bytes"),
            comm_bytes=self._needed("comm_bytes"),
            # Only the threshold model has a faithful mode: asking for that is asking for it.
            name=self.model_kind or ("threshold" if self.faithful else None),
            faithful=self.faithful,
        )
        step, rate = predicted.step, self._accelerator()
        if rate is None:
            if self.w is not None or self.w_limit is not None:
                self._needed("p_acc")
            return StepAnswer(step, predicted=predicted)
        node = AcceleratedNode(
            work=predicted.comp_bytes,
            p_comp=predicted.p_comp,
            p_acc=rate * MEGA,
            t_comm=step.t_comm,
            l_comp=step.l_comp,
            l_comm=step.l_comm,
            **self._limit,
        )
        given = None if self.w is None else node.split(self.w)
        return StepAnswer(step, node.best_split(), given, predicted)

    @property
    def _limit(self) -> dict[str, float]:
        return {} if self.w_limit is None else {"w_limit": self.w_limit}

    def _accelerator(self) -> float | None:
        """MB/s of the accelerators, as given or as measured for the model."""
        if not self.split:
            return self.p_acc
        if self.p_acc is not None:
            raise UsageError("cannot be combined with --split", field="p_acc", hint="leave one out")
        from elbowroom.verbs.gpu_models import accelerator_rate
        from elbowroom.verbs.model_file import load_model

        return accelerator_rate(load_model(str(self.source)))

    def document(self, result: StepAnswer | list[Trial]) -> Any:
        """The step, or the table of steps."""
        if isinstance(result, list):
            return step_table_document(result)
        step, best, given, predicted = result
        own = predicted is not None or self.t_comp is not None
        return step_document(step, best, given, own=own, predicted=predicted)

    def print(self, result: StepAnswer | list[Trial]) -> None:
        """Times of both sides and of the step, or a line for each step of the table."""
        if isinstance(result, list):
            _print_table(result)
            return
        if result.predicted is not None:
            _print_predicted(result.predicted)
        unit = "" if result.predicted is None else " (s)"
        _print_numbers(result.step, result.best, result.given, unit)

    def answer(self, result: StepAnswer | list[Trial]) -> Answer:
        """Whether overlapping pays, or how far the law is off the steps of the table."""
        following = self.again(out="step.svg") if self.out is None else command_line("help", "overlap")
        if isinstance(result, list):
            means = deviations(result)
            if not means:
                return Answer(f"{len(result)} steps are predicted; none was measured.", TIMES, following)
            off = {name: f"{of.of_measured:.1%}" for name, of in means.items()}
            own, *others = off
            return Answer(
                f"The law of overlap is off by {off[own]} on average of {len(result)} steps.",
                f"{'; '.join(f'{RIVAL_NAMES[name]}: {off[name]}' for name in others)}.",
                following,
            )
        step = result.step
        verdict, _, why = worth(step).partition(", because ")
        ideal = step.fraction_of_ideal
        share = "" if ideal is None else f"{number(ideal, 3)} of what ideal overlap would save is saved."
        slower = f"Together the computation takes {number(step.comp_contended)} instead of "
        slower += f"{number(step.t_comp)}, the communication {number(step.comm_contended)} instead of "
        slower += f"{number(step.t_comm)}."
        return Answer(
            f"{verdict.rstrip('.')}.",
            f"{why[:1].upper() + why[1:] if why else slower} {share}".strip(),
            following,
        )


TIMES = "Errors need a column of measured times."


def overlap(*, t_comp: float, t_comm: float, l_comp: float, l_comm: float) -> OverlappedStep:
    """A step that computes for `t_comp` and communicates for `t_comm`, each alone, in any one unit of time.

    `l_comp`, `l_comm`: bandwidth alone divided by bandwidth together. Raises UsageError for times below 0 and
    ratios below 1. See `total`, `gain`, `naive_max`, `naive_sum` of what is returned.
    """
    return OverlappedStep(t_comp=t_comp, t_comm=t_comm, l_comp=l_comp, l_comm=l_comm)


def best_split(
    *,
    work: float,
    p_comp: float,
    p_acc: float,
    t_comm: float,
    l_comp: float,
    l_comm: float,
    w_limit: float = 1.0,
) -> WorkSplit:
    """How much of a step's `work` accelerators should do (`w`), and how long the step then takes (`total`).

    `p_comp`, `p_acc`: work per unit of time of the CPU and of all accelerators; `w_limit`: the largest share
    that the accelerators' memory holds. Raises UsageError unless work and performances are positive and
    0 <= w_limit <= 1, and as `overlap` does.
    """
    return AcceleratedNode(
        work=work, p_comp=p_comp, p_acc=p_acc, t_comm=t_comm, l_comp=l_comp, l_comm=l_comm, w_limit=w_limit
    ).best_split()


def overlap_predicted(
    model: Model | Path | str,
    *,
    cores: int,
    comp_node: int,
    comm_node: int,
    comp_bytes: float,
    comm_bytes: float,
    cores_other: int = 0,
    name: str | None = None,
    faithful: bool = False,
) -> PredictedStep:
    """A step from what a model (M.json, or a published machine) predicts: `cores` of the first socket and
    `cores_other` of the second move `comp_bytes` of data on `comp_node`, messages of `comm_bytes` in all
    arrive in `comm_node`. Times are in s. Raises UsageError as `predict` does, and for bytes below 0.
    """
    from elbowroom.verbs.model_file import load_model

    prediction = load_model(model).predict(
        cores, comp_node, comm_node, n_other=cores_other, model=name, faithful=faithful
    )
    return predicted_step(prediction, comp_bytes, comm_bytes)


def overlap_table(
    source: str | Path, *, l_comp: float | None = None, l_comm: float | None = None
) -> list[Trial]:
    """The steps of a CSV file (columns: store/steps.py) or of a published table (`langguth2018`)."""
    from elbowroom.store.steps import read_steps

    return read_steps(str(source), l_comp, l_comm)


def overlap_figure(
    steps: Sequence[tuple[str, OverlappedStep]], *, figure: FigureName = "plane", unit: str = ""
) -> Figure:
    """The `plane` of times of all steps; of the first one performance over `time`, or `scaling`: its times
    with few, optimal and many subdomains.
    """
    if figure == "plane":
        return plane(steps, unit)
    return {"time": over_time, "scaling": scaling}[figure](steps[0][1], unit)


def _print_numbers(
    step: OverlappedStep, best: WorkSplit | None, chosen: WorkSplit | None, unit: str = ""
) -> None:
    sides = new_table("", f">alone{unit}", f">contended{unit}")
    sides.add_row("computation", number(step.t_comp), number(step.comp_contended))
    sides.add_row("communication", number(step.t_comm), number(step.comm_contended))
    print_table(sides)
    print()
    totals = new_table("", f">step{unit}")
    for name, label in RIVAL_NAMES.items():
        totals.add_row(label, number(getattr(step, name)))
    print_table(totals)
    print()
    if step.fraction_of_ideal is not None:
        print_wrapped(
            f"Fraction of ideal: {number(step.fraction_of_ideal, 3)} (1: nothing is lost, 0: overlapping "
            "saves nothing, below 0: it costs time)."
        )
    for split, label in ((best, "Best split"), (chosen, "This split")):
        if split is not None:
            print_wrapped(
                f"{label}: {split.w:.4f} of the work on the accelerators. They take {number(split.t_acc)}, "
                f"the CPU with its communication {number(split.step.total)}, the step {number(split.total)}."
            )


def _print_predicted(predicted: PredictedStep) -> None:
    """What the model was asked, what it flags, and the interval of the total."""
    at, high = predicted.prediction.situation, predicted.high
    cores = f"{at.n} computing cores" + (f" and {at.n_other} of the second socket" if at.n_other else "")
    print_wrapped(
        f"{cores}, data of computations on node {at.comp_node}, of communications on node {at.comm_node}"
    )
    print_list(predicted.prediction.flags, indent="  ")
    most = "without bound" if high is None else number(high)
    print_wrapped(f"Total from the ends of all 90 % intervals: {number(predicted.low)} to {most} s")
    print()


def _print_table(trials: Sequence[Trial]) -> None:
    table = new_table("step", ">comp", ">comm", ">measured", ">predicted", ">model", ">max", ">sum")
    for trial in trials:
        errors = [_percent(trial.error(rival)) for rival in RIVALS]
        step, measured = trial.step, "-" if trial.measured is None else number(trial.measured)
        times = (number(step.t_comp), number(step.t_comm), measured, number(step.total))
        table.add_row(trial.label, *times, *errors)
    print_table(table)
    print()
    print_wrapped(
        "Errors are (predicted - measured) / measured; max: the longer of the two, sum: one after the other."
    )
    means = deviations(trials)
    if not means:
        return
    table_of_means = new_table("mean absolute error", ">of the measured", ">of the predicted")
    for name, label in RIVAL_NAMES.items():
        of = means[name]
        predicted = "-" if of.of_predicted is None else f"{of.of_predicted:.2%}"
        table_of_means.add_row(label, f"{of.of_measured:.2%}", predicted)
    print()
    print_table(table_of_means)


def _percent(error: float | None) -> str:
    return "-" if error is None else f"{error:+.1%}"
