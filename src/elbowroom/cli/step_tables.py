"""Table II of an application's run, 80 columns wide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from elbowroom.draw.numbers import number

if TYPE_CHECKING:
    from elbowroom.experiments.step_table import Row

NAMES = {"predicted": "overlap model", "naive_max": "longer of the two", "naive_sum": "one after the other"}


def print_steps(table: Sequence[Row], simulated: bool) -> None:
    """Parts, prediction and measurement of each row, the errors, and what overlapping saved."""
    from elbowroom.cli.tables import _say, _table, console

    what = "Steps of a simulated cluster" if simulated else "Steps"
    _say(f"{what}, ms (Langguth 2018, Table II)", style="bold")
    seen = "simulated" if simulated else "measured"
    names = ("nodes", "k", "T_M", "T_M^C", "T_N", "T_N^C", "sep.", "T_tot", seen, "95 %")
    columns = _table(*((name, "right") for name in names[:-1]), (names[-1], ""))
    for row in table:
        step, real = row.step, row.measured
        parts = (step.t_comp, step.comp_contended, step.t_comm, step.comm_contended, row.separator)
        cells = [*(_ms(value, 3) for value in parts), _ms(row.predicted), _ms(real.median)]
        columns.add_row(str(row.nodes), str(row.comm_threads), *cells, f"{_ms(real.low)}–{_ms(real.high)}")
    console().print(columns)
    print()
    console().print(_errors(table))
    _say(
        "k: communication threads; T_M: a step without communication (no comm.) less its separator (sep.), "
        "which is added to each prediction. Errors: (predicted - overlap) / overlap."
    )
    _means(table, seen)
    _ratios(table)


def _errors(table: Sequence[Row]) -> object:
    from elbowroom.cli.tables import _table

    heads = ("nodes", "k", "no comm.", "apart", "overlap", "saved", "model", "max", "sum")
    columns = _table(*((name, "right") for name in heads))
    for row in table:
        errors = [f"{row.error(rival):+.1%}" for rival in NAMES]
        apart = "-" if row.apart is None else _ms(row.apart.median)
        saved = "-" if row.saved is None else f"{row.saved:+.1%}" + ("" if row.sure else "?")
        columns.add_row(
            str(row.nodes),
            str(row.comm_threads),
            _ms(row.silent.median),
            apart,
            _ms(row.measured.median),
            saved,
            *errors,
        )
    return columns


def _means(table: Sequence[Row], seen: str) -> None:
    from elbowroom.cli.tables import _table, console
    from elbowroom.experiments.step_table import mean_errors

    columns = _table(("mean absolute error", ""), (f"of the {seen}", "right"), ("of the predicted", "right"))
    for rival, (of_measured, of_predicted) in mean_errors(table).items():
        columns.add_row(NAMES[rival], f"{of_measured:.2%}", f"{of_predicted:.2%}")
    print()
    console().print(columns)


def _ratios(table: Sequence[Row]) -> None:
    """Where the loss ratios come from, once for each number of threads."""
    from elbowroom.cli.tables import _say

    seen = set()
    for row in table:
        if row.comm_threads in seen:
            continue
        seen.add(row.comm_threads)
        ratios = ", ".join(
            f"{name} = {middle:.2f} ({low:.2f} to {high:.2f})"
            for name, (middle, low, high) in (("L_M", row.l_comp), ("L_N", row.l_comm))
        )
        _say(f"k = {row.comm_threads}: {ratios}; a ratio below 1 counts as 1.")
    if any(row.saved is not None and not row.sure for row in table):
        _say("?: the intervals of both steps overlap.")


def _ms(microseconds: float, digits: int = 4) -> str:
    return number(microseconds / 1e3, digits)
