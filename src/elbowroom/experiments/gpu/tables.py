"""Tables of `gpu`: what copies and cores keep, all three streams, and sources of loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from elbowroom.draw.table import TextTable
from elbowroom.experiments.common.sentences import kernel_name
from elbowroom.experiments.common.source_table import STAND_IN_SENTENCE, percent, source_table
from elbowroom.experiments.common.sources import ContrastSource
from elbowroom.experiments.gpu.rows import PHASES, CopyRow, beside_cores, rows, sources
from elbowroom.machine.topology import Machine
from elbowroom.plan.sizes import format_size
from elbowroom.results.curves import affected
from elbowroom.results.result import PointResult


class CopyTable(msgspec.Struct, frozen=True, kw_only=True):
    """What `show --json` adds: all rows, and sources of loss by contrast."""

    rows: tuple[CopyRow, ...]
    sources: tuple[ContrastSource, ...]


TYPES = {"gpu_copies": CopyTable}
"""The types of `data`, by key."""


def data(results: Sequence[PointResult], machine: Machine) -> dict[str, Any]:  # noqa: ARG001
    """The rows and sources of a run; empty where nothing was measured."""
    table = rows(results)
    return {"gpu_copies": CopyTable(rows=table, sources=sources(results))} if table else {}


def tables(results: Sequence[PointResult], machine: Machine) -> tuple[TextTable, ...]:  # noqa: ARG001
    """Copies beside cores with most cores, copies beside messages and all three streams, sources."""
    table = rows(results)
    stand_in = any(row.stand_in for row in table)
    cores = beside_cores(table)
    most = max((row.n for row in cores), default=0)
    drawn = [
        _table(f"Copies beside {most} computing cores: percent kept", ("cores", "copies"),
               [row for row in cores if row.n == most]),
        _table("Copies, messages and cores at once: percent kept", tuple(PHASES),
               [row for row in table if row.message_bytes]),
        source_table(sources(results)),
    ]  # fmt: skip
    below = (STAND_IN_SENTENCE,) * stand_in
    return tuple(
        msgspec.structs.replace(item, below=(*item.below, *below)) for item in drawn if item is not None
    )


_COLUMNS = {"A": "cores", "B": "copies", "C": "messages"}


def _table(title: str, streams: Sequence[str], group: Sequence[CopyRow]) -> TextTable | None:
    """A line for each row; a column for each stream in each phase that was measured."""
    pairs = [(stream, phase) for stream in streams for phase in PHASES[stream]]
    pairs = [pair for pair in pairs if any(row.of(*pair) is not None for row in group)]
    if not pairs:
        return None
    with_n = any(row.message_bytes for row in group)
    cells, marked = [], []
    for number, row in enumerate(group):
        head = (
            kernel_name(row.kernel) if row.n else "-",
            *[str(row.n)] * with_n,
            row.direction,
            format_size(row.bytes),
            str(row.node) if row.node >= 0 else "-",
            "-" if row.copies_alone is None else f"{row.copies_alone / 1e3:.3g}",
        )
        cells.append((*head, *(percent(row.of(*pair)) for pair in pairs)))
        for column, pair in enumerate(pairs, start=len(head)):
            kept = row.of(*pair)
            if kept is not None and affected(kept):
                marked.append((number, column))
    heads = ("kernel", *["n"] * with_n, "copies", "size", "node", "GB/s alone")
    return TextTable(
        title=title,
        columns=(*heads, *(_column(*pair) for pair in pairs)),
        rows=tuple(cells),
        left=(0, 1 + with_n),
        marked=tuple(marked),
        legend="Percent kept, with 95 % intervals; node: of the pinned buffer.",
    )


def _column(stream: str, phase: str) -> str:
    """`copies beside cores and messages`."""
    others = [_COLUMNS[letter] for letter in phase if _COLUMNS[letter] != stream]
    return f"{stream} beside {' and '.join(others)}"
