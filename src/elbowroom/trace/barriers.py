"""When processes leave the same barrier (thesis, Fig. 3.13): not at the same time."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from elbowroom.draw.figure import Axis, Figure, Series
from elbowroom.trace.columns import END, Block, TracedJob

Ints = npt.NDArray[np.int64]

BARRIER = "MPI_Barrier"


class RankExit(msgspec.Struct, frozen=True, kw_only=True):
    """How much later than the first process a rank leaves barriers, ns: median, last decile, most."""

    rank: int
    median_ns: float
    d9_ns: float
    most_ns: int


class BarrierExits(msgspec.Struct, frozen=True, kw_only=True):
    """Of barriers of all ranks: how much later than the first process the last one leaves, ns; by rank."""

    barriers: int
    median_ns: float
    d9_ns: float
    most_ns: int
    ranks: tuple[RankExit, ...]


def barrier_exits(job: TracedJob, events: Block) -> Ints:
    """How much later than the first process each leaves each barrier, ns: (barriers, ranks); (0, 0) where not
    all ranks record the same number of barriers, so that nobody knows which belong together.
    """
    none = np.zeros((0, 0), dtype=np.int64)
    types = [index for index, kind in enumerate(job.types) if kind.name == BARRIER]
    ranks = np.array([thread.rank for thread in job.threads] or [0], dtype=np.int64)
    ends = events[np.isin(events["type"], types) & (events["kind"] == END)]
    exits = [np.sort(ends["time"][ranks[ends["thread"]] == rank]) for rank in range(len(job.ranks))]
    if len(exits) < 2 or not len(exits[0]) or len({len(times) for times in exits}) > 1:
        return none
    table = np.stack(exits, axis=1)
    delays: Ints = table - table.min(axis=1, keepdims=True)
    return delays


def exits_summary(delays: Ints, ranks: Sequence[int]) -> BarrierExits | None:
    """None where no barrier of all ranks is known."""
    if not delays.size:
        return None
    last = delays.max(axis=1)
    return BarrierExits(
        barriers=len(delays),
        median_ns=float(np.median(last)),
        d9_ns=float(np.quantile(last, 0.9)),
        most_ns=int(last.max()),
        ranks=tuple(
            RankExit(
                rank=rank,
                median_ns=float(np.median(own)),
                d9_ns=float(np.quantile(own, 0.9)),
                most_ns=int(own.max()),
            )
            for rank, own in zip(ranks, delays.T, strict=True)
        ),
    )


MOST_CURVES = 6
"""Ranks that are drawn, evenly chosen among all, beside the last of all."""


def exits_figure(delays: Ints, ranks: Sequence[int]) -> Figure:
    """The distribution of the delays: which share of the barriers a process has left by then."""
    chosen = np.unique(np.linspace(0, len(ranks) - 1, MOST_CURVES).astype(np.int64))
    curves = [(f"rank {ranks[place]}", delays[:, place]) for place in chosen]
    curves.append(("last of all", delays.max(axis=1)))
    return Figure(
        name="barriers",
        title=f"When processes leave {len(delays)} barriers",
        x=Axis(label="Time since the first process left (µs)"),
        left=Axis(label="Share of the barriers", reach=1.0),
        series=tuple(
            Series(
                name=name,
                hue="black" if name == "last of all" else "blue",
                style="line",
                drawn="smooth",
                x=tuple((np.sort(values) / 1e3).tolist()),
                y=tuple(((np.arange(len(values)) + 1) / len(values)).tolist()),
                value="share",
            )
            for name, values in curves
        ),
        caption="Times of two ranks are as accurate as their clocks' comparison (trace sync).",
    )
