"""What a run of `forwarding` is drawn with: what the computation keeps over the size, by tree."""

from __future__ import annotations

from collections.abc import Sequence

from elbowroom.draw.figure import Axis, Figure
from elbowroom.experiments.common.panels import kept_curve
from elbowroom.experiments.common.sentences import cores_text, grouped
from elbowroom.experiments.forwarding.rows import TreeRow, rows
from elbowroom.machine.topology import Machine
from elbowroom.results.result import PointResult

SIZE = Axis(label="Size of a broadcast", scale="log2", bytes=True)


def figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:  # noqa: ARG001
    """A figure for each kernel and number of computing cores."""
    groups = grouped(rows(results), lambda row: (row.workload.kernel, row.item.n))
    drawn = (_over_size(group) for group in groups.values())
    return tuple(figure for figure in drawn if figure.series)


def _over_size(group: Sequence[TreeRow]) -> Figure:
    first = group[0]
    curves = [
        kept_curve([row.item for row in of_tree], "comp", lambda item: float(item.size), tree)
        for tree, of_tree in grouped(group, lambda row: row.tree).items()
    ]
    return Figure(
        name=f"forwarding-{first.workload.kernel}-{first.item.n}",
        title=f"{first.name} on {cores_text(first.item.n)} of a rank that forwards broadcasts",
        x=SIZE,
        left=Axis(label="Kept by the computation (1 = undisturbed)", reference=1.0),
        series=tuple(curve for curve in curves if curve is not None),
        caption="together/alone of the computing rate; the band is the 95 % interval.",
    )
