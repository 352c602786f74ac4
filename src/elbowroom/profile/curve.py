"""What a node's NIC transfers when n ranks use it at once: the curve that network intervals rest on."""

from __future__ import annotations

from typing import Annotated

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta

Positive = Annotated[float, Meta(gt=0)]

ESTIMATED = "estimated from the profile"


class NicCurve(msgspec.Struct, frozen=True, kw_only=True):
    """A NIC, each direction. `total[n - 1]`: bandwidth in B/s of n ranks of a node that send large messages
    at once, all together; more ranks than that get the last one. One value: n senders share one bandwidth.

    `latency`: seconds before a message's first byte is transferred; `sizes` (B, rising) and `relative`: the
    bandwidth of messages of these sizes relative to large ones, latency left out; `eager`: a message up to
    this size leaves when it is sent, a larger one when its receive is posted too. `duplex`: whether both
    directions have the bandwidth each, or share one. `source`: where the curve comes from.
    """

    total: Annotated[tuple[Positive, ...], Meta(min_length=1)]
    latency: Annotated[float, Meta(ge=0)] = 0.0
    sizes: tuple[Positive, ...] = ()
    relative: tuple[Positive, ...] = ()
    eager: int = 1 << 16
    duplex: bool = True
    source: str = "calibrated"

    @property
    def bandwidth(self) -> float:
        """Of one sender, B/s."""
        return self.total[0]

    def work(self, sizes: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Bytes of large messages that take as long as messages of these sizes."""
        if not self.sizes:
            return sizes
        logs = np.log(np.maximum(sizes, 1.0))
        slower = np.interp(logs, np.log(self.sizes), np.log(self.relative))
        result: npt.NDArray[np.float64] = sizes / np.exp(slower)
        return result

    def totals(self, most: int) -> list[float]:
        """Bandwidth of 0, 1, 2 … `most` senders together, B/s."""
        return [self.total[0], *(self.total[min(n, len(self.total)) - 1] for n in range(1, most + 1))]


def shared(bandwidth: float, *, source: str, latency: float = 0.0, eager: int = 1 << 16) -> NicCurve:
    """n senders share `bandwidth` (B/s): each takes n times longer."""
    return NicCurve(total=(bandwidth,), latency=latency, eager=eager, source=source)


BUSIEST = 0.9
"""Of the bytes; the remaining ones were transferred faster than what counts as the bandwidth."""


def estimated_bandwidth(
    start: npt.NDArray[np.float64], end: npt.NDArray[np.float64], sizes: npt.NDArray[np.float64]
) -> float | None:
    """The bandwidth (B/s) that a node's messages [start, end] (seconds) show; None where there are none.

    In each period in which at least one message was in flight: bytes / length. The value that 90 % of the
    bytes stay below. Periods with waiting inside make it too low, so it is a lower estimate.
    """
    good = (end > start) & (sizes > 0)
    if not good.any():
        return None
    start, end, sizes = start[good], end[good], sizes[good]
    order = np.argsort(start, kind="stable")
    start, end, sizes = start[order], end[order], sizes[order]
    until = np.maximum.accumulate(end)
    first = np.flatnonzero(np.r_[True, start[1:] > until[:-1]])
    length = until[np.r_[first[1:] - 1, len(start) - 1]] - start[first]
    moved = np.add.reduceat(sizes, first)
    rates = moved / length
    ranked = np.argsort(rates)
    part = np.cumsum(moved[ranked]) / moved.sum()
    return float(rates[ranked[np.searchsorted(part, BUSIEST)]])
