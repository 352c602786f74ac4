"""The calibration of a NIC: what n senders of a node get together, by size, and the curve that follows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np

from elbowroom.documents import DocumentFormat
from elbowroom.errors import MachineError, UsageError
from elbowroom.profile.curve import NicCurve

HALF_MORE = 1.5
"""Both directions together have this many times the bandwidth of one if each has a bandwidth of its own."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """Messages of `size` bytes by so many `senders` of a node at once, to another node or `inside` the node;
    `both`: in both directions.
    """

    size: int
    senders: int = 1
    inside: bool = False
    both: bool = False


class MeasuredCases(msgspec.Struct, frozen=True, kw_only=True):
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


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """What `profile calibrate` prints and writes: the measured rows, and the curve that estimates of network
    time rest on; null where all ranks are on one node.
    """

    schema: str = "elbowroom/nic-calibration"
    version: int = 1
    mpi: str
    nodes: int
    rows: tuple[CalibrationRow, ...]
    curve: NicCurve | None


CALIBRATION = DocumentFormat(
    kind=Calibration,
    schema="elbowroom/nic-calibration",
    version=1,
    name="calibration",
    hint="name a file that `profile calibrate -o` wrote",
)

MEGA = 1e6


def cases(sizes: Sequence[int], ranks: int) -> list[Case]:
    """All sizes for 1, 2, 4 … and all `ranks` of a node, between nodes and inside; both directions once."""
    return list(_cases(sizes, ranks))


def _cases(sizes: Sequence[int], ranks: int) -> Iterator[Case]:
    for senders in range(1, ranks + 1):
        for size in sizes if _drawn(senders, ranks) else (max(sizes),):
            yield Case(size=size, senders=senders)
            if 2 * senders <= ranks:
                yield Case(size=size, senders=senders, inside=True)
    yield Case(size=max(sizes), both=True)


def _drawn(senders: int, ranks: int) -> bool:
    """Whether all sizes are measured: powers of two and the last number. The others have the largest one."""
    return senders & (senders - 1) == 0 or senders == ranks


def calibration(asked: Sequence[Case], measured: MeasuredCases, mpi: str) -> Calibration:
    """The rows of what was measured, and the curve. MachineError where nothing was."""
    rows = tuple(
        CalibrationRow(
            **msgspec.structs.asdict(case),
            bandwidth=float(np.median(values)) / MEGA,
            low=min(values) / MEGA,
            high=max(values) / MEGA,
        )
        for case, values in zip(asked, measured.bandwidths, strict=True)
        if values
    )
    if not rows:
        raise MachineError(
            "there are too few ranks for any pair", field="ranks", hint="give 2 ranks for each node at least"
        )
    return Calibration(mpi=mpi, nodes=measured.nodes, rows=rows, curve=_curve(rows, measured.latency))


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


def load_calibration(file: str | Path) -> Calibration:
    """From the file of `profile calibrate -o`; UsageError where it is none."""
    return CALIBRATION.read(Path(file))
