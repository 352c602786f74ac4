"""An overlapped step from what a model predicts for its cores and placement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import msgspec

from elbowroom.errors import UsageError
from elbowroom.models.overlap.fluid import Rates
from elbowroom.models.overlap.law import OverlappedStep, check
from elbowroom.models.prediction import Prediction
from elbowroom.stats.interval import Interval

MEGA = 1e6
"""B/s in a MB/s."""

ROUNDING = 1e-9
"""A predicted bandwidth together that exceeds that alone by less than this share of it is equal to it."""


class PredictedStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step in seconds; `low` and `high`: its total if all four bandwidths were at the high, or the low, end
    of their intervals. `high` is None where at the low end something stands still.
    """

    step: OverlappedStep
    low: float
    high: float | None
    comp_bytes: float
    comm_bytes: float
    prediction: Prediction

    @property
    def p_comp(self) -> float:
        """Performance of the computation alone, B/s."""
        return self.prediction.comp_alone.value * MEGA


def predicted_step(prediction: Prediction, comp_bytes: float, comm_bytes: float) -> PredictedStep:
    """The step in which the computing cores together move `comp_bytes` of memory and messages `comm_bytes`.

    UsageError for bytes below 0, computing without cores, and predictions that are faster together than alone
    (the thesis' equations to the letter can be), of which no step can be made.
    """
    for field, value in (("comp_bytes", comp_bytes), ("comm_bytes", comm_bytes)):
        check(field, value, low=0.0, what="a number of bytes", hint="give what one step moves")
    if comp_bytes > 0.0 and prediction.comp_alone.value <= 0.0:
        raise UsageError(
            "nothing computes there, so its bytes are never moved",
            field="cores",
            value=prediction.situation.n,
            hint="give at least one computing core, or no --comp-bytes",
        )
    for side, together in (("comp", prediction.comp_together), ("comm", prediction.comm_together)):
        alone: Interval = getattr(prediction, f"{side}_alone")
        if together.value > alone.value * (1.0 + ROUNDING):
            raise UsageError(
                f"together it is predicted faster ({together.value:.1f} MB/s) than alone ({alone.value:.1f})",
                field=f"{side}_together",
                value=together.value,
                hint="leave out --faithful, or give --l-comp and --l-comm yourself",
            )
    moved = (comp_bytes, comm_bytes)
    step = _step(prediction, moved, "value")
    if step is None:
        raise UsageError(
            "one side stands still beside the other, so the step has no end",
            field="prediction",
            hint="give --l-comp and --l-comm yourself",
        )
    best, worst = _step(prediction, moved, "high"), _step(prediction, moved, "low")
    return PredictedStep(
        step=step,
        low=step.total if best is None else min(best.total, step.total),
        high=None if worst is None else max(worst.total, step.total),
        comp_bytes=comp_bytes,
        comm_bytes=comm_bytes,
        prediction=prediction,
    )


def predicted_rates(
    prediction: Prediction, computations: Collection[str], communications: Collection[str]
) -> Rates:
    """Rates (B/s) for `model.fluid.simulate`, whose activities then are bytes: of what is active,
    computations and communications have their bandwidths alone, or those together where the other side is
    active too; several of one side share that equally.

    UsageError, when it is simulated, for an activity that is of neither side.
    """
    sides = dict.fromkeys(computations, "comp") | dict.fromkeys(communications, "comm")

    def rates(active: frozenset[str]) -> dict[str, float]:
        counts = Counter(sides[name] for name in active if name in sides)
        state = "together" if len(counts) == 2 else "alone"
        bandwidths = {side: getattr(prediction, f"{side}_{state}").value * MEGA for side in counts}
        return {name: bandwidths[sides[name]] / counts[sides[name]] for name in active if name in sides}

    return rates


def _step(prediction: Prediction, moved: tuple[float, float], end: str) -> OverlappedStep | None:
    """The step with all bandwidths at one `end` of their intervals; None where a side then stands still."""
    comp = _side(prediction.comp_alone, prediction.comp_together, moved[0], end)
    comm = _side(prediction.comm_alone, prediction.comm_together, moved[1], end)
    if comp is None or comm is None:
        return None
    return OverlappedStep(t_comp=comp[0], t_comm=comm[0], l_comp=comp[1], l_comm=comm[1])


def _side(alone: Interval, together: Interval, moved: float, end: str) -> tuple[float, float] | None:
    """Time alone (s) and loss ratio; None for bytes that are never moved."""
    a: float = getattr(alone, end)
    b: float = getattr(together, end)
    if moved == 0.0:
        return 0.0, 1.0
    if b <= 0.0 or a <= 0.0:
        return None
    # The two intervals do not know of each other, so their ends may cross; alone is never slower.
    return moved / (a * MEGA), max(a / b, 1.0)
