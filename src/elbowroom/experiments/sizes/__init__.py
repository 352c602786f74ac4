"""Message sizes from which each side suffers (paper, Figure 6), and the library's switch of protocols."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from elbowroom.draw.figure import Axis, Figure, Mark
from elbowroom.experiments.common.panels import (
    SIZES,
    as_bandwidth,
    as_latency,
    kept_figure,
    marks,
    per_core,
    size_of,
)
from elbowroom.experiments.common.points import machine_notes, with_notes
from elbowroom.experiments.common.sentences import Values, case_key, cores_text, nothing, size_text
from elbowroom.experiments.common.sweeps import Sweep, SweepCase
from elbowroom.machine.topology import Machine
from elbowroom.plan.axes import expand as multiply
from elbowroom.plan.file import Plan
from elbowroom.plan.kernels import NONE
from elbowroom.points.point import Expansion, Note
from elbowroom.results.curves import LatencyJump, steps
from elbowroom.results.result import Finding, PointResult


def _case(item: PointResult) -> tuple[str, int, int, int, int]:
    return item.kernel, item.n, item.comp_node, item.comm_node, item.comm_core


def expand(plan: Plan, machine: Machine) -> Expansion:
    """Every size at a few and at all cores; a note where both are the same."""
    expansion = multiply(plan, machine)
    notes = list(machine_notes(machine))
    counts = sorted({point.n for point in expansion.points if point.role == "point"})
    if len(plan.n) > 1 and len(counts) == 1 and counts[0] > 0:
        notes.append(Note(what="a few and all cores apart", reason=f"only {cores_text(counts[0])} free here"))
    return with_notes(expansion, notes)


def switches(results: Sequence[PointResult]) -> tuple[LatencyJump, ...]:
    """Jumps of the latency alone between neighbouring sizes."""
    alone = [
        (item, item.comm.alone)
        for item in results
        if item.comm.alone is not None and item.comm.alone.above(0.0)
    ]
    return steps([item.size for item, _ in alone], [as_latency(item, summary) for item, summary in alone])


def _alone(case: SweepCase) -> Finding:
    """What communication reaches where nothing computes: latency of the smallest message, best bandwidth."""
    measured = [(item, item.comm.alone) for item in case.group if item.comm.alone is not None]
    if not measured:
        return nothing(case.key(), "Communication alone")
    first, quickest = min(measured, key=lambda pair: pair[0].size)
    best, fastest = max(measured, key=lambda pair: as_bandwidth(*pair)[0])
    latency, bandwidth = as_latency(first, quickest).median, as_bandwidth(best, fastest)[0]
    text = (
        f"Communication alone, {len(measured)} message sizes: {latency:.3g} us at {size_text(first.size)}, "
        f"at most {bandwidth:.0f} MB/s, at {size_text(best.size)}."
    )
    values: Values = {"latency_us": latency, "bandwidth": bandwidth, "best_size": best.size}
    ids = tuple(item.id for item in case.group)
    return Finding(key=case.key(), level="note", text=text, values=values, points=ids)


def _switch(group: Sequence[PointResult]) -> Finding:
    jumps = switches(group)
    key = case_key("switch", _case(group[0]))
    ids = tuple(
        item.id
        for item in group
        if item.size in {size for step in jumps for size in (step.before, step.after)}
    )
    if not jumps:
        text = "The latency does not jump between neighbouring sizes: no switch of protocol is visible."
        return Finding(key=key, level="note", text=text)
    parts = [
        f"between {size_text(step.before)} and {size_text(step.after)} ({_factor(step)})" for step in jumps
    ]
    first = max(jumps, key=lambda step: abs(step.factor - 1))
    text = (
        f"The latency alone jumps {'; '.join(parts)}: there the library switches its protocol "
        "(eager to rendezvous)."
    )
    values: Values = {"switch_before": first.before, "switch_after": first.after, "factor": first.factor}
    return Finding(key=key, level="note", text=text, values=values, points=ids)


def _factor(step: LatencyJump) -> str:
    return (
        f"{step.factor:.2f} times what the sizes explain"
        if step.factor > 1
        else f"{step.factor:.2f} times that before"
    )


def _finding(case: SweepCase) -> Finding:
    """The size from which each side suffers; what communication reaches alone, where nothing computes."""
    if case.first.kernel == NONE:
        return _alone(case)
    text = f"{_beside(case)}: {case.suffers()}"
    return case.finding(text, after={"n": case.first.n})


def _beside(case: SweepCase) -> str:
    return f"{case.kernel} on {cores_text(case.first.n)}, {case.place}"


def _switches(cases: Sequence[SweepCase]) -> list[Finding]:
    """The protocol switch in latencies alone. They do not depend on the kernel or on n: one curve per place
    is enough.
    """
    places: dict[tuple[int, int], SweepCase] = {}
    for case in cases:
        places.setdefault((case.first.comm_node, case.first.comm_core), case)
    return [_switch(case.group) for case in places.values()]


def _panels(case: SweepCase) -> Iterator[Figure]:
    """Network and memory bandwidth over the size; what each side kept."""
    lines = [*marks(*case.onsets)]
    lines += [Mark(x=float(step.after), text="jump of the latency alone") for step in switches(case.group)]
    computes = case.first.kernel != NONE
    where = f"beside {_beside(case)}" if computes else f"alone, {case.place}"
    yield case.panel(
        f"Network bandwidth over message size {where}",
        SIZES,
        comm="network bandwidth",
        left=Axis(label="Network bandwidth (MB/s)", scale="log10"),
        comm_transform=as_bandwidth,
        comp_transform=per_core,
        lines=lines,
    )
    if computes:
        title = f"What each side keeps beside the other: {_beside(case)}"
        yield kept_figure(case.key("sizes-kept"), title, SIZES, case.group, size_of)


EXPERIMENT = Sweep("sizes", "Message sizes", _case, size_of, size_text).experiment(
    _finding,
    _panels,
    _switches,
    question="From which message size does each side suffer, and where does the library switch protocols?",
    expand=expand,
)
