"""From memory-bound to compute-bound by the cursor (paper, Figure 7): where interference ends."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from elbowroom.draw.figure import Axis, Figure, Mark
from elbowroom.experiments.common.panels import as_flops, side_by_side, with_durations
from elbowroom.experiments.common.points import machine_notes, with_notes
from elbowroom.experiments.common.sentences import (
    Values,
    case_key,
    cores_text,
    grouped,
    intensity_text,
    kernel_name,
    nothing,
    onset_finding,
    onsets,
    place_text,
    size_text,
    usable,
)
from elbowroom.experiments.experiment import Experiment
from elbowroom.machine.topology import Machine
from elbowroom.plan.axes import expand as multiply
from elbowroom.plan.file import Plan
from elbowroom.points.point import Expansion
from elbowroom.results.curves import Onset, recovery
from elbowroom.results.result import Finding, PointResult

LONGER = 1.10  # memory-bound while the time per item stays within 10 % of that at the lowest intensity

CaseKey = tuple[str, int, int, int, int, int]


class Boundary(msgspec.Struct, frozen=True, kw_only=True):
    """Where the computation leaves the memory bound, in flop/B.

    `inside`: the last intensity measured that is memory-bound; `outside`: the first from which the time per
    item grows for good; `ridge`: highest Mflop/s over memory-bound MB/s, the roofline's corner.
    """

    inside: float | None
    outside: float | None
    ridge: float | None


def _intensity(item: PointResult) -> float:
    return item.arithmetic_intensity or 0.0


def _case(item: PointResult) -> CaseKey:
    return item.kernel, item.size, item.n, item.comp_node, item.comm_node, item.comm_core


def expand(plan: Plan, machine: Machine) -> Expansion:
    """The cursor sweep, with the machine's notes."""
    return with_notes(multiply(plan, machine), machine_notes(machine))


def boundary(results: Sequence[PointResult]) -> Boundary:
    """The boundary from the computation alone: Mflop/s grow with the intensity while it is memory-bound."""
    rates = [
        (
            _intensity(item),
            item.comp.alone.median / (_intensity(item) if item.comp.alone.unit == "Mflop/s" else 1.0),
        )
        for item in results
        if item.comp.alone is not None and item.comp.alone.median > 0 and _intensity(item) > 0
    ]
    rates.sort()
    if len(rates) < 2:
        return Boundary(inside=None, outside=None, ridge=None)
    plateau = rates[0][1]
    outside = None
    for intensity, rate in reversed(rates):
        if plateau / rate <= LONGER:
            break
        outside = intensity
    inside = max(
        (intensity for intensity, _ in rates if outside is None or intensity < outside), default=None
    )
    ridge = max(intensity * rate for intensity, rate in rates) / plateau if outside is not None else None
    return Boundary(inside=inside, outside=outside, ridge=ridge)


def _leaves(edge: Boundary) -> str:
    if edge.inside is None:
        return "too few intensities were measured to say up to which the computation is memory-bound"
    if edge.outside is None or edge.ridge is None:
        return f"the computation stays memory-bound up to {intensity_text(edge.inside)}"
    return (
        f"the computation is memory-bound up to {intensity_text(edge.inside)} and no longer at "
        f"{intensity_text(edge.outside)} (its highest rate divided by its memory bandwidth is "
        f"{intensity_text(edge.ridge)})"
    )


def _recovers(what: str, onset: Onset, back: float | None) -> str:
    if onset.worst is None:
        return f"{what} was not measured"
    if onset.first is None:
        return f"{what} is undisturbed at every intensity"
    if back is None:
        return (
            f"{what} does not recover (at worst, at {intensity_text(onset.worst_x or 0)}, it keeps "
            f"{onset.worst:.2f})"
        )
    worst = f"at worst, at {intensity_text(onset.worst_x or 0)}, it keeps {onset.worst:.2f}"
    return f"{what} is undisturbed from {intensity_text(back)} on ({worst})"


def findings(results: Sequence[PointResult], machine: Machine) -> tuple[Finding, ...]:
    """Per size and placement: the boundary, and from where either side is undisturbed."""
    findings = []
    for case, group in grouped([item for item in usable(results) if _intensity(item)], _case).items():
        edge = boundary(group)
        comm, comp = onsets(group, _intensity)
        back = {
            side: recovery([_intensity(item) for item in group], [kept.kept for kept in kepts])
            for side, kepts in (
                ("comm", [item.comm for item in group]),
                ("comp", [item.comp for item in group]),
            )
        }
        network = f"network {group[0].metric} ({size_text(group[0].size)})"
        text = (
            f"{kernel_name(group[0].kernel)} on {cores_text(group[0].n)}, {place_text(group[0], machine)}: "
            f"{_leaves(edge)}; {_recovers(network, comm, back['comm'])}; "
            f"{_recovers('the computation', comp, back['comp'])}."
        )
        values: Values = {
            "memory_bound_to": edge.inside,
            "compute_bound_from": edge.outside,
            "ridge": edge.ridge,
            "comm_recovers_from": back["comm"],
            "comp_recovers_from": back["comp"],
        }
        findings.append(onset_finding(case_key("intensity", case), text, group, (comm, comp), values))
    return tuple(findings) or (nothing("intensity", "Arithmetic intensity"),)


def figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:  # noqa: ARG001
    """Per size and placement: network on the left axis, computing rate on the right one, over flop/B; then
    durations (Fig. 7).
    """
    drawn: list[Figure] = []
    for case, group in grouped([item for item in usable(results) if _intensity(item)], _case).items():
        edge = boundary(group)
        lines = []
        if edge.outside is not None:
            lines.append(Mark(x=edge.outside, text="computation no longer memory-bound"))
        back = recovery([_intensity(item) for item in group], [item.comm.kept for item in group])
        if back is not None and back > min(_intensity(item) for item in group):
            lines.append(Mark(x=back, text="communication undisturbed from here"))
        rates = side_by_side(
            case_key("intensity", case),
            f"Network {group[0].metric} ({size_text(group[0].size)}) over the arithmetic intensity of "
            f"{kernel_name(group[0].kernel)} on {cores_text(group[0].n)}",
            Axis(label="Arithmetic intensity (flop/B)", scale="log2"),
            group,
            _intensity,
            comm=f"network {group[0].metric}",
            right=Axis(label="Computing rate (Mflop/s)", scale="log10"),
            comp_transform=as_flops,
            lines=lines,
        )
        drawn += with_durations(rates, group, _intensity)
    return tuple(drawn)


EXPERIMENT = Experiment(
    name="intensity",
    question=(
        "Up to which arithmetic intensity is the computation memory-bound, and from which one "
        "does communication recover?"
    ),
    expand=expand,
    findings=findings,
    figures=figures,
)
