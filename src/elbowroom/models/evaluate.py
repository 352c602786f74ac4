"""How far predictions are from what was measured: Table 6.1 of the thesis for any model, beside naive ones.

Error: mean of |measured - predicted| / measured over the measured rows, of each stream together, on the
placements a model was calibrated on (samples), the others, and all; the average is that of the two streams.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from elbowroom.errors import UsageError
from elbowroom.models.base import MeasuredCases
from elbowroom.models.curves import STREAMS, Curves, Row, Shape, Situation, Streams
from elbowroom.models.document import Document
from elbowroom.models.gpu.kind import GpuErrorTable
from elbowroom.models.load import NORMAL_90, Prediction
from elbowroom.models.predict import predictor
from elbowroom.models.published import MachineErrors
from elbowroom.models.registry import MODELS, accelerator, fitted_models
from elbowroom.models.threshold.law import Threshold, predict
from elbowroom.stats.interval import Interval

Answer = Streams | Prediction | None
"""What a model says of a situation: bandwidths, with intervals or without; None where it cannot say."""
Predictor = Callable[[Sequence[Situation]], Sequence[Answer]]

NO_CONTENTION = "no contention"
MAX_MIN = "plain max-min"


class Errors(msgspec.Struct, frozen=True, kw_only=True):
    """Mean relative errors of one stream (1 is 100 %), None where there is nothing to compare; `covered`:
    share of the measured values inside the predicted 90 % intervals, widened by the measured value's own
    where it is known (they are of the true value); None for a model without any.
    """

    samples: float | None
    others: float | None
    all: float | None
    covered: float | None = None


class ModelErrors(msgspec.Struct, frozen=True, kw_only=True):
    """One model's line. `rows`: how many it answered, `unanswered`: how many it could not."""

    model: str
    comm: Errors
    comp: Errors
    average: float | None
    rows: int
    unanswered: int = 0
    baseline: bool = False


class ErrorTable(msgspec.Struct, frozen=True, kw_only=True):
    """Table 6.1 for one machine. `samples`: placements (comp_node, comm_node) that count as samples."""

    machine: str
    samples: tuple[tuple[int, int], ...]
    rows: int
    lines: tuple[ModelErrors, ...]


def sample_placements(shape: Shape) -> tuple[tuple[int, int], ...]:
    """Those the threshold model is calibrated on: data of both on the first node of each of two sockets."""
    remote = shape.numa_per_socket
    return ((0, 0), (remote, remote)) if remote < shape.nodes else ((0, 0),)


def evaluate(
    curves: Curves,
    predictors: Mapping[str, Predictor],
    samples: Collection[tuple[int, int]] | None = None,
) -> ErrorTable:
    """Each model's errors on those curves, and behind them those of the naive models.

    `samples`: by default `sample_placements`. Rows with computing cores and a bandwidth together count.
    Raises UsageError where there is none.
    """
    places = tuple(sorted(set(sample_placements(curves.shape) if samples is None else samples)))
    rows = [
        row
        for row in curves.rows
        if row.situation.n + row.situation.n_other > 0
        and (row.comp_together is not None or row.comm_together is not None)
    ]
    if not rows:
        raise UsageError(
            "nothing was measured together, so there is nothing to compare with",
            field="rows",
            value=len(curves.rows),
            hint="measure computation and communication together too",
        )
    situations = [row.situation for row in rows]
    lines = [_line(name, rows, predictor(situations), places) for name, predictor in predictors.items()]
    for name, answers in ((NO_CONTENTION, no_contention(rows)), (MAX_MIN, max_min(curves, rows, places))):
        lines.append(_line(name, rows, answers, places, baseline=True))
    return ErrorTable(machine=curves.shape.name, samples=places, rows=len(rows), lines=tuple(lines))


def evaluate_document(document: Document, measured: Curves | MeasuredCases) -> ErrorTable | GpuErrorTable:
    """How far the models of a document are from what a run measured: all models of loads, beside naive ones,
    or that of the accelerator.

    UsageError where nothing can be compared.
    """
    if isinstance(measured, MeasuredCases):
        table: GpuErrorTable = accelerator().evaluate(document, measured)
        return table
    kinds = [MODELS.get(name) for name in fitted_models(document)]
    predictors: dict[str, Predictor] = {kind.name: predictor(document, kind.name) for kind in kinds}
    predictors |= {
        f"{kind.name}, faithful": predictor(document, kind.name, faithful=True)
        for kind in kinds
        if kind.faithful
    }
    return evaluate(measured, predictors)


