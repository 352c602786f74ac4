"""What steps of the diffusion solver show: whether overlapping paid, how far the model is from the steps;
Table II of Langguth et al. (2018) of one run, and of runs on different numbers of nodes as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from elbowroom.draw.figure import TextTable
from elbowroom.errors import UsageError
from elbowroom.experiments import ring
from elbowroom.experiments.common.sentences import Values, nothing
from elbowroom.experiments.common.tables import Column, rounded, table
from elbowroom.experiments.diffusion import figures
from elbowroom.experiments.diffusion.points import NAME
from elbowroom.experiments.diffusion.steps import (
    RIVALS,
    ScalingLimit,
    StepRow,
    limit,
    limit_text,
    mean_errors,
    rows,
    sentence,
)
from elbowroom.experiments.experiment import JoinedResults, RunPart
from elbowroom.machine.topology import Machine
from elbowroom.points.point import running
from elbowroom.points.steps import CELL_FLOPS, ApplicationSteps
from elbowroom.quantities import number
from elbowroom.results.result import Finding, PointResult
from elbowroom.schemas import WRITTEN
from elbowroom.stats.interval import Summary

CONTENTION = 1.03
"""A loss ratio whose interval lies above it shows contention; register-only kernels vary that much."""


SHORT = {"predicted": "model", "naive_max": "longer", "naive_sum": "sum"}


NAMES = {"predicted": "the overlap model", "naive_max": "the longer of T_M and T_N", "naive_sum": "their sum"}


def findings(results: Sequence[PointResult], machine: Machine) -> tuple[Finding, ...]:
    """Whether overlapping paid, how far the model is from the measured steps, the benchmark's loss ratios."""
    findings = findings_of_rows(rows(results), results, machine)
    benchmark = [item for item in results if item.pattern == "ring"]
    if benchmark:
        findings += ring.findings(benchmark, machine)
    return tuple(findings) or (nothing(NAME, "Steps of the diffusion solver"),)


def findings_of_rows(
    table: Sequence[StepRow], results: Sequence[PointResult], machine: Machine
) -> list[Finding]:
    """What rows show, of one run or of several: the steps of the most nodes, errors, and where communication
    limits.
    """
    if not table:
        return []
    last = table[-1]
    findings = [_paid(last, results), _predicted(last, machine), _errors(table, machine), _together(table)]
    reached = limit(table)
    return findings if reached is None else [*findings, _limit(reached)]


def _limit(reached: ScalingLimit) -> Finding:
    values: Values = {}
    for name, at in (("contended", reached.contended), ("alone", reached.alone)):
        values[name] = None if at is None else at.nodes
        values[f"{name}_low"] = None if at is None else at.low
        values[f"{name}_high"] = None if at is None else at.high
    return Finding(key="diffusion-limit", level="note", text=limit_text(reached), values=values)


def _paid(row: StepRow, results: Sequence[PointResult]) -> Finding:
    """Of the row with most nodes and communication threads."""
    of = f"On {row.nodes} nodes: " if row.nodes > 2 else ""
    contended = max(row.l_comp[1], row.l_comm[1]) > CONTENTION
    values: Values = {"nodes": row.nodes, "comm_threads": row.comm_threads, "saved": row.saved}
    points = tuple(item.id for item, steps in running(results, ApplicationSteps) if steps.nodes == row.nodes)
    return Finding(
        key="diffusion-overlap",
        level="interference" if contended else "quiet",
        text=of + sentence(row),
        values=values,
        points=points,
    )


def _predicted(row: StepRow, machine: Machine) -> Finding:
    """The same row's columns of Table II, times in ms."""
    times = {
        "T_M": row.step.t_comp,
        "T_M^C": row.step.comp_contended,
        "T_N": row.step.t_comm,
        "T_N^C": row.step.comm_contended,
        "separator": row.separator,
        "T_tot": row.predicted,
        "step": row.measured.median,
    }
    source = "simulated" if machine.virtual else "measured"
    text = (
        f"From T_M, T_N, both loss ratios and the separator the model predicts {row.predicted / 1e3:.4g} ms "
        f"for this step; {row.measured.median / 1e3:.4g} ms were {source} ({row.error('predicted'):+.1%})."
    )
    values: Values = {f"{name} (ms)": value / 1e3 for name, value in times.items()}
    return Finding(key="diffusion-step", level="note", text=text, values=values)


