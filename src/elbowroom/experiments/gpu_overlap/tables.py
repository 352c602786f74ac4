"""Tables of `gpu-overlap`: percent kept over k for each victim, and sources of loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from elbowroom.draw.table import TextTable
from elbowroom.experiments.common.sentences import grouped
from elbowroom.experiments.common.source_table import STAND_IN_SENTENCE, percent, source_table
from elbowroom.experiments.common.sources import ContrastSource
from elbowroom.experiments.gpu_overlap.rows import VICTIMS, OverlapRow, rows, sources
from elbowroom.machine.topology import Machine
from elbowroom.results.curves import affected
from elbowroom.results.result import PointResult

LEGEND = "Percent kept, with 95 % intervals; k: SMs that the mover holds. A copy engine holds none."


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
    """One table for each victim, one of sources."""
    table = rows(results)
    by_victim = grouped(table, lambda row: row.victim)
    drawn = [_victim(victim, group) for victim, group in by_victim.items()]
    named = source_table(sources(results))
    return tuple(drawn) if named is None else (*drawn, named)


def _victim(victim: str, group: Sequence[OverlapRow]) -> TextTable:
    ks = sorted({row.sms for row in group})
    lines = grouped(group, lambda row: row.label)
    cells, marked = [], []
    for number, (label, of_line) in enumerate(lines.items()):
        by_k = {row.sms: row for row in of_line}
        cells.append((label, *(percent(by_k[k].kept) if k in by_k else "" for k in ks)))
        for column, k in enumerate(ks, start=1):
            kept = by_k[k].kept if k in by_k else None
            if kept is not None and affected(kept):
                marked.append((number, column))
    first = group[0]
    below = [f"Alone: {first.alone:.4g} {first.unit}."] if first.alone is not None else []
    return TextTable(
        title=f"{VICTIMS[victim]}: percent kept beside",
        columns=("mover", *("no SMs" if k == 0 else f"k = {k}" for k in ks)),
        rows=tuple(cells),
        marked=tuple(marked),
        below=(*below, *[STAND_IN_SENTENCE] * any(row.stand_in for row in group)),
        legend=LEGEND,
    )
