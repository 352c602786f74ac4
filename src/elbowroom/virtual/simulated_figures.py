"""Figures of a simulated node: what both sides keep, how long lines take, which station is in use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from elbowroom.draw.figure import Axis, Figure, Hue, Series, Side
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


def kept(name: str, curve: Curve) -> Figure:
    """What both sides keep of what they had alone."""
    return _over_cores(
        f"kept-{name}-comp{curve.comp_node}-comm{curve.comm_node}",
        _place(curve),
        "Kept (together / alone)",
        curve,
        [
            ("computation", "red", lambda row: row.comp_kept),
            ("communication", "blue", lambda row: row.comm_kept),
        ],
    )


def minimum(name: str, curves: Sequence[Curve]) -> Figure:
    """What communications keep in several placements."""
    return Figure(
        name=f"minimum-{name}",
        title=f"{name}: what communications keep",
        x=CORES,
        left=Axis(label="Kept (together / alone)", reference=1.0),
        series=tuple(
            Series(
                name=_nodes(curve),
                side="communication",
                style="line",
                x=tuple(float(row.n) for row in curve.rows),
                y=tuple(row.comm_kept for row in curve.rows),
                value="simulated",
            )
            for curve in curves
        ),
        caption=SIMULATED,
    )


def stations(name: str, curve: Curve) -> Figure:
    """Share of the time that stations are in use, both sides together."""
    hues: dict[str, Hue] = {"root complex": "blue", "link": "black"}
    # The same names in all panels, whichever nodes they are of.
    names = {
        f"controller of node {curve.comm_node}": "controller of the communications",
        f"controller of node {curve.comp_node}": "controller of the computations",
    }
    return _over_cores(
        f"stations-{name}-comp{curve.comp_node}-comm{curve.comm_node}",
        _place(curve),
        "Share of the time in use",
        curve,
        [(names.get(key, key), hues.get(key, "red"), _use(key)) for key in curve.rows[0].stations],
    )


def varied(title: str, parameter: str, points: Sequence[tuple[float, float, float]]) -> Figure:
    """Over a parameter's values what both sides keep: value, computation, communication. No series without
    points.
    """
    sides: tuple[Side, Side] = ("computation", "communication")
    return Figure(
        name=f"varied-{parameter}",
        title=title,
        x=Axis(label="Value of the parameter"),
        left=Axis(label="Kept (together / alone)", reference=1.0),
        series=tuple(
            Series(
                name=side,
                side=side,
                style="line",
                x=tuple(point[0] for point in points),
                y=tuple(point[place] for point in points),
                value="simulated",
            )
            for place, side in enumerate(sides, start=1)
            if points
        ),
        caption=SIMULATED,
    )


def _over_cores(
    name: str,
    title: str,
    label: str,
    curve: Curve,
    lines: Sequence[tuple[str, Hue, Callable[[SimulatedRow], float]]],
) -> Figure:
    x = tuple(float(row.n) for row in curve.rows)
    return Figure(
        name=name,
        title=title,
        x=CORES,
        left=Axis(label=label, reach=0.0),
        series=tuple(
            Series(
                name=text,
                hue=hue,
                style="line",
                x=x,
                y=tuple(of(row) for row in curve.rows),
                value="simulated",
            )
            for text, hue, of in lines
        ),
        caption=SIMULATED,
    )


def _use(station: str) -> Callable[[SimulatedRow], float]:
    return lambda row: row.stations[station]


def _nodes(curve: Curve) -> str:
    if curve.comp_node == curve.comm_node:
        return f"both on node {curve.comp_node}"
    return f"computations on {curve.comp_node}, they on {curve.comm_node}"


def _place(curve: Curve) -> str:
    return f"computations on node {curve.comp_node}, communications on node {curve.comm_node}"
