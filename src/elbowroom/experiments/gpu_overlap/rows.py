"""Rows of a run of `gpu-overlap`: what a victim keeps beside each mover, and sources of loss by contrast."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from elbowroom.experiments.common.sources import ContrastSource, difference, loss
from elbowroom.results.quiet import STAND_IN
from elbowroom.results.result import Kept, PointResult
from elbowroom.workloads import GpuCase, running

VICTIMS = {"gemm": "GEMM", "triad": "triad", "chain": "launch chain"}
ENGINES = ("h2d", "d2h", "both", "d2d")


class OverlapRow(msgspec.Struct, frozen=True, kw_only=True):
    """A victim beside a mover that holds `sms` SMs (0: a copy engine). Rates and latencies are medians in
    `unit`, `kept` shares have 95 % intervals; `p99_kept` is of a chain of launches, `clock_kept` of the SM
    clock; what was not measured is None. `stand_in`: a stand-in answered, and nothing was measured.
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

    @property
    def label(self) -> str:
        """The mover: `SMs copy to host, 50 GB/s`."""
        pace = f", {self.pace_mb_s / 1e3:g} GB/s" if self.pace_mb_s else ""
        word = {
            "sm_hbm": "SMs copy in HBM",
            "sm_host": "SMs copy to host",
            "sm_idle": "SMs idle",
            "sm_target": "planned for fewer",
        }.get(self.mover, f"copy engine {self.mover}")
        return f"{word}{pace}"


def labels(group: Sequence[OverlapRow]) -> dict[str, str]:
    """How each row's mover is called among others, by the row's point: with the node of the pinned buffer
    where there are several.
    """
    several = len({row.node for row in group if row.node >= 0}) > 1
    return {
        row.point: f"{row.label}, node {row.node}" if several and row.node >= 0 else row.label
        for row in group
    }


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
    """Wave quantisation (planned for fewer), occupancy (idle), HBM (copy less idle), PCIe (to host less
    HBM).
    """
    name = VICTIMS[group[0].victim]
    fastest = {row.mover: row for row in sorted(group, key=lambda row: row.pace_mb_s or float("inf"))}

    def lost(mover: str, source: str, contrast: str) -> ContrastSource | None:
        row = fastest.get(mover)
        return None if row is None else loss(source, name, contrast, items[row.point], row.kept, k)

    idle = lost("sm_idle", "SM occupancy", "idle SMs")
    inside = lost("sm_hbm", "SM copies inside HBM", "SMs that copy in HBM")
    outside = lost("sm_host", "SM copies to host", "SMs that copy to host")
    yield lost("sm_target", "wave quantisation", "planned without k")
    yield idle
    yield difference("HBM", "in HBM, less idle", inside, idle)
    yield difference("PCIe", "to host, less in HBM", outside, inside)


def _clock(group: Sequence[OverlapRow], items: dict[str, PointResult]) -> ContrastSource | None:
    """The SM clock where it fell most."""
    known = [row for row in group if row.clock_kept is not None]
    if not known:
        return None
    row = min(known, key=lambda row: row.clock_kept.value if row.clock_kept else 1.0)
    contrast = "SM clock at its least"
    return loss("clock and power", VICTIMS[row.victim], contrast, items[row.point], row.clock_kept, row.sms)
