"""What a run of `kernels` is drawn with: both panels of Fig. 10 of Denis et al. (2021), strong scaling, and
over arithmetic intensity where there is one number of cores only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from elbowroom.draw.figure import Axis, Drawn, Figure, Series
from elbowroom.experiments.common.panels import CORES
from elbowroom.experiments.kernels.rows import TaskRow, cases, rows
from elbowroom.machine.topology import Machine
from elbowroom.results.result import PointResult

Triple = tuple[float, float, float]
Of = Callable[[TaskRow], Triple | None]

INTENSITY = Axis(label="Arithmetic intensity (flop/B)", scale="log10")
STALLED = "Share of the time stalled on memory"


def over_cores(table: Sequence[TaskRow]) -> tuple[Figure, ...]:
    """Fig. 10: bandwidth of sends, normalised to the largest, and the share of the time that cores wait."""
    sends = Figure(
        name="kernels-sends",
        title="Bandwidth of sends while computing",
        x=CORES,
        left=Axis(label="Normalised bandwidth of sends", reference=1.0),
        series=_lines(table, lambda row: row.normalised, _n, "communication", "normalised"),
        caption="Relative to the largest over the numbers of cores; bands are 95 % intervals.",
    )
    return tuple(figure for figure in (sends, _stalled(table, CORES, _n, "curve")) if figure.series)


def over_intensity(table: Sequence[TaskRow]) -> tuple[Figure, ...]:
    """The same for one number of cores, where lines have one point: over the arithmetic intensity."""
    known = [row for row in table if row.intensity is not None]
    sends = Figure(
        name="kernels-sends",
        title="What sends keep of their bandwidth while computing",
        x=INTENSITY,
        left=Axis(label="Kept by sends (1 = undisturbed)", reach=0.0),
        series=_lines(known, _kept, _intensity, "communication", "kept", "points"),
        caption="together/alone; whiskers are 95 % intervals.",
    )
    return tuple(
        figure for figure in (sends, _stalled(known, INTENSITY, _intensity, "points")) if figure.series
    )


def scaling(table: Sequence[TaskRow]) -> tuple[Figure, ...]:
    """The time of a whole solution or product over the number of computing cores."""
    figure = Figure(
        name="kernels-time",
        title="Strong scaling",
        x=CORES,
        left=Axis(label="Time (ms)", scale="log10"),
        series=_lines(table, _time, _n, "computation", "median"),
        caption="The same matrices for every number of cores; bands are 95 % intervals.",
    )
    return (figure,) if figure.series else ()


def _stalled(table: Sequence[TaskRow], axis: Axis, x: Callable[[TaskRow], float], drawn: Drawn) -> Figure:
    modelled = {row.source for row in table if row.stalled is not None} == {"modelled"}
    caption = "Modelled from the arithmetic intensity and the memory bandwidth: no counter was read."
    return Figure(
        name="kernels-stalled",
        title="Cores that wait for memory" + " (modelled)" * modelled,
        x=axis,
        left=Axis(label=STALLED, reach=0.0),
        series=_lines(table, _waiting, x, "computation", "share", drawn),
        caption=caption if modelled else "",
    )


def _lines(
    table: Sequence[TaskRow],
    of: Of,
    x: Callable[[TaskRow], float],
    side: Literal["computation", "communication"],
    value: str,
    drawn: Drawn = "curve",
) -> tuple[Series, ...]:
    """One line for each task and build; what is not known is left out."""
    lines = []
    for group in cases(table):
        known = [(row, triple) for row in group if (triple := of(row)) is not None]
        if known:
            banded = any(low != high for _, (_, low, high) in known)
            lines.append(
                Series(
                    name=known[0][0].name,
                    side=side,
                    style="line",
                    x=tuple(x(row) for row, _ in known),
                    y=tuple(triple[0] for _, triple in known),
                    low=tuple(triple[1] for _, triple in known) if banded else (),
                    high=tuple(triple[2] for _, triple in known) if banded else (),
                    points=tuple(row.item.id for row, _ in known),
                    drawn=drawn,
                    value=value,
                    band="95 % interval",
                )
            )
    return tuple(lines)


def _n(row: TaskRow) -> float:
    return float(row.n)


def _intensity(row: TaskRow) -> float:
    return row.intensity or 0.0


def _kept(row: TaskRow) -> Triple | None:
    return None if row.kept is None else (row.kept.value, *row.kept.ends(row.kept.value))


def _waiting(row: TaskRow) -> Triple | None:
    return None if row.stalled is None else (row.stalled, row.stalled, row.stalled)


def _time(row: TaskRow) -> Triple | None:
    if row.time is None:
        return None
    low, high = row.time.ends(row.time.median)
    return row.time.median / 1e3, low / 1e3, high / 1e3


def figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:  # noqa: ARG001
    """Over computing cores the two panels of Fig. 10 and the strong scaling; of a single number of cores what
    sends keep and cores wait over the arithmetic intensity.
    """
    table = rows(results)
    if len({row.n for row in table}) > 1:
        return (*over_cores(table), *scaling(table))
    return over_intensity(table)
