"""Points against a machine: what cannot be measured is refused with field, value and hint."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from elbowroom.errors import UsageError
from elbowroom.machine.topology import Machine
from elbowroom.plan.kernels import find
from elbowroom.plan.placement import usable
from elbowroom.points.point import Point
from elbowroom.quantities import format_cores

MOST_UNITS = 1_000_000
"""Repetitions of all points: at a few milliseconds each, hours even where nothing is measured."""


def check_count(points: Sequence[Point], repetitions: int) -> None:
    """UsageError where a run would have more repetitions than anybody waits for."""
    if len(points) * repetitions > MOST_UNITS:
        raise UsageError(
            f"{len(points)} points times the repetitions are more than {MOST_UNITS} measurements",
            field="repetitions",
            value=repetitions,
            hint=f"at most {max(1, MOST_UNITS // len(points))} for these points: --repeat",
        )


def validate(
    points: Sequence[Point],
    machine: Machine,
    *,
    slots: int | None = None,
    hosts: int = 1,
    scheduling: bool = False,
) -> None:
    """Raises UsageError at the first point that this machine cannot measure as asked.

    `slots`: ranks the launcher may start; `hosts`: how many the plan needs; `scheduling`: two threads on one
    core are wanted (the probe flags them), else they are refused (docs/design/method.md, rule 4).
    """
    if not points:
        raise UsageError(
            "nothing to measure", field="plan", value=None, hint="see the notes, or choose other axes"
        )
    if machine.hosts < hosts:
        hint = "give two hosts (--hostfile, or inside an allocation), or choose a plan that runs on one"
        raise UsageError(f"the plan needs {hosts} hosts", field="hosts", value=machine.hosts, hint=hint)
    ranks = max(point.workload.rank_count(point, machine) for point in points)
    if slots is not None and ranks > slots:
        hint = f"give {ranks} slots, or choose a plan with fewer processes"
        raise UsageError(f"{ranks} ranks are needed, more than slots", field="slots", value=slots, hint=hint)
    for point in points:
        find(point.kernel)
        _metric(point)
        _nodes(point, machine)
        _cores(point, machine, scheduling)
        point.workload.validate(point, machine)


def _metric(point: Point) -> None:
    if point.metric not in ("latency", "bandwidth"):
        raise UsageError(
            "no such metric", field="metric", value=point.metric, hint="known: bandwidth, latency"
        )
    if point.metric == "latency" and point.pattern != "pingpong" and point.workload.facts.beside_messages:
        raise UsageError(
            "only the pattern pingpong makes round trips, so only it has a latency",
            field="metric",
            value="latency",
            hint="choose metric=bandwidth or pattern=pingpong",
        )


def _nodes(point: Point, machine: Machine) -> None:
    known = [node.number for node in machine.nodes]
    pairs = [
        (point.comp_node, point.comm_node),
        *((place.comp_node, place.comm_node) for place in point.placements),
    ]
    for comp, comm in pairs:
        for field, node in (("comp_node", comp), ("comm_node", comm)):
            if node not in known:
                hint = f"nodes here: {format_cores(sorted(known))}"
                raise UsageError(f"NUMA node {node} does not exist", field=field, value=node, hint=hint)


def _cores(point: Point, machine: Machine, scheduling: bool) -> None:
    comm = point.comm_cores or (point.comm_core,)
    _exist(comm, "comm_core", machine)
    _exist(point.peer_cores, "peer_core", machine)
    _exist(point.comp_cores, "comp_cores", machine)
    if find(point.kernel) is not None and not point.comp_cores and not point.placements:
        raise UsageError("no computing core", field="comp_cores", value=[], hint="name at least one")
    if scheduling:
        return
    for cores, field in ((comm, "comm_cores"), (point.comp_cores, "comp_cores")):
        _once(cores, field)
    if point.workload.facts.computes_on_comm_core:
        return
    _apart(point.comp_cores, comm, "comm_core")
    if machine.hosts < 2:
        _apart(point.comp_cores, point.peer_cores, "peer_core")
    for place in point.placements:
        _exist((*place.comp_cores, *place.comm_cores), "placements", machine)
        _once(place.comp_cores, "placements")
        _apart(place.comp_cores, place.comm_cores, "placements")


def _exist(cores: Iterable[int], field: str, machine: Machine) -> None:
    here = {core.number for core in machine.cores}
    inside = [core.number for core in usable(machine)]
    for core in cores:
        if core not in here:
            second = next((item.number for item in machine.cores if core in item.pus), None)
            hint = f"cores here: {format_cores(sorted(here))}"
            if second is not None:
                hint = f"it is a second hardware thread of core {second}; {hint}"
            raise UsageError(f"core {core} does not exist", field=field, value=core, hint=hint)
        if core not in inside:
            hint = f"the cpuset of this process is {format_cores(sorted(inside))}; choose among them"
            raise UsageError(f"core {core} is outside the cpuset", field=field, value=core, hint=hint)


def _once(cores: Sequence[int], field: str) -> None:
    for core in cores:
        if list(cores).count(core) > 1:
            hint = "name each core once (two threads on one core measure the scheduler)"
            raise UsageError(f"core {core} is used twice", field=field, value=core, hint=hint)


def _apart(computing: Sequence[int], communicating: Sequence[int], field: str) -> None:
    for core in communicating:
        if core in computing:
            hint = (
                "choose another core, or `scheduling = true` in the plan to measure the scheduler on purpose"
            )
            raise UsageError(f"core {core} is among the computing cores", field=field, value=core, hint=hint)
