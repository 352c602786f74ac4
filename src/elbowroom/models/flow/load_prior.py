"""What is believed of FLOW's parameters for loads before their fit: which there are, centres, widths, bounds.

A parameter is there only if a run tells of it. The fit works in logarithms, but for LINEAR ones.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from elbowroom.models.curves import Shape
from elbowroom.models.flow.extras import NEUTRAL
from elbowroom.models.flow.law import Array
from elbowroom.models.flow.prior import Prior
from elbowroom.models.flow.regimes import Regime, regimes
from elbowroom.models.load import LoadRow, Question

LINEAR = ("thrift", "latency_load", "relief", "queueing")

CENTRES = {
    "roofline": 3.0,
    "thrift": 1.0,
    "latency_load": 0.5,
    "relief": 0.3,
    "thread_gain": 1.1,
    "queueing": 0.7,
    "both": 1.5,
}
"""Where it is not what the rows show at first sight, or NEUTRAL."""

WIDTHS = {
    "peak": 0.5,
    "roofline": 0.6,
    "thrift": 0.5,
    "latency_load": 0.5,
    "relief": 0.3,
    "thread_gain": 0.3,
    "queueing": 0.4,
    "copy_weight": 0.7,
    "devices": 0.7,
    "way_floor": 0.7,
    "way_room": 0.25,
    "latency": 0.5,
    "speed": 0.5,
    "kernel": 0.3,
    "pattern": 0.15,
}
WIDTH = 0.3

BOUNDS = {
    "roofline": (float(np.log(0.7)), float(np.log(20.0))),
    "thrift": (0.0, 2.5),
    "latency_load": (0.0, 3.0),
    "relief": (0.0, 1.0),
    "thread_gain": (0.0, float(np.log(8.0))),
    "queueing": (0.0, 1.2),
    "way_room": (float(np.log(0.3)), float(np.log(1.2))),
}
REACH = 2.0
"""Bounds of other logarithms around their centre."""

FASTEST = 10.0
"""Speed of a regime's messages over the calibrated ones: of small messages none can be told."""

UNSEEN_LATENCY = 2.0
"""Us, where only sizes near the calibrated one were measured, whose latency hardly shows."""

KERNEL, PATTERN = "kernel ", "pattern "
"""Before the names of the factors that other kernels and patterns have: fitted, and not kept."""


def encode(values: Array, names: Sequence[str]) -> Array:
    """Parameters (..., E) to coordinates."""
    linear = np.array([name in LINEAR for name in names], dtype=bool)
    return np.where(linear, values, np.log(np.where(linear, 1.0, values)))


def decode(coordinates: Array, names: Sequence[str]) -> Array:
    """Coordinates (..., E) to parameters."""
    linear = np.array([name in LINEAR for name in names], dtype=bool)
    return np.where(linear, coordinates, np.exp(np.where(linear, 0.0, coordinates)))


def questions(rows: Sequence[LoadRow], size: int, intensity: float) -> tuple[Question, ...]:
    """What the rows tell of beyond situations."""
    loads = [row.load for row in rows]
    messages = [load.messages for load in loads if load.messages is not None]
    sizes = {item.size or size for item in messages} | {size}
    asks: dict[Question, bool] = {
        "intensity": any(group.intensity > intensity for load in loads for group in load.computing),
        "sizes": len(sizes) >= 3,
        "send": any(item.direction == "send" for item in messages),
        "both": any(item.direction == "both" for item in messages),
        "threads": any(item.threads > 1 for item in messages),
        "copies": any(load.copies for load in loads),
        "nodes": any(len({g.socket for g in load.computing}) < len(load.computing) for load in loads),
    }
    return tuple(name for name, there in asks.items() if there)


def load_prior(rows: Sequence[LoadRow], shape: Shape, size: int, intensity: float, bandwidth: float) -> Prior:
    """From the rows; `size`, `intensity`: the calibrated ones, `bandwidth` of messages of that size, MB/s."""
    values = _first_sight(rows, shape, size, intensity, bandwidth)
    sizes = _regimes(rows, size)
    if sizes:
        values |= {"latency_load": CENTRES["latency_load"], "relief": CENTRES["relief"]}
        values |= _messages(sizes, size, bandwidth)
    names = [*values, *_factors(rows)]
    centre = encode(np.array([values.get(name, 1.0) for name in names]), names)
    kinds = [_kind(name) for name in names]
    bounds = [BOUNDS.get(kind, (at - REACH, at + REACH)) for kind, at in zip(kinds, centre, strict=True)]
    return Prior(
        names=tuple(names),
        centre=centre,
        width=np.array([WIDTHS.get(kind, WIDTH) for kind in kinds]),
        low=np.array([low for low, _ in bounds], dtype=float),
        high=np.array([high for _, high in bounds], dtype=float),
        switches=tuple(item.first for item in sizes[1:]),
    )


