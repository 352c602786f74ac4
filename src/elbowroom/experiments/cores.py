"""Latency and bandwidth of the network, and the computation, over the number of computing cores (paper,
Figure 4).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from elbowroom.draw.figure import Figure
from elbowroom.experiments.experiment import Experiment
from elbowroom.experiments.panels import CORES, per_core, side_by_side
from elbowroom.experiments.regimes import regimes_over
from elbowroom.experiments.wording import (
    cores_text,
    grouped,
    kernel_name,
    level_of,
    nothing,
    onset_values,
    onsets,
    place_text,
    size_text,
    suffers,
    usable,
)
from elbowroom.machine.topology import Machine
from elbowroom.plan.expanding import expand as multiply
from elbowroom.plan.placing import nic_node
from elbowroom.plan.point import Expansion, Note
from elbowroom.plan.reading import Plan
from elbowroom.stats.result import Finding, PointResult
from elbowroom.stats.saturation import highest

Case = tuple[str, int, int, int, int]


def cores_of(item: PointResult) -> float:
    """The axis: computing cores."""
    return float(item.n)


def _case(item: PointResult) -> Case:
    return item.kernel, item.size, item.comp_node, item.comm_node, item.comm_core


def machine_notes(machine: Machine) -> tuple[Note, ...]:
    """What the paper had and this machine lacks: a NIC, a second host, NUMA."""
    notes = []
    if machine.hosts < 2:
        reason = "one host: both ranks run on it, and messages are copies by its cores"
        notes.append(Note(what="exchange over the network", reason=reason))
    if nic_node(machine) is None:
        known = "the NIC does not say its NUMA node" if machine.nics else "no NIC is seen"
        near = f"; node {machine.nodes[0].number} is taken as near" if len(machine.nodes) > 1 else ""
        notes.append(Note(what="near and far from the NIC", reason=f"{known}{near}"))
    return tuple(notes)


def with_notes(expansion: Expansion, notes: Sequence[Note]) -> Expansion:
    """The expansion with more notes, each once."""
    known = {note.what for note in notes}
    kept = tuple(note for note in expansion.notes if note.what not in known)
    return msgspec.structs.replace(expansion, notes=(*notes, *kept))


def expand(plan: Plan, machine: Machine) -> Expansion:
    """Every n; notes where the machine has too few cores for a curve, no NIC or no second host."""
    expansion = multiply(plan, machine)
    notes = list(machine_notes(machine))
    if len({point.n for point in expansion.points}) == 1:
        reason = f"{cores_text(max(point.n for point in expansion.points))} free here: one point, no curve"
        notes.append(Note(what="a curve over the number of cores", reason=reason))
    return with_notes(expansion, notes)


def findings(results: Sequence[PointResult], machine: Machine) -> tuple[Finding, ...]:
    """Per kernel, size and placement: from how many cores each side suffers, how, how much, and in which
    regime.
    """
    found = []
    peaks = highest(usable(results))
    for case, group in grouped(usable(results), _case).items():
        comm, comp = onsets(group, cores_of)
        latency = group[0].metric == "latency"
        regimes, places = regimes_over(group, peaks, cores_of, cores_text)
        network = f"Network {group[0].metric} ({size_text(group[0].size)})"
        text = (
            f"{kernel_name(group[0].kernel)}, {place_text(group[0], machine)}: "
            f"{suffers(network, comm, cores_text, times=latency)} "
            f"{suffers('The computation', comp, cores_text)} {regimes}"
        ).rstrip()
        found.append(
            Finding(
                key="cores-" + "-".join(str(part) for part in case),
                level=level_of(comm, comp),
                text=text,
                values=onset_values("comm", comm)
                | onset_values("comp", comp)
                | {"metric": group[0].metric}
                | places,
                points=tuple(item.id for item in group),
            )
        )
    return tuple(found) or (nothing("cores", "Computing cores"),)


def figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:
    """One panel per kernel, size and placement: network on the left axis, memory bandwidth per core on the
    right.
    """
    return tuple(
        side_by_side(
            "cores-" + "-".join(str(part) for part in case),
            f"Network {group[0].metric} ({size_text(group[0].size)}) and {kernel_name(group[0].kernel)}: "
            f"{place_text(group[0], machine)}",
            CORES,
            group,
            cores_of,
            comm=f"network {group[0].metric}",
            comp_transform=per_core,
        )
        for case, group in grouped(usable(results), _case).items()
    )


EXPERIMENT = Experiment(
    name="cores",
    question=(
        "From how many computing cores do network latency, network bandwidth and the computation suffer?"
    ),
    expand=expand,
    findings=findings,
    figures=figures,
)
