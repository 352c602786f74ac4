"""Sources of a loss by contrast: what a side loses in one case and not in another that lacks one thing."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from elbowroom.results.result import Kept, PointResult
from elbowroom.stats.interval import WithInterval


class ContrastSource(WithInterval, msgspec.Struct, frozen=True, kw_only=True):
    """A share of its rate that `victim` loses to the source `name`; `contrast` says which cases were
    compared, `points` are their ids. A negative loss is a gain. `low` and `high`: of a difference of two
    kept shares, the ends of both 95 % intervals; None where one has none.
    """

    name: str
    victim: str
    contrast: str
    value: float
    low: float | None = None
    high: float | None = None
    sms: int = 0
    points: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """`SM occupancy takes 9.5% (9.2% to 9.8%) of GEMM (idle SMs, k = 8)`."""
        ends = "" if self.low is None or self.high is None else f" ({self.low:.1%} to {self.high:.1%})"
        held = f", k = {self.sms}" if self.sms else ""
        return f"{self.name} takes {self.value:.1%}{ends} of {self.victim} ({self.contrast}{held})"


def loss(
    name: str, victim: str, contrast: str, item: PointResult, kept: Kept | None, sms: int = 0
) -> ContrastSource | None:
    """What a side lost beside something, from nothing beside it; None where that was not measured."""
    if kept is None:
        return None
    low, high = kept.bounds or (None, None)
    return ContrastSource(
        name=name,
        victim=victim,
        contrast=contrast,
        value=1 - kept.value,
        low=None if high is None else 1 - high,
        high=None if low is None else 1 - low,
        sms=sms,
        points=(item.id,),
    )


def difference(
    name: str, contrast: str, larger: ContrastSource | None, smaller: ContrastSource | None
) -> ContrastSource | None:
    """What one case costs more than another; None where one of them was not measured."""
    if larger is None or smaller is None:
        return None
    ends: Sequence[float | None] = (larger.low, larger.high, smaller.low, smaller.high)
    known = [end for end in ends if end is not None]
    low, high = (known[0] - known[3], known[1] - known[2]) if len(known) == 4 else (None, None)
    return ContrastSource(
        name=name,
        victim=larger.victim,
        contrast=contrast,
        value=larger.value - smaller.value,
        low=low,
        high=high,
        sms=larger.sms,
        points=(*larger.points, *smaller.points),
    )
