"""What workloads that the probe answers have in common: its request, its phases, and how long they take."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import msgspec

from elbowroom.machine.topology import Machine
from elbowroom.points.point import USUAL, Point, Steady, Times, Workload
from elbowroom.points.unit import Unit

CACHES = 4  # docs/design/method.md, rule 8: computing arrays are at least 4 times the last-level cache

# For the estimate only, on the safe side: a slow exchange, the way into the steady state, the probe's work
# around a phase and around a unit.
SLOW_EXCHANGE = 5e9  # B/s, shared memory by copying and 100 Gb/s networks are faster
ROUND_TRIPS = 3
PHASE_OVERHEAD = 0.012  # s
UNIT_OVERHEAD = 0.03  # s
START = 1.5  # s, MPI and the first contact
FIRST_TOUCH = 2e9  # B/s and core, page faults included


class ProbeWorkload(Workload):
    """A workload of messages, in windows of time, that follows docs/reference/protocol.md."""

    __slots__ = ()

    def rank_count(self, point: Point, machine: Machine) -> int:
        """One per host or socket, at least two; one per placement where the point has any."""
        if point.placements:
            return max(2, len(point.placements))
        return max(2, machine.hosts * (machine.packages if point.processes == "socket" else 1))

    def group(self, point: Point, ranks: int) -> tuple[Hashable, ...]:
        """Points with the same number of ranks, way of waiting and thread level of MPI."""
        return ranks, shares_core(point), several_threads(point)

    def request(self, point: Point, unit: Unit, steady: Steady) -> dict[str, object]:
        """The probe's `measure` request, with the workload under its key."""
        message: dict[str, object] = {
            "op": "measure",
            "point": point.id,
            "repetition": unit.repetition,
            "sequence": list(self.sequence(point, unit.closing, unit.repetition)),
            "kernel": point.kernel,
            "cursor": point.cursor,
            "comp_cores": list(point.comp_cores),
            "comp_node": point.comp_node,
            "computing_ranks": point.computing_ranks,
            "working_set": point.working_set,
            "pattern": point.pattern,
            "size": point.size,
            "comm_node": point.comm_node,
            "comm_cores": list(point.comm_cores or (point.comm_core,)),
            "peer_cores": list(point.peer_cores or point.comm_cores or (point.comm_core,)),
            "reuse": point.reuse,
            "metric": point.metric,
            "window": point.window,
            "steady": {"window": steady.window, "cov": steady.cov, "limit": steady.limit},
            "observe": list(point.observe),
        }
        if point.message_period:
            message["period"] = point.message_period
        if point.settings:
            message["settings"] = point.settings
        if point.scheduling:
            message["scheduling"] = True
        if self.key:
            message[self.key] = msgspec.to_builtins(self)
        if point.placements:
            message["placements"] = placements(point)
        return message

    def times(self, point: Point, closing: bool = False, steady: Steady = USUAL) -> Times:
        """A phase takes the window, or a few round trips of a slow exchange."""
        phase = max(point.window, ROUND_TRIPS * 2 * point.size / SLOW_EXCHANGE)
        return unit_times(point, len(self.sequence(point, closing)), phase, steady)


def unit_times(point: Point, phases: int, phase: float, steady: Steady | None = None) -> Times:
    """Of so many phases of `phase` seconds, and the probe's work around them. Patience is for four times all
    phases and waits for their steady state and for touching memory; without `steady` for twenty times all
    phases.
    """
    if steady is None:
        patience = 60.0 + 20.0 * phases * phase
    else:
        waits = phases * (point.window + steady.limit)
        patience = 60.0 + 4.0 * waits + point.working_set * max(1, point.n) / 1e8
    return Times(phase, phases, UNIT_OVERHEAD + phases * (phase + PHASE_OVERHEAD), patience)


def placements(point: Point) -> list[dict[str, Any]]:
    """Where each process of a host is, as plain data."""
    return [msgspec.to_builtins(place) for place in point.placements]


def shares_core(point: Point) -> bool:
    """Whether communication threads of two ranks may sit on one core."""
    own = point.workload.needs.shared_core
    if own is not None:
        return own
    return not point.peer_cores or bool(set(point.peer_cores) & set(point.comm_cores or (point.comm_core,)))


class ProbeStart(NamedTuple):
    """How the probe is started: with how many ranks, whether two of a host may share a core, whether several
    of its threads call MPI, and whether the MPI starts a progress thread of its own. `program`: the point of
    a program that is started in the probe's place, with all communication threads.
    """

    ranks: int
    share_core: bool = True
    several_threads: bool = False
    library_progress: bool = False
    program: Point | None = None


def several_threads(point: Point) -> bool:
    """Whether more than one thread of a rank may call MPI: it is then started for that, and is slower."""
    if point.workload.needs.several_threads:
        return True
    return len(point.comm_cores) > 1 or any(len(place.comm_cores) > 1 for place in point.placements)


def message_id(point: Point) -> list[str]:
    """The parts of a name that tell points of kernels and messages apart."""
    parts = [
        point.kernel,
        f"n{point.n}",
        f"{point.size}B",
        point.pattern,
        point.metric,
        f"comp{point.comp_node}",
        f"comm{point.comm_node}",
        f"core{point.comm_core}",
    ]
    if point.n_other:
        parts.append(f"other{point.n_other}")
    if point.cursor != 1:
        parts.append(f"cursor{point.cursor}")
    if len(point.comm_cores) > 1:
        parts.append(f"k{len(point.comm_cores)}")
    if point.reuse != "same":
        parts.append(point.reuse)
    if point.message_period:
        parts.append(f"every{point.message_period * 1e6:g}us")
    if point.processes != "node":
        parts.append(f"per-{point.processes}")
    if point.core_khz is not None:
        parts.append(f"core{point.core_khz}kHz")
    if point.uncore_khz is not None:
        parts.append(f"uncore{point.uncore_khz}kHz")
    if point.turbo is not None:
        parts.append("turbo" if point.turbo else "no-turbo")
    if point.governor is not None:
        parts.append(point.governor)
    return parts


def role_id(point: Point) -> list[str]:
    """The end of a name: the role of a control."""
    return [] if point.role == "point" else [point.role]
