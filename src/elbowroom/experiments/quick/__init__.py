"""Is there interference here, how much, on which side, from which message size?"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal

import msgspec

from elbowroom.draw.figure import Figure
from elbowroom.experiments.common.panels import SIZES, kept_figure, size_of
from elbowroom.experiments.common.sentences import (
    Values,
    cores_text,
    hit,
    interval_values,
    lost_text,
    nothing,
    size_text,
    usable,
)
from elbowroom.experiments.common.sweeps import Sweep, SweepCase
from elbowroom.experiments.experiment import Experiment
from elbowroom.machine.topology import Machine
from elbowroom.plan.axes import expand
from elbowroom.plan.kernels import find, kernel_name
from elbowroom.quantities import plural
from elbowroom.results.curves import highest, regime, traffic
from elbowroom.results.family import SIDES, SideName, losing_sides
from elbowroom.results.grades import assess, sentence
from elbowroom.results.quiet import controls
from elbowroom.results.result import Finding, Grade, PointResult

SWEEP = Sweep("quick", "Interference", lambda item: (item.kernel, item.n), size_of, size_text)


def _curves(results: Sequence[PointResult], machine: Machine) -> list[SweepCase]:
    """Results by kernel and n, over the size; kernels with most sizes first."""
    return sorted(SWEEP.cases(results, machine), key=lambda case: -len(case.group))


def _who(item: PointResult) -> tuple[str, Literal["quiet", "interference"]]:
    comp, comm = hit(item, "comp"), hit(item, "comm")
    if comp and comm:
        return "both sides suffer", "interference"
    if comp or comm:
        return f"the {'computation' if comp else 'communication'} suffers", "interference"
    return "neither side suffers", "quiet"


def _regime(item: PointResult, peaks: dict[int, float]) -> str:
    """A sentence on a red or blue point; empty if it is neither."""
    name, moved = regime(item, peaks), traffic(item, "together")
    if name is None or moved is None:
        return ""
    how = f"together they move {moved:.0f} MB/s, and the highest measured here is {peaks[item.comp_node]:.0f}"
    if name == "red":
        return f" Red: both sides slow down; {how}."
    return f" Blue: only the computation slows down, while the bandwidth is far from saturated; {how}."


def _pair(item: PointResult, peaks: dict[int, float], losing: frozenset[tuple[str, SideName]]) -> Finding:
    """One kernel beside one size: what each side kept, and the regime where a side suffers. It shows
    interference where that is sure among all sides (`losing`).
    """
    who, effect = _who(item)
    sure = effect == "quiet" or any(point == item.id for point, _ in losing)
    level: Literal["quiet", "interference", "note"] = effect if sure else "note"
    text = (
        f"{kernel_name(item.kernel)} beside {size_text(item.size)} messages: {who}; the computation loses "
        f"{lost_text(item.comp.kept)}, the communication {lost_text(item.comm.kept)}."
        f"{_regime(item, peaks)}"
    )
    values: Values = {"kernel": item.kernel, "size": item.size, "n": item.n, "regime": regime(item, peaks)}
    for name, side in (("comp", item.comp), ("comm", item.comm)):
        values |= interval_values(side.kept, f"{name}_kept", f"{name}_")
    text = text[:1].upper() + text[1:]
    key = f"{item.kernel}-n{item.n}-{item.size}"
    return Finding(key=key, level=level, text=text, values=values, points=(item.id,))


def _measured(results: Sequence[PointResult]) -> list[PointResult]:
    return [item for item in usable(results) if item.comp.kept is not None or item.comm.kept is not None]


def _affected(points: Sequence[PointResult]) -> list[PointResult]:
    return [item for item in points if hit(item, "comp") or hit(item, "comm")]


def _shown(points: Sequence[PointResult]) -> PointResult:
    """The point of the answer: TRIAD beside the largest affected message, or else what suffers most."""
    affected = _affected(points)
    if affected:
        return max(affected, key=lambda item: (item.kernel == "triad", item.size))
    return max(points, key=lambda item: (item.kernel == "triad", -_least(item), item.size))


def crucial(results: Sequence[PointResult]) -> frozenset[str]:
    """The point of the answer, and the controls that make it trusted."""
    wanted = {item.id for item in controls(results)}
    points = [item for item in _measured(results) if item.role != "control"]
    return frozenset(wanted | {_shown(points).id} if points else wanted)


def _answer(points: Sequence[PointResult]) -> Finding:
    """The answer in one sentence (results/grades.py), from the point that it rests on."""
    assessment = assess(points)
    if assessment is None:
        return nothing("answer", "Interference")
    levels: dict[Grade, Literal["quiet", "interference"]] = {"yes": "interference", "no": "quiet"}
    return Finding(
        key="answer",
        level=levels.get(assessment.grade, "note"),
        text=sentence(assessment),
        points=(assessment.point.id,),
    )


def _least(item: PointResult) -> float:
    return min(kept.value for side in (item.comp, item.comm) if (kept := side.kept) is not None)


def findings(results: Sequence[PointResult], machine: Machine) -> tuple[Finding, ...]:
    """The answer, the sizes from which each side suffers, and each kernel beside its extreme sizes."""
    points = _measured(results)
    if not points:
        return (nothing("answer", "Interference"),)
    planned = [item for item in points if item.role != "control"]
    losing = losing_sides(planned)
    findings = [_answer(planned)]
    peaks = highest(points)
    for case in _curves(points, machine):
        group = case.group
        if len(group) >= 3:
            text = f"By message size, {case.kernel} on {cores_text(case.first.n)}: {case.suffers()}"
            finding = case.finding(text, key=f"onset-{case.first.kernel}-n{case.first.n}")
            if not losing.intersection((item.id, side) for item in group for side in SIDES):
                finding = msgspec.structs.replace(finding, level="note")
            findings.append(finding)
        ends = {item.id: item for item in (max(group, key=size_of), min(group, key=size_of))}
        findings += [_pair(item, peaks, losing) for item in ends.values()]
    contrast = _contrast(points)
    return (*findings, contrast) if contrast else tuple(findings)


def _contrast(points: Sequence[PointResult]) -> Finding | None:
    """Which resource is contended, from kernels at the same n and size (method.md, rule 20).

    None without both sorts of kernel.
    """
    most = max((item.n, item.size) for item in points)
    peers = [item for item in points if (item.n, item.size) == most]
    memory = [item for item in peers if (kernel := find(item.kernel)) is not None and kernel.moves_memory]
    registers = [item for item in peers if (kernel := find(item.kernel)) is not None and kernel.register_only]
    cached = [item for item in peers if (kernel := find(item.kernel)) is not None and kernel.shared_cache]
    if not memory or not registers:
        return None
    hurt = [any(_who(item)[1] == "interference" for item in group) for group in (memory, registers, cached)]
    ids = tuple(item.id for item in (*memory, *registers, *cached))
    if hurt == [False, False, True]:
        text = (
            "Only the kernel whose arrays stay in the last-level cache shows interference: computation and "
            "communication share that cache, while neither the memory bus nor the cores are contended."
        )
    elif not any(hurt):
        text = "Neither memory nor cores are contended."
    elif hurt[1]:
        text = (
            "A kernel that uses no memory shows interference too, so memory is not the only cause: cores, "
            "their frequency or other processes play a part."
        )
    else:
        both_sides = any(hit(item, "comp") and hit(item, "comm") for item in memory)
        loss = "both sides lose, as they do where memory saturates" if both_sides else "only one side loses"
        text = (
            "Only kernels that use memory show interference, so it comes from caches and memory, not from "
            f"the cores; {loss}."
        )
    return Finding(key="contrast", level="note", text=text, points=ids)


def figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:
    """What each side kept over message size, and both sides alone and together."""
    drawn = []
    for case in _curves(results, machine):
        if len(case.group) < 3:
            continue
        kernel, n = case.values
        beside = f"{case.kernel} on {plural(case.first.n, 'core')}"
        title = f"What each side keeps beside the other: {beside}"
        drawn.append(kept_figure(f"kept-{kernel}-n{n}", title, SIZES, case.group, size_of))
        # A latency is no bandwidth: each has a figure in its own unit.
        for metric, name in (("bandwidth", "rates"), ("latency", "latencies")):
            group = [item for item in case.group if item.metric == metric]
            if len(group) > 1:
                drawn.append(
                    dataclasses.replace(case, group=group).panel(
                        f"Alone and together: {beside}",
                        SIZES,
                        f"{name}-{kernel}-n{n}",
                        comm="communication",
                        lines=(),
                    )
                )
    return tuple(drawn)


EXPERIMENT = Experiment(
    name="quick",
    question=(
        "Do computation and communication slow each other down here: by how much, on which "
        "side, from which message size?"
    ),
    expand=expand,
    findings=findings,
    figures=figures,
    crucial=crucial,
)