def _first_sight(
    rows: Sequence[LoadRow], shape: Shape, size: int, intensity: float, bandwidth: float
) -> dict[str, float]:
    """The parameters that the rows tell of, but for those of message sizes, and where to begin."""
    measured = questions(rows, size, intensity)
    values: dict[str, float] = {}
    if "intensity" in measured:
        values["peak"] = _peak(rows, intensity)
        values |= {name: CENTRES[name] for name in ("roofline", "thrift")}
    if "threads" in measured:
        values |= {name: CENTRES[name] for name in ("thread_gain", "queueing")}
    for way in ("send", "both"):
        if way in measured:
            values |= {way: CENTRES.get(way, 1.0), f"{way}_room": 1.0}
            for socket in _sockets(rows, shape, way):
                values |= {f"{way}_floor_{socket}": 1.0, f"{way}_cost_{socket}": 1.0}
    if "copies" in measured:
        most = max(sum(copy.demand for copy in row.load.copies) for row in rows)
        values |= dict.fromkeys(("copy_floor", "copy_weight", "copy_cost"), 1.0)
        values["devices"] = 3 * (most + bandwidth)
    return values


def _sockets(rows: Sequence[LoadRow], shape: Shape, way: str) -> list[str]:
    """Whose nodes messages of that direction were measured on beside computations."""
    nodes = {
        row.load.messages.node
        for row in rows
        if row.load.messages is not None and row.load.messages.direction == way and row.load.computing
    }
    return sorted({"first" if shape.local(node) else "second" for node in nodes})


def _kind(name: str) -> str:
    """The name that WIDTHS and BOUNDS know it by."""
    match = re.fullmatch(r"(send|both)_(floor|cost|room)(_\w+)?", name)
    if match:
        return f"way_{match[2]}"
    for kind in ("latency", "speed"):
        if name.startswith(f"{kind}_") and name not in NEUTRAL:
            return kind
    return name.split(" ")[0]


def _peak(rows: Sequence[LoadRow], intensity: float) -> float:
    """The most flops of a core seen, Mflop/s."""
    peaks = []
    for row in rows:
        rate = row.comp_alone if row.comp_alone is not None else row.comp_together
        groups = row.load.computing
        kinds = {group.intensity for group in groups}
        if rate is not None and len(kinds) == 1 and max(kinds) > intensity:
            peaks.append(rate * max(kinds) / sum(group.count for group in groups))
    return max(peaks, default=1e4)


def _regimes(rows: Sequence[LoadRow], size: int) -> tuple[Regime, ...]:
    """Regimes of messages alone that one thread exchanges, both directions apart; none if all have the
    calibrated size.
    """
    sizes, times = [], []
    for row in rows:
        messages = row.load.messages
        if messages is None or messages.threads > 1 or messages.direction != "receive" or row.load.copies:
            continue
        if row.comm_alone is not None:
            sizes.append(messages.size or size)
            times.append((messages.size or size) / row.comm_alone)
    if any(item != size for item in sizes):
        return regimes(sizes, times)
    others = [row.load.messages for row in rows if row.load.messages is not None]
    if any((item.size or size) != size for item in others):
        return (Regime(first=0, latency=UNSEEN_LATENCY, bandwidth=np.inf),)
    return ()


def _messages(sizes: Sequence[Regime], size: int, bandwidth: float) -> dict[str, float]:
    """Latency of every regime, and speed of every one but the calibrated size's."""
    calibrated = sum(item.first <= size for item in sizes) - 1
    values = {}
    for r, item in enumerate(sizes):
        values[f"latency_{r}"] = max(item.latency, 1e-3)
        if r != calibrated:
            values[f"speed_{r}"] = float(min(max(item.bandwidth / bandwidth, 1 / FASTEST), FASTEST))
    return values


def _factors(rows: Sequence[LoadRow]) -> tuple[str, ...]:
    kernels = {row.kernel for row in rows if row.kernel}
    patterns = {row.pattern for row in rows if row.pattern}
    return (*(KERNEL + name for name in sorted(kernels)), *(PATTERN + name for name in sorted(patterns)))
