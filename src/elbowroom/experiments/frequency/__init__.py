"""Frequencies while cores communicate, sleep or compute, and their effect (paper, Figures 1 to 3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Literal

import msgspec

from elbowroom.draw.figure import Axis, Figure, Series
from elbowroom.errors import UsageError
from elbowroom.experiments.common.notes import machine_notes, with_notes
from elbowroom.experiments.common.panels import CORES, cores_of, per_core, side_by_side, with_durations
from elbowroom.experiments.common.sentences import (
    Values,
    case_key,
    cores_text,
    grouped,
    hit,
    kept_text,
    kernel_name,
    nothing,
    size_text,
    usable,
)
from elbowroom.experiments.experiment import Experiment
from elbowroom.machine.topology import Machine
from elbowroom.plan.axes import expand as multiply
from elbowroom.plan.file import Plan, Positive
from elbowroom.plan.point import Expansion, Note, Point
from elbowroom.results.result import Finding, PointResult, Trace, mean_mhz

MOVED = 0.02  # docs/design/method.md, rule 14: more than 2 % is a change of frequency
GAINED = 0.02  # the paper's "slightly better" is 1.7 to 1.52 us; less than this is called unchanged
PHASES = {"A": "computation alone", "B": "communication alone", "S": "sleep", "AB": "both together"}

CaseKey = tuple[str, int, int, int]


class FrequencyKeys(msgspec.Struct, frozen=True, kw_only=True):
    """Constant frequencies to set, kHz; where there are none, the lowest and the highest."""

    core_khz: tuple[Positive, ...] = ()
    uncore_khz: tuple[Positive, ...] = ()


def _case(item: PointResult) -> CaseKey:
    return item.kernel, item.size, item.comm_node, item.comm_core


def expand(plan: Plan, machine: Machine) -> Expansion:
    """The plan's points; where the process may set frequencies, communication only at those the plan names,
    else at both extremes (paper, section 3.1); where it may not, a note.
    """
    expansion = multiply(plan, machine)
    notes = list(machine_notes(machine))
    if machine.virtual:
        notes.append(Note(what="frequency traces", reason="a virtual machine has no frequencies"))
    points: list[Point] = []
    for key, what, permission in (
        ("core_khz", "constant core frequencies", "core_frequency"),
        ("uncore_khz", "constant uncore frequencies", "uncore_frequency"),
    ):
        if permission in machine.permitted:
            points += _constant(expansion.points, key, _wanted(plan, machine, key, permission))
        else:
            reason = machine.refused.get(permission, "it is not known whether this process may set them")
            notes.append(Note(what=what, reason=reason))
    expansion = msgspec.structs.replace(expansion, points=(*expansion.points, *points))
    return with_notes(expansion, notes)


def _wanted(plan: Plan, machine: Machine, key: str, permission: str) -> tuple[int, ...]:
    """Frequencies to hold constant, kHz. Raises UsageError for one outside of what can be held constant."""
    wanted: tuple[int, ...] = getattr(plan.keys, key)
    low, high = machine.frequency_ranges[permission]
    for khz in wanted:
        if not low <= khz <= high:
            raise UsageError(
                "cannot be held constant here", field=key, value=khz, hint=f"choose from {low} to {high} kHz"
            )
    return wanted or (low, high)


def _constant(points: Sequence[Point], key: str, wanted: Sequence[int]) -> list[Point]:
    """Communication only, one point per distinct communication and frequency (paper, Figure 1)."""
    alone = {}
    for point in points:
        if point.role == "point":
            bare = msgspec.structs.replace(
                point, kernel="none", n=0, comp_cores=(), working_set=0, cursor=1, sequence=("B", "B")
            )
            alone[bare.id] = bare
    return [msgspec.structs.replace(bare, **{key: khz}) for bare, khz in product(alone.values(), wanted)]


def findings(results: Sequence[PointResult], machine: Machine) -> tuple[Finding, ...]:  # noqa: ARG001
    """What communication kept at each n, per kernel and size; then the frequencies, if they were readable."""
    findings = []
    points = usable(results)
    for group in grouped([item for item in points if item.n], _case).values():
        findings += [_effect(item) for item in sorted(group, key=cores_of)]
        findings += list(_frequencies(group))
    findings += list(_constants([item for item in points if item.core_khz or item.uncore_khz]))
    if points and not any(item.traces for item in points):
        text = "Frequencies of the cores: n/a, this machine does not allow reading them."
        findings.append(Finding(key="frequencies", level="n/a", text=text))
    return tuple(findings) or (nothing("frequency", "Frequencies"),)


def _effect(item: PointResult) -> Finding:
    comm, comp = hit(item, "comm"), hit(item, "comp")
    kept = item.comm.kept
    better = kept is not None and kept.above(1.0) and kept.value > 1 + GAINED
    change = "suffers" if comm else ("gains" if better else "is unchanged")
    level: Literal["quiet", "interference"] = "interference" if comm or comp else "quiet"
    text = (
        f"{kernel_name(item.kernel)} on {cores_text(item.n)}: the {item.metric} of "
        f"{size_text(item.size)} messages {change}: it keeps {kept_text(kept)}; "
        f"the computation {'suffers' if comp else 'is unchanged'}: it keeps {kept_text(item.comp.kept)}."
    )
    values: Values = {
        "n": item.n,
        "comm_kept": kept.value if kept else None,
        "comp_kept": item.comp.kept.value if item.comp.kept else None,
    }
    return Finding(key=f"effect-{item.id}", level=level, text=text, values=values, points=(item.id,))


def _frequencies(group: Sequence[PointResult]) -> Iterator[Finding]:
    """Whether the communication core's frequency moves when others compute."""
    for item in sorted(group, key=cores_of):
        alone, together = mean_mhz([item], "B", "communication"), mean_mhz([item], "AB", "communication")
        if alone is None or together is None:
            continue
        computing, idle = mean_mhz([item], "AB", "computing"), mean_mhz([item], "S", "idle")
        moved = abs(together / alone - 1) > MOVED
        text = (
            f"{kernel_name(item.kernel)} on {cores_text(item.n)}, {size_text(item.size)} "
            "messages: the frequency of the communication core "
            f"is {alone:.0f} MHz alone and {together:.0f} MHz beside computation "
            f"(it {'changes' if moved else 'does not change'})"
        )
        text += "" if computing is None else f"; that of computing cores is {computing:.0f} MHz"
        text += "." if idle is None else f"; that of idle cores, while all sleep, is {idle:.0f} MHz."
        values: Values = {
            "comm_alone": alone,
            "comm_together": together,
            "computing": computing,
            "asleep": idle,
        }
        yield Finding(key=f"mhz-{item.id}", level="note", text=text, values=values, points=(item.id,))