def _errors(table: Sequence[StepRow], machine: Machine) -> Finding:
    """Mean errors of the model and of the naive answers."""
    errors = mean_errors(table)
    offsets = ", ".join(f"{errors[rival][0]:.1%} for {NAMES[rival]}" for rival in RIVALS)
    source = "simulated" if machine.virtual else "measured"
    what = "errors" if len(table) == 1 else f"mean errors over {len(table)} steps"
    values: Values = {f"{name} off": errors[rival][0] for rival, name in SHORT.items()}
    values |= {f"{name} off, of the predicted": errors[rival][1] for rival, name in SHORT.items()}
    return Finding(
        key="diffusion-errors",
        level="note",
        text=f"Relative to the {source} steps, the {what} are {offsets}; each includes the separator.",
        values=values,
    )


def _together(table: Sequence[StepRow]) -> Finding:
    """T_M + T_N beside the model's total (section V: almost the same), and what a second thread changes."""
    above = max(row.naive_sum / row.predicted - 1 for row in table)
    text = f"The sum of T_M and T_N is at most {above:.1%} above the step that the model predicts."
    by_nodes = {(row.nodes, row.comm_threads): row for row in table}
    changes = [
        row.measured.median / by_nodes[row.nodes, 1].measured.median - 1
        for row in table
        if row.comm_threads > 1 and (row.nodes, 1) in by_nodes
    ]
    values: Values = {"sum_above": above}
    if changes:
        largest = max(changes, key=abs)
        values["threads_change"] = largest
        text += f" With more communication threads the step changes by at most {largest:+.1%}."
    return Finding(key="diffusion-sum", level="note", text=text, values=values)


PREDICTIONS = {
    "predicted": "overlap model",
    "naive_max": "longer of the two",
    "naive_sum": "one after the other",
}


def tables(results: Sequence[PointResult], machine: Machine) -> tuple[TextTable, ...]:
    """Parts, prediction and measurement of each step; what overlapping saved and the errors; mean errors."""
    shown = tuple(item.id for item, _ in running(results, ApplicationSteps))
    return tables_of_rows(rows(results), machine, shown)


def tables_of_rows(
    table: Sequence[StepRow], machine: Machine, shown: tuple[str, ...] = ()
) -> tuple[TextTable, ...]:
    """The same of rows, from one run or several; `shown`: the points that the first table shows in full."""
    if not table:
        return ()
    source = "simulated" if machine.virtual else "measured"
    return (
        _steps_table(table, source, shown),
        _performance_table(table),
        _errors_table(table),
        _means_table(table, source),
    )


NODES: tuple[Column[StepRow], ...] = (
    Column("nodes", lambda row: str(row.nodes)),
    Column("k", lambda row: str(row.comm_threads)),
)


def _steps_table(every: Sequence[StepRow], source: str, shown: tuple[str, ...]) -> TextTable:
    what = "Steps of a simulated cluster" if source == "simulated" else "Steps"
    columns: tuple[Column[StepRow], ...] = (
        *NODES,
        Column("T_M", lambda row: _ms(row.step.t_comp, 3)),
        Column("T_M^C", lambda row: _ms(row.step.comp_contended, 3)),
        Column("T_N", lambda row: _ms(row.step.t_comm, 3)),
        Column("T_N^C", lambda row: _ms(row.step.comm_contended, 3)),
        Column("sep.", lambda row: _ms(row.separator, 3)),
        Column("T_tot", lambda row: _ms(row.predicted)),
        Column(source, lambda row: _ms(row.measured.median)),
        Column("95 %", lambda row: _span(row.measured), left=True),
    )
    return table(f"{what}, ms (Langguth 2018, Table II)", every, columns, points=shown)


def _span(real: Summary) -> str | None:
    return None if real.bounds is None else "–".join(_ms(end) for end in real.bounds)


def _performance_table(every: Sequence[StepRow]) -> TextTable:
    def rate(row: StepRow, step: Summary | None) -> str | None:
        return None if step is None else number(row.node_gflops(step.median), 3)

    columns: tuple[Column[StepRow], ...] = (
        *NODES,
        Column("no comm.", lambda row: rate(row, row.silent)),
        Column("overlap", lambda row: rate(row, row.measured)),
        Column("apart", lambda row: rate(row, row.apart)),
    )
    below = (f"{CELL_FLOPS} operations for each cell and step, the separator's included.",)
    return table("Performance of a node, Gflop/s (Langguth 2018, Fig. 9)", every, columns, below=below)


def _saved(row: StepRow) -> str | None:
    return None if row.saved is None else f"{row.saved:+.1%}" + "?" * (not row.sure)


