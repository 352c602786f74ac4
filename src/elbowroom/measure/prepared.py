"""A request for a run, and what a plan becomes on a machine."""

from __future__ import annotations

import msgspec

from elbowroom.experiments.plans import Overrides
from elbowroom.launch.planned_starts import PlannedStart
from elbowroom.machine.topology import Machine
from elbowroom.measure.source import Where
from elbowroom.plan.file import Plan
from elbowroom.points.point import Expansion
from elbowroom.points.probe import ProbeStart
from elbowroom.points.unit import Unit


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What `run` is asked for. `patience`: seconds to wait for an answer, None for a generous guess per
    point. `trace`: the probe's threads are recorded beside the run folder (`traces_of`). `start`:
    time.monotonic() when the command began, from which a budget counts.
    """

    plan: str
    overrides: Overrides = Overrides()
    where: Where = Where()
    out: str | None = None
    seed: int | None = None
    reverse: bool = False
    patience: float | None = None
    command: tuple[str, ...] = ()
    trace: bool = False
    start: float | None = None


class UnitGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Units that one start of the probe, or of a program, answers."""

    probe: ProbeStart
    units: tuple[Unit, ...]


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A plan made concrete on a machine, before anything is measured. `budget`: seconds of a real machine's
    run, 0 without limit; `units` are then those at most. `builds`: what must be built first, in a dry run.
    """

    plan: Plan
    machine: Machine
    expansion: Expansion
    units: tuple[Unit, ...]
    groups: tuple[UnitGroup, ...]
    seconds: float
    measured_seconds: float
    commands: tuple[str, ...]
    budget: float = 0.0
    builds: tuple[str, ...] = ()


def start_of(prepared: Prepared, what: str, seconds: float | None = None) -> PlannedStart:
    """A plan on a machine as a start; `seconds`: a limit of its time."""
    limit = prepared.seconds if seconds is None else seconds
    return PlannedStart(
        what=f"{what}: {len(prepared.expansion.points)} points, {prepared.plan.repetitions} repetitions each",
        commands=prepared.commands,
        times=max(1, len(prepared.commands)),
        seconds=min(prepared.seconds, limit),
    )
