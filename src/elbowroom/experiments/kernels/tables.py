"""Tasks of a run of `kernels`: work, waiting, times and exactness."""

from __future__ import annotations

from collections.abc import Sequence

from elbowroom.draw.table import TextTable
from elbowroom.experiments.kernels.rows import BUILDS, TASKS, TaskRow, rows
from elbowroom.machine.topology import Machine
from elbowroom.quantities import number
from elbowroom.results.result import PointResult


def tables(results: Sequence[PointResult], machine: Machine) -> tuple[TextTable, ...]:  # noqa: ARG001
    """A line for each task, build and number of cores; what a program did not report is a dash."""
    table = rows(results)
    if not table:
        return ()
    several = len({row.n for row in table}) > 1
    sources = {row.source for row in table if row.stalled is not None}
    known = " and ".join(sorted(sources)) or "not known"
    below = [f"stalled: share of the time that cores wait for memory ({known})."]
    if several:
        below.append("of best: bandwidth of sends while computing, relative to the largest over n.")
    names = ("order", "flop/B", "stalled", *["of best"] * several, "time (ms)", "residual", "error")
    return (
        TextTable(
            title="Tasks (Denis 2021, section 6)",
            columns=("task", "build", "n", *names),
            rows=tuple(_cells(row, several) for row in table),
            left=(0, 1),
            below=tuple(below),
        ),
    )


def _cells(row: TaskRow, several: bool) -> tuple[str, ...]:
    facts = row.item.facts
    return (
        TASKS[row.task],
        BUILDS[row.build],
        str(row.n),
        _number(facts.get("order"), 7),
        _number(row.intensity),
        "-" if row.stalled is None else f"{row.stalled:.0%}",
        *["-" if row.normalised is None else f"{row.normalised[0]:.2f}"] * several,
        "-" if row.time is None else number(row.time.median / 1e3, 4),
        *(_exponent(facts.get(name)) for name in ("residual", "relative_error")),
    )


def _number(value: float | None, digits: int = 3) -> str:
    return "-" if value is None else number(value, digits)


def _exponent(value: float | None) -> str:
    return "-" if value is None else f"{value:.0e}"
