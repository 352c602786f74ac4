"""Rows of a run of `gpu-overlap`: what a victim keeps beside each mover, and sources of loss by contrast."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from elbowroom.experiments.common.sentences import grouped
from elbowroom.experiments.common.sources import ContrastSource, difference, loss
from elbowroom.points import GpuCase, running
from elbowroom.points.gpu import Holders, Planned, how_held
from elbowroom.results.quiet import STAND_IN
from elbowroom.results.result import Kept, PointResult

VICTIMS = {"gemm": "GEMM", "triad": "triad", "chain": "launch chain"}
ENGINES = ("h2d", "d2h", "both", "d2d")


class OverlapRow(msgspec.Struct, frozen=True, kw_only=True):
    """A victim beside a mover that holds `sms` SMs (0: a copy engine). Rates and latencies are medians in
    `unit`, `kept` shares have 95 % intervals; `p99_kept` is of a chain of launches, `clock_kept` of the SM
    clock; what was not measured is None. `holders` and `plan_for` as in the case. `stand_in`: a stand-in
    answered, and nothing was measured.
    """

    point: str
    victim: str
    mover: str
    sms: int
    pace_mb_s: float
    first: str
    node: int
    unit: str
    alone: float | None
    together: float | None
    kept: Kept | None
    mover_alone: float | None = None
    mover_together: float | None = None
    mover_kept: Kept | None = None
    p99_kept: Kept | None = None
    clock_kept: Kept | None = None
    stand_in: bool = False
    holders: Holders = "single"
    plan_for: Planned = "all"

    @property
    def way(self) -> tuple[Holders, Planned]:
        """How SMs are held, and what a product beside them is planned for."""
        return self.holders, self.plan_for

    @property
    def label(self) -> str:
        """The mover and its way: `SMs copy to host, 50 GB/s, in pairs`."""
        return f"{self.mover_label}{how_held(*self.way)}"

    @property
    def mover_label(self) -> str:
        """The mover: `SMs copy to host, 50 GB/s`."""
        pace = f", {self.pace_mb_s / 1e3:g} GB/s" if self.pace_mb_s else ""
        word = {
            "sm_hbm": "SMs copy in HBM",
            "sm_host": "SMs copy to host",
            "sm_idle": "SMs idle",
            "sm_target": "planned for fewer",
        }.get(self.mover, f"copy engine {self.mover}")
        return f"{word}{pace}"


def labels(group: Sequence[OverlapRow], *, ways: bool = True) -> dict[str, str]:
    """How each row's mover is called among others, by the row's point: with the node of the pinned buffer
    where there are several; without `ways` not how SMs are held.
    """
    several = len({row.node for row in group if row.node >= 0}) > 1
    called = {row.point: row.label if ways else row.mover_label for row in group}
    nodes = {row.point: f", node {row.node}" for row in group if several and row.node >= 0}
    return {point: f"{label}{nodes.get(point, '')}" for point, label in called.items()}


def mover_name(case: GpuCase) -> str:
    """As plans call it."""
    if case.mover == "copy":
        return case.direction
    return f"sm_{case.direction}" if case.mover == "sm_copy" else case.mover


def rows(results: Sequence[PointResult]) -> tuple[OverlapRow, ...]:
    """A row for each point that was measured, in the order of the plan."""
    return tuple(
        _row(item, case)
        for item, case in running(results, GpuCase)
        if item.role == "point" and item.status != "failed" and case.victim in VICTIMS
    )


def _row(item: PointResult, case: GpuCase) -> OverlapRow:
    p99, clock = item.stream("p99"), item.stream("sm_clock")
    comp, comm = item.comp, item.comm
    return OverlapRow(
        point=item.id,
        victim=case.victim,
        mover=mover_name(case),
        sms=case.sms,
        pace_mb_s=case.pace_mb_s,
        first=case.first,
        node=case.node,
        unit=comp.alone.unit if comp.alone else "",
        alone=comp.alone.median if comp.alone else None,
        together=comp.together.median if comp.together else None,
        kept=comp.kept,
        mover_alone=comm.alone.median if comm.alone else None,
        mover_together=comm.together.median if comm.together else None,
        mover_kept=comm.kept,
        p99_kept=p99.kept("AB") if p99 else None,
        clock_kept=clock.kept("AB") if clock else None,
        stand_in=STAND_IN in item.flags,
        holders=case.holders,
        plan_for=case.plan_for,
    )


def sources(results: Sequence[PointResult]) -> tuple[ContrastSource, ...]:
    """Named sources by contrast, of each victim, for each k: with the victim started first, and SM copies as
    fast as they can (the fastest pace that was measured).
    """
    items = {item.id: item for item in results}
    table = [row for row in rows(results) if row.first == "victim" or row.mover == "sm_target"]
    found: list[ContrastSource | None] = []
    for victim in dict.fromkeys(row.victim for row in table):
        of_victim = [row for row in table if row.victim == victim]
        for engine in ENGINES:
            name = "HBM" if engine == "d2d" else "launch path" if victim == "chain" else "PCIe"
            contrast = f"copy engine {engine}"
            for row in of_victim:
                if row.mover == engine:
                    found.append(loss(name, VICTIMS[victim], contrast, items[row.point], row.kept))
        for k in dict.fromkeys(row.sms for row in of_victim if row.sms):
            found += _of_sms([row for row in of_victim if row.sms == k], items, k)
        found.append(_clock(of_victim, items))
    return tuple(item for item in found if item is not None)


def _of_sms(
    group: Sequence[OverlapRow], items: dict[str, PointResult], k: int
) -> Iterable[ContrastSource | None]:
    """Wave quantisation (planned for fewer); then the sources of each way of holding SMs and of planning the
    product beside them.
    """
    target = next((row for row in group if row.mover == "sm_target"), None)
    planned = _lost(target, items, k, "wave quantisation", "planned without k")
    yield planned
    held = [row for row in group if row is not target]
    for of_way in grouped(held, lambda row: row.way).values():
        yield from _of_way(of_way, items, k, planned)


def _of_way(
    group: Sequence[OverlapRow], items: dict[str, PointResult], k: int, planned: ContrastSource | None
) -> Iterable[ContrastSource | None]:
    """Occupancy (idle; less `planned` where the product is planned for others), HBM (copy less idle), PCIe
    (to host less HBM).
    """
    holders, plan_for = group[0].way
    words = ["pairs"] * (holders == "pairs") + ["others"] * (plan_for == "others")
    how = f": {', '.join(words)}" if words else ""
    fastest = {row.mover: row for row in sorted(group, key=lambda row: row.pace_mb_s or float("inf"))}

    def lost(mover: str, source: str, contrast: str) -> ContrastSource | None:
        return _lost(fastest.get(mover), items, k, source, f"{contrast}{how}")

    idle = lost("sm_idle", "SM occupancy", "idle SMs")
    inside = lost("sm_hbm", "SM copies inside HBM", "SMs that copy in HBM")
    outside = lost("sm_host", "SM copies to host", "SMs that copy to host")
    fewer = difference("SM occupancy", f"idle, less planned{how}", idle, planned)
    yield fewer if plan_for == "others" else idle
    yield difference("HBM", f"in HBM, less idle{how}", inside, idle)
    yield difference("PCIe", f"to host, less in HBM{how}", outside, inside)


def _lost(
    row: OverlapRow | None, items: dict[str, PointResult], k: int, source: str, contrast: str
) -> ContrastSource | None:
    if row is None:
        return None
    return loss(source, VICTIMS[row.victim], contrast, items[row.point], row.kept, k)


def _clock(group: Sequence[OverlapRow], items: dict[str, PointResult]) -> ContrastSource | None:
    """The SM clock where it fell most."""
    known = [row for row in group if row.clock_kept is not None]
    if not known:
        return None
    row = min(known, key=lambda row: row.clock_kept.value if row.clock_kept else 1.0)
    contrast = "SM clock at its least"
    return loss("clock and power", VICTIMS[row.victim], contrast, items[row.point], row.clock_kept, row.sms)
