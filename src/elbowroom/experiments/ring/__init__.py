"""A ring of processes beside TRIAD, one per node, socket or core: the loss ratios (Langguth et al. 2018,
section III).
"""

from __future__ import annotations

from collections.abc import Sequence

from elbowroom.experiments.common.panels import cores_of
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
from elbowroom.experiments.ring.figures import figures
from elbowroom.experiments.ring.points import RingKeys, expand
from elbowroom.experiments.ring.tables import tables
from elbowroom.machine.topology import Machine
from elbowroom.quantities import plural
from elbowroom.results.result import Finding, Kept, PointResult

CaseKey = tuple[str, int, str, int]


def _case(item: PointResult) -> CaseKey:
    return item.kernel, item.size, item.processes, item.comm_threads


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
        threads = plural(full.comm_threads, "communication thread")
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
    tables=tables,
)
