"""What a model answers."""

from __future__ import annotations

import msgspec

from elbowroom.model.curves import Situation

NORMAL_90 = 1.6448536269514722
"""Half width of the 90 % interval of a normal variable, in standard deviations."""


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """A value and its 90 % interval, MB/s."""

    value: float
    low: float
    high: float


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """The four bandwidths of one situation; `flags`: `extrapolated` (outside what the model was fitted on),
    `virtual`, `repaired` (differs from the equations as published), ...
    """

    situation: Situation
    comp_alone: Interval
    comm_alone: Interval
    comp_together: Interval
    comm_together: Interval
    flags: tuple[str, ...] = ()
