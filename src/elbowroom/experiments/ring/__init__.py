"""A ring of processes beside TRIAD, one per node or per socket: the loss ratios (Langguth et al. 2018,
section III).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from elbowroom.draw.figure import Axis, Figure
from elbowroom.experiments.common.notes import machine_notes, with_notes
from elbowroom.experiments.common.panels import cores_of, side_by_side
from elbowroom.experiments.common.sentences import (
    Values,
    case_key,
    cores_text,
    grouped,
    hit,
    kernel_name,
    nothing,
    onset_values,
    onsets,
    size_text,
    suffers,
    usable,
)
from elbowroom.experiments.experiment import Experiment
from elbowroom.machine.topology import Machine
from elbowroom.plan import placement
from elbowroom.plan.axes import core_counts, metric_of, with_control
from elbowroom.plan.axes import expand as multiply
from elbowroom.plan.file import Plan
from elbowroom.plan.kernels import find
from elbowroom.plan.point import Expansion, Note, Placement, Point
from elbowroom.results.result import Finding, Kept, PointResult

CaseKey = tuple[str, int, str, int]


class RingKeys(msgspec.Struct, frozen=True, kw_only=True):
    """`processes`: one per node, one per socket, or each in turn."""

    processes: Annotated[tuple[Literal["node", "socket"], ...], Meta(min_length=1)] = ("node",)


def _case(item: PointResult) -> CaseKey:
    return item.kernel, item.size, item.processes, item.comm_threads


def expand(plan: Plan, machine: Machine) -> Expansion:
    """One process per node, then one per socket, each with 1..k communication threads.

    On one host two of its processes form the ring, and only the first computes; a note says so.
    """
    expansion = multiply(msgspec.structs.replace(plan, control=False), machine)
    points: list[Point] = []
    notes = list(machine_notes(machine))
    if "node" in plan.keys.processes:
        everyone = machine.hosts >= 2
        points += [
            msgspec.structs.replace(point, computing_ranks="all" if everyone else "first")
            for point in expansion.points
        ]
        if not everyone:
            reason = "one host: two processes of it make the ring, and only the first computes"
            notes.append(Note(what="one process per node", reason=reason))
    notes += expansion.notes
    if "socket" in plan.keys.processes and machine.packages < 2:
        notes.append(Note(what="one process per socket", reason="this machine has one socket"))
    elif "socket" in plan.keys.processes:
        for item in _per_socket(plan, machine):
            if isinstance(item, Point):
                points.append(item)
            elif item not in notes:
                notes.append(item)
    chosen = tuple(points)
    return with_notes(Expansion(points=with_control(chosen) if plan.control else chosen, notes=()), notes)


def _per_socket(plan: Plan, machine: Machine) -> Iterator[Point | Note]:
    """Communication threads on each socket's last cores; as many computing cores on each socket."""
    cores = placement.usable(machine)
    sockets = [
        [core for core in cores if core.package == package]
        for package in sorted({core.package for core in cores})
    ]
    for threads in plan.comm_threads:
        most = min(len(socket) for socket in sockets) - threads
        if most < 1:
            what = f"one process per socket with {threads} communication threads"
            yield Note(what=what, reason=f"sockets of {min(map(len, sockets))} usable cores")
            continue
        counts, _ = core_counts(plan.n, most)
        for kernel, size, each in product(plan.kernels, plan.sizes, counts):
            places = tuple(
                Placement(
                    rank=rank,
                    comp_cores=tuple(core.number for core in socket[:each]),
                    comm_cores=tuple(core.number for core in reversed(socket[-threads:])),
                    comp_node=socket[0].node,
                    comm_node=socket[0].node,
                )
                for rank, socket in enumerate(sockets * machine.hosts)
            )
            first = places[0]
            yield Point(
                plan=plan.name,
                kernel=kernel,
                n=each * len(sockets),
                size=size,
                comp_node=first.comp_node,
                comm_node=first.comm_node,
                comm_core=first.comm_cores[0],
                metric=metric_of(plan, size),
                comp_cores=first.comp_cores,
                comm_cores=first.comm_cores,
                peer_cores=first.comm_cores,
                pattern=plan.pattern,
                working_set=plan.working_set
                or placement.working_set(find(kernel), each, first.comp_node, machine),
                reuse=plan.reuse,
                computing_ranks="all",
                processes="socket",
                placements=places,
                sequence=plan.sequence,
                window=plan.window,
                observe=plan.observe,
                scheduling=plan.scheduling,
            )


def loss(kept: Kept | None) -> tuple[float, float, float] | None:
    """Loss ratio alone/together with its interval: the inverse of what was kept (Langguth et al. 2018,
    section III).
    """
    if kept is None or kept.value <= 0 or not kept.above(0.0):
        return None
    low, high = kept.ends(kept.value)
    return 1 / kept.value, 1 / high, 1 / low


def _loss_text(name: str, ratio: tuple[float, float, float] | None) -> str:
    return f"{name} n/a" if ratio is None else f"{name} = {ratio[0]:.2f} ({ratio[1]:.2f} to {ratio[2]:.2f})"


def findings(results: Sequence[PointResult], machine: Machine) -> tuple[Finding, ...]:  # noqa: ARG001
    """L_N and L_M with all computing cores, and the onset, per kind of process and communication threads."""
    findings = []
    for case, group in grouped(usable(results), _case).items():
        full = max(group, key=cores_of)
        network, memory = loss(full.comm.kept), loss(full.comp.kept)
        threads = f"{full.comm_threads} communication thread{'s' if full.comm_threads > 1 else ''}"
        comm, comp = onsets(group, cores_of)
        text = (
            f"Ring of {size_text(full.size)} messages, one process per {full.processes}, {threads}, "
            f"{kernel_name(full.kernel)} on {cores_text(full.n)}: loss ratios "
            f"{_loss_text('L_N', network)} of the MPI "
            f"bandwidth, {_loss_text('L_M', memory)} of the computation's. "
            f"{suffers('MPI bandwidth', comm, cores_text)} {suffers('The computation', comp, cores_text)}"
        )
        values: Values = {"n": full.n, "comm_threads": full.comm_threads, "processes": full.processes}
        values |= {"L_N": network[0] if network else None, "L_M": memory[0] if memory else None}
        findings.append(
            Finding(
                key=case_key("ring", case),
                level="interference"
                if any(hit(item, "comm") or hit(item, "comp") for item in group)
                else "quiet",
                text=text,
                values=values | onset_values("comm", comm) | onset_values("comp", comp),
                points=tuple(item.id for item in group),
            )
        )
    return tuple(findings) or (nothing("ring", "Ring"),)


def figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:  # noqa: ARG001
    """MPI bandwidth on the left axis, memory bandwidth on the right, per kind of process and threads."""
    drawn = []
    for case, group in grouped(usable(results), _case).items():
        _, size, processes, threads = case
        plural = "s" if threads > 1 else ""
        drawn.append(
            side_by_side(
                case_key("ring", case),
                f"Ring of {size_text(size)}, one process per {processes}, {threads} "
                f"communication thread{plural}",
                Axis(label="Number of computing cores per node", whole=True),
                group,
                cores_of,
                comm="MPI bandwidth",
                left=Axis(label="MPI bandwidth of one process (MB/s)"),
            )
        )
    return tuple(drawn)


EXPERIMENT = Experiment(
    name="ring",
    question=(
        "How much MPI and memory bandwidth is lost when every rank passes 4 MB around a ring "
        "while TRIAD runs?"
    ),
    keys=RingKeys,
    expand=expand,
    findings=findings,
    figures=figures,
)
