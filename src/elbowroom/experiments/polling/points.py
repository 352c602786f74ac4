"""Workers that poll a shared list of tasks beside a ping-pong: those of the probe's pool, and StarPU's own
(Denis et al. 2021, section 5.4, Figure 9; Swartvagher 2022, 5.4.3, Figure 5.13).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from elbowroom.errors import UsageError
from elbowroom.experiments.common.points import machine_notes, placed, with_notes
from elbowroom.machine.topology import Machine
from elbowroom.plan.axes import expand as multiply
from elbowroom.plan.axes import with_control
from elbowroom.plan.file import Natural, Plan, PlanSweep
from elbowroom.plan.kernels import KERNELS
from elbowroom.points.point import Expansion, Note, Phase, Placement, Point
from elbowroom.points.program import RuntimeProgram

PHASES: tuple[Phase, ...] = ("B", "AB", "AB", "B")
"""StarPU's workers paused, then polling: what they do alone is nobody's question."""

POOL_KERNELS = tuple(name for name, kernel in KERNELS.items() if kernel.pool)


class PollingKeys(msgspec.Struct, frozen=True, kw_only=True):
    """`backoffs` of StarPU's workers (0: paused), and its `scheduler` (its own default when empty): the
    workers of `eager` share one list.
    """

    backoffs: tuple[Natural, ...] = ()
    scheduler: str = ""


def expand(plan: Plan, machine: Machine) -> Expansion:
    """Every number of workers with every back-off, and paused; the same of StarPU's workers."""
    _refuse(plan)
    plan = msgspec.structs.replace(plan, metric="latency")
    native = multiply(msgspec.structs.replace(plan, sweeps=_sweeps(plan), control=False), machine)
    _enough_cores(plan, native)
    points = tuple(_on_every_host(point, machine) for point in native.points)
    largest = max((point.n for point in points), default=0)
    notes = [*machine_notes(machine), *native.notes]
    if largest == 1:
        reason = "1 core is free for workers here: it has the list to itself"
        notes.append(Note(what="workers that contend for a list", reason=reason))
    if plan.control:
        points = with_control(points)
    return with_notes(Expansion(points=(*points, *_starpu(plan, points, machine)), notes=()), notes)


def _refuse(plan: Plan) -> None:
    kernels = {name for axes in _groups(plan) for name in axes.kernels or ()}
    for name in sorted(kernels - set(POOL_KERNELS)):
        hint = "choose polling, paused, or both"
        raise UsageError("is not a kernel of the task pool", field="kernels", value=name, hint=hint)
    if plan.metric == "bandwidth":
        raise UsageError(
            "polling is measured by what it adds to latencies",
            field="metric",
            value=plan.metric,
            hint="leave it out",
        )


def _groups(plan: Plan) -> tuple[Plan | PlanSweep, ...]:
    """Everything in a plan that has axes."""
    return (plan, *plan.sweeps)


def _sweeps(plan: Plan) -> tuple[PlanSweep, ...]:
    """Each kernel with the cursors that mean something to it: paused workers wait for nothing."""
    return tuple(
        msgspec.structs.replace(
            sweep,
            kernels=(name,),
            cursors=sweep.cursors or plan.cursors if KERNELS[name].uses_cursor else (1,),
        )
        for sweep in plan.sweeps or (PlanSweep(),)
        for name in sweep.kernels or plan.kernels
    )


def _enough_cores(plan: Plan, native: Expansion) -> None:
    """A number of workers that was asked for and does not fit is refused: fewer would be another question."""
    reasons = {note.what: note.reason for note in native.notes}
    for count in (count for axes in _groups(plan) for count in axes.n or ()):
        if f"n = {count}" in reasons:
            raise UsageError(
                f"{count} workers are more than there are cores for them",
                field="n",
                value=count,
                hint=f"{reasons[f'n = {count}']}; `every` takes as many as fit",
            )


def _on_every_host(point: Point, machine: Machine) -> Point:
    """On several hosts both ends have workers, as both of the paper's nodes had."""
    return msgspec.structs.replace(point, computing_ranks="all") if machine.hosts > 1 else point


def _starpu(plan: Plan, points: Sequence[Point], machine: Machine) -> tuple[Point, ...]:
    """StarPU's workers on the cores that the pool's workers had. On one host the other rank has none."""
    runtime_points: dict[str, Point] = {}
    for point in points:
        for backoff in plan.keys.backoffs if point.role == "point" else ():
            places = () if machine.hosts > 1 else _ranks(point)
            program = RuntimeProgram(task="polling", backoff=backoff, scheduler=plan.keys.scheduler)
            starpu = msgspec.structs.replace(
                point,
                kernel="none",
                cursor=1,
                sequence=PHASES,
                computing_ranks="all" if machine.hosts > 1 else "first",
                placements=places,
                workload=program,
            )
            runtime_points.setdefault(starpu.id, starpu)
    return tuple(runtime_points.values())


def _ranks(point: Point) -> tuple[Placement, ...]:
    peer = point.peer_cores or point.comm_cores
    ranks = ((point.comp_cores, point.comm_cores), ((), peer))
    return placed(ranks, (point.comp_node, point.comm_node))
