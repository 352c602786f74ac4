"""The table of a ring: what each process got with all computing cores."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from elbowroom.draw.table import TextTable
from elbowroom.experiments.common.panels import cores_of
from elbowroom.experiments.common.sentences import grouped, size_text, usable
from elbowroom.machine.topology import Machine
from elbowroom.results.result import PointResult

MOST_ROWS = 8
"""Processes that a table lists: the slowest ones of more."""


def tables(results: Sequence[PointResult], machine: Machine) -> tuple[TextTable, ...]:  # noqa: ARG001
    """A table for each kind of processes, at its most computing cores; none where one process was seen."""
    cases = grouped(
        [item for item in usable(results) if not isinstance(item.by_process, msgspec.UnsetType)],
        lambda item: (item.kernel, item.size, item.processes, item.comm_threads),
    )
    return tuple(_table(max(group, key=cores_of)) for group in cases.values())


def _table(item: PointResult) -> TextTable:
    assert not isinstance(item.by_process, msgspec.UnsetType)
    slowest = sorted(item.by_process, key=lambda process: process.comm_together or 0.0)
    rows = tuple(
        (
            str(process.rank),
            _number(process.comm_alone),
            _number(process.comm_together),
            _number(process.comp_alone),
            _number(process.comp_together),
        )
        for process in slowest[:MOST_ROWS]
    )
    more = len(slowest) - len(rows)
    unit = item.comp.alone.unit if item.comp.alone is not None else ""
    threads = "s" if item.comm_threads > 1 else ""
    return TextTable(
        title=(
            f"Processes of the ring of {size_text(item.size)}, one per {item.processes}, {item.comm_threads} "
            f"communication thread{threads}, {item.n} computing cores per node"
        ),
        columns=("rank", "MPI alone", "together", f"{item.kernel} alone", "together"),
        rows=rows,
        left=(),
        below=(f"The slowest of {len(slowest)} processes, by their MPI bandwidth.",) if more else (),
        legend=f"Medians; MPI bandwidth in MB/s, the kernel in {unit or 'its unit'}.",
    )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"
