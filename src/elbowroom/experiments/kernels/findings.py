"""What sends keep beside tasks, finding by finding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from elbowroom.experiments.common.sentences import (
    Values,
    cores_text,
    kept_text,
    level_of,
    nothing,
    onset_over,
    onset_values,
    suffers,
)
from elbowroom.experiments.kernels.points import NAME
from elbowroom.experiments.kernels.rows import (
    BUILDS,
    TASKS,
    TURNS,
    TaskRow,
    cases,
    claim,
    exactness,
    faster,
    rows,
    waits,
)
from elbowroom.machine.topology import Machine
from elbowroom.results.result import Finding, PointResult


def findings(results: Sequence[PointResult], machine: Machine) -> tuple[Finding, ...]:  # noqa: ARG001
    """What sends keep beside each task, over the number of cores; whether CG disturbs them more than GEMM,
    as in the paper; StarPU beside OpenMP; how exact the results are.
    """
    table = rows(results)
    if not table:
        return (nothing(NAME, "Sends beside conjugate gradients and matrix products"),)
    findings = [_kept(group) for group in cases(table)]
    findings.sort(key=lambda finding: finding.level != "interference")
    by_build = [[row for row in table if row.build == build] for build in BUILDS]
    findings += [claim(group) for group in by_build if group]
    findings += [_builds(pair) for pair in _pairs(table)]
    return (*findings, _checked(table))


def _kept(group: Sequence[TaskRow]) -> Finding:
    """One task in one build: what its sends keep, at which number of cores, and the cores' waiting."""
    last = group[-1]
    items = [row.item for row in group]
    onset = onset_over(items, "comm", lambda item: float(item.n))
    if len(group) > 1:
        text = suffers(f"{last.name}: the bandwidth of sends", onset, cores_text)
    else:
        kept = kept_text(last.kept)
        text = f"{last.name} on {cores_text(last.n)}: sends keep {kept} of their bandwidth."
    turns = any(row.takes_turns for row in group)
    text += f" {waits(group)}" + f" This is not contention alone: {TURNS}." * turns
    values: Values = {"task": last.task, "build": last.build, "n": last.n, "stalled": last.stalled}
    values |= onset_values("send", onset)
    if last.kept is not None:
        values |= {"kept": last.kept.value, "low": last.kept.low, "high": last.kept.high}
    return Finding(
        key=f"kernels-{last.task}-{last.build}",
        level="note" if turns else level_of(onset),
        text=text,
        values=values,
        points=tuple(item.id for item in items),
    )


def _pairs(table: Sequence[TaskRow]) -> Iterator[tuple[TaskRow, TaskRow]]:
    """OpenMP and StarPU of each task, on the most cores that both were measured on."""
    by_place = {(row.task, row.build, row.n): row for row in table}
    for task in TASKS:
        both = [row.n for row in table if (row.task, row.build) == (task, "openmp")]
        both = [n for n in both if (task, "starpu", n) in by_place]
        if both:
            yield by_place[task, "openmp", max(both)], by_place[task, "starpu", max(both)]


def _builds(pair: tuple[TaskRow, TaskRow]) -> Finding:
    text, values = faster(*pair)
    return Finding(
        key=f"kernels-builds-{pair[0].task}",
        level="note",
        text=text,
        values=values,
        points=tuple(row.item.id for row in pair),
    )


def _checked(table: Sequence[TaskRow]) -> Finding:
    text, values = exactness(table)
    return Finding(key="kernels-checked", level="note", text=text, values=values)
