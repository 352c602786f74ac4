"""What a run of factorizations shows: what tasks keep, complete broadcasts, gains of trees, residuals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from elbowroom.experiments.common.claims import Claim
from elbowroom.experiments.common.factorizations.rows import (
    BUILDS,
    TASKS,
    FactorRow,
    cases,
    gain,
    pairs,
    rows,
)
from elbowroom.experiments.common.sentences import Values, hit, kept_text, nothing
from elbowroom.machine.topology import Machine
from elbowroom.points import FactorizationProgram, running
from elbowroom.points.factorizations import Task
from elbowroom.results.judgement import above
from elbowroom.results.result import Finding, PointResult
from elbowroom.stats.interval import Interval

LARGEST_RESIDUAL = 1e-12
"""Of a factorization that is right (apps/factorizations/factorizations.cpp)."""

COMPLETE = 0.98
"""Of the thesis' broadcasts are complete when their data are ready (section 4.2.1)."""

NEARLY = 0.975
"""From this share on, 98 % of the broadcasts are complete."""

PAPER_SCALE = {"cholesky": "14 x 14 and 20 x 20 nodes", "qr": "1 x 196 nodes"}


def findings(results: Sequence[PointResult], machine: Machine, task: Task) -> tuple[Finding, ...]:
    """In this order: what tasks keep, complete broadcasts, gains, residuals."""
    table = rows(results)
    if not table:
        return (nothing(task, TASKS[task]),)
    kept = [_kept(group) for group in cases(table) if any(row.kept is not None for row in group)]
    kept.sort(key=lambda finding: finding.level != "interference")
    complete = [_complete(group) for group in cases(table)]
    found = [_gains(group, machine) for group in cases(table) if len(group) > 1]
    return (
        *kept,
        *(one for one in complete if one is not None),
        *(one for one in found if one is not None),
        _checked(results, table),
    )


def _key(row: FactorRow, what: str) -> str:
    one = row.program
    return f"{one.task}-{what}-{one.build}-{one.tiles}x{one.columns}-n{row.item.n}"


def _place(row: FactorRow) -> str:
    return f"{TASKS[row.program.task]} ({BUILDS[row.program.build]}), {row.where}"


def _kept(group: Sequence[FactorRow]) -> Finding:
    """What tasks keep of their speed beside messages, with each tree."""
    first = group[0]
    known = [row for row in group if row.kept is not None]
    values: Values = {f"kept_{row.program.way}": row.kept.value for row in known if row.kept is not None}
    level: Literal["quiet", "interference", "n/a"]
    if any(row.takes_turns for row in group):
        text = (
            f"{_place(first)}: what tasks keep of their speed while messages travel is not judged. Processes "
            "compute on one core in turns, and each turn brings other data into its caches."
        )
        level = "n/a"
    else:
        parts = [f"{kept_text(row.kept)} with {row.program.way}" for row in known]
        text = f"{_place(first)}: tasks keep {', '.join(parts)} of their speed while messages travel."
        level = "interference" if any(hit(row.item, "comp") for row in known) else "quiet"
    return Finding(
        key=_key(first, "kept"),
        level=level,
        text=text,
        values=values,
        points=tuple(row.item.id for row in known),
    )


def _complete(group: Sequence[FactorRow]) -> Finding | None:
    """How many broadcasts had all their recipients when the data were sent, and why others had not."""
    known = [row for row in group if row.program.broadcasts and row.fact("complete_share") is not None]
    if not known:
        return None
    worst = min(known, key=lambda row: row.fact("complete_share") or 0.0)
    share = worst.fact("complete_share") or 0.0
    broadcasts, late = worst.fact("broadcasts") or 0.0, worst.fact("late") or 0.0
    missed = round(broadcasts * (1 - share))
    before = (
        f"{_place(worst)}: {'at least ' * (len(known) > 1)}{share:.1%} of {broadcasts:.0f} broadcasts are "
        f"complete when their data are sent{f' (with {worst.program.way})' if len(known) > 1 else ''}."
    )
    if missed:
        before += (
            f" {missed} {'is' if missed == 1 else 'are'} not: {late:.0f} "
            f"recipient{'' if late == 1 else 's'} read the data in tasks that were submitted after the data "
            "were ready, and got messages of their own."
        )
    claim = Claim(
        statement=f"{COMPLETE:.0%} of the broadcasts are complete",
        judgement=above(_range(worst, share), NEARLY),
        paper="98 % for Cholesky (section 4.2.1)" if worst.program.task == "cholesky" else "",
    )
    values: Values = {
        "complete_share": share,
        "broadcasts": broadcasts,
        "late": late,
        "messages": worst.fact("messages"),
    }
    points = (row.item.id for row in known)
    return claim.finding(_key(worst, "complete"), before=before, values=values, points=points)


def _range(row: FactorRow, share: float) -> Interval:
    """The share with its range over the repetitions; a run of an older release has one repetition's."""
    low, high = row.fact("complete_share_low"), row.fact("complete_share_high")
    return Interval(value=share, low=share if low is None else low, high=share if high is None else high)


def _gains(group: Sequence[FactorRow], machine: Machine) -> Finding | None:
    """How many times as fast each tree is as a message for each recipient."""
    parts, values, points = [], Values(), []
    for without, tree in pairs(group):
        ratio, way = gain(without, tree), tree.program.way
        points += [without.item.id, tree.item.id]
        if ratio is None:
            parts.append(f"{way} unknown, without an interval")
            continue
        sure = "" if ratio.low > 1 or ratio.high < 1 else ", undecided"
        parts.append(f"{way} {ratio.value:.2f} ({ratio.text()}{sure})")
        values |= {f"gain_{way}": ratio.value, f"low_{way}": ratio.low, f"high_{way}": ratio.high}
    if not parts:
        return None
    text = f"{_place(group[0])}: times as fast as a message for each recipient: {'; '.join(parts)}."
    if machine.hosts < 2:
        shared = ", whose cores they share" * any(row.takes_turns for row in group)
        text += (
            f" {group[0].program.ranks} processes on one host{shared}: this is not the thesis' scale "
            f"({PAPER_SCALE[group[0].program.task]}), where trees shorten the way over the network."
        )
    return Finding(
        key=_key(group[0], "gain"),
        level="note",
        text=text,
        values=values,
        points=tuple(dict.fromkeys(points)),
    )


def _checked(results: Sequence[PointResult], table: Sequence[FactorRow]) -> Finding:
    """The largest residual of all results, and how many were not right."""
    measured = running(results, FactorizationProgram)
    known = [(row.fact("residual") or 0.0, row) for row in table if row.fact("residual") is not None]
    if not known:
        text, values = "The program reported no residuals.", Values()
    else:
        worst, row = max(known, key=lambda entry: entry[0])
        text = (
            f"{len(known)} of {len(measured)} factorizations were right: residuals of at most {worst:.1e} "
            f"({row.program.title}); {LARGEST_RESIDUAL:.0e} is allowed."
        )
        values = {"largest_residual": worst, "right": len(known), "of": len(measured)}
    return Finding(key=f"{table[0].program.task}-checked", level="note", text=text, values=values)
