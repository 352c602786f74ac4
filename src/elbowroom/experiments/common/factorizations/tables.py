"""Trees of a run of factorizations side by side: a table for each matrix."""

from __future__ import annotations

from collections.abc import Sequence

from elbowroom.draw.table import TextTable
from elbowroom.experiments.common.factorizations.rows import BUILDS, TASKS, FactorRow, rows, sizes
from elbowroom.machine.topology import Machine
from elbowroom.quantities import number
from elbowroom.results.result import PointResult

COLUMNS = ("tree", "build", "n", "ms", "Gflop/s", "residual", "broadcasts", "complete", "late", "messages")
LEGEND = (
    "Gflop/s by LAPACK's count of operations. broadcasts: data with several recipients; complete: share "
    "whose recipients were all known when the data were sent; late: recipients that were not; messages: data "
    "and recipients, one by one."
)


def tables(results: Sequence[PointResult], machine: Machine) -> tuple[TextTable, ...]:  # noqa: ARG001
    """A line for each tree and build; what a program did not report is a dash."""
    return tuple(
        TextTable(
            title=f"{TASKS[group[0].program.task]}: {group[0].where}",
            columns=COLUMNS,
            rows=tuple(_cells(row) for row in group),
            left=(0, 1),
            legend=LEGEND,
        )
        for group in sizes(rows(results))
    )


def _cells(row: FactorRow) -> tuple[str, ...]:
    rate, residual, share = row.gflops, row.fact("residual"), row.fact("complete_share")
    return (
        row.program.way,
        BUILDS[row.program.build],
        str(row.item.n),
        "-" if row.time is None else number(row.time.median / 1e3, 4),
        "-" if rate is None else number(rate.value, 3),
        "-" if residual is None else f"{residual:.0e}",
        _count(row.fact("broadcasts")),
        "-" if share is None else f"{share:.1%}",
        _count(row.fact("late")),
        _count(row.fact("messages")),
    )


def _count(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"
