"""The points packed for the page's table: arrays of columns, small enough for 10,000 points.

Repeated words (kernel, size, placement, status ...) are stored once and referred to by index. Medians keep
five significant digits, deciles and intervals four. The run folder has all digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from elbowroom import quantities
from elbowroom.points.point import Point
from elbowroom.quantities import format_size, number, ranges
from elbowroom.results.result import PointResult
from elbowroom.stats.interval import Kept, Side, Summary

DIGITS = {"median": 5, "value": 5, "low": 4, "high": 4, "d1": 4, "d9": 4, "count": 9}
_Value = TypeVar("_Value", float, str)
SUMMARY_FIELDS = ("median", "d1", "d9", "low", "high", "count")
KEPT_FIELDS = ("value", "low", "high")


class CoreUse(msgspec.Struct, frozen=True, kw_only=True):
    """The cores that a point occupied on the first host, also those of its peer ranks."""

    comp_cores: tuple[int, ...] = ()
    comm_cores: tuple[int, ...] = ()
    peer_cores: tuple[int, ...] = ()


def use_of(point: Point, hosts: int) -> CoreUse:
    """The cores that a point occupies on the first of `hosts`: of all the processes it has there."""
    if point.placements:
        return CoreUse(
            comp_cores=tuple(sorted({core for p in point.placements for core in p.comp_cores})),
            comm_cores=tuple(sorted({core for p in point.placements for core in p.comm_cores})),
        )
    return CoreUse(
        comp_cores=point.comp_cores,
        comm_cores=point.comm_cores or (point.comm_core,),
        peer_cores=point.peer_cores if hosts < 2 else (),
    )


def pack(results: Sequence[PointResult], uses: Mapping[str, CoreUse]) -> dict[str, Any]:
    """The table as plain data: `words` (by column: labels, and the index of each row's), `numbers`, `sides`,
    `uses`.
    """
    return {
        "count": len(results),
        "words": {
            "kernel": _words((kernel_label(r), kernel_label(r)) for r in results),
            "size": _words((r.size, size_label(r)) for r in results),
            "metric": _words((metric_label(r), metric_label(r)) for r in results),
            "variant": _words((variant_label(r), variant_label(r)) for r in results),
            "status": _words((r.status, r.status) for r in results),
            "flags": _words((" ".join(r.flags), " ".join(r.flags)) for r in results),
            "reason": _words((r.reason, r.reason) for r in results),
        },
        "numbers": {
            name: [getattr(r, name) for r in results] for name in ("n", "comp_node", "comm_node", "comm_core")
        },
        "sides": {
            "comp": _side([r.comp for r in results]),
            "comm": _side([r.comm for r in results]),
        },
        "uses": _uses(results, uses),
    }


def kernel_label(result: PointResult) -> str:
    """The kernel, and whether it is there as the control that tells if the machine was quiet."""
    if title := result.workload.title:
        return title
    return result.kernel if result.role == "point" else f"{result.kernel} ({result.role})"


def metric_label(result: PointResult) -> str:
    """What the communication's value is; of an application all values are durations of a step's parts."""
    return result.workload.facts.quantity or result.metric


def size_label(result: PointResult) -> str:
    """The message size; an application's and a program's messages have sizes of their own."""
    return format_size(result.size) if result.size else "–"


def placement_label(result: PointResult) -> str:
    """Where computations' data, communications' data and the communication thread were."""
    core = "unknown" if result.comm_core < 0 else result.comm_core
    return f"comp {result.comp_node} · comm {result.comm_node} · core {core}"


def variant_label(result: PointResult) -> str:
    """What sets a point apart besides kernel, size and placement; empty for the usual ping-pong."""
    if label := result.workload.labels(result.comm_threads).variant:
        return label
    parts: list[str] = [] if result.pattern == "pingpong" else [result.pattern]
    if result.cursor != 1:
        parts.append(f"cursor {result.cursor}")
    if result.cursor != 1 and result.arithmetic_intensity is not None:
        parts.append(f"{number(result.arithmetic_intensity, 3)} flop/B")
    if result.comm_threads != 1:
        parts.append(f"{result.comm_threads} communication threads")
    if result.processes != "node":
        parts.append(f"one process per {result.processes}")
    if result.reuse != "same":
        parts.append(f"buffers: {result.reuse}")
    if result.core_khz is not None:
        parts.append(f"core {number(result.core_khz / 1000)} MHz")
    if result.uncore_khz is not None:
        parts.append(f"uncore {number(result.uncore_khz / 1000)} MHz")
    if result.turbo is not None:
        parts.append("turbo" if result.turbo else "no turbo")
    if result.governor is not None:
        parts.append(f"governor {result.governor}")
    return ", ".join(parts)


def rounded(value: float | None, digits: int) -> float | None:
    """`value` to `digits` significant digits, integers without a decimal point; None if it is not finite."""
    if value is None or not math.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 2**53 else short


def _words(pairs: Iterable[tuple[str | int, str]]) -> dict[str, Any]:
    """Distinct labels in the order of their sort keys, and for each row the index of its label."""
    rows = list(pairs)
    distinct = sorted(set(rows), key=lambda pair: pair[0])
    index = {pair: at for at, pair in enumerate(distinct)}
    return {"labels": [label for _, label in distinct], "at": [index[pair] for pair in rows]}


def _side(sides: Sequence[Side]) -> dict[str, Any]:
    return {
        "alone": _summaries([side.alone for side in sides]),
        "together": _summaries([side.together for side in sides]),
        "kept": _kepts([side.kept for side in sides]),
    }


def _summaries(summaries: Sequence[Summary | None]) -> dict[str, Any]:
    columns: dict[str, Any] = {name: _column(summaries, name) for name in SUMMARY_FIELDS}
    columns["unit"] = _shared([quantities.unit(s.unit) if s else None for s in summaries])
    columns["count"] = _shared(columns["count"])
    return columns


def _shared(values: Sequence[_Value | None]) -> Sequence[_Value | None] | _Value:
    """A column that says the same for all rows that say anything, as that one value."""
    distinct = {value for value in values if value is not None}
    return distinct.pop() if len(distinct) == 1 else values


def _kepts(kepts: Sequence[Kept | None]) -> dict[str, Any]:
    return {name: _column(kepts, name) for name in KEPT_FIELDS}


def _column(items: Sequence[Summary | Kept | None], name: str) -> list[float | None]:
    read: Callable[[object], float] = lambda item: getattr(item, name)  # noqa: E731
    return [None if item is None else rounded(read(item), DIGITS[name]) for item in items]


def _uses(results: Sequence[PointResult], uses: Mapping[str, CoreUse]) -> dict[str, Any]:
    """Distinct sets of cores as ranges ("1-17"), and the index of each row's; -1 where nobody told."""
    kinds: dict[CoreUse, int] = {}
    at = [kinds.setdefault(use, len(kinds)) if (use := uses.get(r.id)) is not None else -1 for r in results]
    sets = [
        {
            "comp": ranges(use.comp_cores),
            "comm": ranges(use.comm_cores),
            "peer": ranges(use.peer_cores),
        }
        for use in kinds
    ]
    return {"sets": sets, "at": at}
