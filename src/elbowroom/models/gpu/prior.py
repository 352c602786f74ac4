"""What is believed of an accelerator's parameters before a fit: centres read off the samples, wide bands.

The fit works in logarithms, of LINEAR parameters in what they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

import numpy as np

from elbowroom.models.flow.law import Array
from elbowroom.models.flow.prior import Prior
from elbowroom.models.gpu.law import PARAMETERS, link_name
from elbowroom.models.gpu.samples import GpuSample, LinkRate
from elbowroom.models.gpu.words import LINKS

LINEAR = ("quant", "late")

CENTRES = {
    "hbm": 3e6,
    "issue": 1.5,
    "corner": 4.0,
    "traffic": 2.0,
    "quant": 0.9,
    "hold": 1.0,
    "late": 1.0,
    "engine": 5e4,
    "sm_hbm": 2e4,
    "sm_host": 1e4,
    "store": 2.5e4,
    "engine_weight": 0.1,
    "sm_weight": 1.0,
    "stall_gemm": 0.5,
    "stall_triad": 0.5,
    "stall_chain": 0.5,
    "stall_power": 1.0,
    "launch_engine": 0.05,
    "launch_sm": 0.3,
}
"""Of a large accelerator; what samples show at first sight stands in their place."""

WIDTHS = {
    "hbm": 0.7,
    "issue": 0.3,
    "corner": 0.4,
    "traffic": 0.5,
    "quant": 0.2,
    "hold": 0.4,
    "late": 0.4,
    "engine": 0.7,
    "sm_hbm": 0.7,
    "sm_host": 0.9,
    "store": 0.7,
    "engine_weight": 1.0,
    "sm_weight": 0.7,
    "stall_gemm": 1.5,
    "stall_triad": 1.5,
    "stall_chain": 1.5,
    "stall_power": 0.3,
    "launch_engine": 1.0,
    "launch_sm": 1.0,
}
LINK_WIDTH, SEEN_WIDTH = 0.7, 0.3
REACH = 3.5
"""Bounds of a logarithm around its centre, in widths of the prior."""

BOUNDS = {"quant": (0.0, 1.0), "late": (0.0, 1.2), "hold": (math.log(0.5), math.log(6.0))}

HOLDS = (1.0, 1.3, 1.7, 2.2)
"""Where fits begin: waves make steps, which no slope leads over."""


def prior(samples: Sequence[GpuSample], links: Sequence[LinkRate] = ()) -> tuple[Prior, tuple[str, ...]]:
    """The prior of all parameters that these samples may tell of, and the names of those they do not.

    `links`: rates that were measured by themselves; no sample need tell of them.
    """
    seen = _seen(samples)
    sure = {name: item.spread for item in links if (name := link_name(item.direction, item.node)) not in seen}
    seen |= {name: item.rate for item in links if (name := link_name(item.direction, item.node)) in sure}
    names = tuple(item.name for item in PARAMETERS) + tuple(sorted(n for n in seen if n.startswith("link_")))
    centre = encode(np.array([seen.get(name, CENTRES.get(name, 2.5e4)) for name in names]), names)
    width = np.array(
        [
            sure.get(name, SEEN_WIDTH) if name in seen and name != "sm_host" else WIDTHS.get(name, LINK_WIDTH)
            for name in names
        ]
    )
    bounds = [
        BOUNDS.get(name, (at - REACH * w, at + REACH * w))
        for name, at, w in zip(names, centre, width, strict=True)
    ]
    before = Prior(
        names=names,
        centre=centre,
        width=width,
        low=np.array([low for low, _ in bounds]),
        high=np.array([high for _, high in bounds]),
        starts=tuple(_start(centre, names, hold) for hold in HOLDS),
    )
    return before, tuple(name for name in names if name not in _told(samples, seen))


def _start(centre: Array, names: tuple[str, ...], hold: float) -> Array:
    start = centre.copy()
    start[names.index("hold")] = math.log(hold)
    return start


def _seen(samples: Sequence[GpuSample]) -> dict[str, float]:
    """First sight of bandwidths."""
    rates: dict[str, list[float]] = {}
    triads = [item.traffic for item in samples if item.case.victim == "triad" and item.traffic]
    for item in samples:
        case, rate = item.case, item.mover_alone
        if rate is None:
            continue
        if case.mover == "copy":
            name = link_name(case.direction, case.node) if case.direction in LINKS else "engine"
            # A pace hides what a copy could reach.
            rates.setdefault(name, []).append(rate * (1.5 if case.pace_mb_s else 1.0))
        elif case.mover == "sm_copy":
            host = case.direction == "host"
            rates.setdefault("sm_host" if host else "sm_hbm", []).append(rate / case.sms)
            if host:
                rates.setdefault("store", []).append(rate)
    seen = {name: median(values) for name, values in rates.items()}
    for name in ("engine", "sm_hbm", "sm_host", "store"):
        if name in rates:
            seen[name] = max(rates[name])
    if triads:
        seen["hbm"] = 1.05 * median(triads)
    return seen


def _told(samples: Sequence[GpuSample], seen: dict[str, float]) -> set[str]:
    """The parameters that some sample depends on."""
    paced = [item.case.pace_mb_s > 0 for item in samples if item.case.direction == "d2d"]
    told = set(seen) - ({"engine"} if all(paced) else set())
    for item in samples:
        case = item.case
        held = case.mover in ("sm_copy", "sm_idle")
        if case.victim == "triad":
            told |= {"issue", "corner"}
        if case.victim == "gemm":
            told |= {"quant"} if held or case.planned else set()
            told |= {"traffic"} if item.traffic and case.mover in ("copy", "sm_copy") else set()
        if held and case.victim != "chain":
            told |= {"hold"} | ({"late"} if case.first == "victim" else set())
        if case.mover == "copy":
            told |= {"launch_engine" if case.victim == "chain" else "engine_weight"}
        elif held and case.victim == "chain":
            told.add("launch_sm")
        if case.mover == "sm_copy":
            told |= {"stall_power", f"stall_{case.victim}"} if case.direction == "host" else {"sm_weight"}
    return told


def encode(parameters: Array, names: tuple[str, ...]) -> Array:
    """Parameters (..., P) of those names to coordinates."""
    logs = _logs(names)
    coordinates = np.array(parameters, dtype=float)
    coordinates[..., logs] = np.log(coordinates[..., logs])
    return coordinates


def decode(coordinates: Array, names: tuple[str, ...]) -> Array:
    """Coordinates (..., P) to parameters of those names."""
    logs = _logs(names)
    parameters = np.array(coordinates, dtype=float)
    parameters[..., logs] = np.exp(parameters[..., logs])
    return parameters


def _logs(names: tuple[str, ...]) -> Array:
    return np.array([name not in LINEAR for name in names], dtype=bool)
