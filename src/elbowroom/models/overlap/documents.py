"""What `overlap --json` prints: a step from times and ratios, a predicted one, or a table of steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from elbowroom.models.load import Prediction
from elbowroom.models.overlap.fluid import PredictedStep
from elbowroom.models.overlap.law import (
    RIVALS,
    Deviation,
    OverlappedStep,
    Trial,
    WorkSplit,
    deviations,
    worth,
)

_TIMES = (
    "total", "comp_contended", "comm_contended", "naive_max", "naive_sum", "gain", "overlap",
    "fraction_of_ideal",
)  # fmt: skip


class StepSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The step's time, that of each side beside the other, what people assume without a model, the share that
    overlapping saves of the time one after the other (`gain`), of the shorter side (`overlap`), and of what
    it would save without contention (`fraction_of_ideal`); null where a side takes no time.
    """

    total: float
    comp_contended: float
    comm_contended: float
    naive_max: float
    naive_sum: float
    gain: float
    overlap: float | None
    fraction_of_ideal: float | None


class GivenSplit(msgspec.Struct, frozen=True, kw_only=True):
    """The step with the share `w` of the work on the accelerators."""

    w: float
    total: float


class StepDocument(StepSummary, frozen=True, kw_only=True):
    """A step. With accelerators, `w` and `total` are the best split's; the rest is that of the step with the
    given time of computation (its own total then is `without_accelerators`), or else of the best split's.
    """

    schema: str = "elbowroom/overlap"
    version: int = 1
    without_accelerators: float | UnsetType = UNSET
    w: float | UnsetType = UNSET
    given_split: GivenSplit | UnsetType = UNSET
    sentence: str


class PredictedStepDocument(StepDocument, frozen=True, kw_only=True):
    """A step in s that a model predicts, with its times alone and loss ratios; `total_high` is null where at
    the low end of the intervals one side stands still.
    """

    total_low: float
    total_high: float | None
    t_comp: float
    t_comm: float
    l_comp: float
    l_comm: float
    prediction: Prediction


class TableStep(StepSummary, frozen=True, kw_only=True):
    """A step of a table; `errors`: (predicted - measured) / measured, null where it was not measured."""

    label: str
    t_comp: float
    t_comm: float
    l_comp: float
    l_comm: float
    measured: float | None
    errors: dict[str, float | None]


class StepTableDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Steps of a table, and mean absolute errors where there are measured ones."""

    schema: str = "elbowroom/overlap"
    version: int = 1
    steps: tuple[TableStep, ...]
    errors: dict[str, Deviation]


def step_document(
    step: OverlappedStep,
    best: WorkSplit | None = None,
    given: WorkSplit | None = None,
    *,
    own: bool = True,
    predicted: PredictedStep | None = None,
) -> StepDocument:
    """A step as a document, with its `best` and `given` splits; `own`: the step is not the best split's.
    `predicted`: the prediction that the step comes from.
    """
    fields: dict[str, Any] = {name: getattr(step, name) for name in _TIMES} | {"sentence": worth(step)}
    if best is not None:
        if own:
            fields["without_accelerators"] = step.total
        fields |= {"w": best.w, "total": best.total}
    if given is not None:
        fields["given_split"] = GivenSplit(w=given.w, total=given.total)
    if predicted is None:
        return StepDocument(**fields)
    return PredictedStepDocument(
        **fields,
        **msgspec.structs.asdict(step),
        total_low=predicted.low,
        total_high=predicted.high,
        prediction=predicted.prediction,
    )


def step_table_document(trials: Sequence[Trial]) -> StepTableDocument:
    """A table of steps as a document."""
    steps = (
        TableStep(
            **{name: getattr(trial.step, name) for name in _TIMES},
            **msgspec.structs.asdict(trial.step),
            label=trial.label,
            measured=trial.measured,
            errors={rival: trial.error(rival) for rival in RIVALS},
        )
        for trial in trials
    )
    return StepTableDocument(steps=tuple(steps), errors=deviations(trials))
