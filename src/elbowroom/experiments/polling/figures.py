"""Latencies beside polling workers, over their number and over the back-off."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from elbowroom.draw.figure import Axis, Figure, Series
from elbowroom.experiments.common.panels import curve, per_core
from elbowroom.experiments.common.sentences import (
    size_text,
)
from elbowroom.experiments.polling.rows import OWNERS, PollingCase, WorkerRow, cases, workers_text
from elbowroom.machine.topology import Machine
from elbowroom.results.result import PointResult

WORKERS = Axis(label="Number of polling workers", whole=True)


NOPS = Axis(label="Most nops between two polls", scale="log2")


def figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:  # noqa: ARG001
    """Per source, size and placement: the latency over the number of workers (Figure 9), where there are
    several; over the back-off beside the most workers, with what they poll.
    """
    drawn = []
    for case in cases(results):
        if len(case.counts) > 1:
            drawn.append(_over_workers(case))
        if any(row.nops is not None for row in case.rows):
            drawn.append(_over_nops(case))
    return tuple(figure for figure in drawn if figure.series)


def _over_workers(case: PollingCase) -> Figure:
    lines = [
        curve([row.item for row in rows], "comm", "together", _n, name=rows[0].name, axis="left")
        for rows in case.waits().values()
    ]
    return Figure(
        name=f"polling-{case.key}",
        title=f"{OWNERS[case.source]}: {size_text(case.size)} latency over the number of workers",
        x=WORKERS,
        left=Axis(label="Network latency (µs)"),
        series=tuple(line for line in (_alone(case), *lines) if line is not None),
        caption="Plain alone, dashed beside workers; bands go from the first to the last decile.",
    )


def _n(item: PointResult) -> float:
    return float(item.n)


def _alone(case: PollingCase) -> Series | None:
    """The latency alone by number of workers: medians over the points of each number."""
    columns: list[tuple[float, float, float, float]] = []
    for n in case.counts:
        alone = [row.item.comm.alone for row in case.at(n) if row.item.comm.alone is not None]
        if alone:
            ends = (median(summary.d1 for summary in alone), median(summary.d9 for summary in alone))
            columns.append((float(n), median(summary.median for summary in alone), *ends))
    if not columns:
        return None
    x, y, low, high = zip(*columns, strict=True)
    return Series(
        name="alone", side="communication", hue="black", style="alone", x=x, y=y, low=low, high=high
    )


def _over_nops(case: PollingCase) -> Figure:
    rows = case.at(case.most)
    polling = {row.item.id: float(row.nops) for row in rows if row.nops is not None}
    items = [row.item for row in rows if row.nops is not None]

    def nops(item: PointResult) -> float:
        return polling[item.id]

    latency = [
        curve(items, "comm", "alone", nops, name="latency", axis="left"),
        curve(items, "comm", "together", nops, name="latency", axis="left"),
        _paused(rows, polling.values()),
    ]
    rate = None
    if any(row.polls is not None for row in rows):
        rate = curve(items, "comp", "together", nops, name="polls", axis="right", transform=per_core)
    return Figure(
        name=f"polling-nops-{case.key}",
        title=f"{OWNERS[case.source]}: {size_text(case.size)} latency beside {workers_text(case.most)}, over "
        "the back-off",
        x=NOPS,
        left=Axis(label="Network latency (µs)"),
        right=Axis(label="Polls of a worker (million/s)", scale="log10") if rate is not None else None,
        series=tuple(line for line in (*latency, rate) if line is not None),
        caption="Plain alone, dashed beside polling workers; bands go from the first to the last decile.",
    )


def _paused(rows: Sequence[WorkerRow], nops: Iterable[float]) -> Series | None:
    """The latency beside paused workers, straight across."""
    ends = (min(nops), max(nops))
    if ends[0] == ends[1]:
        ends = (ends[0] / 2, ends[1] * 2)
    paused = [row.item for row in rows if row.nops is None and row.item.comm.together is not None]
    if not paused or paused[0].comm.together is None:
        return None
    beside = paused[0].comm.together
    return Series(
        name="beside paused workers",
        side="communication",
        style="line",
        x=ends,
        y=(beside.median,) * 2,
        low=(beside.d1,) * 2,
        high=(beside.d9,) * 2,
        points=(paused[0].id,) * 2,
        drawn="smooth",
    )
