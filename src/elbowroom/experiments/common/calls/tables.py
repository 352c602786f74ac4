"""The table of calls beside a computation."""

from __future__ import annotations

from collections.abc import Sequence

from elbowroom.draw.table import TextTable
from elbowroom.experiments.common.calls.rows import REASONS, CallRow, rows
from elbowroom.experiments.common.sentences import cores_text, grouped, kernel_name, size_text
from elbowroom.machine.topology import Machine
from elbowroom.quantities import number
from elbowroom.results.result import PointResult, Summary

COLUMNS = ("call", "progress", "T_N", "T_M", "overlap", "OSU", "comp", "comm", "lost by")

LEGEND = (
    "T_N, T_M: the call and the computation alone, us from the last arrival to the last departure. overlap: "
    "(T_N + T_M - both) / min(T_N, T_M), which is the fraction of the ideal speedup too; OSU: the same by "
    "the formula of the OSU Micro-Benchmarks; comp, comm: what each side keeps."
)


def tables(results: Sequence[PointResult], machine: Machine) -> tuple[TextTable, ...]:  # noqa: ARG001
    """A table for each kernel, number of cores and of ranks, and size."""
    groups = grouped(
        rows(results),
        lambda row: (row.item.kernel, row.item.cursor, row.item.n, row.call.ranks, row.item.size),
    )
    return tuple(_table(group) for group in groups.values())


def _table(group: Sequence[CallRow]) -> TextTable:
    item, ranks = group[0].item, group[0].call.ranks
    size = f" of {size_text(item.size)}" if item.size else ""
    beside = f", each beside {kernel_name(item.kernel)} on {cores_text(item.n)}" if item.n else ""
    return TextTable(
        title=f"Calls{size} between {ranks} ranks{beside}",
        columns=COLUMNS,
        rows=tuple(_cells(row) for row in group),
        left=(0, 1, 8),
        legend=LEGEND,
    )


def _cells(row: CallRow) -> tuple[str, ...]:
    found = row.measured
    name = (row.call.call.removeprefix("MPI_"), "-" if row.call.form == "blocking" else row.call.policy_id)
    if found is None:
        return (*name, _median(row.item.comm.alone), *["-"] * 6)
    shares = (found.overlap, found.osu_overlap, found.kept_comp, found.kept_comm)
    return (
        *name,
        *(number(time.value * 1e6, 3) for time in (found.message, found.computation)),
        *(f"{share.value:.2f}" for share in shares),
        REASONS[found.reason],
    )


def _median(summary: Summary | None) -> str:
    return "-" if summary is None else number(summary.median, 3)
