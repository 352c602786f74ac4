"""Whether overlapping paid, and how far the model is from the steps."""

from __future__ import annotations

from collections.abc import Sequence

from elbowroom.experiments import ring
from elbowroom.experiments.common.sentences import Values, nothing
from elbowroom.experiments.diffusion.points import NAME
from elbowroom.experiments.diffusion.rows import RIVALS, StepRow, mean_errors, rows, sentence
from elbowroom.experiments.diffusion.scaling import ScalingLimit, limit, limit_text
from elbowroom.machine.topology import Machine
from elbowroom.points import ApplicationSteps, running
from elbowroom.results.result import Finding, PointResult

CONTENTION = 1.03
"""A loss ratio whose interval lies above it shows contention; register-only kernels vary that much."""


SHORT = {"predicted": "model", "naive_max": "longer", "naive_sum": "sum"}


NAMES = {"predicted": "the overlap model", "naive_max": "the longer of T_M and T_N", "naive_sum": "their sum"}


def findings(results: Sequence[PointResult], machine: Machine) -> tuple[Finding, ...]:
    """Whether overlapping paid, how far the model is from the measured steps, the benchmark's loss ratios."""
    findings = of_rows(rows(results), results, machine)
    benchmark = [item for item in results if item.pattern == "ring"]
    if benchmark:
        findings += ring.findings(benchmark, machine)
    return tuple(findings) or (nothing(NAME, "Steps of the diffusion solver"),)


def of_rows(table: Sequence[StepRow], results: Sequence[PointResult], machine: Machine) -> list[Finding]:
    """What rows show, of one run or of several: the steps of the most nodes, errors, and where communication
    limits.
    """
    if not table:
        return []
    last = table[-1]
    found = [_paid(last, results), _predicted(last, machine), _errors(table, machine), _together(table)]
    reached = limit(table)
    return found if reached is None else [*found, _limit(reached)]


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
