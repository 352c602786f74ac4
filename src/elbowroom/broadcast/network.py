"""The parameters of a network for broadcasts (lib/broadcast/flows.hpp), and how measured times give them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from elbowroom.broadcast.measured import read_bench
from elbowroom.documents import DocumentFormat
from elbowroom.errors import UsageError

INLINE_LIMIT = 4096
"""Bytes up to which data travel with their announcement (elbow_broadcast_settings)."""

SMALL = 64
"""Bytes up to which the time to transfer a message is none beside the time to handle it."""

_HINT = "measure flat trees: 4 B on several numbers of ranks, and a large size on 2 ranks"


class Network(msgspec.Struct, frozen=True, kw_only=True):
    """Each process has a link to one switch: its `latency` (s; a message passes two links) and `bandwidth`
    (B/s). `overhead`: s of a process for each message that it sends or receives. `forwarding`: s of
    computation that a process loses for each byte that it forwards.
    """

    latency: float
    bandwidth: float
    overhead: float = 0.0
    forwarding: float = 0.0

    def __post_init__(self) -> None:
        for name in ("latency", "overhead", "forwarding"):
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                raise UsageError("must be 0 or greater", field=name, value=value, hint="give 0 or more")
        if not 0 < self.bandwidth < math.inf:
            raise UsageError(
                "must be positive", field="bandwidth", value=self.bandwidth, hint="give B/s: 6e9"
            )


class TunedBroadcast(msgspec.Struct, frozen=True, kw_only=True):
    """The way of the least predicted time for `size` bytes to `recipients`; `window`: bytes in flight from a
    rank.
    """

    size: int
    recipients: int
    tree: str
    segment: int
    window: int
    time_us: float


class NetworkDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What `broadcast tune` prints with --json and writes with -o, and `simulate --network` reads."""

    schema: str = "elbowroom/broadcast-network"
    version: int = 1
    network: Network
    table: tuple[TunedBroadcast, ...] = ()


NETWORK_FORMAT = DocumentFormat(
    kind=NetworkDocument,
    schema="elbowroom/broadcast-network",
    version=1,
    name="network",
    hint="elbowroom broadcast tune -o network.json writes one",
)


def load_network(file: str | Path) -> Network:
    """The parameters in a file of `broadcast tune -o`; UsageError where it is none."""
    return NETWORK_FORMAT.read(Path(file)).network


class MeasuredTime(msgspec.Struct, frozen=True, kw_only=True):
    """The repetitions of a broadcast, us."""

    median: float


class MeasuredBroadcast(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `broadcast bench --json`: `size` bytes over `tree` on `ranks` ranks, of which one is the
    root.
    """

    tree: str
    ranks: int
    size: int
    time: MeasuredTime
    segment: int = 0


def fit_broadcast_network(file: str | Path) -> Network:
    """The parameters that fit what `broadcast bench --json` printed; UsageError for another file, and for
    rows that do not determine all of them.
    """
    return fit_network(read_bench(file, list[MeasuredBroadcast]))


def fit_network(rows: Sequence[MeasuredBroadcast]) -> Network:
    """The network on which flat trees, and messages to one recipient, take the times of the rows.

    A message to one recipient takes two latencies, two overheads and its bytes; a larger one than the inline
    limit three times the former two, since it is announced and answered first. The last of n small messages
    leaves after n overheads. Least squares of relative errors. UsageError where the rows do not tell all.
    """
    factors, times = [], []
    for row in rows:
        row_factors = _factors(row)
        if row_factors is not None and row.time.median > 0:
            factors.append(row_factors)
            times.append(row.time.median * 1e-6)
    matrix = np.array(factors).reshape(-1, 3)
    weights = 1 / np.array(times)
    if np.linalg.matrix_rank(matrix) < 3 or not (matrix[:, 2] > INLINE_LIMIT).any():
        raise UsageError(
            "do not determine latency, overhead and bandwidth", field="rows", value=len(rows), hint=_HINT
        )
    latency, overhead, seconds_per_byte = _not_negative(matrix * weights[:, None])
    if seconds_per_byte <= 0:
        raise UsageError(
            "show no bandwidth: large data take no longer", field="rows", value=len(rows), hint=_HINT
        )
    return Network(latency=latency, overhead=overhead, bandwidth=1 / seconds_per_byte)


def _factors(row: MeasuredBroadcast) -> tuple[float, float, float] | None:
    """How often the row's time has the latency of a link, the overhead, and the time of a byte; None for rows
    that are no sum of these.
    """
    recipients = row.ranks - 1
    if row.size <= SMALL and (recipients == 1 or row.tree == "flat"):
        return 2.0, recipients + 1.0, float(row.size)
    if recipients == 1 and row.size > INLINE_LIMIT and row.segment == 0:
        return 6.0, 6.0, float(row.size)
    return None


def _not_negative(matrix: NDArray[np.float64]) -> tuple[float, float, float]:
    """The least squares of `matrix` times the parameters against ones; parameters below 0 are 0."""
    free = [0, 1, 2]
    while True:
        solution = np.zeros(3)
        solution[free] = np.linalg.lstsq(matrix[:, free], np.ones(len(matrix)), rcond=None)[0]
        negative = [column for column in free if solution[column] < 0]
        if not negative:
            return float(solution[0]), float(solution[1]), float(solution[2])
        free = [column for column in free if column not in negative]
