"""The figures of papers from the points of a study: the panels of the experiments, and those in the papers'
units where they differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from elbowroom import experiments
from elbowroom.draw.figure import Axis, Figure, TextTable
from elbowroom.errors import UsageError
from elbowroom.experiments.common.panels import (
    CORES,
    SIZES,
    X,
    comm_label,
    cores_of,
    curve,
    plain,
    side_by_side,
    size_of,
)
from elbowroom.experiments.common.sentences import grouped, place_text, size_text
from elbowroom.experiments.experiment import JoinedResults
from elbowroom.experiments.frequency.results import constant_curves
from elbowroom.experiments.polling.results import OWNERS, cases, workers_text
from elbowroom.plan.kernels import Kernel, find, kernel_name
from elbowroom.results.result import PointResult
from elbowroom.stats.interval import Summary
from elbowroom.studies.evidence import EVERYWHERE, Evidence, PointSelection, RunEvidence, of_evidence
from elbowroom.studies.judgements import Only

Draw = Callable[[Evidence], Sequence[Figure]]

DURATION = "Duration of an item (ns)"


def all_of(*draws: Draw) -> Draw:
    """The figures of several drawings, in turn."""
    return lambda evidence: [figure for draw in draws for figure in draw(evidence)]


@of_evidence
def panels(
    evidence: Evidence,
    run: str,
    where: PointSelection = EVERYWHERE,
    only: Only | None = None,
    names: str | tuple[str, ...] = "",
) -> Sequence[Figure]:
    """The figures that the run's own experiment draws of those points; `names`: only those whose name starts
    so, or in one of these ways.
    """
    points = evidence.points(run, where, only)
    if not points:
        return ()
    mine = evidence.runs[run]
    joined = _joined(mine)
    whole = experiments.get(mine.experiment)
    drawn = joined.figures if joined is not None else whole.figures(points, mine.machine)
    return tuple(figure for figure in drawn if figure.name.startswith(names) and figure.series)


@of_evidence
def run_tables(evidence: Evidence, run: str) -> Sequence[TextTable]:
    """The tables of the run's own experiment."""
    mine = evidence.runs.get(run)
    if mine is None or not evidence.points(run):
        return ()
    joined = _joined(mine)
    if joined is not None:
        return joined.tables
    return experiments.get(mine.experiment).tables(mine.points, mine.machine)


def _joined(mine: RunEvidence) -> JoinedResults | None:
    """Runs on several numbers of hosts as one; None of a single run, and where they cannot be joined."""
    join = experiments.get(mine.experiment).join
    if join is None or len(mine.parts) < 2:
        return None
    try:
        return join(mine.parts)
    except UsageError:
        return None


def duration(item: PointResult, summary: Summary) -> tuple[float, float, float]:
    """Nanoseconds that a computing core takes for an item of its kernel (weak scaling: every core does the
    same work), from the rate of all cores.
    """
    kernel = find(item.kernel)
    assert kernel is not None
    scale = 1e3 * max(item.n, 1) * _per_item(kernel, item, summary.unit)
    return scale / summary.median, scale / summary.d9, scale / summary.d1


def _per_item(kernel: Kernel, item: PointResult, unit: str) -> float:
    """What the rate counts for one item: bytes, flops, or the item itself."""
    if unit == "MB/s":
        return float(kernel.algorithmic_bytes)
    if unit == "Mflop/s":
        return float(kernel.flops * (item.cursor if kernel.uses_cursor else 1))
    return 1.0


@of_evidence
def durations(
    evidence: Evidence,
    run: str,
    where: PointSelection = EVERYWHERE,
    only: Only | None = None,
    x: X = cores_of,
    axis: Axis = CORES,
) -> Sequence[Figure]:
    """Network above and the duration of an item below, over cores or the intensity."""
    drawn = []
    chosen = [item for item in evidence.points(run, where, only) if item.n]
    for case, group in grouped(chosen, _case).items():
        first = group[0]
        drawn.append(
            side_by_side(
                "-".join(map(str, ("durations", *case))),
                f"Network {first.metric} ({size_text(first.size)}) and duration of "
                f"{kernel_name(first.kernel)}, {place_text(first, evidence.machine)}",
                axis,
                group,
                x,
                comm=f"network {first.metric}",
                below=Axis(label=DURATION, scale="log10" if axis.scale != "linear" else "linear"),
                comp_transform=duration,
            )
        )
    return drawn


def _case(item: PointResult) -> tuple[object, ...]:
    return item.kernel, item.size, item.comp_node, item.comm_node, item.comm_core


@of_evidence
def polling_over_sizes(evidence: Evidence, run: str) -> Sequence[Figure]:
    """The latency over the message size beside the most workers, a curve for each back-off (Denis et al.,
    Fig. 9); a figure for each kind of workers.
    """
    drawn = []
    for source, every in grouped(cases(evidence.points(run)), lambda case: case.source).items():
        rows = [row for case in every for row in case.at(case.most)]
        lines = [
            curve([row.item for row in waits], "comm", "together", size_of, name=name, axis="left")
            for name, waits in grouped(rows, lambda row: row.name).items()
        ]
        alone = [row.item for row in rows if row.nops is None] or [row.item for row in rows]
        lines.insert(0, curve(alone, "comm", "alone", size_of, name="without workers", axis="left"))
        figure = Figure(
            name=f"polling-sizes-{source}",
            title=f"{OWNERS[source]}: latency beside {workers_text(max(row.n for row in rows))}",
            x=SIZES,
            left=Axis(label="Network latency (µs)", scale="log10"),
            series=tuple(line for line in lines if line is not None),
            caption="Plain alone, dashed beside workers; bands go from the first to the last decile.",
        )
        drawn.append(figure)
    return [figure for figure in drawn if figure.series]


@of_evidence
def constant_frequencies(
    evidence: Evidence, run: str, metric: Literal["latency", "bandwidth"]
) -> Sequence[Figure]:
    """The network alone over the message size, a curve for each constant frequency (Denis et al., Fig. 1)."""
    points = evidence.points(run, only=lambda item: bool(item.core_khz or item.uncore_khz))
    points = [item for item in points if item.metric == metric]
    series = constant_curves(points, plain)
    if not series:
        return ()
    figure = Figure(
        name=f"constant-{metric}",
        title=f"Network {metric} at constant frequencies",
        x=SIZES,
        left=Axis(label=comm_label(points)),
        series=series,
        caption="Communication only; bands go from the first to the last decile.",
    )
    return (figure,)


def titled(
    figures: Sequence[Figure], label: str, *, virtual: bool = False, warning: str = ""
) -> tuple[Figure, ...]:
    """The figures of an exhibit: its label before each title, and names that no other exhibit has. Those of a
    virtual machine say so, and `warning` stands above those of runs that are not trusted.
    """
    start = "".join(letter if letter.isalnum() else "-" for letter in label.lower())
    source = " (virtual machine)" * virtual
    return tuple(
        msgspec.structs.replace(
            figure,
            name=f"{start}-{figure.name}",
            title=f"{label}. {figure.title}{source}",
            warning=warning,
        )
        for figure in figures
    )
