"""Values with their intervals: 95 % where they were measured, 90 % where a model predicts them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec


class WithInterval:
    """A value with an interval; both ends are None if too few repetitions are left for one
    (stats/signed_ranks.py).
    """

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def low(self) -> float | None:
            """The lower end."""

        @property
        def high(self) -> float | None:
            """The upper end."""

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Both ends, or None if there is no interval."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    def ends(self, value: float) -> tuple[float, float]:
        """Both ends; `value` twice if there is no interval, for figures and orders."""
        return self.bounds or (value, value)

    def text(self, form: str = ".2f") -> str:
        """`0.62 to 0.66`, or that there is no interval."""
        ends = self.bounds
        return "no interval" if ends is None else f"{ends[0]:{form}} to {ends[1]:{form}}"

    @property
    def width(self) -> float | None:
        """From end to end; None if there is no interval."""
        return None if self.low is None or self.high is None else self.high - self.low

    def below(self, value: float) -> bool:
        """Whether there is an interval, all of it below `value`."""
        return self.high is not None and self.high < value

    def above(self, value: float) -> bool:
        """Whether there is an interval, all of it above `value`."""
        return self.low is not None and self.low > value

    @property
    def excludes_zero(self) -> bool:
        """Whether there is an interval, and it does not contain 0."""
        return self.above(0.0) or self.below(0.0)


class Interval(WithInterval, msgspec.Struct, frozen=True, kw_only=True):
    """A value and its interval, in the unit of the value."""

    value: float
    low: float
    high: float


def times(interval: Interval, factor: float) -> Interval:
    """The interval of a value that is so many times as large."""
    return Interval(value=interval.value * factor, low=interval.low * factor, high=interval.high * factor)


def apart(lower: WithInterval, upper: WithInterval) -> bool:
    """Whether both have an interval, the first one's all below the second one's."""
    return lower.high is not None and upper.low is not None and lower.high < upper.low


def around(value: float, factor: float) -> Interval:
    """The interval from value / factor to value * factor."""
    return Interval(value=value, low=value / factor, high=value * factor)


class StartVariation(WithInterval, msgspec.Struct, frozen=True, kw_only=True):
    """How repetitions vary: `share` is the part of the variance that is between starts, 0 to 1, with its 95 %
    interval; `between` and `within` are standard deviations of the logarithm, about shares of the value.
    """

    starts: int
    share: float
    low: float | None = None
    high: float | None = None
    between: float
    within: float


class Summary(WithInterval, msgspec.Struct, frozen=True, kw_only=True):
    """Median, first and last decile, and the 95 % bootstrap interval of the median of `count` samples.

    `variation`: its parts between and within starts of the program; absent where a run has one start.
    """

    median: float
    d1: float
    d9: float
    low: float | None = None
    high: float | None = None
    count: int
    unit: str
    variation: StartVariation | msgspec.UnsetType = msgspec.UNSET


class LogMean(msgspec.Struct, frozen=True, kw_only=True):
    """The mean of `count` logarithms and its standard error, which is None for a single one."""

    mean: float
    error: float | None
    count: int


class Kept(WithInterval, msgspec.Struct, frozen=True, kw_only=True):
    """together/alone of a rate, alone/together of a latency: 1 always means undisturbed.

    `value`: the pseudo-median of the ratios of the repetitions; `variation` as of a Summary; `log`: the mean
    of the ratios' logarithms, one for each repetition (each start, if there are several), absent if the value
    was not measured in repetitions.
    """

    value: float
    low: float | None = None
    high: float | None = None
    variation: StartVariation | msgspec.UnsetType = msgspec.UNSET
    log: LogMean | msgspec.UnsetType = msgspec.UNSET


class Added(WithInterval, msgspec.Struct, frozen=True, kw_only=True):
    """together - alone of a duration, in its unit (us); negative stays negative."""

    value: float
    low: float | None = None
    high: float | None = None
    unit: str = "us"


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One side of a point; None where it was not measured (communication only, for instance).

    `added` is of durations only.
    """

    alone: Summary | None = None
    together: Summary | None = None
    kept: Kept | None = None
    added: Added | None = None
