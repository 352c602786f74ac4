"""Samples around known truths, and results of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np

from elbowroom.points.accesses import WindowTimes
from elbowroom.points.point import Point
from elbowroom.points.unit import Entry
from elbowroom.results.points import results
from elbowroom.results.result import PointResult
from elbowroom.stats.summary import Samples

Row = tuple[int, int, bool, str, str, float, str, str]


def point(n: int = 1, kernel: str = "triad", metric: str = "bandwidth", size: int = 64_000_000) -> Point:
    return Point(
        plan="test",
        kernel=kernel,
        n=n,
        size=size,
        comp_node=0,
        comm_node=0,
        comm_core=0,
        metric=metric,  # type: ignore[arg-type]
        comm_cores=(0,),
    )


def samples(rows: Iterable[Row]) -> Samples:
    columns = list(zip(*rows, strict=True)) or [()] * 8
    return Samples(*columns)


def rows(
    index: int = 0,
    alone: float = 100.0,
    together: float = 64.0,
    comm: tuple[float, float] = (10.0, 8.0),
    unit: str = "MB/s",
    repetitions: int = 10,
    noise: float = 0.01,
) -> list[Row]:
    """Two alone and two together samples per repetition and side, around the truths."""
    rng = np.random.default_rng(index)
    made: list[Row] = []
    for repetition in range(repetitions):
        for phase, side, truth, its_unit in (
            ("A", "comp", alone, "MB/s"),
            ("AB", "comp", together, "MB/s"),
            ("B", "comm", comm[0], unit),
            ("AB", "comm", comm[1], unit),
        ):
            for _ in range(2):
                made.append(
                    (index, repetition, False, phase, side, truth * rng.normal(1, noise), its_unit, "ok")
                )
    return made


def only(made: Sequence[Row], **more: object) -> PointResult:
    return results([point()], samples(made), **more)[0]  # type: ignore[arg-type]


def entries(name: str, *records: dict[str, Any]) -> list[Entry]:
    """The entries of a point, one for each repetition."""
    return [Entry(point=name, repetition=number, record=record) for number, record in enumerate(records)]


def with_payload(item: PointResult, **fields: object) -> PointResult:
    """The result with these fields of its payload."""
    return msgspec.structs.replace(item, payload=msgspec.structs.replace(item.payload, **fields))


def window_entries(name: str, times: WindowTimes) -> list[Entry]:
    """The entries of a window of extraneous accesses with these one-way times."""
    phases = (
        [{"phase": phase, "comm": {"batches": values.ravel()}} for phase, values in (("B", b), ("AB", ab))]
        for b, ab in zip(times.without, times.after, strict=True)
    )
    return entries(name, *({"phases": both} for both in phases))
