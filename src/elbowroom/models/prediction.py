"""What a model answers."""

from __future__ import annotations

import msgspec

from elbowroom.models.curves import Situation
from elbowroom.stats.interval import Interval

NORMAL_90 = 1.6448536269514722
"""Half width of the 90 % interval of a normal variable, in standard deviations."""


Bands = tuple[float, float, float, float]
"""For each of STREAMS, in that order, the relative half-width of the 90 % interval of a prediction."""


class PredictedBandwidths(msgspec.Struct, frozen=True, kw_only=True):
    """The four bandwidths (MB/s) with their 90 % intervals.

    `flags`: `extrapolated` (outside what the model was fitted on), `virtual`, `repaired` (differs from the
    equations as published), ...
    """

    comp_alone: Interval
    comm_alone: Interval
    comp_together: Interval
    comm_together: Interval
    flags: tuple[str, ...] = ()


class Prediction(PredictedBandwidths, frozen=True, kw_only=True):
    """The bandwidths of one situation."""

    situation: Situation
