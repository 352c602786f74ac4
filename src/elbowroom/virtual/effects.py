"""Effects that are written into a virtual machine: what each side keeps, as a curve over one axis.

They replace what the machine's law says of both sides together, and stand for what it says nothing about:
polling workers, programs over a runtime system, matrices, memory accesses between messages. So a machine can
be given exactly the behaviour that a paper describes, or the opposite, and a study must find it
(docs/reference/machine-file.md).

Programs and memory accesses on a virtual machine with effects: what they would answer, behind noise.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta

from elbowroom.plan.kernels import arithmetic_intensity, find
from elbowroom.points.unit import Unit
from elbowroom.virtual.truth import FLAG, repetition_record

Kept = Annotated[float, Meta(gt=0, le=10)]
Curve = tuple[tuple[float, float], ...]
"""(x, value) by rising x; straight between them, constant beyond the ends."""

HOSTS = 2
"""Every virtual machine is two alike, with their network between them, as in the thesis (6.3.1)."""

Over = Literal["n", "size", "intensity", "cursor", "bytes"]
Place = Literal["near", "far"]


class Effect(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one kind of point shows. `of`: kernels, tasks of programs (`overhead`, `polling`, `cg`, `gemm`),
    or who accesses memory (`sender`, `receiver`); empty: kernels that use memory. The other fields choose
    among their points; those left out take all.

    `comm`, `comp`: shares that the sides keep, over `over`; `comp_alone`: factor of the computation's rate;
    `comm_factor`, `comp_factor`: of what the truth says of a side together;
    `added`: us more of a latency; `stalled`: share of the time that cores wait for memory (as counters would
    say); `misses`: by cache level; `spread`: relative scatter of one-way times.
    """

    of: tuple[str, ...] = ()
    metric: Literal["", "latency", "bandwidth"] = ""
    data: Place | None = None
    thread: Place | None = None
    comp_node: int | None = None
    comm_node: int | None = None
    n: tuple[int, ...] = ()
    over: Over = "n"
    comm: Curve = ()
    comp: Curve = ()
    comp_alone: Curve = ()
    comm_factor: Kept | None = None
    comp_factor: Kept | None = None
    added: Curve = ()
    stalled: Curve = ()
    misses: dict[Literal["L1", "L2", "L3"], Curve] = {}
    spread: Annotated[float, Meta(ge=0, le=1)] = 0.0


class EffectQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What effects are chosen by: a request of the probe's protocol, with its places as near and far."""

    name: str
    fields: dict[str, Any]
    data: Place
    thread: Place

    def x(self, over: Over, size: float = 0.0) -> float:
        """The value of an axis; `size`: bytes accessed."""
        if over == "n":
            return float(_cores(self.fields))
        if over == "intensity":
            return arithmetic_intensity(self.fields["kernel"], self.fields["cursor"]) or 0.0
        if over == "cursor":
            program = self.fields.get("program") or {}
            return float(program.get("backoff") or self.fields["cursor"])
        return float(self.fields["size"]) if over == "size" else size


def _cores(fields: Mapping[str, Any]) -> int:
    """Computing cores of a host, of a program those of one process."""
    places = fields.get("placements")
    if not places:
        return len(fields["comp_cores"])
    if "program" in fields:
        return len(places[0]["comp_cores"])
    return sum(len(place["comp_cores"]) for place in places) // HOSTS


def name_of(fields: Mapping[str, Any]) -> str:
    """What a request runs, as effects name it."""
    if "extraneous" in fields:
        return str(fields["extraneous"]["who"])
    if "program" in fields:
        program = fields["program"]
        return "paused" if program.get("backoff") == 0 else str(program["task"])
    return str(fields["kernel"])


def chosen(effects: Sequence[Effect], query: EffectQuery) -> list[Effect]:
    """The effects that apply to a request, those written later first."""
    return [effect for effect in reversed(effects) if _applies(effect, query)]


def _applies(effect: Effect, query: EffectQuery) -> bool:
    kernel = None if "program" in query.fields or "extraneous" in query.fields else find(query.name)
    if effect.of:
        if query.name not in effect.of:
            return False
    elif kernel is None or not kernel.moves_memory:
        return False
    fields = query.fields
    return (
        effect.metric in ("", fields["metric"])
        and effect.data in (None, query.data)
        and effect.thread in (None, query.thread)
        and effect.comp_node in (None, fields["comp_node"])
        and effect.comm_node in (None, fields["comm_node"])
        and (not effect.n or _cores(fields) in effect.n)
    )


def at(curve: Curve, x: float) -> float:
    """The curve's value."""
    place = bisect_right([point[0] for point in curve], x)
    if place == 0:
        return curve[0][1]
    if place == len(curve):
        return curve[-1][1]
    (left, low), (right, high) = curve[place - 1], curve[place]
    return low + (high - low) * (x - left) / (right - left)


