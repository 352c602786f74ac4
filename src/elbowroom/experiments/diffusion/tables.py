"""Table II of Langguth et al. (2018) for an application's run: steps beside their predictions, in ms."""

from __future__ import annotations

from collections.abc import Sequence

from elbowroom.draw.table import TextTable
from elbowroom.experiments.diffusion.rows import StepRow, mean_errors, rows
from elbowroom.machine.topology import Machine
from elbowroom.points import ApplicationSteps, running
from elbowroom.points.steps import CELL_FLOPS
from elbowroom.quantities import number
from elbowroom.results.result import PointResult, Summary

NAMES = {"predicted": "overlap model", "naive_max": "longer of the two", "naive_sum": "one after the other"}


def tables(results: Sequence[PointResult], machine: Machine) -> tuple[TextTable, ...]:
    """Parts, prediction and measurement of each step; what overlapping saved and the errors; mean errors."""
    shown = tuple(item.id for item, _ in running(results, ApplicationSteps))
    return of_rows(rows(results), machine, shown)


def of_rows(table: Sequence[StepRow], machine: Machine, shown: tuple[str, ...] = ()) -> tuple[TextTable, ...]:
    """The same of rows, from one run or several; `shown`: the points that the first table shows in full."""
    if not table:
        return ()
    source = "simulated" if machine.virtual else "measured"
    return (_steps(table, source, shown), _performance(table), _errors(table), _means(table, source))


def _steps(table: Sequence[StepRow], source: str, shown: tuple[str, ...]) -> TextTable:
    what = "Steps of a simulated cluster" if source == "simulated" else "Steps"
    cells = []
    for row in table:
        step, real = row.step, row.measured
        parts = (step.t_comp, step.comp_contended, step.t_comm, step.comm_contended, row.separator)
        times = [*(_ms(value, 3) for value in parts), _ms(row.predicted), _ms(real.median)]
        cells.append((str(row.nodes), str(row.comm_threads), *times, _span(real)))
    return TextTable(
        title=f"{what}, ms (Langguth 2018, Table II)",
        columns=("nodes", "k", "T_M", "T_M^C", "T_N", "T_N^C", "sep.", "T_tot", source, "95 %"),
        rows=tuple(cells),
        left=(9,),
        points=shown,
    )


def _span(real: Summary) -> str:
    return "-" if real.bounds is None else "–".join(_ms(end) for end in real.bounds)


def _performance(table: Sequence[StepRow]) -> TextTable:
    cells = []
    for row in table:
        steps = (row.silent, row.measured, row.apart)
        rates = ("-" if step is None else number(row.node_gflops(step.median), 3) for step in steps)
        cells.append((str(row.nodes), str(row.comm_threads), *rates))
    return TextTable(
        title="Performance of a node, Gflop/s (Langguth 2018, Fig. 9)",
        columns=("nodes", "k", "no comm.", "overlap", "apart"),
        rows=tuple(cells),
        left=(),
        below=(f"{CELL_FLOPS} operations for each cell and step, the separator's included.",),
    )


def _errors(table: Sequence[StepRow]) -> TextTable:
    cells = []
    for row in table:
        one_by_one = "-" if row.apart is None else _ms(row.apart.median)
        saved = "-" if row.saved is None else f"{row.saved:+.1%}" + "?" * (not row.sure)
        steps = (_ms(row.silent.median), one_by_one, _ms(row.measured.median), saved)
        errors = (f"{row.error(rival):+.1%}" for rival in NAMES)
        cells.append((str(row.nodes), str(row.comm_threads), *steps, *errors))
    legend = (
        "k: communication threads; T_M: a step without communication (no comm.) less its separator (sep.), "
        "which is added to each prediction. Errors: (predicted - overlap) / overlap."
    )
    return TextTable(
        title="Errors of the predictions",
        columns=("nodes", "k", "no comm.", "apart", "overlap", "saved", "model", "max", "sum"),
        rows=tuple(cells),
        left=(),
        legend=legend,
    )


def _means(table: Sequence[StepRow], source: str) -> TextTable:
    cells = (
        (NAMES[rival], f"{of_measured:.2%}", f"{of_predicted:.2%}")
        for rival, (of_measured, of_predicted) in mean_errors(table).items()
    )
    return TextTable(
        title="Mean absolute errors",
        columns=("prediction", f"of the {source}", "of the predicted"),
        rows=tuple(cells),
        below=_ratios(table),
    )


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
