"""What a run of `gpu-overlap` shows: what victims keep beside each mover, and sources of loss by contrast."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from elbowroom.draw.figure import Axis, Drawn, Figure, Hue, Series, TextTable
from elbowroom.experiments.common.accelerators import (
    KEPT_LEGEND,
    STAND_IN_SENTENCE,
    ContrastSource,
    difference,
    kept_column,
    loss,
    percent,
    source_table,
)
from elbowroom.experiments.common.panels import interval_line
from elbowroom.experiments.common.sentences import Values, grouped, lost_text, nothing
from elbowroom.experiments.common.tables import Column, table
from elbowroom.machine.topology import Machine
from elbowroom.points.gpu import GpuCase, Holders, Planned, how_held
from elbowroom.points.point import running
from elbowroom.points.streams import stream_of
from elbowroom.quantities import rate
from elbowroom.results.curves import affected
from elbowroom.results.quiet import STAND_IN
from elbowroom.results.result import Finding, PointResult
from elbowroom.stats.interval import Kept, apart

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
    p99, clock = stream_of(item.payload, "p99"), stream_of(item.payload, "sm_clock")
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
    named: list[ContrastSource | None] = []
    for victim in dict.fromkeys(row.victim for row in table):
        of_victim = [row for row in table if row.victim == victim]
        for engine in ENGINES:
            name = "HBM" if engine == "d2d" else "launch path" if victim == "chain" else "PCIe"
            contrast = f"copy engine {engine}"
            for row in of_victim:
                if row.mover == engine:
                    named.append(loss(name, VICTIMS[victim], contrast, items[row.point], row.kept))
        for k in dict.fromkeys(row.sms for row in of_victim if row.sms):
            named += _of_sms([row for row in of_victim if row.sms == k], items, k)
        named.append(_clock(of_victim, items))
    return tuple(item for item in named if item is not None)


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


KEY = "gpu-overlap"
LEAST = 0.02
"""Shares that differ by less are called the same."""


def findings(results: Sequence[PointResult], machine: Machine) -> tuple[Finding, ...]:  # noqa: ARG001
    """Of each victim: beside copy engines, beside movers that hold SMs, the order of starts; then sources."""
    table = [row for row in rows(results) if row.kept is not None]
    if not table:
        return (nothing(KEY, "Kernels of a GPU beside movers"),)
    findings = []
    for victim, group in grouped(table, lambda row: row.victim).items():
        engines = [row for row in group if row.mover in ENGINES]
        held = [row for row in group if row.mover not in ENGINES]
        for name, of_kind in (("copy engines", engines), ("movers that hold SMs", held)):
            if of_kind:
                findings.append(_worst(victim, name, of_kind))
        findings += _orders(victim, group)
    findings.sort(key=lambda finding: finding.level != "interference")
    return (*findings, *_sources(results))


def _kept(row: OverlapRow) -> float:
    return row.kept.value if row.kept is not None else 1.0


def _worst(victim: str, name: str, group: Sequence[OverlapRow]) -> Finding:
    worst, best = min(group, key=_kept), max(group, key=_kept)
    hit = any(row.kept is not None and affected(row.kept) for row in group)
    text = (
        f"{VICTIMS[victim]} beside {name} loses {lost_text(worst.kept)} at worst ({_at(worst)}) and "
        f"{lost_text(best.kept)} at best ({_at(best)})."
    )
    values: Values = {"victim": victim, "worst": _kept(worst), "worst_mover": worst.mover, "k": worst.sms}
    if worst.kept is not None:
        values |= {"low": worst.kept.low, "high": worst.kept.high}
    return Finding(
        key=f"{KEY}-{victim}-{name.split()[0]}",
        level="interference" if hit else "quiet",
        text=text,
        values=values,
        points=tuple(row.point for row in group),
    )


def _at(row: OverlapRow) -> str:
    order = ", mover first" if row.first == "mover" else ""
    place = f", node {row.node}" if row.node >= 0 else ""
    return f"{row.label}{place}, k = {row.sms}{order}" if row.sms else f"{row.label}{place}{order}"


def _orders(victim: str, group: Sequence[OverlapRow]) -> Iterator[Finding]:
    """Where the order of starts decides: the pair that differs most, if its intervals lie apart."""
    pairs = grouped(group, lambda row: (row.label, row.sms, row.node))
    both = [(pair[0], pair[1]) for pair in pairs.values() if len(pair) == 2]
    if not both:
        return
    one, other = max(both, key=lambda pair: abs(_kept(pair[0]) - _kept(pair[1])))
    first, second = (one, other) if one.first == "victim" else (other, one)
    kepts = [row.kept for row in (first, second) if row.kept is not None]
    differs = abs(_kept(first) - _kept(second)) >= LEAST
    decides = differs and len(kepts) == 2 and (apart(*kepts) or apart(*reversed(kepts)))
    verdict = (
        f"the order of starts decides beside {_at(first)}"
        if decides
        else f"the order of starts makes no significant difference; the largest is beside {_at(first)}"
    )
    text = (
        f"{VICTIMS[victim]}: {verdict}, where it loses {lost_text(first.kept)} if it starts first, and "
        f"{lost_text(second.kept)} if the mover does."
    )
    values: Values = {"victim_first": _kept(first), "mover_first": _kept(second), "k": first.sms}
    yield Finding(
        key=f"{KEY}-{victim}-order", level="note", text=text, values=values, points=(one.point, other.point)
    )


def _sources(results: Sequence[PointResult]) -> Iterator[Finding]:
    """The largest source of each victim."""
    for victim, group in grouped(sources(results), lambda item: item.victim).items():
        named = [item for item in group if not item.name.startswith("SM copies")]
        largest = max(named, key=lambda item: item.value)
        yield Finding(
            key=f"{KEY}-source-{victim.replace(' ', '-')}",
            level="note",
            text=f"The largest source of loss of {victim}: {largest.sentence}.",
            values={"source": largest.name, "lost": largest.value, "k": largest.sms},
            points=largest.points,
        )


SMS = Axis(label="SMs that the mover holds, k (0: a copy engine)", whole=True)


def figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:  # noqa: ARG001
    """One for each victim, a line for each mover."""
    by_victim = grouped([row for row in rows(results) if row.kept is not None], lambda row: row.victim)
    return tuple(_figure(victim, group) for victim, group in by_victim.items())


def _figure(victim: str, group: Sequence[OverlapRow]) -> Figure:
    called = labels(group)
    lines = grouped(group, lambda row: called[row.point] + ", mover first" * (row.first == "mover"))
    stand_in = " (stand-in)" * any(row.stand_in for row in group)
    return Figure(
        name=f"gpu-overlap-{victim}",
        title=f"{VICTIMS[victim]} beside movers{stand_in}",
        x=SMS,
        left=Axis(label="Kept (1 = undisturbed)", reference=1.0, reach=0.0),
        series=tuple(_line(label, of_line) for label, of_line in lines.items()),
        caption="Whiskers and bands are 95 % intervals.",
    )


def _hue(row: OverlapRow) -> Hue:
    """Blue for copy engines, red for movers that hold SMs, black for a product that leaves SMs free."""
    if row.sms == 0:
        return "blue"
    return "black" if row.mover == "sm_target" else "red"


def _line(label: str, group: Sequence[OverlapRow]) -> Series:
    known = [(float(row.sms), row.kept, row.point) for row in group if row.kept is not None]
    known.sort(key=lambda row: row[0])
    drawn: Drawn = "curve" if len(known) > 1 else "points"
    return interval_line(label, known, hue=_hue(group[0]), drawn=drawn, value="kept")


LEGEND = f"{KEPT_LEGEND} p99: of a launch in a chain."


class OverlapTable(msgspec.Struct, frozen=True, kw_only=True):
    """What `show --json` adds: all rows, and sources of loss by contrast."""

    rows: tuple[OverlapRow, ...]
    sources: tuple[ContrastSource, ...]


TYPES = {"gpu_overlap": OverlapTable}
"""The types of `data`, by key."""


def data(results: Sequence[PointResult], machine: Machine) -> dict[str, Any]:  # noqa: ARG001
    """The rows and sources of a run; empty where nothing was measured."""
    table = rows(results)
    return {"gpu_overlap": OverlapTable(rows=table, sources=sources(results))} if table else {}


def tables(results: Sequence[PointResult], machine: Machine) -> tuple[TextTable, ...]:  # noqa: ARG001
    """Each victim over k, for each way of holding SMs; all victims beside copy engines; sources."""
    table = rows(results)
    held = grouped([row for row in table if row.sms], lambda row: (row.victim, row.first))
    engines = [row for row in table if not row.sms]
    drawn = [_over_sms(group) for of_order in held.values() for group in _by_way(of_order)]
    drawn += [_engines(engines)] if engines else []
    named = source_table(sources(results))
    drawn += [] if named is None else [named]
    below = (STAND_IN_SENTENCE,) * any(row.stand_in for row in table)
    return tuple(msgspec.structs.replace(item, below=(*item.below, *below)) for item in drawn)


def _by_way(group: Sequence[OverlapRow]) -> tuple[list[OverlapRow], ...]:
    """The rows of each way of holding SMs and of planning the product, with those of a product that is
    planned for fewer SMs and has nothing beside it.
    """
    planned = [row for row in group if row.mover == "sm_target"]
    held = grouped([row for row in group if row.mover != "sm_target"], lambda row: row.way)
    return tuple([*of_way, *planned] for of_way in held.values()) or (planned,)


def _title(row: OverlapRow) -> str:
    planned = f", planned for {row.plan_for}" * (row.victim == "gemm")
    how = "in pairs" if row.holders == "pairs" else "one by one"
    return f"{VICTIMS[row.victim]}{planned}: percent kept, k SMs held {how}, {row.first} first"


def _over_sms(group: Sequence[OverlapRow]) -> TextTable:
    """As the published comparison: movers, and the SMs that they hold, in one way."""
    called = labels(group, ways=False)
    lines = list(grouped(group, lambda row: called[row.point]).items())

    def at(k: int) -> Callable[[tuple[str, list[OverlapRow]]], Kept | None]:
        return lambda line: {row.sms: row.kept for row in line[1]}.get(k)

    beside: Column[tuple[str, list[OverlapRow]]] = Column("beside", lambda line: line[0], left=True)
    alone = group[0].alone
    return table(
        _title(group[0]),
        lines,
        (beside, *(kept_column(f"k = {k}", at(k)) for k in sorted({row.sms for row in group}))),
        below=() if alone is None else (f"Alone: {rate(alone, group[0].unit)}.",),
        legend=KEPT_LEGEND,
        points=tuple(row.point for row in group),
    )


def _engines(group: Sequence[OverlapRow]) -> TextTable:
    called = labels(group)
    columns: tuple[Column[OverlapRow], ...] = (
        Column("victim", lambda row: VICTIMS[row.victim], left=True),
        Column("beside", lambda row: called[row.point], left=True),
        Column("first", lambda row: row.first, left=True),
        kept_column("victim keeps", lambda row: row.kept),
        Column("copies keep", lambda row: percent(row.mover_kept)),
        Column("p99 keeps", lambda row: percent(row.p99_kept)),
    )
    points = tuple(row.point for row in group)
    return table("Beside copy engines: percent kept", group, columns, legend=LEGEND, points=points)
