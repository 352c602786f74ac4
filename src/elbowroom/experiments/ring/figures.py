"""Figures of a ring: both sides of one process alone and together, and all kinds of processes per node."""

from __future__ import annotations

from collections.abc import Sequence

from elbowroom.draw.figure import Axis, Figure, Series
from elbowroom.experiments.common.panels import Triple, cores_of, curve, side_by_side
from elbowroom.experiments.common.sentences import case_key, grouped, kernel_name, size_text, usable
from elbowroom.machine.topology import Machine
from elbowroom.results.result import PointResult, Summary

CORES = Axis(label="Number of computing cores per node", whole=True)


def figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:  # noqa: ARG001
    """All kinds of processes in one figure, aggregated per node (Langguth et al. 2018, Figs 2 and 3); then
    MPI bandwidth on the left axis, memory bandwidth on the right, per kind of process and threads.
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
    for side, axis, name in (("comm", "left", "MPI"), ("comp", "right", kernel_name(kernel))):
        for kind, items in kinds.items():
            series.append(
                curve(
                    items,
                    "comm" if side == "comm" else "comp",
                    "together",
                    cores_of,
                    name=f"{name}, one process per {kind},",
                    axis="left" if axis == "left" else "right",
                    transform=per_node,
                )
            )
    return Figure(
        name=case_key("ring-per-node", (kernel, size)),
        title=f"Ring of {size_text(size)}: bandwidths of a node by its processes",
        x=CORES,
        left=Axis(label="MPI bandwidth of a node (MB/s)"),
        right=Axis(label="Memory bandwidth of a node (MB/s)"),
        series=tuple(item for item in series if item is not None),
        caption=(
            "Of all processes of a node together, both sides running; the band goes from the first to the "
            "last decile."
        ),
    )
