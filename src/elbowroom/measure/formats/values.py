"""What the formats have in common: the values of a run one by one, and why others are missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from elbowroom.errors import UsageError
from elbowroom.measure.results import Results
from elbowroom.results.result import PointResult
from elbowroom.stats.interval import Side, Summary

SideName = Literal["comp", "comm"]
Style = Literal["alone", "together"]

SIDES: tuple[SideName, ...] = ("comp", "comm")
STYLES: tuple[Style, ...] = ("alone", "together")
NAMES = {"comp": "computation", "comm": "communication"}


class SideValue(msgspec.Struct, frozen=True, kw_only=True):
    """What one side of a point did alone or together."""

    point: PointResult
    side: SideName
    style: Style
    summary: Summary


def side_of(point: PointResult, side: SideName) -> Side:
    """One side of a point."""
    return point.comp if side == "comp" else point.comm


def values(points: Sequence[PointResult]) -> Iterator[SideValue]:
    """All values of points, in their order; what was not measured is left out."""
    for point in points:
        for side in SIDES:
            for style in STYLES:
                summary: Summary | None = getattr(side_of(point, side), style)
                if summary is not None:
                    yield SideValue(point=point, side=side, style=style, summary=summary)


def measured(results: Results, form: str) -> tuple[PointResult, ...]:
    """The points of a run; UsageError where none has a value."""
    if not any(True for _ in values(results.points)):
        raise UsageError(
            "has nothing to write: the run has no measured value",
            field="format",
            value=form,
            hint="continue it: elbowroom run --resume RUN",
        )
    return results.points


def missing(point: PointResult) -> str:
    """Why a value of a point is missing."""
    return f"n/a, {point.reason or point.status}" if point.status != "ok" else "n/a, not measured"


def source(results: Results) -> str:
    """The program, plan, machine and date of a run, in one line; what a virtual machine answered says so."""
    manifest = results.manifest
    virtual = " (virtual machine, nothing was measured)" * results.machine.virtual
    name = results.machine.name or "this machine"
    return f"elbowroom {manifest.elbowroom}: {manifest.plan['name']} on {name}{virtual}, {manifest.created}"
