"""Table II of Langguth et al. (2018) for an application's run, as data that `show --json` adds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from elbowroom.experiments.diffusion.rows import RIVALS, StepRow, mean_errors, rows
from elbowroom.experiments.diffusion.scaling import ScalingLimit, limit
from elbowroom.machine.topology import Machine
from elbowroom.results.result import PointResult
from elbowroom.schemas import WRITTEN


class StepTableRow(StepRow, frozen=True, kw_only=True):
    """A row with what follows from it: totals by each of RIVALS, times of the parts under contention, what
    overlapping saved (None: not measured), Gflop/s of a node, and the errors by name of RIVALS.
    """

    predicted: float
    naive_max: float
    naive_sum: float
    comp_contended: float
    comm_contended: float
    saved: float | None
    gflops: float
    errors_of_measured: dict[str, float]
    errors_of_predicted: dict[str, float]


class MeanError(msgspec.Struct, frozen=True, kw_only=True):
    """Mean absolute error, relative to the measured and to the predicted step."""

    of_measured: float
    of_predicted: float


class StepTable(msgspec.Struct, frozen=True, kw_only=True):
    """The whole table, times in us; `mean_errors` by name of RIVALS; `limit`: from how many nodes on
    communication limits, None of a single number of nodes.
    """

    unit: Annotated[Literal["us"], WRITTEN] = "us"
    rows: tuple[StepTableRow, ...]
    mean_errors: dict[str, MeanError]
    limit: ScalingLimit | None = None


TYPES = {"steps": StepTable}
"""The types of `data`, by key."""


def data(results: Sequence[PointResult], machine: Machine) -> dict[str, StepTable]:  # noqa: ARG001
    """The table: each row with its totals and errors, and the mean errors; empty without any row."""
    return of_rows(rows(results))


def of_rows(table: Sequence[StepRow]) -> dict[str, StepTable]:
    """The same of rows, from one run or several."""
    means = {
        rival: MeanError(of_measured=measured, of_predicted=predicted)
        for rival, (measured, predicted) in mean_errors(table).items()
    }
    whole = StepTable(rows=tuple(map(_row, table)), mean_errors=means, limit=limit(table))
    return {"steps": whole} if table else {}


def _row(row: StepRow) -> StepTableRow:
    return StepTableRow(
        **msgspec.structs.asdict(row),
        **{rival: getattr(row, rival) for rival in RIVALS},
        comp_contended=row.step.comp_contended,
        comm_contended=row.step.comm_contended,
        saved=row.saved,
        gflops=row.node_gflops(row.measured.median),
        errors_of_measured={rival: row.error(rival) for rival in RIVALS},
        errors_of_predicted={rival: row.error_of_predicted(rival) for rival in RIVALS},
    )
