"""Programs and memory accesses on a virtual machine with effects: what they would answer, behind noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from elbowroom.points.point import Unit
from elbowroom.virtual.effects import Asked, Effect, at, value

Factors = Callable[[Unit, tuple[int, int, int]], list[list[list[float]]]]
INTENSITY = {"cg": 0.25, "cg-sparse": 0.14, "gemm": 32.0}
"""flop/B of the tasks of apps/kernels (docs/guide/kernels.md)."""

SOLUTION_US = 1e6


def record(
    unit: Unit, phases: list[dict[str, Any]], facts: Mapping[str, float] | None = None
) -> dict[str, Any]:
    """A `repetition` record of the protocol."""
    head = {"record": "repetition", "point": unit.point, "repetition": unit.repetition}
    return {
        **head,
        "status": "ok",
        "reason": "",
        "flags": ["virtual"],
        "phases": phases,
        **({"facts": dict(facts)} if facts else {}),
    }


def _phase(phase: str, index: int, sides: Mapping[str, Any]) -> dict[str, Any]:
    return {"phase": phase, "index": index, "status": "ok", "flags": ["virtual"], "measured_s": 0.0, **sides}


def messages(
    unit: Unit, effects: list[Effect], asked: Asked, alone: float, factors: list[list[list[float]]]
) -> dict[str, Any]:
    """Latencies by MPI (`alone`, us) and through a runtime system, or beside its workers."""
    kept = value(effects, "comm", asked)
    added = value(effects, "added", asked)
    together = alone / (kept or 1.0) + (added or 0.0)
    phases = []
    for index, phase in enumerate(asked.fields["sequence"]):
        latency = (together if phase == "AB" else alone) * factors[index][0][1]
        phases.append(_phase(phase, index, {"comm": {"value": latency, "unit": "us", "batches": [latency]}}))
    return record(unit, phases)


def matrices(
    unit: Unit,
    effects: list[Effect],
    asked: Asked,
    rates: tuple[float, float],
    factors: list[list[list[float]]],
) -> dict[str, Any]:
    """Solutions and products: `rates` are Mflop/s of the computation and MB/s of sends, each alone."""
    kept = {side: value(effects, side, asked) or 1.0 for side in ("comp", "comm")}
    phases = []
    for index, phase in enumerate(asked.fields["sequence"]):
        noise, together = factors[index][0], phase == "AB"
        sides: dict[str, Any] = {}
        if "A" in phase:
            rate = rates[0] * (kept["comp"] if together else 1.0) * noise[0]
            sides["comp"] = {"rate": rate, "unit": "Mflop/s", "batches": [rate]}
            sides["total"] = {"value": SOLUTION_US / noise[0], "unit": "us"}
        if "B" in phase:
            sends = rates[1] * (kept["comm"] if together else 1.0) * noise[1]
            sides["comm"] = {"value": sends, "unit": "MB/s", "batches": [sends]}
        phases.append(_phase(phase, index, sides))
    facts = {"arithmetic_intensity": INTENSITY[asked.name], "residual": 1e-13, "relative_error": 1e-13}
    stalled = value(effects, "stalled", asked)
    if stalled is not None:
        facts["stalled_measured"] = min(1.0, stalled * factors[0][0][0])
    return record(unit, phases, facts)


def accesses(
    unit: Unit, effects: list[Effect], asked: Asked, floor: float, rng: np.random.Generator
) -> dict[str, Any]:
    """One-way times (us) of a window of sizes: never below the floor, which each size divides by what the
    effects say it keeps.
    """
    extraneous = asked.fields["extraneous"]
    spread = next((effect.spread for effect in effects if effect.spread), 0.02)
    sizes = [extraneous["first"] + number * extraneous["step"] for number in range(extraneous["count"])]
    phases = []
    for index, phase in enumerate(asked.fields["sequence"]):
        batches: list[float] = []
        for size in sizes:
            kept = (value(effects, "comm", asked, size) or 1.0) if phase == "AB" else 1.0
            scatter = rng.exponential(spread if phase == "AB" else 0.02, extraneous["exchanges"])
            batches += [round(floor / kept * (1 + float(more)), 6) for more in scatter]
        side = {
            "value": float(np.median(batches)),
            "unit": "us",
            "batches": batches,
            "messages": len(batches),
        }
        levels = _misses(effects, asked, sizes) if phase == "AB" else {}
        counted = {"misses": {"source": "measured", "sender": levels, "receiver": levels}} if levels else {}
        phases.append(_phase(phase, index, {"comm": side, "observed": {}, **counted}))
    return record(unit, phases) | {"validated": True}


def _misses(effects: list[Effect], asked: Asked, sizes: list[int]) -> dict[str, list[float]]:
    for effect in effects:
        if effect.misses:
            return {
                level: [at(curve, asked.x("bytes", size)) for size in sizes]
                for level, curve in effect.misses.items()
            }
    return {}
