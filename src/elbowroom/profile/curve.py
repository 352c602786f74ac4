"""What a node's NIC transfers when n ranks use it at once: the curve that network intervals rest on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta

from elbowroom.documents import DocumentFormat
from elbowroom.errors import MachineError, UsageError

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


HALF_MORE = 1.5
"""Both directions together have this many times the bandwidth of one if each has a bandwidth of its own."""


class MessageCase(msgspec.Struct, frozen=True, kw_only=True):
    """Messages of `size` bytes by so many `senders` of a node at once, to another node or `inside` the node;
    `both`: in both directions.
    """

    size: int
    senders: int = 1
    inside: bool = False
    both: bool = False


class CalibrationTimes(msgspec.Struct, frozen=True, kw_only=True):
    """What the program answers: B/s in each direction by case and repetition (none where a case needs more
    ranks); ranks on the first two of `nodes`; seconds of a message of 4 B between them.
    """

    nodes: int
    ranks: tuple[int, int]
    bandwidths: tuple[tuple[float, ...], ...]
    latency: float | None


class CalibrationRow(msgspec.Struct, frozen=True, kw_only=True):
    """MB/s of all senders together in each direction: median, least and most of the repetitions."""

    size: int
    senders: int
    inside: bool
    both: bool
    bandwidth: float
    low: float
    high: float


class ProfileCalibration(msgspec.Struct, frozen=True, kw_only=True):
    """What `nic measure` prints and writes: the measured rows, and the curve that estimates of network
    time rest on; null where all ranks are on one node.
    """

    schema: str = "elbowroom/nic-calibration"
    version: int = 1
    mpi: str
    nodes: int
    rows: tuple[CalibrationRow, ...]
    curve: NicCurve | None


CALIBRATION = DocumentFormat(
    kind=ProfileCalibration,
    schema="elbowroom/nic-calibration",
    version=1,
    name="calibration",
    hint="name a file that `nic measure -o` wrote",
)

MEGA = 1e6


def cases(sizes: Sequence[int], ranks: int) -> list[MessageCase]:
    """All sizes for 1, 2, 4 … and all `ranks` of a node, between nodes and inside; both directions once."""
    return list(_cases(sizes, ranks))


def _cases(sizes: Sequence[int], ranks: int) -> Iterator[MessageCase]:
    for senders in range(1, ranks + 1):
        for size in sizes if _drawn(senders, ranks) else (max(sizes),):
            yield MessageCase(size=size, senders=senders)
            if 2 * senders <= ranks:
                yield MessageCase(size=size, senders=senders, inside=True)
    yield MessageCase(size=max(sizes), both=True)


def _drawn(senders: int, ranks: int) -> bool:
    """Whether all sizes are measured: powers of two and the last number. The others have the largest one."""
    return senders & (senders - 1) == 0 or senders == ranks


def calibration(requested: Sequence[MessageCase], measured: CalibrationTimes, mpi: str) -> ProfileCalibration:
    """The rows of what was measured, and the curve. MachineError where nothing was."""
    rows = tuple(
        CalibrationRow(
            **msgspec.structs.asdict(case),
            bandwidth=float(np.median(values)) / MEGA,
            low=min(values) / MEGA,
            high=max(values) / MEGA,
        )
        for case, values in zip(requested, measured.bandwidths, strict=True)
        if values
    )
    if not rows:
        raise MachineError(
            "there are too few ranks for any pair", field="ranks", hint="give 2 ranks for each node at least"
        )
    return ProfileCalibration(mpi=mpi, nodes=measured.nodes, rows=rows, curve=_curve(rows, measured.latency))


def _curve(rows: Sequence[CalibrationRow], latency: float | None) -> NicCurve | None:
    between = [row for row in rows if not row.inside and not row.both]
    if not between or latency is None:
        return None
    largest = max(row.size for row in between)
    total = {row.senders: row.bandwidth for row in between if row.size == largest}
    alone = sorted((row for row in between if row.senders == 1), key=lambda row: row.size)
    both = next((row.bandwidth for row in rows if row.both), None)
    return NicCurve(
        total=tuple(total[senders] * MEGA for senders in sorted(total)),
        latency=latency,
        sizes=tuple(float(row.size) for row in alone),
        relative=tuple(row.bandwidth / alone[-1].bandwidth for row in alone),
        duplex=both is None or 2 * both > HALF_MORE * total[1],
    )


def load_curve(file: str | Path) -> NicCurve:
    """The curve between nodes in such a file; UsageError where there is none."""
    curve = load_calibration(file).curve
    if curve is None:
        raise UsageError(
            "holds no curve between nodes", field="curve", value=str(file), hint="calibrate on two nodes"
        )
    return curve


def load_calibration(file: str | Path) -> ProfileCalibration:
    """From the file of `nic measure -o`; UsageError where it is none."""
    return CALIBRATION.read(Path(file))
