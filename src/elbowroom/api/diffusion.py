"""Steps of a real program against the overlap model, as Python sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from elbowroom.api.runs import Run
    from elbowroom.experiments.step_table import Row


def step_table(run: Run) -> tuple[Row, ...]:
    """Table II of Langguth et al. (2018) for a run of `diffusion`: a row for each number of nodes and of
    communication threads; empty for runs of kernels. Times are in us.
    """
    from elbowroom.experiments.step_table import rows

    return rows(run.points())


def table_object(table: tuple[Row, ...]) -> dict[str, Any]:
    """The table as plain data: each row with its totals and errors, and the mean errors."""
    from elbowroom.experiments.step_table import RIVALS, mean_errors

    told = []
    for row in table:
        errors = {rival: row.error(rival) for rival in RIVALS}
        of_predicted = {rival: row.error_of_predicted(rival) for rival in RIVALS}
        told.append(
            msgspec.to_builtins(row)
            | {rival: getattr(row, rival) for rival in RIVALS}
            | {"comp_contended": row.step.comp_contended, "comm_contended": row.step.comm_contended}
            | {"saved": row.saved, "errors_of_measured": errors, "errors_of_predicted": of_predicted}
        )
    means = {
        rival: {"of_measured": errors[0], "of_predicted": errors[1]}
        for rival, errors in mean_errors(table).items()
    }
    return {"unit": "us", "rows": told, "mean_errors": means}
