"""Messages through StarPU-MPI and by MPI, placement by placement, and what they say of the paper's claims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from elbowroom.experiments.wording import Values, grouped, node_distance, usable
from elbowroom.machine.topology import Machine
from elbowroom.plan.placing import nic_node
from elbowroom.stats.curves import TOLERANCE, affected
from elbowroom.stats.result import Kept, PointResult

Judged = Literal["confirmed", "refuted", "undecided"]


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """All sizes, rising, of one placement of data and communication thread."""

    items: tuple[PointResult, ...]

    @property
    def smallest(self) -> PointResult:
        """The result of the smallest message."""
        return self.items[0]

    @property
    def key(self) -> str:
        """Of findings and figures: data's node, then the thread's core."""
        return f"{self.smallest.comp_node}-{self.smallest.comm_core}"


class Recovered(msgspec.Struct, frozen=True, kw_only=True):
    """`last`: the largest size at which the difference shows, bytes; `since`: the first size from which it
    does not; None where there is none. `why` says what an undecided verdict lacks.
    """

    last: int | None
    since: int | None
    verdict: Judged
    why: str = ""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """The smallest message through StarPU-MPI at one placement: us, with the interval of its median."""

    id: str
    data: int
    core: int
    together: float
    low: float
    high: float


class Nearness(msgspec.Struct, frozen=True, kw_only=True):
    """Per core of the communication thread: data on its own node, and on another."""

    pairs: tuple[tuple[Place, Place], ...]
    verdict: Judged
    values: Values = {}


def cases(results: Sequence[PointResult]) -> tuple[Case, ...]:
    """The placements, in order of first appearance."""
    measured = [item for item in usable(results) if item.program is not None]
    groups = grouped(measured, lambda item: (item.comp_node, item.comm_core))
    return tuple(Case(items=tuple(sorted(group, key=lambda item: item.size))) for group in groups.values())


def data_text(item: PointResult, machine: Machine) -> str:
    """Where the data is, seen from the communication thread."""
    if len(machine.nodes) <= 1:
        return "data and communication thread on the one NUMA node"
    same = item.comp_node == item.comm_node
    where = "data on the communication thread's node" if same else f"data on node {item.comp_node}"
    thread = f"thread on core {item.comm_core} of node {item.comm_node}"
    if nic_node(machine) is not None:
        near = node_distance(machine, item.comm_node) == "near"
        thread += ", near the NIC" if near else ", far from the NIC"
    return f"{where} ({thread})"


def recovered(case: Case, same_from: int) -> Recovered:
    """Up to which size the difference shows; confirmed where it does just below `same_from` bytes, refuted
    where it surely does not at a size below that.
    """
    kepts = _kepts(case)
    last, since = ends(case)
    below = [(size, kept) for size, kept in kepts if size < same_from]
    if not below or not any(size >= same_from for size, _ in kepts):
        return Recovered(last=last, since=since, verdict="undecided", why=f"sizes do not reach {same_from} B")
    if last is not None and last >= same_from:
        return Recovered(last=last, since=since, verdict="undecided", why="it shows beyond that, too")
    largest, kept = below[-1]
    if affected(kept):
        return Recovered(last=last, since=since, verdict="confirmed")
    if any(surely_kept(kept) for size, kept in below if size > (last or 0)):
        return Recovered(last=last, since=since, verdict="refuted", why="it ends earlier")
    why = f"at {largest} B the interval is too wide: repeat more often"
    return Recovered(last=last, since=since, verdict="undecided", why=why)


def _kepts(case: Case) -> list[tuple[int, Kept]]:
    return [(item.size, item.comm.kept) for item in case.items if item.comm.kept is not None]


def ends(case: Case) -> tuple[int | None, int | None]:
    """The largest size at which the difference shows, and the next one; None where there is none."""
    kepts = _kepts(case)
    last = max((size for size, kept in kepts if affected(kept)), default=None)
    return last, next((size for size, _ in kepts if last is None or size > last), None)


def surely_kept(kept: Kept) -> bool:
    """Whether StarPU-MPI surely changes less than matters."""
    return kept.low >= 1 - TOLERANCE


def nearness(told: Sequence[Case]) -> Nearness:
    """Data on the communication thread's node against data on others, at the smallest size measured at
    both.
    """
    places = [_place(case) for case in told if case.smallest.comm.together is not None]
    pairs = [
        (same, away)
        for same, at_home in places
        for away, elsewhere in places
        if at_home and not elsewhere and same.core == away.core
    ]
    values: Values = {}
    for same, away in pairs:
        values[f"core_{same.core}_data_{away.data}"] = away.together / same.together
    if pairs and all(away.low > same.high for same, away in pairs):
        return Nearness(pairs=tuple(pairs), verdict="confirmed", values=values)
    if pairs and all(away.high < same.low for same, away in pairs):
        return Nearness(pairs=tuple(pairs), verdict="refuted", values=values)
    return Nearness(pairs=tuple(pairs), verdict="undecided", values=values)


def _place(case: Case) -> tuple[Place, bool]:
    """And whether the data is on the communication thread's node."""
    item = case.smallest
    summary = item.comm.together
    assert summary is not None
    place = Place(
        id=item.id,
        data=item.comp_node,
        core=item.comm_core,
        together=summary.median,
        low=summary.low,
        high=summary.high,
    )
    return place, item.comp_node == item.comm_node
