"""In which order units are measured, what the probe is asked for each, and how long all will take."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeGuard

import msgspec

from elbowroom.plan import accesses, matrices
from elbowroom.plan.point import Application, Phase, Point, Program, Unit
from elbowroom.plan.reading import Steady

CLOSING: tuple[Phase, ...] = ("A", "B", "B", "A")

# For the ETA only, on the safe side: a slow exchange, the way into the steady state, the probe's work
# around
# a phase
# and a unit, and writing memory for the first time.
SLOW_EXCHANGE = 5e9  # B/s, shared memory by copying and 100 Gb/s networks are faster
ROUND_TRIPS = 3
PHASE_OVERHEAD = 0.012  # s
UNIT_OVERHEAD = 0.03  # s
START = 1.5  # s, MPI and the first contact
FIRST_TOUCH = 2e9  # B/s and core, page faults included
CELL_BYTES = 80  # of an application, moved for one cell in one step
SLOW_MEMORY = 1e10  # B/s
SET_UP = 2e5  # cells/s generated, partitioned and reordered


def order(points: Sequence[Point], repetitions: int, seed: int, reverse: bool = False) -> tuple[Unit, ...]:
    """Every point once per repetition, each repetition in a fresh random order, then the closing baselines.

    Repetition by repetition, so that a slow drift of the machine hits all points alike. `reverse` turns the
    order inside each repetition round (a check that order does not matter). The closing units measure alone
    baselines again: one per distinct computation and one per distinct communication (METHOD.md, protocol).
    """
    units = []
    for repetition in range(repetitions):
        shuffled = list(points)
        random.Random(f"{seed}/{repetition}").shuffle(shuffled)
        if reverse:
            shuffled.reverse()
        units += [Unit(point=point.id, repetition=repetition) for point in shuffled]
    closing = list(closing_points(points))
    random.Random(f"{seed}/closing").shuffle(closing)
    if reverse:
        closing.reverse()
    return (*units, *(Unit(point=point.id, repetition=0, closing=True) for point in closing))


def closing_points(points: Sequence[Point]) -> tuple[Point, ...]:
    """Fewest points, in order, that hold every (kernel, cursor, n, node) and every (size, pattern, node,
    core); of an application, those that compute or communicate only; none of extraneous accesses and
    programs, which have their baseline in every unit.
    """
    computations: set[tuple[object, ...]] = set()
    communications: set[tuple[object, ...]] = set()
    chosen = []
    for point in points:
        if point.extraneous is not None or point.program is not None:
            continue
        if point.application is not None:
            if point.application.variant in ("none", "communication"):
                chosen.append(point)
            continue
        frequency = (point.core_khz, point.uncore_khz)
        comp = (point.kernel, point.cursor, point.n, point.comp_node, point.processes, *frequency)
        comm = (point.size, point.pattern, point.comm_node, point.comm_cores, point.processes, *frequency)
        if comp not in computations or comm not in communications:
            chosen.append(point)
        computations.add(comp)
        communications.add(comm)
    return tuple(chosen)


def sequence(point: Point, closing: bool = False) -> tuple[Phase, ...]:
    """The phases of one unit; without a kernel there is no A and AB becomes B. Extraneous accesses and
    programs have no kernel, and all the phases of their point.
    """
    phases = CLOSING if closing else point.sequence
    if point.kernel != "none" or (not closing and (point.extraneous or point.program)):
        return phases
    return tuple(phase for phase in phases if phase in ("B", "S")) or ("B",)


def request(point: Point, unit: Unit, steady: Steady) -> dict[str, object]:
    """The probe's `measure` request for one unit (docs/protocol.md), or the application's
    (docs/diffusion.md).
    """
    if point.application is not None:
        return {
            "variant": point.application.variant,
            "comm_threads": max(1, len(point.comm_cores)),
            "steps": point.application.steps,
            "warmup": point.application.warmup,
        }
    message: dict[str, object] = {
        "op": "measure",
        "point": point.id,
        "repetition": unit.repetition,
        "sequence": list(sequence(point, unit.closing)),
        "kernel": point.kernel,
        "cursor": point.cursor,
        "comp_cores": list(point.comp_cores),
        "comp_node": point.comp_node,
        "computing_ranks": point.computing_ranks,
        "working_set": point.working_set,
        "pattern": point.pattern,
        "size": point.size,
        "comm_node": point.comm_node,
        "comm_cores": list(point.comm_cores or (point.comm_core,)),
        "peer_cores": list(point.peer_cores or point.comm_cores or (point.comm_core,)),
        "reuse": point.reuse,
        "metric": point.metric,
        "window": point.window,
        "steady": {"window": steady.window, "cov": steady.cov, "limit": steady.limit},
        "observe": list(point.observe),
    }
    if point.scheduling:
        message["scheduling"] = True
    if point.extraneous is not None:
        message["extraneous"] = msgspec.to_builtins(point.extraneous)
    if point.program is not None:
        message["program"] = msgspec.to_builtins(point.program)
    if point.placements:
        message["placements"] = [
            {
                "rank": place.rank,
                "comp_cores": list(place.comp_cores),
                "comm_cores": list(place.comm_cores),
                "comp_node": place.comp_node,
                "comm_node": place.comm_node,
            }
            for place in point.placements
        ]
    return message


def phase_seconds(point: Point) -> float:
    """Seconds one phase measures: the window, or what a few round trips of a slow exchange take; of an
    application its timed steps, of a program of matrices a whole solution, of extraneous accesses all
    messages of its sizes, shared out among the phases, which are interleaved.
    """
    if point.application is not None:
        return point.application.steps * step_seconds(point.application)
    if point.extraneous is not None:
        return accesses.seconds(point) / len(point.sequence)
    if is_kernels(point.program):
        return matrices.seconds(point.program, _cores_each(point))
    return max(point.window, ROUND_TRIPS * 2 * point.size / SLOW_EXCHANGE)


def is_kernels(program: Program | None) -> TypeGuard[Program]:
    """Whether a program solves or multiplies matrices."""
    return program is not None and program.name == "kernels"


def _cores_each(point: Point) -> float:
    """Computing cores that a process has for itself: those that several share are divided among them."""
    if not point.placements:
        return max(1, len(point.comp_cores))
    cores = {core for place in point.placements for core in place.comp_cores}
    return max(1, len(cores)) / len(point.placements)


def step_seconds(application: Application) -> float:
    """Seconds of one step where all its processes share one slow memory."""
    return application.cells * CELL_BYTES / SLOW_MEMORY


def _unit_seconds(point: Point, unit: Unit) -> float:
    if point.application is not None:
        steps = point.application.steps + point.application.warmup
        return UNIT_OVERHEAD + steps * step_seconds(point.application)
    return UNIT_OVERHEAD + _long_phases(point, unit) * (phase_seconds(point) + PHASE_OVERHEAD)


def _long_phases(point: Point, unit: Unit) -> int:
    """Phases that take phase_seconds(); messages alone are short beside solving and multiplying."""
    if point.application is not None:
        return 1
    phases = sequence(point, unit.closing)
    return len(phases) - (phases.count("B") if is_kernels(point.program) else 0)


def estimate(points: Sequence[Point], units: Sequence[Unit]) -> float:
    """Seconds that the units will take from the start of the probe, somewhat on the safe side."""
    if not units:
        return 0.0
    by_id = {point.id: point for point in points}
    total = START + max(point.working_set for point in points) / FIRST_TOUCH
    cells = {point.application.cells for point in points if point.application is not None}
    total += sum(cells) / SET_UP
    programs = [point.program for point in points if is_kernels(point.program)]
    total += sum(START + matrices.memory(program) / FIRST_TOUCH for program in programs)
    return total + sum(_unit_seconds(by_id[unit.point], unit) for unit in units)


def measured(points: Sequence[Point], units: Sequence[Unit]) -> float:
    """Seconds inside measured windows, of those that `estimate` gives."""
    by_id = {point.id: point for point in points}
    return sum(
        _long_phases(point, unit) * phase_seconds(point) for unit in units for point in (by_id[unit.point],)
    )
