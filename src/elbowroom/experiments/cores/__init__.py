"""Latency and bandwidth of the network, and the computation, over the number of computing cores (paper,
Figure 4).
"""

from __future__ import annotations

from elbowroom.draw.figure import Figure
from elbowroom.experiments.common.panels import CORES, cores_of, per_core, with_durations
from elbowroom.experiments.common.points import machine_notes, with_notes
from elbowroom.experiments.common.sentences import cores_text, size_text
from elbowroom.experiments.common.sweeps import Sweep, SweepCase
from elbowroom.machine.topology import Machine
from elbowroom.plan.axes import expand as multiply
from elbowroom.plan.file import Plan
from elbowroom.points.point import Expansion, Note
from elbowroom.results.result import Finding, PointResult


def _case(item: PointResult) -> tuple[str, int, int, int, int]:
    return item.kernel, item.size, item.comp_node, item.comm_node, item.comm_core


def expand(plan: Plan, machine: Machine) -> Expansion:
    """Every n; notes where the machine has too few cores for a curve, no NIC or no second host."""
    expansion = multiply(plan, machine)
    notes = list(machine_notes(machine))
    if len({point.n for point in expansion.points}) == 1:
        reason = f"{cores_text(max(point.n for point in expansion.points))} free here: one point, no curve"
        notes.append(Note(what="a curve over the number of cores", reason=reason))
    return with_notes(expansion, notes)


def _finding(case: SweepCase) -> Finding:
    """From how many cores each side suffers, how much, in which regime."""
    metric = case.first.metric
    regimes, places = case.regimes()
    network = f"network {metric} ({size_text(case.first.size)})"
    sides = case.suffers(network, times=metric == "latency")
    text = f"{case.kernel}, {case.place}: {sides} {regimes}".rstrip()
    return case.finding(text, after={"metric": metric, **places})


def _panels(case: SweepCase) -> tuple[Figure, ...]:
    """Network on the left axis, memory per core on the right; then the same with durations."""
    network = f"Network {case.first.metric} ({size_text(case.first.size)})"
    rates = case.panel(
        f"{network} and {case.kernel}: {case.place}",
        CORES,
        comm=f"network {case.first.metric}",
        comp_transform=per_core,
    )
    return with_durations(rates, case.group, cores_of)


EXPERIMENT = Sweep("cores", "Computing cores", _case, cores_of, cores_text).experiment(
    _finding,
    _panels,
    question=(
        "From how many computing cores do network latency, network bandwidth and the computation suffer?"
    ),
    expand=expand,
)