def _constants(points: Sequence[PointResult]) -> Iterator[Finding]:
    """What constant frequencies change, between the lowest and the highest set."""
    for what, key in (("core", "core_khz"), ("uncore", "uncore_khz")):
        chosen = [item for item in points if getattr(item, key) and item.comm.alone is not None]
        for (size,), group in grouped(chosen, lambda item: (item.size,)).items():
            low, high = min(group, key=lambda i: getattr(i, key)), max(group, key=lambda i: getattr(i, key))
            if low is high or low.comm.alone is None or high.comm.alone is None:
                continue
            change = high.comm.alone.median / low.comm.alone.median - 1
            unit = low.comm.alone.unit
            text = (
                f"Raising the constant {what} frequency from {getattr(low, key) / 1000:.0f} to "
                f"{getattr(high, key) / 1000:.0f} MHz changes the {low.metric} of "
                f"{size_text(size)} messages from "
                f"{low.comm.alone.median:.4g} to {high.comm.alone.median:.4g} {unit} ({change:+.0%})."
            )
            values: Values = {"size": size, "change": change}
            ids = tuple(item.id for item in group)
            yield Finding(key=f"constant-{what}-{size}", level="note", text=text, values=values, points=ids)


def figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:  # noqa: ARG001
    """Network and computation over n (Figure 3a), by rates and by durations; frequencies over time, phase
    after phase (Figures 2, 3b, 3c).
    """
    points = [item for item in usable(results) if item.n]
    drawn = [
        figure
        for case, group in grouped(points, _case).items()
        for figure in with_durations(
            side_by_side(
                case_key("frequency", case),
                f"Network {group[0].metric} ({size_text(group[0].size)}) and {kernel_name(group[0].kernel)}",
                CORES,
                group,
                cores_of,
                comm=f"network {group[0].metric}",
                comp_transform=per_core,
            ),
            group,
            cores_of,
        )
    ]
    return (*drawn, *(_traces(item) for item in points if item.traces))


def _traces(item: PointResult) -> Figure:
    """One point's traces on one time axis, each phase behind the one before."""
    series: dict[tuple[int, str], tuple[list[float], list[float]]] = {}
    start, order = 0.0, []
    for phase in dict.fromkeys(trace.phase for trace in item.traces):
        traces = [trace for trace in item.traces if trace.phase == phase]
        for trace in traces:
            xs, ys = series.setdefault((trace.core, _kind(trace)), ([], []))
            xs += [start + step * trace.interval_s for step in range(len(trace.khz))]
            ys += [khz / 1000 for khz in trace.khz]
        start += max(len(trace.khz) * trace.interval_s for trace in traces)
        order.append(PHASES.get(phase, phase))
    return Figure(
        name=f"trace-{item.id}",
        title=(
            f"Frequencies: {kernel_name(item.kernel)} on {cores_text(item.n)}, "
            f"{size_text(item.size)} messages"
        ),
        x=Axis(label="Time (s)"),
        left=Axis(label="Frequency (MHz)"),
        series=tuple(
            Series(
                name=f"core {core} ({kind})",
                side="communication" if kind == "communication" else "computation",
                style="line",
                x=tuple(xs),
                y=tuple(ys),
            )
            for (core, kind), (xs, ys) in sorted(series.items())
        ),
        caption=f"Phases in turn: {', '.join(order)}.",
    )


def _kind(trace: Trace) -> str:
    return trace.role if trace.role == "communication" else "other"


EXPERIMENT = Experiment(
    name="frequency",
    question="Does computation change the frequencies of the cores, and does that affect communication?",
    keys=FrequencyKeys,
    expand=expand,
    findings=findings,
    figures=figures,
)
