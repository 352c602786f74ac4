"""What forwarding costs the computation of an inner node, finding by finding."""

from __future__ import annotations

from collections.abc import Sequence

from elbowroom.experiments.common.claims import Claim
from elbowroom.experiments.common.sentences import Values, cores_text, hit, kept_text, nothing, size_text
from elbowroom.experiments.forwarding.points import NAME
from elbowroom.experiments.forwarding.rows import TreeRow, cases, judge, rows
from elbowroom.machine.topology import Machine
from elbowroom.results.result import Finding, PointResult
from elbowroom.stats.interval import Interval

SHARED = "Ranks share a host's memory, so this is the cost of the copies of all of them: an upper bound."


def findings(results: Sequence[PointResult], machine: Machine) -> tuple[Finding, ...]:
    """What the computation keeps beside each tree; whether a binomial tree costs more than a binary one, as
    the thesis supposes; what a model expects; the cost of a byte, for the choice of trees.
    """
    table = rows(results)
    if not table:
        return (nothing(NAME, "A computation beside broadcasts"),)
    groups = cases(table)
    found = [_kept(group) for group in groups]
    found.sort(key=lambda finding: finding.level != "interference")
    found += [_claim(group) for group in groups]
    found += [_modelled(group) for group in groups if any(row.expected is not None for row in group)]
    weights = [_weight(group, machine) for group in groups]
    return (*found, *(finding for finding in weights if finding is not None))


def _place(group: Sequence[TreeRow]) -> str:
    first = group[0]
    return f"{first.name} on {cores_text(first.item.n)}, broadcasts of {size_text(first.item.size)}"


def _key(group: Sequence[TreeRow], *more: str) -> str:
    first = group[0]
    return "-".join((NAME, *more, first.workload.kernel, str(first.item.n), str(first.item.size)))


def _points(group: Sequence[TreeRow]) -> tuple[str, ...]:
    return tuple(row.item.id for row in group)


def _kept(group: Sequence[TreeRow]) -> Finding:
    parts, values = [], Values()
    for row in group:
        copies = "no copies" if not row.copies else f"{row.copies:.3g} cop{'y' if row.copies == 1 else 'ies'}"
        parts.append(f"{kept_text(row.kept)} beside a {row.tree} tree ({copies})")
        values |= {f"{row.tree}_copies": row.copies}
        if row.kept is not None:
            values |= {
                f"{row.tree}_kept": row.kept.value,
                f"{row.tree}_low": row.kept.low,
                f"{row.tree}_high": row.kept.high,
            }
    known = any(row.kept is not None for row in group)
    affected = any(hit(row.item, "comp") for row in group)
    return Finding(
        key=_key(group),
        level="interference" if affected else "quiet" if known else "n/a",
        text=f"{_place(group)}: the computation of the forwarding rank keeps {'; '.join(parts)}.",
        values=values,
        points=_points(group),
    )


def _claim(group: Sequence[TreeRow]) -> Finding:
    judgement, why = judge(group)
    parts, values = [], Values()
    for row in group:
        if row.lost is not None:
            parts.append(f"{_microseconds(row.lost)} with a {row.tree} tree")
            values |= {
                f"{row.tree}_lost_us": row.lost.value,
                f"{row.tree}_lost_low": row.lost.low,
                f"{row.tree}_lost_high": row.lost.high,
            }
    claim = Claim(
        statement="a broadcast costs an inner node more computation in a binomial tree than in a binary one",
        judgement=judgement,
        why=why,
        paper="a hypothesis, from QR with binary trees 7 and binomial trees 5 times as fast as without",
    )
    before = f"{_place(group)}: each broadcast costs the computation {', '.join(parts)}." if parts else ""
    return claim.finding(_key(group, "claim"), before=before, values=values, points=_points(group))


def _microseconds(lost: Interval) -> str:
    return f"{lost.value:.3g} us ({lost.text('.3g')})"


def _modelled(group: Sequence[TreeRow]) -> Finding:
    parts, values, errors = [], Values(), []
    for row in group:
        if row.expected is None or row.kept is None:
            continue
        parts.append(f"{row.expected:.2f} beside a {row.tree} tree (measured: {kept_text(row.kept)})")
        values[f"{row.tree}_expected"] = row.expected
        errors.append(abs(row.expected - row.kept.value))
    if not errors:
        text = f"{_place(group)}: nothing was measured that the model's expectation can be compared with."
        return Finding(key=_key(group, "model"), level="n/a", text=text)
    mean = sum(errors) / len(errors)
    values["mean_error"] = mean
    return Finding(
        key=_key(group, "model"),
        level="note",
        text=(
            f"{_place(group)}: from the bytes that pass, the model expects the computation to keep "
            f"{', '.join(parts)}; it is wrong by {mean:.2f} on average."
        ),
        values=values,
        points=_points(group),
    )


def _weight(group: Sequence[TreeRow], machine: Machine) -> Finding | None:
    """The cost of a byte where the most bytes pass through the rank."""
    known = [row for row in group if row.weight is not None and row.copies]
    if not known:
        return None
    row = max(known, key=lambda row: row.copies)
    weight = row.weight
    if weight is None:
        return None
    shared = f" {SHARED}" if row.workload.ranks > machine.hosts else ""
    sure = "" if weight.excludes_zero else " The interval contains 0: no cost is shown."
    text = (
        f"{_place(group)}, {row.tree} tree: a byte received or forwarded costs {weight.value * 1e9:.3g} ns "
        f"({weight.low * 1e9:.3g} to {weight.high * 1e9:.3g}) of computation.{sure}{shared}"
    )
    values: Values = {"forwarding": weight.value, "low": weight.low, "high": weight.high, "tree": row.tree}
    return Finding(key=_key(group, "weight"), level="note", text=text, values=values, points=(row.item.id,))
