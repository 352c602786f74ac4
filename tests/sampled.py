"""Samples around known truths, and results of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from elbowroom.points.point import Point
from elbowroom.results.points import results
from elbowroom.results.result import PointResult
from elbowroom.results.summary import Samples

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
