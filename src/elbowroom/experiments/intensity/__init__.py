"""From memory-bound to compute-bound by the cursor (paper, Figure 7): where interference ends."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from elbowroom.draw.figure import Axis, Figure, Mark
from elbowroom.experiments.common.panels import as_flops, with_durations
from elbowroom.experiments.common.points import machine_notes, with_notes
from elbowroom.experiments.common.sentences import (
    SideName,
    Values,
    cores_text,
    intensity_text,
    kept_of,
    size_text,
)
from elbowroom.experiments.common.sweeps import Sweep, SweepCase
from elbowroom.machine.topology import Machine
from elbowroom.plan.axes import expand as multiply
from elbowroom.plan.file import Plan
from elbowroom.points.point import Expansion
from elbowroom.quantities import percent
from elbowroom.results.curves import Onset, recovery
from elbowroom.results.result import Finding, PointResult

LONGER = 1.10  # memory-bound while the time per item stays within 10 % of that at the lowest intensity


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


def _case(item: PointResult) -> tuple[str, int, int, int, int, int]:
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
    lost = percent(1 - onset.worst, digits=0)
    worst = f"at worst, at {intensity_text(onset.worst_x or 0)}, it loses {lost}"
    if back is None:
        return f"{what} does not recover ({worst})"
    return f"{what} is undisturbed from {intensity_text(back)} on ({worst})"


def _back(case: SweepCase, side: SideName) -> float | None:
    """From which intensity a side is undisturbed."""
    return recovery([_intensity(item) for item in case.group], [kept_of(item, side) for item in case.group])


def _finding(case: SweepCase) -> Finding:
    """The boundary, and from where either side is undisturbed."""
    edge = boundary(case.group)
    comm, comp = case.onsets
    comm_back, comp_back = _back(case, "comm"), _back(case, "comp")
    network = f"network {case.first.metric} ({size_text(case.first.size)})"
    text = (
        f"{case.kernel} on {cores_text(case.first.n)}, {case.place}: {_leaves(edge)}; "
        f"{_recovers(network, comm, comm_back)}; {_recovers('the computation', comp, comp_back)}."
    )
    values: Values = {
        "memory_bound_to": edge.inside,
        "compute_bound_from": edge.outside,
        "ridge": edge.ridge,
        "comm_recovers_from": comm_back,
        "comp_recovers_from": comp_back,
    }
    return case.finding(text, values)


def _panels(case: SweepCase) -> tuple[Figure, ...]:
    """Network above, computing rate below, over flop/B; then durations (Fig. 7)."""
    lines = []
    edge, back = boundary(case.group), _back(case, "comm")
    if edge.outside is not None:
        lines.append(Mark(x=edge.outside, text="computation no longer memory-bound"))
    if back is not None and back > min(map(_intensity, case.group)):
        lines.append(Mark(x=back, text="communication undisturbed from here"))
    network = f"Network {case.first.metric} ({size_text(case.first.size)})"
    rates = case.panel(
        f"{network} over the arithmetic intensity of {case.kernel} on {cores_text(case.first.n)}",
        Axis(label="Arithmetic intensity (flop/B)", scale="log2"),
        comm=f"network {case.first.metric}",
        below=Axis(label="Computing rate (Mflop/s)", scale="log10"),
        comp_transform=as_flops,
        lines=lines,
    )
    return with_durations(rates, case.group, _intensity)


EXPERIMENT = Sweep(
    "intensity",
    "Arithmetic intensity",
    _case,
    _intensity,
    intensity_text,
    takes=lambda item: bool(_intensity(item)),
).experiment(
    _finding,
    _panels,
    question=(
        "Up to which arithmetic intensity is the computation memory-bound, and from which one "
        "does communication recover?"
    ),
    expand=expand,
)
