"""How long a message takes after memory accesses: the outlook of Tan and Jarvis (2012, section 4), a message
model with a term for the accesses between messages.

T(B) = t0 + sum over levels of cache of c min(1, B / C): B bytes of accesses push the lines that a message
needs out of a level of C bytes, all of them once B fills it, and c is what it costs to load these from the
next level. t0 is a message without accesses among them; c is at least 0 (least squares). Times are of the
fastest message of each size, which nothing else delayed, as medians over repetitions.

Windows are predicted by the model of the other half of them (every second one), so that no window is
predicted by a model that was fitted to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

import msgspec
import numpy as np

from elbowroom.points.accesses import WindowSeries
from elbowroom.stats.bootstrap import estimate, indices
from elbowroom.stats.interval import Interval
from elbowroom.stats.signed_ranks import Floats

RESAMPLES = 500
FEWEST_WINDOWS = 6
"""Half of them predict the other half."""


class MessageModel(msgspec.Struct, frozen=True, kw_only=True):
    """Times in us. `base`: t0; `costs`: c by level of cache. `error`: mean absolute error of windows that the
    model was not fitted to, `constant_error` that of a model without the term, which knows how much accesses
    add on average; `better`: how far the latter's lies above the former's, over windows.
    """

    base: float
    costs: dict[str, float]
    error: float
    constant_error: float
    better: Interval

    def time(self, accessed: float, capacities: Mapping[int, float]) -> float:
        """us of a message after so many bytes; `capacities`: bytes of each level."""
        outside = {f"L{level}": min(1.0, accessed / size) for level, size in capacities.items()}
        return self.base + sum(cost * outside[level] for level, cost in self.costs.items())


def fit(
    windows: Sequence[WindowSeries], capacities: Mapping[int, float], seed: int = 0
) -> MessageModel | None:
    """The model of windows that differ in their sizes only; `capacities`: bytes at which each level of cache
    is outgrown. None of fewer than FEWEST_WINDOWS windows, and without a cache.
    """
    if len(windows) < FEWEST_WINDOWS or not capacities:
        return None
    terms = [_terms(series, capacities) for series in windows]
    added = [_added(series) for series in windows]
    errors = np.empty((len(windows), 2))
    for fold in (0, 1):
        known = [place for place in range(len(windows)) if place % 2 != fold]
        costs = _costs([terms[place] for place in known], [added[place] for place in known])
        usual = float(np.mean(np.concatenate([added[place] for place in known])))
        for place in range(fold, len(windows), 2):
            errors[place] = (
                np.abs(terms[place] @ costs - added[place]).mean(),
                np.abs(usual - added[place]).mean(),
            )
    drawn = indices(np.random.default_rng(seed), len(windows), RESAMPLES)
    gains = errors[:, 1] - errors[:, 0]
    costs = _costs(terms, added)
    return MessageModel(
        base=float(np.median(np.concatenate([_fastest(series, after=False) for series in windows]))),
        costs={f"L{level}": float(cost) for level, cost in zip(sorted(capacities), costs, strict=True)},
        error=float(errors[:, 0].mean()),
        constant_error=float(errors[:, 1].mean()),
        better=estimate(float(gains.mean()), gains[drawn].mean(axis=1)),
    )


def _terms(series: WindowSeries, capacities: Mapping[int, float]) -> Floats:
    """(sizes, levels): how much of what a message needs is out of each level."""
    sizes = np.asarray(series.sizes, dtype=np.float64)
    return np.column_stack([np.minimum(sizes / capacities[level], 1.0) for level in sorted(capacities)])


def _added(series: WindowSeries) -> Floats:
    return _fastest(series, after=True) - _fastest(series, after=False)


def _fastest(series: WindowSeries, *, after: bool) -> Floats:
    fastest: Floats = np.median(np.asarray((series.after if after else series.without).minima), axis=0)
    return fastest


def _costs(terms: Sequence[Floats], added: Sequence[Floats]) -> Floats:
    from scipy.optimize import nnls  # takes longer to import than a run without accesses takes to judge

    costs: Floats = nnls(np.concatenate(terms), np.fromiter(chain.from_iterable(added), dtype=np.float64))[0]
    return costs
