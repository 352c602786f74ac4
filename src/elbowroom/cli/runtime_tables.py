"""Messages through a task runtime: what is added to each, 80 columns wide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from elbowroom.draw.numbers import number, size

if TYPE_CHECKING:
    from elbowroom.stats.result import PointResult


def added_points(points: Sequence[PointResult]) -> list[PointResult]:
    """The points whose table tells what is added: latencies of `runtime-overhead`."""
    overhead = [point for point in points if point.program is not None and point.program.task == "overhead"]
    return [point for point in overhead if point.comm.added is not None]


def print_added(points: Sequence[PointResult]) -> None:
    """A line for each size and placement: by MPI, through StarPU-MPI, the difference with its interval."""
    from elbowroom.cli.tables import _table, console

    places = {(point.comp_node, point.comm_node, point.comm_core) for point in points}
    columns = [("size", "right"), *([("data/thread", "")] if len(places) > 1 else [])]
    columns += [("by MPI", "right"), ("StarPU-MPI", "right"), ("unit", ""), ("added", "right"), ("95 %", "")]
    table = _table(*columns, ("kept", "right"))
    for point in points:
        side = point.comm
        assert side.alone is not None
        assert side.together is not None
        assert side.added is not None
        place = f"{point.comp_node}/{point.comm_node} c{point.comm_core}"
        style = "red" if side.added.low > 0 else ""
        table.add_row(
            size(point.size),
            *([place] if len(places) > 1 else []),
            number(side.alone.median, 4),
            number(side.together.median, 4),
            side.alone.unit,
            Text(number(side.added.value, 4), style=style),
            f"{number(side.added.low, 3)} to {number(side.added.high, 3)}",
            "-" if side.kept is None else f"{side.kept.value:.2f}",
        )
    console().print(table)
