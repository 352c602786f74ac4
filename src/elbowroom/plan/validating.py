"""Points against a machine: what cannot be measured is refused with field, value and mend."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from elbowroom.errors import UsageError
from elbowroom.machine.topology import Machine
from elbowroom.plan import accesses, matrices
from elbowroom.plan.kernels import find
from elbowroom.plan.placing import usable
from elbowroom.plan.point import Application, Point
from elbowroom.plan.sizes import format_cores, format_size

LEAST_CELLS = 100
"""Cells of a process below which most of them lie on its border, and partitioners leave parts empty."""

MESH_BYTES = 250
"""Of a cell, while the first process holds the partition of the whole mesh: 123 B were seen in the larger of
two processes, both on one host.
"""


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
    core are wanted (the probe flags them), else they are refused (METHOD.md, rule 4).
    """
    if not points:
        raise UsageError(
            "nothing to measure", field="plan", value=None, mend="see the notes, or choose other axes"
        )
    if machine.hosts < hosts:
        mend = "give two hosts (--hostfile, or inside an allocation), or choose a plan that runs on one"
        raise UsageError(f"the plan needs {hosts} hosts", field="hosts", value=machine.hosts, mend=mend)
    ranks = max(ranks_needed(point, machine) for point in points)
    if slots is not None and ranks > slots:
        mend = f"give {ranks} slots, or choose a plan with fewer processes"
        raise UsageError(f"{ranks} ranks are needed, more than slots", field="slots", value=slots, mend=mend)
    for point in points:
        find(point.kernel)
        _metric(point)
        _nodes(point, machine)
        _cores(point, machine, scheduling)
        if point.application is not None:
            _mesh(point.application, machine)
        elif point.program is not None and point.program.name == "kernels":
            matrices.check(point.program, machine)
        elif point.program is None:
            _sizes(point, machine)
            accesses.check_memory(point, machine)


def ranks_needed(point: Point, machine: Machine) -> int:
    """Ranks a point is measured with: one per host or socket, at least two; of an application one per
    node.
    """
    if point.application is not None:
        return point.application.nodes
    if point.program is not None:
        return point.program.ranks
    if point.placements:
        return max(2, len(point.placements))
    return max(2, machine.hosts * (machine.packages if point.processes == "socket" else 1))


def _metric(point: Point) -> None:
    if point.metric not in ("latency", "bandwidth"):
        raise UsageError(
            "no such metric", field="metric", value=point.metric, mend="known: bandwidth, latency"
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
                mend = f"nodes here: {format_cores(sorted(known))}"
                raise UsageError(f"NUMA node {node} does not exist", field=field, value=node, mend=mend)


def _cores(point: Point, machine: Machine, scheduling: bool) -> None:
    comm = point.comm_cores or (point.comm_core,)
    _exist(comm, "comm_core", machine)
    _exist(point.peer_cores, "peer_core", machine)
    _exist(point.comp_cores, "comp_cores", machine)
    if find(point.kernel) is not None and not point.comp_cores and not point.placements:
        raise UsageError("no computing core", field="comp_cores", value=[], mend="name at least one")
    if scheduling:
        return
    for cores, field in ((comm, "comm_cores"), (point.comp_cores, "comp_cores")):
        _once(cores, field)
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
            mend = f"cores here: {format_cores(sorted(here))}"
            if second is not None:
                mend = f"it is a second hardware thread of core {second}; {mend}"
            raise UsageError(f"core {core} does not exist", field=field, value=core, mend=mend)
        if core not in inside:
            mend = f"the cpuset of this process is {format_cores(sorted(inside))}; choose among them"
            raise UsageError(f"core {core} is outside the cpuset", field=field, value=core, mend=mend)


def _once(cores: Sequence[int], field: str) -> None:
    for core in cores:
        if list(cores).count(core) > 1:
            mend = "name each core once (two threads on one core measure the scheduler)"
            raise UsageError(f"core {core} is used twice", field=field, value=core, mend=mend)


def _apart(computing: Sequence[int], communicating: Sequence[int], field: str) -> None:
    for core in communicating:
        if core in computing:
            mend = (
                "choose another core, or `scheduling = true` in the plan to measure the scheduler on purpose"
            )
            raise UsageError(f"core {core} is among the computing cores", field=field, value=core, mend=mend)


def _mesh(application: Application, machine: Machine) -> None:
    """Refuses meshes that cannot be partitioned, or do not fit."""
    cells, nodes = application.cells, application.nodes
    if cells < nodes:
        mend = f"give at least {LEAST_CELLS * nodes} cells, or fewer nodes"
        raise UsageError(f"{nodes} processes are more than cells", field="cells", value=cells, mend=mend)
    if cells < LEAST_CELLS * nodes:
        mend = f"give at least {LEAST_CELLS * nodes} cells ({LEAST_CELLS} for each)"
        raise UsageError(
            f"the mesh is too small to partition among {nodes}", field="cells", value=cells, mend=mend
        )
    if machine.memory and not machine.virtual and cells * MESH_BYTES > machine.memory * machine.hosts:
        most = machine.memory * machine.hosts // MESH_BYTES
        mend = f"at {MESH_BYTES} B a cell while the mesh is made, about {most} fit"
        raise UsageError("the mesh is larger than memory", field="cells", value=cells, mend=mend)


def _sizes(point: Point, machine: Machine) -> None:
    if point.size < 1:
        raise UsageError("a size is at least 1 B", field="sizes", value=point.size, mend="write 4 or 64MiB")
    memory = (
        next((node.memory for node in machine.nodes if node.number == point.comm_node), 0) or machine.memory
    )
    ranks_here = 2 if machine.hosts < 2 else 1
    needed = 2 * point.size * ranks_here * max(1, len(point.comm_cores))
    if memory and needed > memory:
        mend = f"{ranks_here} rank(s) with two buffers each must fit in {format_size(memory)}"
        raise UsageError("larger than memory", field="sizes", value=format_size(point.size), mend=mend)
    memory = (
        next((node.memory for node in machine.nodes if node.number == point.comp_node), 0) or machine.memory
    )
    if memory and point.working_set * max(1, point.n) > memory:
        mend = (
            f"{point.n} cores' working sets must fit in {format_size(memory)}; leave it out to "
            "let it be chosen"
        )
        raise UsageError(
            "larger than memory", field="working_set", value=format_size(point.working_set), mend=mend
        )
