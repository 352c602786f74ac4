"""From the samples of a run to one result per point, with status and flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from elbowroom.points.payload import Records
from elbowroom.points.point import Point
from elbowroom.points.unit import Entry
from elbowroom.results.result import PointResult
from elbowroom.stats.bootstrap import weights
from elbowroom.stats.interval import Side, Summary
from elbowroom.stats.signed_ranks import FEWEST, Floats, Ints
from elbowroom.stats.summary import Samples, side_of, summarise

UNSTABLE_SHARE = 0.25  # of the phases: more, and the point is `not_stable`
DRIFT = 0.05  # a closing baseline this far from the median, and outside d1..d9, is `drift`

Mask = NDArray[np.bool_]


def results(
    points: Sequence[Point],
    samples: Samples,
    flags_by_point: Mapping[str, Sequence[str]] | None = None,
    *,
    failures: Mapping[str, str] | None = None,
    repetitions: int | None = None,
    entries: Mapping[str, Sequence[Entry]] | None = None,
    seed: int = 0,
    starts: bool = False,
) -> list[PointResult]:
    """One result per point, in the points' order.

    `flags_by_point`: flags of the probe, by point id; `failures`: reasons by id of points of which a
    repetition failed (a rank died or hung); `repetitions`: how many were asked for, so that fewer is
    `incomplete`; `entries`: the journal's, by id, from which workloads collect what else they measure. Void
    samples are left out and counted in the flag `void:N`; samples not stable are kept and counted likewise.
    `starts`: the run has several starts of the program, and intervals hold for others too.
    """
    columns = _SampleColumns(samples, len(points), starts)
    drawn: dict[int, NDArray[np.int16]] = {}
    return [
        _result(
            point,
            columns,
            columns.of(index),
            drawn,
            flags=tuple((flags_by_point or {}).get(point.id, ())),
            failure=(failures or {}).get(point.id),
            repetitions=repetitions,
            entries=(entries or {}).get(point.id, ()),
            seed=seed,
        )
        for index, point in enumerate(points)
    ]


class _SampleColumns:
    """The samples sorted by point, as arrays, with the rows of each point."""

    def __init__(self, samples: Samples, points: int, starts: bool) -> None:
        index = np.asarray(samples.point, dtype=np.int64)
        rows = np.argsort(index, kind="stable")
        self.ends: Ints = np.searchsorted(index[rows], np.arange(points + 1))
        self.value: Floats = np.asarray(samples.value, dtype=np.float64)[rows]
        self.repetition: Ints = np.asarray(samples.repetition, dtype=np.int64)[rows]
        self.closing: Mask = np.asarray(samples.closing, dtype=bool)[rows]
        self.together: Mask = (np.asarray(samples.phase, dtype="U2") == "AB")[rows]
        self.side = np.asarray(samples.side, dtype=np.str_)[rows]
        status = np.asarray(samples.status, dtype="U10")[rows]
        self.void: Mask = (status == "void") | ~np.isfinite(self.value)
        self.unstable: Mask = status == "not_stable"
        self.unit = np.asarray(samples.unit, dtype="U16")[rows]
        self.start = np.asarray(samples.start, dtype=np.int64)[rows] if starts else None

    def of(self, index: int) -> slice:
        return slice(int(self.ends[index]), int(self.ends[index + 1]))


def _result(
    point: Point,
    columns: _SampleColumns,
    rows: slice,
    drawn: dict[int, NDArray[np.int16]],
    *,
    flags: tuple[str, ...],
    failure: str | None,
    repetitions: int | None,
    entries: Sequence[Entry],
    seed: int,
) -> PointResult:
    good = ~columns.void[rows]
    main = good & ~columns.closing[rows]
    measured = len(np.unique(columns.repetition[rows][main]))
    if measured and measured not in drawn:
        drawn[measured] = weights(measured, seed)
    sides = {}
    more: list[str] = []
    for name in point.workload.sides:
        side_mask = columns.side[rows] == name
        sides[name] = _side(columns, rows, main & side_mask, drawn.get(measured), seed)
        closing = good & side_mask & columns.closing[rows]
        if _drifted(
            columns.value[rows][closing], _beside(columns, rows, main & side_mask, closing, sides[name])
        ):
            more.append(f"drift:{name}")
    void = int(np.count_nonzero(columns.void[rows]))
    unstable = int(np.count_nonzero(columns.unstable[rows] & main))
    more += [f"{word}:{count}" for word, count in (("void", void), ("not_stable", unstable)) if count]
    collected = point.workload.collect(point, Records(entries, sides, seed, columns.start is not None))
    failure = failure or collected.failure or None
    status, reason = _status(measured, repetitions, void, unstable, int(np.count_nonzero(main)), failure)
    return PointResult(
        **msgspec.structs.asdict(point),
        id=point.id,
        status=status,
        flags=tuple(dict.fromkeys((*flags, *more))),
        comp=sides["comp"],
        comm=sides["comm"] if collected.comm is None else collected.comm,
        reason=reason,
        payload=collected.payload,
    )


def _side(
    columns: _SampleColumns, rows: slice, mask: Mask, drawn: NDArray[np.int16] | None, seed: int
) -> Side:
    if not mask.any():
        return Side()
    value, repetition, together = columns.value[rows], columns.repetition[rows], columns.together[rows]
    apart, both = mask & ~together, mask & together
    start = None if columns.start is None else columns.start[rows]
    return side_of(
        value[apart],
        repetition[apart],
        value[both],
        repetition[both],
        unit=str(columns.unit[rows][mask][0]),
        seed=seed,
        drawn=drawn,
        starts=None if start is None else (start[apart], start[both]),
    )


def _beside(columns: _SampleColumns, rows: slice, mask: Mask, closing: Mask, side: Side) -> Summary | None:
    """What closing baselines are compared with: the side alone, of several starts that of the same one."""
    if columns.start is None or side.alone is None or not closing.any():
        return side.alone
    start = columns.start[rows]
    own = mask & ~columns.together[rows] & (start == start[closing][0])
    return summarise(columns.value[rows][own], side.alone.unit) if own.any() else None


def _drifted(closing: Floats, alone: Summary | None) -> bool:
    if closing.size == 0 or alone is None:
        return False
    now = float(np.median(closing))
    outside = not alone.d1 <= now <= alone.d9
    return outside and abs(now / alone.median - 1) > DRIFT if alone.median else outside


def _status(
    measured: int, wanted: int | None, void: int, unstable: int, kept: int, failure: str | None
) -> tuple[str, str]:
    """A point fails where its repetitions that stand are too few for an interval, or the lesser part."""
    if failure is not None and (measured < FEWEST or 2 * measured < (wanted or 0)):
        return "failed", failure
    if kept == 0:
        return "failed", f"all {void} samples are void" if void else "no sample was measured"
    if failure is not None or (wanted is not None and measured < wanted):
        of = f"{measured} of {wanted} repetitions measured"
        if wanted is None or measured >= wanted:
            of = f"{measured} repetitions measured"
        return "incomplete", f"{of}; {failure}" if failure else of
    if unstable > UNSTABLE_SHARE * kept:
        return "not_stable", f"{unstable} of {kept} samples found no steady state"
    return "ok", ""
