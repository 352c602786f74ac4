"""What a run of `gpu-overlap` says: each victim beside copy engines and beside SMs, and sources of loss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from elbowroom.experiments.common.sentences import Values, grouped, kept_text, nothing
from elbowroom.experiments.gpu_overlap.rows import ENGINES, VICTIMS, OverlapRow, rows, sources
from elbowroom.machine.topology import Machine
from elbowroom.results.curves import affected
from elbowroom.results.result import Finding, PointResult
from elbowroom.stats.interval import apart

KEY = "gpu-overlap"
LEAST = 0.02
"""Shares that differ by less are called the same."""


def findings(results: Sequence[PointResult], machine: Machine) -> tuple[Finding, ...]:  # noqa: ARG001
    """Of each victim: beside copy engines, beside movers that hold SMs, the order of starts; then sources."""
    table = [row for row in rows(results) if row.kept is not None]
    if not table:
        return (nothing(KEY, "Kernels of a GPU beside movers"),)
    found = []
    for victim, group in grouped(table, lambda row: row.victim).items():
        engines = [row for row in group if row.mover in ENGINES]
        held = [row for row in group if row.mover not in ENGINES]
        for name, of_kind in (("copy engines", engines), ("movers that hold SMs", held)):
            if of_kind:
                found.append(_worst(victim, name, of_kind))
        found += _orders(victim, group)
    found.sort(key=lambda finding: finding.level != "interference")
    return (*found, *_sources(results))


def _kept(row: OverlapRow) -> float:
    return row.kept.value if row.kept is not None else 1.0


def _worst(victim: str, name: str, group: Sequence[OverlapRow]) -> Finding:
    worst, best = min(group, key=_kept), max(group, key=_kept)
    hit = any(row.kept is not None and affected(row.kept) for row in group)
    text = (
        f"{VICTIMS[victim]} beside {name} keeps {kept_text(worst.kept)} at worst ({_at(worst)}) and "
        f"{kept_text(best.kept)} at best ({_at(best)})."
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
        f"{VICTIMS[victim]}: {verdict}, where it keeps {kept_text(first.kept)} if it starts first, and "
        f"{kept_text(second.kept)} if the mover does."
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
