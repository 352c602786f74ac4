"""POP's factors of a job's efficiency, by the definitions of TALP (DLB) where it has one.

Useful time is time outside MPI. Parallel efficiency: its mean over ranks by the time; load balance: its mean
by its maximum; communication efficiency: its maximum by the time. Serialisation and transfer split the last
one as POP does with an ideal network: on it, a rank computes and waits, and nothing else.
"""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

from elbowroom.stats.bootstrap import estimate, weights
from elbowroom.stats.interval import Interval

Floats = npt.NDArray[np.float64]

CONFIDENCE = 0.9
BLOCKS = 500
"""Blocks of consecutive steps that are resampled, at most."""


class PopFactors(msgspec.Struct, frozen=True, kw_only=True):
    """Parallel efficiency = load balance x communication efficiency, and communication efficiency =
    serialisation x transfer; the products of the values are exact. 90 % intervals over the steps.
    """

    parallel_efficiency: Interval
    load_balance: Interval
    communication_efficiency: Interval
    serialisation: Interval
    transfer: Interval


def resampled(values: Floats) -> Floats:
    """(1 + resamples, …) the sum of `values` (steps, …) over all steps, then over the steps of each resample:
    of blocks of consecutive steps, if there are many.
    """
    count = len(values)
    sums = values
    if count > BLOCKS:
        edges = np.linspace(0, count, BLOCKS + 1).astype(int)[:-1]
        sums = np.add.reduceat(values, edges, axis=0)
    drawn = weights(len(sums), 0).T.astype(np.float64)
    flat = sums.reshape(len(sums), -1)
    again = (drawn @ flat).reshape(len(drawn), *values.shape[1:])
    return np.concatenate([values.sum(axis=0)[None], again])


def interval_of(values: Floats) -> Interval:
    """The first value, with the 90 % interval of the others, its resamples."""
    return estimate(float(values[0]), values[1:], CONFIDENCE)


def pop_factors(lengths: Floats, useful: Floats, waited: Floats) -> PopFactors:
    """The factors of steps of `lengths` (steps,) s; `useful`: (steps, ranks) s outside MPI; `waited`: in MPI
    for other ranks.
    """
    total, computed = resampled(lengths), resampled(useful)
    mean, most = computed.mean(axis=1), computed.max(axis=1)
    ideal = np.maximum((computed + resampled(waited)).max(axis=1), most)
    return PopFactors(
        parallel_efficiency=interval_of(_ratio(mean, total)),
        load_balance=interval_of(_ratio(mean, most)),
        communication_efficiency=interval_of(_ratio(most, total)),
        serialisation=interval_of(_ratio(most, ideal)),
        transfer=interval_of(_ratio(ideal, total)),
    )


def _ratio(part: Floats, whole: Floats) -> Floats:
    """1 where both are 0: nothing was lost there."""
    result: Floats = np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), 1.0)
    return result
