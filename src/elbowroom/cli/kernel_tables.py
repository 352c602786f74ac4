"""Tasks of a run of `kernels`: work, waiting, times and exactness, 80 columns wide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from elbowroom.draw.numbers import number

if TYPE_CHECKING:
    from elbowroom.experiments.kernel_rows import Row


def print_kernels(table: Sequence[Row]) -> None:
    """A line for each task, build and number of cores; what a program did not tell is a dash."""
    from elbowroom.cli.tables import _say, _table, console
    from elbowroom.experiments.kernel_rows import BUILDS, TASKS

    _say("Tasks (Denis 2021, section 6)", style="bold")
    several = len({row.n for row in table}) > 1
    names = ("n", "order", "flop/B", "stalled", *["of best"] * several, "time (ms)", "residual", "error")
    columns = _table(("task", ""), ("build", ""), *((name, "right") for name in names))
    for row in table:
        facts = row.item.facts
        columns.add_row(
            TASKS[row.task],
            BUILDS[row.build],
            str(row.n),
            _number(facts.get("order"), 7),
            _number(row.intensity),
            "-" if row.stalled is None else f"{row.stalled:.0%}",
            *["-" if row.normalised is None else f"{row.normalised[0]:.2f}"] * several,
            "-" if row.time is None else number(row.time.median / 1e3, 4),
            *(_exponent(facts.get(name)) for name in ("residual", "error")),
        )
    console().print(columns)
    sources = {row.source for row in table if row.stalled is not None}
    known = " and ".join(sorted(sources)) or "not known"
    _say(f"stalled: share of the time that cores wait for memory ({known}).")
    if several:
        _say("of best: bandwidth of sends while computing, relative to the largest over n.")


def _number(value: float | None, digits: int = 3) -> str:
    return "-" if value is None else number(value, digits)


def _exponent(value: float | None) -> str:
    return "-" if value is None else f"{value:.0e}"
