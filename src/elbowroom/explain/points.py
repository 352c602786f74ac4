"""The points of one or several runs, with what each of their sides kept."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from elbowroom.explain.explanation import SIDES, Decision, SideName, Stream
from elbowroom.machine.topology import Machine
from elbowroom.plan.placement import nic_node
from elbowroom.results.resampled import LEAST, LogKept, log_of
from elbowroom.results.result import Kept, PointResult, Side
from elbowroom.stats.bootstrap import estimate
from elbowroom.stats.signed_ranks import Floats

Logs = Mapping[tuple[str, str], LogKept]

FEWEST = 2 * LEAST
"""Samples of a phase; a repetition has two."""


@dataclass(frozen=True)
class ObservedPoint:
    """A point of run number `run`, and by side the logarithm of what it kept."""

    item: PointResult
    run: int
    logs: dict[SideName, LogKept]

    @property
    def shares_core(self) -> bool:
        """Two threads took turns on one core on purpose."""
        return "scheduling" in self.item.flags


def observed_points(
    results: Sequence[PointResult], run: int = 0, logs: Logs | None = None
) -> list[ObservedPoint]:
    """The points with a side both alone and together. `logs`: of samples, by point id and side
    (results/resampled.py); without them the draws come from the points' intervals.
    """
    points = []
    for item in results:
        if item.status == "failed" or not item.workload.explainable:
            continue
        own: dict[SideName, LogKept] = {}
        for side in SIDES:
            of: Side = getattr(item, side)
            if logs is not None and (item.id, side) in logs:
                own[side] = logs[item.id, side]
            elif logs is None and of.kept is not None and of.kept.above(0.0) and _several(of):
                own[side] = log_of(of.kept, (run, zlib.crc32(f"{item.id} {side}".encode())))
        if own:
            points.append(ObservedPoint(item, run, own))
    return points


def _several(side: Side) -> bool:
    """Whether there were samples of more than one repetition: else the interval says nothing."""
    return all(summary is not None and summary.count >= FEWEST for summary in (side.alone, side.together))


def ratio(value: float, draws: Floats) -> Kept:
    """exp of a logarithm and of the ends of its interval, which holds it; nothing is clamped."""
    log = estimate(value, draws)
    return Kept(value=float(np.exp(value)), low=float(np.exp(log.low)), high=float(np.exp(log.high)))


def decide(kept: Kept) -> Decision:
    """Decided if the whole interval lies on one side of 1."""
    return "loses" if kept.below(1.0) else "gains" if kept.above(1.0) else "undecided"


def remote(item: PointResult, machine: Machine) -> tuple[Stream, ...]:
    """Whose data cross the link between sockets: those of computing cores of another socket, and messages
    whose NIC (on one host: communication thread) is of another socket than their node.
    """
    of_node = {node.number: node.package for node in machine.nodes}
    of_core = {core.number: core.package for core in machine.cores}
    computing = {of_core[core] for core in item.comp_cores if core in of_core}
    nic = nic_node(machine) if machine.hosts > 1 else None
    mover = of_core.get(item.comm_core) if nic is None else of_node.get(nic)
    streams: list[Stream] = []
    if computing - {of_node.get(item.comp_node)}:
        streams.append("computation")
    if mover is not None and mover != of_node.get(item.comm_node):
        streams.append("communication")
    return tuple(streams)
