"""Messages through a task runtime: what is added to each."""

from __future__ import annotations

from collections.abc import Sequence

from elbowroom.draw.table import TextTable
from elbowroom.machine.topology import Machine
from elbowroom.points import RuntimeProgram, running
from elbowroom.quantities import format_size, number
from elbowroom.results.result import Added, PointResult


def tables(results: Sequence[PointResult], machine: Machine) -> tuple[TextTable, ...]:  # noqa: ARG001
    """A line for each size and placement: by MPI, through StarPU-MPI, the difference with its interval."""
    measured = [(item, item.comm.added) for item, _ in running(results, RuntimeProgram)]
    shown = [(item, added) for item, added in measured if added is not None]
    if not shown:
        return ()
    polled = any(item.n for item, _ in shown)
    placed = len({(item.comp_node, item.comm_node, item.comm_core) for item, _ in shown}) > 1
    columns = (
        "size",
        *["data/thread"] * placed,
        *["polling"] * polled,
        "by MPI",
        "StarPU-MPI",
        "unit",
        "added",
        "95 %",
        "kept",
    )
    return (
        TextTable(
            title="Latency by MPI and through StarPU-MPI",
            columns=columns,
            rows=tuple(_cells(item, added, placed, polled) for item, added in shown),
            left=tuple(at for at, name in enumerate(columns) if name in ("data/thread", "unit", "95 %")),
            marked=tuple(
                (at, columns.index("added")) for at, (_, added) in enumerate(shown) if added.above(0.0)
            ),
            points=tuple(item.id for item, _ in shown),
        ),
    )


def _cells(item: PointResult, added: Added, placed: bool, polled: bool) -> tuple[str, ...]:
    side = item.comm
    times = ["-" if summary is None else number(summary.median, 4) for summary in (side.alone, side.together)]
    return (
        format_size(item.size),
        *[f"{item.comp_node}/{item.comm_node} c{item.comm_core}"] * placed,
        *[str(item.n)] * polled,
        *times,
        added.unit,
        number(added.value, 4),
        "-" if added.bounds is None else " to ".join(number(end, 3) for end in added.bounds),
        "-" if side.kept is None else f"{side.kept.value:.2f}",
    )