def _errors_table(every: Sequence[StepRow]) -> TextTable:
    columns: tuple[Column[StepRow], ...] = (
        *NODES,
        Column("no comm.", lambda row: _ms(row.silent.median)),
        Column("apart", lambda row: rounded(row.apart, 4, unit=1e3)),
        Column("overlap", lambda row: _ms(row.measured.median)),
        Column(
            "saved", lambda row: None if row.saved is None else f"{row.saved:+.1%}" + "?" * (not row.sure)
        ),
        Column("model", lambda row: f"{row.error('predicted'):+.1%}"),
        Column("max", lambda row: f"{row.error('naive_max'):+.1%}"),
        Column("sum", lambda row: f"{row.error('naive_sum'):+.1%}"),
    )
    legend = (
        "k: communication threads; T_M: a step without communication (no comm.) less its separator (sep.), "
        "which is added to each prediction. Errors: (predicted - overlap) / overlap."
    )
    return table("Errors of the predictions", every, columns, legend=legend)


def _means_table(every: Sequence[StepRow], source: str) -> TextTable:
    columns: tuple[Column[tuple[str, tuple[float, float]]], ...] = (
        Column("prediction", lambda row: PREDICTIONS[row[0]], left=True),
        Column(f"of the {source}", lambda row: f"{row[1][0]:.2%}"),
        Column("of the predicted", lambda row: f"{row[1][1]:.2%}"),
    )
    means = list(mean_errors(every).items())
    return table("Mean absolute errors", means, columns, below=_ratios(every))


def _ratios(table: Sequence[StepRow]) -> tuple[str, ...]:
    """The loss ratios, once for each number of threads."""
    sentences: dict[int, str] = {}
    for row in table:
        ratios = ", ".join(
            f"{name} = {middle:.2f} ({low:.2f} to {high:.2f})"
            for name, (middle, low, high) in (("L_M", row.l_comp), ("L_N", row.l_comm))
        )
        sentence = f"k = {row.comm_threads}: {ratios}; a ratio below 1 counts as 1."
        sentences.setdefault(row.comm_threads, sentence)
    unsure = any(row.saved is not None and not row.sure for row in table)
    return (*sentences.values(), *["?: the intervals of both steps overlap."] * unsure)


def _ms(microseconds: float, digits: int = 4) -> str:
    return number(microseconds / 1e3, digits)


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
    return data_of_rows(rows(results))


def data_of_rows(table: Sequence[StepRow]) -> dict[str, StepTable]:
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


def join(parts: Sequence[RunPart]) -> JoinedResults:
    """The rows of all runs, each with the loss ratios of its own run. UsageError where a run has no steps, a
    number of nodes is in two runs, or the meshes are not the same: strong scaling is of one mesh.
    """
    machine = parts[0].machine
    table: list[StepRow] = []
    whose: dict[tuple[int, int], str] = {}
    mesh: dict[tuple[int, str], str] = {}
    for part in parts:
        own = rows(part.results)
        if not own:
            raise UsageError(
                "has no step that was measured with all its parts",
                field="run",
                value=part.name,
                hint="leave it out, or measure it again with 5 repetitions",
            )
        _check_nodes(own, part.name, whose)
        for _, steps in running(part.results, ApplicationSteps):
            mesh.setdefault((steps.cells, steps.partitioner), part.name)
        _check_mesh(mesh, part.name)
        table += own
    table.sort(key=lambda row: (row.nodes, row.comm_threads))
    results = [item for part in parts for item in part.results]
    return JoinedResults(
        findings=tuple(findings_of_rows(table, results, machine)),
        figures=figures.of_rows(table),
        tables=tables_of_rows(table, machine),
        data=data_of_rows(table),
    )


def _check_nodes(own: Sequence[StepRow], name: str, whose: dict[tuple[int, int], str]) -> None:
    for row in own:
        other = whose.setdefault((row.nodes, row.comm_threads), name)
        if other != name:
            raise UsageError(
                f"has steps on {row.nodes} nodes, as {other} has",
                field="run",
                value=name,
                hint="join one run of each number of nodes",
            )


def _check_mesh(mesh: dict[tuple[int, str], str], name: str) -> None:
    if len(mesh) == 1:
        return
    (cells, partitioner), (others, cut) = list(mesh)[:2]
    first = mesh[cells, partitioner]
    what = f"{others} cells" if cells != others else f"a mesh cut by {cut}"
    than = f"{cells}" if cells != others else f"cut by {partitioner}"
    raise UsageError(
        f"has {what}, and {first} {than}: strong scaling is of one mesh",
        field="run",
        value=name,
        hint=f"measure it with --set cells={cells} --set partitioner={partitioner}",
    )
