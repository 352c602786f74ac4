"""Tables of `gpu`: what copies and cores keep, all three streams, and sources of loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from elbowroom.draw.table import TextTable
from elbowroom.experiments.common.sentences import kernel_name
from elbowroom.experiments.common.source_table import (
    KEPT_LEGEND,
    STAND_IN_SENTENCE,
    percent,
    source_table,
)
from elbowroom.experiments.common.sources import ContrastSource
from elbowroom.experiments.gpu.rows import CopyRow, beside_cores, rows, sources
from elbowroom.machine.topology import Machine
from elbowroom.quantities import format_size, number
from elbowroom.results.curves import affected
from elbowroom.results.result import PointResult


class CopyTable(msgspec.Struct, frozen=True, kw_only=True):
    """What `show --json` adds: all rows, and sources of loss by contrast."""

    rows: tuple[CopyRow, ...]
    sources: tuple[ContrastSource, ...]


LETTERS = {"cores": "A", "copies": "B", "messages": "C"}
"""How phases call the streams."""

TYPES = {"gpu_copies": CopyTable}
"""The types of `data`, by key."""


def data(results: Sequence[PointResult], machine: Machine) -> dict[str, Any]:  # noqa: ARG001
    """The rows and sources of a run; empty where nothing was measured."""
    table = rows(results)
    return {"gpu_copies": CopyTable(rows=table, sources=sources(results))} if table else {}


def tables(results: Sequence[PointResult], machine: Machine) -> tuple[TextTable, ...]:  # noqa: ARG001
    """Copies beside cores with most cores, copies beside messages and all three streams, sources."""
    table = rows(results)
    cores = beside_cores(table)
    most = max((row.n for row in cores), default=0)
    with_messages = [row for row in table if row.message_bytes]
    drawn = [
        _beside_cores(most, [row for row in cores if row.n == most]) if cores else None,
        _streams(with_messages) if with_messages else None,
        source_table(sources(results)),
    ]
    below = (STAND_IN_SENTENCE,) * any(row.stand_in for row in table)
    return tuple(
        msgspec.structs.replace(item, below=(*item.below, *below)) for item in drawn if item is not None
    )


def _head(row: CopyRow) -> tuple[str, ...]:
    node = str(row.node) if row.node >= 0 else "-"
    return (kernel_name(row.kernel) if row.n else "-", row.direction, format_size(row.bytes), node)


def _beside_cores(n: int, group: Sequence[CopyRow]) -> TextTable:
    lines, marked = [], []
    for at, row in enumerate(group):
        alone = "-" if row.copies_alone is None else number(row.copies_alone / 1e3, 3)
        kepts = [row.of(stream, "AB") for stream in ("copies", "cores")]
        lines.append((*_head(row), alone, *map(percent, kepts)))
        marked += [(at, 5 + i) for i, kept in enumerate(kepts) if kept is not None and affected(kept)]
    return TextTable(
        title=f"Copies beside {n} computing core{'s' * (n > 1)}: percent kept",
        columns=("kernel", "copies", "size", "node", "GB/s alone", "copies keep", "cores keep"),
        rows=tuple(lines),
        left=(0, 1),
        marked=tuple(marked),
        legend=f"{KEPT_LEGEND} node: of the pinned buffer.",
    )


def _streams(group: Sequence[CopyRow]) -> TextTable:
    """A line for each stream: what it keeps beside each other one, and beside all."""
    lines: list[tuple[str, ...]] = []
    marked: list[tuple[int, int]] = []
    for row in group:
        for stream, letter in LETTERS.items():
            kepts = [row.of(stream, _phase(letter, other)) if other != letter else None for other in "ABC"]
            kepts.append(row.of(stream, "ABC"))
            if not any(kepts):
                continue
            at = len(lines)
            lines.append((*_head(row), str(row.n or "-"), stream, *map(percent, kepts)))
            marked += [(at, 6 + i) for i, kept in enumerate(kepts) if kept is not None and affected(kept)]
    return TextTable(
        title="Copies, messages and cores: percent that a stream keeps beside others",
        columns=("kernel", "copies", "size", "node", "n", "stream", "+cores", "+copies", "+msgs", "all"),
        rows=tuple(lines),
        left=(0, 1, 5),
        marked=tuple(marked),
        legend=f"{KEPT_LEGEND} node: of the pinned buffer.",
        points=tuple(row.point for row in group),
    )


def _phase(one: str, other: str) -> str:
    return "".join(sorted((one, other)))