def value(
    effects: Sequence[Effect],
    what: Literal["comm", "comp", "comp_alone", "added", "stalled"],
    query: EffectQuery,
    size: float = 0,
) -> float | None:
    """The first effect's value of a kind; None where none says anything."""
    for effect in effects:
        curve: Curve = getattr(effect, what)
        if curve:
            return at(curve, query.x(effect.over, size))
    return None


def wrong(effect: Effect) -> tuple[str, object] | None:
    """The first key of an effect whose curve is none: (key, value); None where all are right."""
    curves: dict[str, Curve] = {
        name: getattr(effect, name) for name in ("comm", "comp", "comp_alone", "added", "stalled")
    }
    curves |= {f"misses.{level}": curve for level, curve in effect.misses.items()}
    for key, curve in curves.items():
        xs = [x for x, _ in curve]
        if any(later <= earlier for earlier, later in pairwise(xs)):
            return key, list(xs)
        low = -1e9 if key == "added" else 0.0
        for _, y in curve:
            if not low <= y <= 1e9 or (key in ("comm", "comp", "comp_alone") and not 0 < y <= 10):
                return key, y
    return None


INTENSITY = {"cg": 0.25, "cg-sparse": 0.14, "gemm": 32.0}
"""flop/B of the tasks of apps/kernels (docs/guide/kernels.md)."""

SOLUTION_US = 1e6


def _phase(phase: str, index: int, sides: Mapping[str, Any]) -> dict[str, Any]:
    return {"phase": phase, "index": index, "status": "ok", "flags": [FLAG], "measured_s": 0.0, **sides}


def answer_messages(
    unit: Unit, effects: list[Effect], query: EffectQuery, alone: float, factors: list[list[list[float]]]
) -> dict[str, Any]:
    """Latencies by MPI (`alone`, us) and through a runtime system, or beside its workers."""
    kept = value(effects, "comm", query)
    added = value(effects, "added", query)
    together = alone / (kept or 1.0) + (added or 0.0)
    phases = []
    for index, phase in enumerate(query.fields["sequence"]):
        latency = (together if phase == "AB" else alone) * factors[index][0][1]
        phases.append(_phase(phase, index, {"comm": {"value": latency, "unit": "us", "batches": [latency]}}))
    return repetition_record(unit, phases)


def answer_matrices(
    unit: Unit,
    effects: list[Effect],
    query: EffectQuery,
    rates: tuple[float, float],
    factors: list[list[list[float]]],
) -> dict[str, Any]:
    """Solutions and products: `rates` are Mflop/s of the computation and MB/s of sends, each alone."""
    kept = {side: value(effects, side, query) or 1.0 for side in ("comp", "comm")}
    phases = []
    for index, phase in enumerate(query.fields["sequence"]):
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
    facts = {"arithmetic_intensity": INTENSITY[query.name], "residual": 1e-13, "relative_error": 1e-13}
    stalled = value(effects, "stalled", query)
    if stalled is not None:
        facts["stalled_measured"] = min(1.0, stalled * factors[0][0][0])
    return repetition_record(unit, phases, facts)


def answer_accesses(
    unit: Unit, effects: list[Effect], query: EffectQuery, floor: float, rng: np.random.Generator
) -> dict[str, Any]:
    """One-way times (us) of a window of sizes: never below the floor, which each size divides by what the
    effects say it keeps.
    """
    extraneous = query.fields["extraneous"]
    spread = next((effect.spread for effect in effects if effect.spread), 0.02)
    sizes = [extraneous["first"] + number * extraneous["step"] for number in range(extraneous["count"])]
    phases = []
    for index, phase in enumerate(query.fields["sequence"]):
        batches: list[float] = []
        for size in sizes:
            kept = (value(effects, "comm", query, size) or 1.0) if phase == "AB" else 1.0
            scatter = rng.exponential(spread if phase == "AB" else 0.02, extraneous["exchanges"])
            batches += [round(floor / kept * (1 + float(more)), 6) for more in scatter]
        side = {
            "value": float(np.median(batches)),
            "unit": "us",
            "batches": batches,
            "messages": len(batches),
        }
        levels = _misses(effects, query, sizes) if phase == "AB" else {}
        counted = {"misses": {"source": "measured", "sender": levels, "receiver": levels}} if levels else {}
        phases.append(_phase(phase, index, {"comm": side, "observed": {}, **counted}))
    return repetition_record(unit, phases) | {"validated": True}


def _misses(effects: list[Effect], query: EffectQuery, sizes: list[int]) -> dict[str, list[float]]:
    for effect in effects:
        if effect.misses:
            return {
                level: [at(curve, query.x("bytes", size)) for size in sizes]
                for level, curve in effect.misses.items()
            }
    return {}
