"""How far the overlap model is from measured steps, and beside it what people assume without a model."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from elbowroom.models.overlap.law import OverlappedStep

RIVALS = ("total", "naive_max", "naive_sum")
"""The model's total, the longer of the two, one after the other: names of Step's properties."""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """An overlapped step and how long it took; `measured` None: not measured. `label` names it."""

    label: str
    step: OverlappedStep
    measured: float | None = None

    def error(self, rival: str) -> float | None:
        """(predicted - measured) / measured."""
        if self.measured is None:
            return None
        predicted: float = getattr(self.step, rival)
        return (predicted - self.measured) / self.measured


class Deviation(msgspec.Struct, frozen=True, kw_only=True):
    """Mean absolute error as a share of what was measured, and as a share of what was predicted: the latter
    is how the paper's Table II has it, and flatters whoever predicts too much.
    """

    of_measured: float
    of_predicted: float | None


def deviations(trials: Sequence[Trial]) -> dict[str, Deviation]:
    """For each of RIVALS; empty where nothing was measured. `of_predicted`: None where a prediction is 0."""
    measured = [(trial, trial.measured) for trial in trials if trial.measured is not None]
    table = {}
    for rival in RIVALS if measured else ():
        pairs = [(float(getattr(trial.step, rival)), value) for trial, value in measured]
        known = all(predicted > 0.0 for predicted, _ in pairs)
        table[rival] = Deviation(
            of_measured=sum(abs(a - b) / b for a, b in pairs) / len(pairs),
            of_predicted=sum(abs(a - b) / a for a, b in pairs) / len(pairs) if known else None,
        )
    return table
