"""Tables of `gpu-overlap`: percent kept over k for each victim, and sources of loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from elbowroom.draw.table import TextTable
from elbowroom.experiments.common.sentences import grouped
from elbowroom.experiments.common.source_table import (
    KEPT_LEGEND,
    STAND_IN_SENTENCE,
    percent,
    source_table,
)
from elbowroom.experiments.common.sources import ContrastSource
from elbowroom.experiments.gpu_overlap.rows import VICTIMS, OverlapRow, labels, rows, sources
from elbowroom.machine.topology import Machine
from elbowroom.quantities import rate
from elbowroom.results.curves import affected
from elbowroom.results.result import PointResult

LEGEND = f"{KEPT_LEGEND} p99: of a launch in a chain."


class OverlapTable(msgspec.Struct, frozen=True, kw_only=True):
    """What `show --json` adds: all rows, and sources of loss by contrast."""

    rows: tuple[OverlapRow, ...]
    sources: tuple[ContrastSource, ...]


TYPES = {"gpu_overlap": OverlapTable}
"""The types of `data`, by key."""


def data(results: Sequence[PointResult], machine: Machine) -> dict[str, Any]:  # noqa: ARG001
    """The rows and sources of a run; empty where nothing was measured."""
    table = rows(results)
    return {"gpu_overlap": OverlapTable(rows=table, sources=sources(results))} if table else {}


def tables(results: Sequence[PointResult], machine: Machine) -> tuple[TextTable, ...]:  # noqa: ARG001
    """Each victim over k, for each way of holding SMs; all victims beside copy engines; sources."""
    table = rows(results)
    held = grouped([row for row in table if row.sms], lambda row: (row.victim, row.first))
    engines = [row for row in table if not row.sms]
    drawn = [_over_sms(group) for of_order in held.values() for group in _by_way(of_order)]
    drawn += [_engines(engines)] if engines else []
    named = source_table(sources(results))
    drawn += [] if named is None else [named]
    below = (STAND_IN_SENTENCE,) * any(row.stand_in for row in table)
    return tuple(msgspec.structs.replace(item, below=(*item.below, *below)) for item in drawn)


def _by_way(group: Sequence[OverlapRow]) -> tuple[list[OverlapRow], ...]:
    """The rows of each way of holding SMs and of planning the product, with those of a product that is
    planned for fewer SMs and has nothing beside it.
    """
    planned = [row for row in group if row.mover == "sm_target"]
    held = grouped([row for row in group if row.mover != "sm_target"], lambda row: row.way)
    return tuple([*of_way, *planned] for of_way in held.values()) or (planned,)


def _title(row: OverlapRow) -> str:
    planned = f", planned for {row.plan_for}" * (row.victim == "gemm")
    how = "in pairs" if row.holders == "pairs" else "one by one"
    return f"{VICTIMS[row.victim]}{planned}: percent kept, k SMs held {how}, {row.first} first"


def _over_sms(group: Sequence[OverlapRow]) -> TextTable:
    """As the published comparison: movers, and the SMs that they hold, in one way."""
    ks = sorted({row.sms for row in group})
    called = labels(group, ways=False)
    lines = grouped(group, lambda row: called[row.point])
    cells, marked = [], []
    for number, (label, of_line) in enumerate(lines.items()):
        by_k = {row.sms: row.kept for row in of_line}
        cells.append((label, *(percent(by_k.get(k)) for k in ks)))
        kepts = [by_k.get(k) for k in ks]
        marked += [
            (number, at) for at, kept in enumerate(kepts, start=1) if kept is not None and affected(kept)
        ]
    alone = group[0].alone
    return TextTable(
        title=_title(group[0]),
        columns=("beside", *(f"k = {k}" for k in ks)),
        rows=tuple(cells),
        marked=tuple(marked),
        below=() if alone is None else (f"Alone: {rate(alone, group[0].unit)}.",),
        legend=KEPT_LEGEND,
        points=tuple(row.point for row in group),
    )


def _engines(group: Sequence[OverlapRow]) -> TextTable:
    called = labels(group)
    lines = tuple(
        (
            VICTIMS[row.victim],
            called[row.point],
            row.first,
            percent(row.kept),
            percent(row.mover_kept),
            percent(row.p99_kept),
        )
        for row in group
    )
    hit = [(at, 3) for at, row in enumerate(group) if row.kept is not None and affected(row.kept)]
    return TextTable(
        title="Beside copy engines: percent kept",
        columns=("victim", "beside", "first", "victim keeps", "copies keep", "p99 keeps"),
        rows=lines,
        left=(0, 1, 2),
        marked=tuple(hit),
        legend=LEGEND,
        points=tuple(row.point for row in group),
    )
