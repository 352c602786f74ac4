"""Points: computation beside messages under conditions; messages alone at constant frequencies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, Literal

import msgspec

from elbowroom.errors import UsageError, closest
from elbowroom.experiments.common.points import machine_notes, with_notes
from elbowroom.machine.topology import Machine
from elbowroom.plan.axes import expand as multiply
from elbowroom.plan.axes import metric_of
from elbowroom.plan.file import Plan, Positive, Size
from elbowroom.points.point import Expansion, Note, Point

CONSTANT_SIZES = (4, 64, 1024, 16 * 1024, 256 * 1024, 4 * 1024**2, 64_000_000)
"""From a latency to the bandwidth of the paper's largest messages (Figure 1)."""

FREQUENCIES = (
    ("core_khz", "constant core frequencies", "core_frequency"),
    ("uncore_khz", "constant uncore frequencies", "uncore_frequency"),
)


class FrequencyKeys(msgspec.Struct, frozen=True, kw_only=True):
    """Constant frequencies to set, kHz; where there are none, the lowest and the highest. `constant_sizes`:
    of the messages at constant frequencies. `turbo`, `governors`: conditions under which all is measured
    beside computation; without them, as the machine is.
    """

    core_khz: tuple[Positive, ...] = ()
    uncore_khz: tuple[Positive, ...] = ()
    constant_sizes: tuple[Size, ...] = CONSTANT_SIZES
    turbo: tuple[Literal["on", "off"], ...] = ()
    governors: tuple[str, ...] = ()


def expand(plan: Plan, machine: Machine) -> Expansion:
    """The plan's points under its conditions; where the process may set frequencies, communication only at
    those the plan names, else at both extremes, core and uncore in all combinations (paper, section 3.1);
    where it may not, a note.
    """
    expansion = multiply(plan, machine)
    notes = list(machine_notes(machine))
    if machine.virtual:
        notes.append(Note(what="frequency traces", reason="a virtual machine has no frequencies"))
    points = [_sampled(point, machine) for point in expansion.points]
    points = list({point.id: point for point in _under_conditions(points, plan, machine, notes)}.values())
    axes: dict[str, tuple[int, ...]] = {}
    for key, what, permission in FREQUENCIES:
        if permission in machine.permitted:
            axes[key] = _wanted(plan, machine, key, permission)
        else:
            notes.append(Note(what=what, reason=_refusal(machine, permission)))
    if axes:
        points += _constant(expansion.points, plan, axes)
    return with_notes(msgspec.structs.replace(expansion, points=tuple(points)), notes)


def _refusal(machine: Machine, permission: str) -> str:
    return machine.refused.get(permission, "it is not known whether this process may set them")


def _sampled(point: Point, machine: Machine) -> Point:
    """The point with a computing core less where every core would have a thread: the frequencies of all are
    sampled from a core, which a thread must not need.
    """
    busy = {*point.comp_cores, *point.comm_cores, *(point.peer_cores if machine.hosts == 1 else ())}
    traced = "frequency_trace" in point.observe and not machine.virtual
    if not traced or point.n < 2 or not set(machine.allowed) <= busy:
        return point
    return msgspec.structs.replace(point, n=point.n - 1, comp_cores=point.comp_cores[:-1])


def _under_conditions(
    points: Sequence[Point], plan: Plan, machine: Machine, notes: list[Note]
) -> Iterator[Point]:
    """Each point once under each combination of the conditions that may be set here; controls once."""
    turbo: tuple[str, ...] = plan.keys.turbo
    governors: tuple[str, ...] = plan.keys.governors
    for wanted, permission, what in (
        (turbo, "turbo", "turbo as a condition"),
        (governors, "governor", "governors as a condition"),
    ):
        if wanted and permission not in machine.permitted:
            notes.append(Note(what=what, reason=_refusal(machine, permission)))
    turbo = turbo if "turbo" in machine.permitted else ()
    governors = governors if "governor" in machine.permitted else ()
    for name in governors:
        if name not in machine.governors:
            raise UsageError(
                "unknown governor", field="governors", value=name, hint=closest(name, machine.governors)
            )
    for point in points:
        if point.role != "point":
            yield point
            continue
        for switch, governor in product(turbo or (None,), governors or (None,)):
            on = None if switch is None else switch == "on"
            yield msgspec.structs.replace(point, turbo=on, governor=governor)


def _wanted(plan: Plan, machine: Machine, key: str, permission: str) -> tuple[int, ...]:
    """Frequencies to hold constant, kHz. Raises UsageError for one outside of what can be held constant."""
    wanted: tuple[int, ...] = getattr(plan.keys, key)
    low, high = machine.frequency_ranges[permission]
    for khz in wanted:
        if not low <= khz <= high:
            raise UsageError(
                "cannot be held constant on this machine",
                field=key,
                value=khz,
                hint=f"choose from {low} to {high} kHz",
            )
    return wanted or (low, high)


def _constant(points: Sequence[Point], plan: Plan, axes: dict[str, tuple[int, ...]]) -> list[Point]:
    """Communication only: each distinct place at each size and combination of frequencies (Figure 1)."""
    alone: dict[str, Point] = {}
    sizes = dict.fromkeys((*plan.keys.constant_sizes, *plan.sizes))
    for point, size in product([point for point in points if point.role == "point"], sizes):
        bare = msgspec.structs.replace(
            point,
            kernel="none",
            n=0,
            comp_cores=(),
            working_set=0,
            cursor=1,
            sequence=("B", "B"),
            size=size,
            metric=metric_of(plan, size),
        )
        for values in product(*axes.values()):
            held: dict[str, Any] = dict(zip(axes, values, strict=True))
            constant = msgspec.structs.replace(bare, **held)
            alone.setdefault(constant.id, constant)
    return list(alone.values())
