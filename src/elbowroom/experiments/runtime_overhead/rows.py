"""Messages through StarPU-MPI and by MPI, placement by placement, and what they say of the paper's claims."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from elbowroom.experiments.common.sentences import Values, grouped, node_distance, size_text, usable
from elbowroom.machine.topology import Machine
from elbowroom.plan.placement import nic_node
from elbowroom.points import RuntimeProgram, running
from elbowroom.quantities import plural
from elbowroom.results.curves import affected
from elbowroom.results.judgement import Judgement, larger, suffers, unanimous
from elbowroom.results.result import Kept, PointResult
from elbowroom.stats.interval import WithInterval


class LatencyCase(msgspec.Struct, frozen=True, kw_only=True):
    """All sizes, rising, of one placement of data and communication thread."""

    items: tuple[PointResult, ...]

    @property
    def smallest(self) -> PointResult:
        """The result of the smallest message."""
        return self.items[0]

    @property
    def key(self) -> str:
        """Of findings and figures: data's node, then the thread's core, then the workers that poll."""
        workers = f"-n{self.smallest.n}" if self.smallest.n else ""
        return f"{self.smallest.comp_node}-{self.smallest.comm_core}{workers}"


class Recovered(msgspec.Struct, frozen=True, kw_only=True):
    """`last`: the largest size at which the difference shows, bytes; `since`: the first size from which it
    does not; None where there is none. `why`: the reason of the verdict.
    """

    last: int | None
    since: int | None
    verdict: Judgement
    why: str = ""


class PlacedLatency(WithInterval, msgspec.Struct, frozen=True, kw_only=True):
    """The smallest message through StarPU-MPI at one placement: us, with the interval of its median."""

    id: str
    data: int
    core: int
    workers: int
    together: float
    low: float | None
    high: float | None


class Nearness(msgspec.Struct, frozen=True, kw_only=True):
    """Per core of the communication thread: data on its own node, and on another."""

    pairs: tuple[tuple[PlacedLatency, PlacedLatency], ...]
    verdict: Judgement
    values: Values = {}


def cases(results: Sequence[PointResult]) -> tuple[LatencyCase, ...]:
    """The placements, in order of first appearance."""
    measured = [item for item, _ in running(usable(results), RuntimeProgram)]
    groups = grouped(measured, lambda item: (item.comp_node, item.comm_core, item.n))
    return tuple(
        LatencyCase(items=tuple(sorted(group, key=lambda item: item.size))) for group in groups.values()
    )


def workers_text(item: PointResult) -> str:
    """`, beside 34 polling workers`; empty where they are paused."""
    return f", beside {plural(item.n, 'polling worker')}" if item.n else ""


def data_text(item: PointResult, machine: Machine) -> str:
    """Where the data is, seen from the communication thread, and whether workers poll."""
    return _place_text(item, machine) + workers_text(item)


def _place_text(item: PointResult, machine: Machine) -> str:
    if len(machine.nodes) <= 1:
        return "data and communication thread on the one NUMA node"
    same = item.comp_node == item.comm_node
    where = "data on the communication thread's node" if same else f"data on node {item.comp_node}"
    thread = f"thread on core {item.comm_core} of node {item.comm_node}"
    if nic_node(machine) is not None:
        near = node_distance(machine, item.comm_node) == "near"
        thread += ", near the NIC" if near else ", far from the NIC"
    return f"{where} ({thread})"


def recovered(case: LatencyCase, same_from: int) -> Recovered:
    """Up to which size the difference shows; confirmed where it does just below `same_from` bytes, refuted
    where it certainly does not at a size below that.
    """
    kepts = _kepts(case)
    last, since = ends(case)
    below = [(size, kept) for size, kept in kepts if size < same_from]
    verdict: Judgement = "undecided"
    if not below or not any(size >= same_from for size, _ in kepts):
        verdict, why = "not tested", f"no message of {size_text(same_from)} or more was measured"
    elif last is not None and last >= same_from:
        why = "it shows beyond that, too"
    elif suffers(below[-1][1]) == "confirmed":
        verdict, why = "confirmed", ""
    elif any(suffers(kept) == "refuted" for size, kept in below if size > (last or 0)):
        verdict, why = "refuted", "it ends earlier"
    else:
        why = f"at {size_text(below[-1][0])} the interval is too wide; repeat more often"
    return Recovered(last=last, since=since, verdict=verdict, why=why)


def _kepts(case: LatencyCase) -> list[tuple[int, Kept]]:
    return [(item.size, item.comm.kept) for item in case.items if item.comm.kept is not None]


def ends(case: LatencyCase) -> tuple[int | None, int | None]:
    """The largest size at which the difference shows, and the next one; None where there is none."""
    kepts = _kepts(case)
    last = max((size for size, kept in kepts if affected(kept)), default=None)
    return last, next((size for size, _ in kepts if last is None or size > last), None)


def nearness(every: Sequence[LatencyCase]) -> Nearness:
    """Data on the communication thread's node against data on others, at the smallest size of both."""
    places = [_place(case) for case in every if case.smallest.comm.together is not None]
    pairs = [
        (same, away)
        for same, at_home in places
        for away, elsewhere in places
        if at_home and not elsewhere and (same.core, same.workers) == (away.core, away.workers)
    ]
    values: Values = {}
    for same, away in pairs:
        workers = f"_workers_{same.workers}" if same.workers else ""
        values[f"core_{same.core}_data_{away.data}{workers}"] = away.together / same.together
    verdict = unanimous([larger(away, same) for same, away in pairs])
    return Nearness(pairs=tuple(pairs), verdict=verdict, values=values)


def _place(case: LatencyCase) -> tuple[PlacedLatency, bool]:
    """And whether the data is on the communication thread's node."""
    item = case.smallest
    summary = item.comm.together
    assert summary is not None
    place = PlacedLatency(
        id=item.id,
        data=item.comp_node,
        core=item.comm_core,
        workers=item.n,
        together=summary.median,
        low=summary.low,
        high=summary.high,
    )
    return place, item.comp_node == item.comm_node
