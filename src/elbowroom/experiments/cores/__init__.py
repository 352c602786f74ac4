"""Latency and bandwidth of the network, and the computation, over the number of computing cores (paper,
Figure 4).
"""

from __future__ import annotations

from collections.abc import Sequence

from elbowroom.draw.figure import Figure
from elbowroom.experiments.common.panels import CORES, cores_of, per_core, side_by_side, with_durations
from elbowroom.experiments.common.points import machine_notes, with_notes
from elbowroom.experiments.common.sentences import (
    Values,
    case_key,
    cores_text,
    grouped,
    kernel_name,
    nothing,
    onset_finding,
    onsets,
    place_text,
    regimes_over,
    size_text,
    suffers,
    usable,
)
from elbowroom.experiments.experiment import Experiment
from elbowroom.machine.topology import Machine
from elbowroom.plan.axes import expand as multiply
from elbowroom.plan.file import Plan
from elbowroom.points.point import Expansion, Note
from elbowroom.results.curves import highest
from elbowroom.results.result import Finding, PointResult

CaseKey = tuple[str, int, int, int, int]


def _case(item: PointResult) -> CaseKey:
    return item.kernel, item.size, item.comp_node, item.comm_node, item.comm_core


def expand(plan: Plan, machine: Machine) -> Expansion:
    """Every n; notes where the machine has too few cores for a curve, no NIC or no second host."""
    expansion = multiply(plan, machine)
    notes = list(machine_notes(machine))
    if len({point.n for point in expansion.points}) == 1:
        reason = f"{cores_text(max(point.n for point in expansion.points))} free here: one point, no curve"
        notes.append(Note(what="a curve over the number of cores", reason=reason))
    return with_notes(expansion, notes)


def findings(results: Sequence[PointResult], machine: Machine) -> tuple[Finding, ...]:
    """From how many cores each side suffers, how much, in which regime; per kernel, size, placement."""
    findings = []
    peaks = highest(usable(results))
    for case, group in grouped(usable(results), _case).items():
        comm, comp = onsets(group, cores_of)
        latency = group[0].metric == "latency"
        regimes, places = regimes_over(group, peaks, cores_of, cores_text)
        network = f"network {group[0].metric} ({size_text(group[0].size)})"
        text = (
            f"{kernel_name(group[0].kernel)}, {place_text(group[0], machine)}: "
            f"{suffers(network, comm, cores_text, times=latency)} "
            f"{suffers('The computation', comp, cores_text)} {regimes}"
        ).rstrip()
        after: Values = {"metric": group[0].metric, **places}
        findings.append(onset_finding(case_key("cores", case), text, group, (comm, comp), after=after))
    return tuple(findings) or (nothing("cores", "Computing cores"),)


def figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:
    """One panel per kernel, size and placement: network on the left axis, memory per core on the right; then
    the same with durations.
    """
    return tuple(
        figure
        for case, group in grouped(usable(results), _case).items()
        for figure in with_durations(
            side_by_side(
                case_key("cores", case),
                f"Network {group[0].metric} ({size_text(group[0].size)}) and {kernel_name(group[0].kernel)}: "
                f"{place_text(group[0], machine)}",
                CORES,
                group,
                cores_of,
                comm=f"network {group[0].metric}",
                comp_transform=per_core,
            ),
            group,
            cores_of,
        )
    )


EXPERIMENT = Experiment(
    name="cores",
    question=(
        "From how many computing cores do network latency, network bandwidth and the computation suffer?"
    ),
    expand=expand,
    findings=findings,
    figures=figures,
)
