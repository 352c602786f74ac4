"""From which message size does each side suffer (paper, Figure 6), and where the library switches
protocols.
"""

from __future__ import annotations

from collections.abc import Sequence

from elbowroom.draw.figure import Axis, Figure, Mark
from elbowroom.experiments.cores import machine_notes, with_notes
from elbowroom.experiments.experiment import Experiment
from elbowroom.experiments.panels import as_bandwidth, kept_figure, marks, per_core, side_by_side
from elbowroom.experiments.wording import (
    Values,
    cores_text,
    grouped,
    kernel_name,
    level_of,
    nothing,
    onset_values,
    onsets,
    place_text,
    size_text,
    suffers,
    usable,
)
from elbowroom.machine.topology import Machine
from elbowroom.plan.expanding import expand as multiply
from elbowroom.plan.point import Expansion, Note
from elbowroom.plan.reading import Plan
from elbowroom.stats.curves import Step, steps
from elbowroom.stats.result import Finding, PointResult, Summary

Case = tuple[str, int, int, int, int]


def _size(item: PointResult) -> float:
    return float(item.size)


def _case(item: PointResult) -> Case:
    return item.kernel, item.n, item.comp_node, item.comm_node, item.comm_core


def expand(plan: Plan, machine: Machine) -> Expansion:
    """Every size at a few and at all cores; a note where both are the same."""
    expansion = multiply(plan, machine)
    notes = list(machine_notes(machine))
    counts = sorted({point.n for point in expansion.points if point.role == "point"})
    if len(plan.n) > 1 and len(counts) == 1:
        notes.append(Note(what="a few and all cores apart", reason=f"only {cores_text(counts[0])} free here"))
    return with_notes(expansion, notes)


def as_latency(item: PointResult, summary: Summary) -> Summary:
    """A summary of the half round trip in us; of a bandwidth in MB/s, size/bandwidth (B per MB/s = us)."""
    if summary.unit == "us":
        return summary
    return Summary(
        median=item.size / summary.median,
        d1=item.size / summary.d9,
        d9=item.size / summary.d1,
        low=item.size / summary.high,
        high=item.size / summary.low,
        count=summary.count,
        unit="us",
    )


def switches(results: Sequence[PointResult]) -> tuple[Step, ...]:
    """Jumps of the latency alone between neighbouring sizes."""
    alone = [
        (item, item.comm.alone) for item in results if item.comm.alone is not None and item.comm.alone.low > 0
    ]
    return steps([item.size for item, _ in alone], [as_latency(item, summary) for item, summary in alone])


def _switch(group: Sequence[PointResult]) -> Finding:
    found = switches(group)
    case = "-".join(str(part) for part in _case(group[0]))
    ids = tuple(
        item.id
        for item in group
        if item.size in {size for step in found for size in (step.before, step.after)}
    )
    if not found:
        text = "No step in the latency between neighbouring sizes: no switch of protocol is visible."
        return Finding(key=f"switch-{case}", level="note", text=text)
    parts = [
        f"between {size_text(step.before)} and {size_text(step.after)} ({_factor(step)})" for step in found
    ]
    first = max(found, key=lambda step: abs(step.factor - 1))
    text = (
        f"The latency alone steps {'; '.join(parts)}: there the library changes how it sends "
        "(eager to rendezvous)."
    )
    values: Values = {"switch_before": first.before, "switch_after": first.after, "factor": first.factor}
    return Finding(key=f"switch-{case}", level="note", text=text, values=values, points=ids)


def _factor(step: Step) -> str:
    return (
        f"{step.factor:.2f} times what the sizes explain"
        if step.factor > 1
        else f"{step.factor:.2f} times that before"
    )


def findings(results: Sequence[PointResult], machine: Machine) -> tuple[Finding, ...]:
    """Per number of cores: from which size each side suffers; then the protocol switch, from the latency
    alone.
    """
    found = []
    groups = grouped(usable(results), _case)
    for case, group in groups.items():
        comm, comp = onsets(group, _size)
        text = (
            f"{kernel_name(group[0].kernel)} on {cores_text(group[0].n)}, {place_text(group[0], machine)}: "
            f"{suffers('the communication', comm, size_text)} {suffers('The computation', comp, size_text)}"
        )
        found.append(
            Finding(
                key="sizes-" + "-".join(str(part) for part in case),
                level=level_of(comm, comp),
                text=text,
                values=onset_values("comm", comm) | onset_values("comp", comp) | {"n": group[0].n},
                points=tuple(item.id for item in group),
            )
        )
    # The latency alone does not depend on the kernel or on n: one curve per place tells.
    seen: dict[tuple[int, int], Sequence[PointResult]] = {}
    for group in groups.values():
        seen.setdefault((group[0].comm_node, group[0].comm_core), group)
    found += [_switch(group) for group in seen.values()]
    return tuple(found) or (nothing("sizes", "Message sizes"),)


def figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:
    """Per number of cores: network and memory bandwidth over the size; what each side kept."""
    drawn = []
    axis = Axis(label="Message size", scale="log2", bytes=True)
    for case, group in grouped(usable(results), _case).items():
        lines = [*marks(*onsets(group, _size))]
        lines += [Mark(x=float(step.after), text="step in the latency alone") for step in switches(group)]
        name = "-".join(str(part) for part in case)
        beside = (
            f"{kernel_name(group[0].kernel)} on {cores_text(group[0].n)}, {place_text(group[0], machine)}"
        )
        drawn.append(
            side_by_side(
                f"sizes-{name}",
                f"Network bandwidth over message size beside {beside}",
                axis,
                group,
                _size,
                comm="network bandwidth",
                left=Axis(label="Network bandwidth (MB/s)", scale="log10"),
                comm_transform=as_bandwidth,
                comp_transform=per_core,
                lines=lines,
            )
        )
        title = f"What each side keeps beside the other: {beside}"
        drawn.append(kept_figure(f"sizes-kept-{name}", title, axis, group, _size))
    return tuple(drawn)


EXPERIMENT = Experiment(
    name="sizes",
    question="From which message size does each side suffer, and where does the library switch protocols?",
    expand=expand,
    findings=findings,
    figures=figures,
)
