"""The figure of a simulated node: the bandwidths of both sides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from elbowroom.draw.figure import Axis, Figure, Series, Side
from elbowroom.models.figures import CORES, VIRTUAL
from elbowroom.virtual.simulated import Curve, SimulatedRow

SIMULATED = f"Simulated line by line. {VIRTUAL}"


def bandwidths(name: str, curve: Curve) -> Figure:
    """Both sides alone and together over n, as the thesis draws them (Figs 6.2 to 6.10)."""
    x = tuple(float(row.n) for row in curve.rows)

    def series(
        side: Side, style: Literal["alone", "together"], of: Callable[[SimulatedRow], float]
    ) -> Series:
        axis: Literal["left", "right"] = "left" if side == "communication" else "right"
        return Series(
            name=f"{side} {style}",
            side=side,
            style=style,
            x=x,
            y=tuple(of(row) for row in curve.rows),
            axis=axis,
            value="simulated",
        )

    return Figure(
        name=f"simulated-{name}-comp{curve.comp_node}-comm{curve.comm_node}",
        title=f"{name}: {_place(curve)}",
        x=CORES,
        left=Axis(label="Network bandwidth (MB/s)", reach=0.0),
        right=Axis(label="Memory bandwidth (MB/s)", reach=0.0),
        series=(
            series("communication", "alone", lambda row: row.comm_alone),
            series("communication", "together", lambda row: row.comm_together),
            series("computation", "alone", lambda row: row.comp_alone),
            series("computation", "together", lambda row: row.comp_together),
        ),
        caption=SIMULATED,
    )


def _place(curve: Curve) -> str:
    return f"computations on node {curve.comp_node}, communications on node {curve.comm_node}"
