"""What a contrast is made of: points with what each of their sides kept, of one or several runs."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from elbowroom.explain.explanation import SIDES, Decision, SideName, Stream
from elbowroom.machine.topology import Machine
from elbowroom.plan.placing import nic_node
from elbowroom.stats.resampled import LogKept, log_of
from elbowroom.stats.result import Kept, PointResult
from elbowroom.stats.summary import Floats, interval

Logs = Mapping[tuple[str, str], LogKept]


@dataclass(frozen=True)
class Seen:
    """A point of run number `run`, and by side the logarithm of what it kept."""

    item: PointResult
    run: int
    logs: dict[SideName, LogKept]

    @property
    def shares_core(self) -> bool:
        """Two threads took turns on one core on purpose."""
        return "scheduling" in self.item.flags


def seen(results: Sequence[PointResult], run: int = 0, logs: Logs | None = None) -> list[Seen]:
    """The points that tell anything of a loss. `logs`: of samples, by point id and side (stats/resampled.py);
    without them the draws come from the points' intervals.
    """
    found = []
    for item in results:
        if item.status == "failed" or item.application is not None or item.extraneous is not None:
            continue
        own: dict[SideName, LogKept] = {}
        for side in SIDES:
            kept: Kept | None = getattr(item, side).kept
            if logs is not None and (item.id, side) in logs:
                own[side] = logs[item.id, side]
            elif logs is None and kept is not None and kept.low > 0:
                own[side] = log_of(kept, (run, zlib.crc32(f"{item.id} {side}".encode())))
        if own:
            found.append(Seen(item, run, own))
    return found


def ratio(value: float, draws: Floats) -> Kept:
    """exp of a logarithm and of the ends of its interval, which holds it; nothing is clamped."""
    low, high = interval(draws)
    return Kept(
        value=float(np.exp(value)), low=float(np.exp(min(low, value))), high=float(np.exp(max(high, value)))
    )


def decide(kept: Kept) -> Decision:
    """Sure where the whole interval lies on one side of 1."""
    return "loses" if kept.high < 1 else "gains" if kept.low > 1 else "undecided"


def remote(item: PointResult, machine: Machine) -> tuple[Stream, ...]:
    """Whose data cross the link between sockets: those of computing cores of another socket, and messages
    whose NIC (on one host: communication thread) is of another socket than their node.
    """
    of_node = {node.number: node.package for node in machine.nodes}
    of_core = {core.number: core.package for core in machine.cores}
    computing = {of_core[core] for core in item.comp_cores if core in of_core}
    nic = nic_node(machine) if machine.hosts > 1 else None
    mover = of_core.get(item.comm_core) if nic is None else of_node.get(nic)
    found: list[Stream] = []
    if computing - {of_node.get(item.comp_node)}:
        found.append("computation")
    if mover is not None and mover != of_node.get(item.comm_node):
        found.append("communication")
    return tuple(found)
