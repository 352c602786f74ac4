"""Figures of calls beside a computation: what is hidden, and what the computation keeps, over the size."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from elbowroom.draw.figure import Axis, Figure, Hue, Series
from elbowroom.experiments.common.calls.rows import CallRow, rows
from elbowroom.experiments.common.sentences import cores_text, grouped, kernel_name
from elbowroom.machine.topology import Machine
from elbowroom.results.result import PointResult
from elbowroom.stats.interval import Interval
from elbowroom.stats.overlap.measures import OverlapMeasures

SIZE = Axis(label="Size", scale="log2", bytes=True)
HIDDEN = Axis(label="Overlap (1 hides the shorter side)", reference=1.0)
KEPT = Axis(label="Kept by the computation (1 = undisturbed)", reference=1.0)
CAPTION = "The band is the 95 % interval."
HUES: dict[str, Hue] = {"blocking": "black", "nonblocking": "blue", "persistent": "red"}

Value = Callable[[OverlapMeasures], Interval]


def figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:  # noqa: ARG001
    """Two panels for each call, kernel and number of cores and ranks: overlap, what the computation keeps."""
    table = [row for row in rows(results) if row.measured is not None and row.call.operation != "barrier"]
    groups = grouped(
        table,
        lambda row: (row.call.operation, row.call.neighbours, row.item.kernel, row.item.n, row.call.ranks),
    )
    drawn = []
    for group in groups.values():
        drawn.append(_panel(group, "hidden", HIDDEN, lambda found: found.overlap))
        drawn.append(_panel(group, "kept", KEPT, lambda found: found.kept_comp))
    return tuple(figure for figure in drawn if figure.series)


def _panel(group: Sequence[CallRow], what: str, axis: Axis, value: Value) -> Figure:
    first = group[0]
    call, item = first.call, first.item
    name = f"exchange with {call.neighbours} neighbours" if call.operation == "exchange" else call.operation
    policies = grouped(group, lambda row: (row.call.form, row.call.policy_id))
    return Figure(
        name=f"{call.operation}-{call.neighbours}-{item.kernel}-{item.n}-{call.ranks}-{what}",
        title=f"{name}, {call.ranks} ranks, each beside {kernel_name(item.kernel)} on {cores_text(item.n)}",
        x=SIZE,
        left=axis,
        series=tuple(
            _series(form, policy, of_policy, value) for (form, policy), of_policy in policies.items()
        ),
        caption=CAPTION,
    )


def _series(form: str, policy: str, group: Sequence[CallRow], value: Value) -> Series:
    ordered = sorted(group, key=lambda row: row.item.size)
    values = [value(row.measured) for row in ordered if row.measured is not None]
    ends = [interval.ends(interval.value) for interval in values]
    return Series(
        name=form if form == "blocking" else f"{form}, {policy}",
        style="line",
        hue=HUES[form],
        x=tuple(float(row.item.size) for row in ordered),
        y=tuple(interval.value for interval in values),
        low=tuple(low for low, _ in ends),
        high=tuple(high for _, high in ends),
        points=tuple(row.item.id for row in ordered),
        band="95 % interval",
    )
