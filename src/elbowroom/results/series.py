"""Extraneous accesses, window by window: from one-way times to what each size took (Tan and Jarvis 2012).

A window is one point: some sizes of accesses, each with a few messages after them and as many without,
interleaved, in every repetition. Times are in us.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from elbowroom.points.point import Point
from elbowroom.results.result import Misses, Side, Spread, WindowSeries, Work
from elbowroom.results.summary import side_of
from elbowroom.stats.bootstrap import weights
from elbowroom.stats.signed_ranks import Floats, Ints

RESAMPLES = 200
"""Of a window's medians: thousands of messages in each of hundreds of windows; fewer than elsewhere."""

DECIMALS = 4
"""Of us: 0.1 ns, below the resolution of any clock. The journal keeps all digits."""

LEVELS = ("L1", "L2", "L3")
RANKS = ("sender", "receiver")
Level = Literal["L1", "L2", "L3"]
Rank = Literal["sender", "receiver"]


@dataclass
class WindowTimes:
    """Times of the repetitions of one window: one array of shape (sizes, messages of a size) for each
    repetition and phase, after accesses and without; misses per (source, rank, level), one array of shape
    (sizes,) for each repetition; work per (rank, name) likewise; `starts_…`: which start of the program each
    array is from.
    """

    after: list[Floats] = field(default_factory=list)
    without: list[Floats] = field(default_factory=list)
    starts_after: list[int] = field(default_factory=list)
    starts_without: list[int] = field(default_factory=list)
    misses: dict[tuple[str, str, str], list[Floats]] = field(default_factory=dict)
    work: dict[tuple[str, str], list[Floats]] = field(default_factory=dict)


def add(times: WindowTimes, sizes: int, record: Mapping[str, object]) -> str:
    """Adds a repetition's record (docs/reference/protocol.md); what is wrong with it, or the empty string.

    Phase B holds the messages without accesses, AB those after them; a void phase is left out.
    """
    for phase in cast(Sequence[Mapping[str, object]], record.get("phases", ())):
        comm = cast(Mapping[str, object], phase.get("comm") or {})
        batches = np.asarray(comm.get("batches", ()), dtype=np.float64)
        if phase.get("status") == "void" or phase.get("phase") not in ("B", "AB"):
            continue
        if batches.size == 0 or batches.size % sizes or not np.isfinite(batches).all():
            return f"{batches.size} one-way times were answered for {sizes} sizes"
        together = phase["phase"] == "AB"
        (times.after if together else times.without).append(batches.reshape(sizes, -1))
        start = cast(int, record.get("start", 0))
        (times.starts_after if together else times.starts_without).append(start)
        if phase["phase"] == "AB":
            misses = cast(Mapping[str, object], phase.get("misses") or {})
            _add_misses(times, sizes, misses)
            _add_misses(times, sizes, cast(Mapping[str, object], misses.get("measured") or {}))
            _add_work(times, sizes, cast(Mapping[str, Mapping[str, object]], misses.get("work") or {}))
    return ""


def _add_misses(times: WindowTimes, sizes: int, counted: Mapping[str, object]) -> None:
    for rank in RANKS:
        for level, counts in cast(Mapping[str, Sequence[float]], counted.get(rank) or {}).items():
            if level in LEVELS and len(counts) == sizes:
                key = (str(counted.get("source")), rank, level)
                times.misses.setdefault(key, []).append(np.asarray(counts, dtype=np.float64))


def _add_work(times: WindowTimes, sizes: int, counted: Mapping[str, Mapping[str, object]]) -> None:
    for rank in RANKS:
        for name, counts in cast(Mapping[str, Sequence[float]], counted.get(rank) or {}).items():
            if len(counts) == sizes:
                times.work.setdefault((rank, name), []).append(np.asarray(counts, dtype=np.float64))


def series_of(point: Point, times: WindowTimes) -> WindowSeries | None:
    """The window size by size; None where one of the phases is missing."""
    sizes = tuple(point.workload.sizes)
    if not sizes or not times.after or not times.without:
        return None
    return WindowSeries(
        sizes=sizes,
        after=_spread(times.after),
        without=_spread(times.without),
        misses=tuple(
            Misses(
                level=cast(Level, level),
                rank=cast(Rank, rank),
                source=cast(Literal["measured", "modelled"], source),
                count=_rounded(np.mean(counts, axis=0)),
            )
            for (source, rank, level), counts in sorted(times.misses.items())
            if source == "measured"
            or (source == "modelled" and ("measured", rank, level) not in times.misses)
        ),
        work=tuple(
            Work(name=name, rank=cast(Rank, rank), count=_rounded(np.mean(counts, axis=0)))
            for (rank, name), counts in sorted(times.work.items())
        ),
        sender=(point.comm_cores or (point.comm_core,))[0],
        receiver=(point.peer_cores or point.comm_cores or (point.comm_core,))[0],
        bystanders=point.comp_cores,
    )


def _spread(repetitions: Sequence[Floats]) -> Spread:
    values = np.concatenate(repetitions, axis=1)
    d1, median, d9 = np.quantile(values, (0.1, 0.5, 0.9), axis=1)
    return Spread(
        median=_rounded(median),
        d1=_rounded(d1),
        d9=_rounded(d9),
        minimum=_rounded(values.min(axis=1)),
        mean=_rounded(values.mean(axis=1)),
        minima=tuple(_rounded(repetition.min(axis=1)) for repetition in repetitions),
    )


def _rounded(values: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(np.round(values, DECIMALS).tolist())


def side_of_window(times: WindowTimes, seed: int, starts: bool = False) -> Side:
    """One-way times of all messages of the window, alone (without accesses) and together (after them).

    The intervals are those of medians resampled over the sizes, the messages of one size together with and
    without accesses, as they were measured next to each other. With several `starts` of the program they are
    those of the starts, each repetition with the median of its messages.
    """
    if not times.after or not times.without:
        return Side()
    if starts:
        medians = [np.array([np.median(one) for one in side]) for side in (times.without, times.after)]
        numbers = [np.arange(len(side)) for side in medians]
        of_start = np.array(times.starts_without), np.array(times.starts_after)
        return side_of(medians[0], numbers[0], medians[1], numbers[1], unit="us", seed=seed, starts=of_start)
    (alone, apart), (together, joined) = _column(times.without), _column(times.after)
    return side_of(
        alone, apart, together, joined, unit="us", seed=seed, drawn=_weights(len(times.after[0]), seed)
    )


def _column(repetitions: Sequence[Floats]) -> tuple[Floats, Ints]:
    """All messages in one column, and the number of each one's size."""
    values = np.concatenate(repetitions, axis=1)
    return values.ravel(), np.repeat(np.arange(values.shape[0]), values.shape[1])


@lru_cache(maxsize=8)
def _weights(sizes: int, seed: int) -> NDArray[np.int16]:
    return weights(sizes, seed, RESAMPLES)
