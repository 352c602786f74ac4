"""Figures of `gpu-overlap`: what each victim keeps over the SMs that a mover holds."""

from __future__ import annotations

from collections.abc import Sequence

from elbowroom.draw.figure import Axis, Figure, Hue, Series
from elbowroom.experiments.common.sentences import grouped
from elbowroom.experiments.gpu_overlap.rows import VICTIMS, OverlapRow, labels, rows
from elbowroom.machine.topology import Machine
from elbowroom.results.result import PointResult

SMS = Axis(label="SMs that the mover holds, k (0: a copy engine)", whole=True)


def figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:  # noqa: ARG001
    """One for each victim, a line for each mover."""
    by_victim = grouped([row for row in rows(results) if row.kept is not None], lambda row: row.victim)
    return tuple(_figure(victim, group) for victim, group in by_victim.items())


def _figure(victim: str, group: Sequence[OverlapRow]) -> Figure:
    called = labels(group)
    lines = grouped(group, lambda row: called[row.point] + ", mover first" * (row.first == "mover"))
    stand_in = " (stand-in)" * any(row.stand_in for row in group)
    return Figure(
        name=f"gpu-overlap-{victim}",
        title=f"{VICTIMS[victim]} beside movers{stand_in}",
        x=SMS,
        left=Axis(label="Kept (1 = undisturbed)", reference=1.0, reach=0.0),
        series=tuple(_line(label, of_line) for label, of_line in lines.items()),
        caption="Whiskers and bands are 95 % intervals.",
    )


def _hue(row: OverlapRow) -> Hue:
    """Blue for copy engines, red for movers that hold SMs, black for a product that leaves SMs free."""
    if row.sms == 0:
        return "blue"
    return "black" if row.mover == "sm_target" else "red"


def _line(label: str, group: Sequence[OverlapRow]) -> Series:
    known = sorted(((row, row.kept) for row in group if row.kept is not None), key=lambda pair: pair[0].sms)
    return Series(
        name=label,
        hue=_hue(group[0]),
        style="line",
        x=tuple(float(row.sms) for row, _ in known),
        y=tuple(kept.value for _, kept in known),
        low=tuple(kept.ends(kept.value)[0] for _, kept in known),
        high=tuple(kept.ends(kept.value)[1] for _, kept in known),
        points=tuple(row.point for row, _ in known),
        drawn="curve" if len(known) > 1 else "points",
        value="kept",
        band="95 % interval",
    )