def threshold_predictor(model: Threshold, *, faithful: bool = False) -> Predictor:
    """The threshold model as a predictor; what is outside of it is not answered."""

    def answer(situations: Sequence[Situation]) -> list[Answer]:
        answers: list[Answer] = []
        for situation in situations:
            try:
                answers.append(predict(model, situation, faithful=faithful)[0])
            except UsageError:
                answers.append(None)
        return answers

    return answer


def no_contention(rows: Sequence[Row]) -> list[Answer]:
    """Together as alone, as measured alone in the same row."""
    return [
        None
        if row.comp_alone is None or row.comm_alone is None
        else (row.comp_alone, row.comm_alone, row.comp_alone, row.comm_alone)
        for row in rows
    ]


def max_min(curves: Curves, rows: Sequence[Row], samples: Collection[tuple[int, int]]) -> list[Answer]:
    """Max-min fair shares of one capacity among the computing cores and the NIC, each asking for what it got
    alone in the same row; data on different nodes shares nothing.

    The capacity of local and of remote memory is the most that both streams reached together on a sample.
    """
    shape = curves.shape
    capacity: dict[bool, float] = {}
    for row in curves.rows:
        at = row.situation
        known = row.comp_together is not None and row.comm_together is not None
        if known and at.comp_node == at.comm_node and (at.comp_node, at.comm_node) in samples:
            both = (row.comp_together or 0.0) + (row.comm_together or 0.0)
            side = shape.local(at.comp_node)
            capacity[side] = max(capacity.get(side, 0.0), both)
    return [_shared(row, capacity.get(shape.local(row.situation.comp_node))) for row in rows]


def _shared(row: Row, capacity: float | None) -> Answer:
    at = row.situation
    if row.comp_alone is None or row.comm_alone is None:
        return None
    alone = (row.comp_alone, row.comm_alone)
    if at.comp_node != at.comm_node:
        return (*alone, *alone)
    if capacity is None:
        return None
    cores = at.n + at.n_other
    each, messages = row.comp_alone / cores, row.comm_alone
    if row.comp_alone + messages <= capacity:
        return (*alone, *alone)
    fair = capacity / (cores + 1)
    if messages <= fair:
        return (*alone, min(row.comp_alone, capacity - messages), messages)
    if each <= fair:
        return (*alone, row.comp_alone, capacity - row.comp_alone)
    return (*alone, cores * fair, fair)


def _line(
    name: str,
    rows: Sequence[Row],
    answers: Sequence[Answer],
    samples: tuple[tuple[int, int], ...],
    *,
    baseline: bool = False,
) -> ModelErrors:
    answered = [(row, answer) for row, answer in zip(rows, answers, strict=True) if answer is not None]
    comm, comp = (_errors(answered, stream, samples) for stream in ("comm", "comp"))
    both = [errors.all for errors in (comm, comp) if errors.all is not None]
    return ModelErrors(
        model=name,
        comm=comm,
        comp=comp,
        average=sum(both) / len(both) if both else None,
        rows=len(answered),
        unanswered=len(rows) - len(answered),
        baseline=baseline,
    )


def _errors(
    answered: Sequence[tuple[Row, Streams | Prediction]],
    stream: str,
    samples: tuple[tuple[int, int], ...],
) -> Errors:
    on_samples: list[float] = []
    on_others: list[float] = []
    inside: list[bool] = []
    for row, answer in answered:
        column = STREAMS.index(f"{stream}_together")
        measured, spread = row.streams[column], row.spread[column]
        if measured is None:
            continue
        if isinstance(answer, Prediction):
            interval = answer.comp_together if stream == "comp" else answer.comm_together
            inside.append(_holds(interval, measured, spread or 0.0))
            value = interval.value
        else:
            value = answer[2] if stream == "comp" else answer[3]
        at = row.situation
        is_sample = (at.comp_node, at.comm_node) in samples and not at.n_other
        (on_samples if is_sample else on_others).append(abs(measured - value) / measured)
    return Errors(
        samples=_mean(on_samples),
        others=_mean(on_others),
        all=_mean(on_samples + on_others),
        covered=_mean([float(is_inside) for is_inside in inside]),
    )


def _holds(interval: Interval, measured: float, spread: float) -> bool:
    """Whether prediction and measurement, with the errors of both, are one value."""
    own = NORMAL_90 * spread * measured
    above = math.hypot(interval.high - interval.value, own)
    below = math.hypot(interval.value - interval.low, own)
    return interval.value - below <= measured <= interval.value + above


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


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
