"""A ring of processes beside TRIAD, one per node, socket or core: the loss ratios (Langguth et al. 2018,
section III), both sides of one process alone and together, and what each process got.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from elbowroom.draw.figure import Axis, Figure, Series, TextTable
from elbowroom.experiments.common.panels import Triple, cores_of, curve, side_by_side
from elbowroom.experiments.common.sentences import (
    Values,
    case_key,
    cores_text,
    grouped,
    hit,
    nothing,
    onset_values,
    onsets,
    size_text,
    suffers,
    usable,
)
from elbowroom.experiments.common.tables import Column, formatted, table
from elbowroom.experiments.experiment import Experiment
from elbowroom.experiments.ring.points import RingKeys, expand
from elbowroom.machine.topology import Machine
from elbowroom.plan.kernels import kernel_name
from elbowroom.points.payload import ProcessResult
from elbowroom.quantities import plural
from elbowroom.results.result import Finding, PointResult
from elbowroom.stats.interval import Kept, Summary

CaseKey = tuple[str, int, str, int]


def _case(item: PointResult) -> CaseKey:
    return item.kernel, item.size, item.processes, item.comm_threads


def loss(kept: Kept | None) -> tuple[float, float, float] | None:
    """Loss ratio alone/together with its interval: the inverse of what was kept (Langguth et al. 2018,
    section III).
    """
    if kept is None or kept.value <= 0 or not kept.above(0.0):
        return None
    low, high = kept.ends(kept.value)
    return 1 / kept.value, 1 / high, 1 / low


def _loss_text(name: str, ratio: tuple[float, float, float] | None) -> str:
    return f"{name} n/a" if ratio is None else f"{name} = {ratio[0]:.2f} ({ratio[1]:.2f} to {ratio[2]:.2f})"


def findings(results: Sequence[PointResult], machine: Machine) -> tuple[Finding, ...]:  # noqa: ARG001
    """L_N and L_M with all computing cores, and the onset, per kind of process and communication threads."""
    findings = []
    for case, group in grouped(usable(results), _case).items():
        full = max(group, key=cores_of)
        network, memory = loss(full.comm.kept), loss(full.comp.kept)
        threads = plural(full.comm_threads, "communication thread")
        comm, comp = onsets(group, cores_of)
        text = (
            f"Ring of {size_text(full.size)} messages, one process per {full.processes}, {threads}, "
            f"{kernel_name(full.kernel)} on {cores_text(full.n)}: loss ratios "
            f"{_loss_text('L_N', network)} of the MPI "
            f"bandwidth, {_loss_text('L_M', memory)} of the computation's. "
            f"{suffers('MPI bandwidth', comm, cores_text)} {suffers('The computation', comp, cores_text)}"
        )
        values: Values = {"n": full.n, "comm_threads": full.comm_threads, "processes": full.processes}
        values |= {"L_N": network[0] if network else None, "L_M": memory[0] if memory else None}
        findings.append(
            Finding(
                key=case_key("ring", case),
                level="interference"
                if any(hit(item, "comm") or hit(item, "comp") for item in group)
                else "quiet",
                text=text,
                values=values | onset_values("comm", comm) | onset_values("comp", comp),
                points=tuple(item.id for item in group),
            )
        )
    return tuple(findings) or (nothing("ring", "Ring"),)


CORES = Axis(label="Number of computing cores per node", whole=True)


def figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:  # noqa: ARG001
    """All kinds of processes in one figure, aggregated per node (Langguth et al. 2018, Figs 2 and 3); then
    MPI bandwidth above, memory bandwidth below, per kind of process and threads.
    """
    measured = usable(results)
    together = grouped(measured, lambda item: (item.kernel, item.size))
    drawn = [figure for key, group in together.items() if (figure := _per_node(*key, group)) is not None]
    cases = grouped(measured, lambda item: (item.kernel, item.size, item.processes, item.comm_threads))
    for case, group in cases.items():
        _, size, processes, threads = case
        plural = "s" if threads > 1 else ""
        drawn.append(
            side_by_side(
                case_key("ring", case),
                f"Ring of {size_text(size)}, one process per {processes}, {threads} "
                f"communication thread{plural}",
                CORES,
                group,
                cores_of,
                comm="MPI bandwidth",
                left=Axis(label="MPI bandwidth of one process (MB/s)"),
            )
        )
    return tuple(drawn)


def per_node(item: PointResult, summary: Summary) -> Triple:
    """Of all processes of a node: their mean times how many they are."""
    factor = item.processes_of_node
    return factor * summary.median, factor * summary.d1, factor * summary.d9


def _per_node(kernel: str, size: int, group: Sequence[PointResult]) -> Figure | None:
    """Both sides together of each kind of process, with the fewest communication threads; None of one."""
    fewest = min(item.comm_threads for item in group)
    kinds = grouped([item for item in group if item.comm_threads == fewest], lambda item: item.processes)
    if len(kinds) < 2:
        return None
    series: list[Series | None] = []
    for side, axis, name in (("comm", "left", "MPI"), ("comp", "below", kernel_name(kernel))):
        for kind, items in kinds.items():
            series.append(
                curve(
                    items,
                    "comm" if side == "comm" else "comp",
                    "together",
                    cores_of,
                    name=f"{name}, one process per {kind},",
                    axis="left" if axis == "left" else "below",
                    transform=per_node,
                )
            )
    return Figure(
        name=case_key("ring-per-node", (kernel, size)),
        title=f"Ring of {size_text(size)}: bandwidths of a node by its processes",
        x=CORES,
        left=Axis(label="MPI bandwidth of a node (MB/s)"),
        below=Axis(label="Memory bandwidth of a node (MB/s)"),
        series=tuple(item for item in series if item is not None),
        caption=(
            "Of all processes of a node together, both sides running; the band goes from the first to the "
            "last decile."
        ),
    )


MOST_ROWS = 8
"""Processes that a table lists: the slowest ones of more."""


def tables(results: Sequence[PointResult], machine: Machine) -> tuple[TextTable, ...]:  # noqa: ARG001
    """A table for each kind of processes, at its most computing cores; none where one process was seen."""
    cases = grouped(
        [item for item in usable(results) if not isinstance(item.payload.by_process, msgspec.UnsetType)],
        lambda item: (item.kernel, item.size, item.processes, item.comm_threads),
    )
    return tuple(_table(max(group, key=cores_of)) for group in cases.values())


def _table(item: PointResult) -> TextTable:
    assert not isinstance(item.payload.by_process, msgspec.UnsetType)
    slowest = sorted(item.payload.by_process, key=lambda process: process.comm_together or 0.0)
    rows = slowest[:MOST_ROWS]
    more = len(slowest) - len(rows)
    unit = item.comp.alone.unit if item.comp.alone is not None else ""
    threads = "s" if item.comm_threads > 1 else ""
    columns: tuple[Column[ProcessResult], ...] = (
        Column("rank", lambda process: str(process.rank)),
        Column("MPI alone", lambda process: formatted(process.comm_alone, ".0f")),
        Column("together", lambda process: formatted(process.comm_together, ".0f")),
        Column(f"{item.kernel} alone", lambda process: formatted(process.comp_alone, ".0f")),
        Column("together", lambda process: formatted(process.comp_together, ".0f")),
    )
    return table(
        f"Processes of the ring of {size_text(item.size)}, one per {item.processes}, {item.comm_threads} "
        f"communication thread{threads}, {item.n} computing cores per node",
        rows,
        columns,
        below=(f"The slowest of {len(slowest)} processes, by their MPI bandwidth.",) if more else (),
        legend=f"Medians; MPI bandwidth in MB/s, the kernel in {unit or 'its unit'}.",
    )


EXPERIMENT = Experiment(
    name="ring",
    question=(
        "How much MPI and memory bandwidth is lost when every rank passes 4 MB around a ring "
        "while TRIAD runs?"
    ),
    keys=RingKeys,
    expand=expand,
    findings=findings,
    figures=figures,
    tables=tables,
)
