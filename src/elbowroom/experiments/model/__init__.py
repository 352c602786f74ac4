"""What a model of sharing needs: non-temporal memset beside large receptions (thesis, section 6.3.1)."""

from __future__ import annotations

from collections.abc import Sequence

from elbowroom.draw.figure import Figure
from elbowroom.experiments.common.panels import CORES, cores_of, side_by_side
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

CaseKey = tuple[str | int, ...]


def _case(item: PointResult) -> CaseKey:
    case = item.kernel, item.size, item.comp_node, item.comm_node
    return (*case, item.n_other) if item.n_other else case


def _place(item: PointResult, machine: Machine) -> str:
    other = f", {cores_text(item.n_other)} of them of the other socket" if item.n_other else ""
    return place_text(item, machine) + other


def expand(plan: Plan, machine: Machine) -> Expansion:
    """Every n of the first socket and every pair of nodes; a note if the remote model cannot be measured."""
    expansion = multiply(plan, machine)
    notes = list(machine_notes(machine))
    if len({machine.socket_of[node.package] for node in machine.nodes}) < 2:
        one = "this machine has one socket" if machine.packages < 2 else "one socket has all memory"
        reason = f"{one}: there is no remote memory to measure"
        notes.append(Note(what="the model of remote accesses", reason=reason))
    if len({point.n for point in expansion.points}) < 3:
        reason = f"at most {cores_text(max((point.n for point in expansion.points), default=0))} free here"
        notes.append(Note(what="a model over the number of cores (needs three counts)", reason=reason))
    return with_notes(expansion, notes)


def _peak(group: Sequence[PointResult]) -> tuple[Values, str]:
    """Highest memory bandwidth alone, and of both streams together, with the n where they are reached."""
    alone = [(item.comp.alone.median, item.n) for item in group if item.comp.alone is not None]
    together = [
        (item.comp.together.median + item.comm.together.median, item.n)
        for item in group
        if item.comp.together is not None
        and item.comm.together is not None
        and item.comm.together.unit == "MB/s"
    ]
    values: Values = {}
    parts = []
    for name, peaks, what in (
        ("alone", alone, "memory bandwidth of the computation alone peaks"),
        ("together", together, "both streams together peak"),
    ):
        if peaks:
            most, n = max(peaks)
            values |= {f"peak_{name}": most, f"peak_{name}_n": n}
            parts.append(f"{what} at {most:.0f} MB/s with {cores_text(n)}")
    return values, "; ".join(parts)


def findings(results: Sequence[PointResult], machine: Machine) -> tuple[Finding, ...]:
    """Peaks of the bandwidths, the cores from which each side suffers, and the regimes, per placement."""
    findings = []
    highest_rates = highest(usable(results))
    for case, group in grouped(usable(results), _case).items():
        comm, comp = onsets(group, cores_of)
        values, peaks = _peak(group)
        regimes, places = regimes_over(group, highest_rates, cores_of, cores_text)
        text = (
            f"{kernel_name(group[0].kernel)}, {_place(group[0], machine)}: "
            f"{peaks or 'no bandwidth was measured'}. "
            f"{suffers('Reception', comm, cores_text)} {suffers('The computation', comp, cores_text)} "
            f"{regimes}"
        ).rstrip()
        findings.append(onset_finding(case_key("model", case), text, group, (comm, comp), values, places))
    return tuple(findings) or (nothing("model", "Memory bandwidths"),)


def figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:
    """Per placement: network bandwidth on the left axis, memory bandwidth of all cores on the right one."""
    return tuple(
        side_by_side(
            case_key("model", case),
            f"{kernel_name(group[0].kernel)} and reception: {_place(group[0], machine)}",
            CORES,
            group,
            cores_of,
            comm="reception",
        )
        for case, group in grouped(usable(results), _case).items()
    )


EXPERIMENT = Experiment(
    name="model",
    question=(
        "How do computation and communication share the memory bandwidth, for every number of "
        "cores and every placement?"
    ),
    expand=expand,
    findings=findings,
    figures=figures,
)
