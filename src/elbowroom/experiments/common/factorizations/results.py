"""What a run of factorizations shows: what tasks keep, complete broadcasts, gains of trees, residuals, and
performance by tree, as Figs. 4.9 to 4.14 of the thesis.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from elbowroom.draw.figure import Axis, Figure, Series, TextTable
from elbowroom.experiments.common.panels import interval_line
from elbowroom.experiments.common.sentences import Claim, Values, grouped, hit, lost_text, nothing
from elbowroom.experiments.common.tables import Column, formatted, rounded, table
from elbowroom.machine.topology import Machine
from elbowroom.points.factorizations import FactorizationProgram, Task
from elbowroom.points.point import running
from elbowroom.results.judgement import above
from elbowroom.results.result import Finding, PointResult
from elbowroom.stats.interval import Interval, Kept, Summary

SCHEDULING = "scheduling"
"""The flag of points where two computing threads share a core."""

NONE = "none"
"""A message for each recipient."""

BUILDS = {"inline": "inline", "starpu": "StarPU"}
VARIANTS = {
    "late": "readers wait for release",
    "unordered": "without priorities",
    "unheld": "data sent at once",
}
"""By FactorizationProgram.variants."""
TASKS = {"cholesky": "Cholesky factorization", "qr": "QR factorization"}


class FactorRow(msgspec.Struct, frozen=True, kw_only=True):
    """A point that was measured."""

    program: FactorizationProgram
    item: PointResult

    @property
    def time(self) -> Summary | None:
        """A factorization while messages travel, us, of the slowest process."""
        return None if self.item.payload.steps is None else self.item.payload.steps.total

    @property
    def gflops(self) -> Interval | None:
        """10^9 operations in a second, as LAPACK counts them."""
        if self.time is None or not self.time.median > 0:
            return None
        low, high = self.time.ends(self.time.median)
        rates = [self.program.flops / time * 1e-3 for time in (self.time.median, high, low)]
        return Interval(value=rates[0], low=rates[1], high=rates[2])

    @property
    def kept(self) -> Kept | None:
        """What tasks keep of their speed while messages travel."""
        return self.item.comp.kept

    @property
    def takes_turns(self) -> bool:
        """Whether its processes compute on one core in turns."""
        return SCHEDULING in self.item.flags

    def fact(self, name: str) -> float | None:
        """What the program reported of one run of all processes."""
        return self.item.payload.facts.get(name)

    @property
    def where(self) -> str:
        """`32 x 32 tiles of 128 on 2x2`, for messages."""
        one = self.program
        variants = "".join(f", {VARIANTS[name]}" for name in one.variants)
        return f"{one.tiles} x {one.columns} tiles of {one.block} on {one.grid} processes{variants}"


def rows(results: Sequence[PointResult]) -> tuple[FactorRow, ...]:
    """A row for each point with values, as the plan orders them."""
    return tuple(
        FactorRow(program=program, item=item)
        for item, program in running(results, FactorizationProgram)
        if item.status != "failed"
    )


def cases(table: Sequence[FactorRow]) -> tuple[tuple[FactorRow, ...], ...]:
    """The rows that differ in their trees only."""
    return tuple(
        tuple(group)
        for group in grouped(table, lambda row: (*_matrix(row), row.program.build, row.item.n)).values()
    )


def _matrix(row: FactorRow) -> tuple[object, ...]:
    """All but the tree, the build and the cores."""
    one = row.program
    return (one.tiles, one.columns, one.block, one.grid, tuple(one.variants))


def sizes(table: Sequence[FactorRow]) -> tuple[tuple[FactorRow, ...], ...]:
    """The rows of each matrix on each grid."""
    return tuple(tuple(group) for group in grouped(table, _matrix).values())


def pairs(table: Sequence[FactorRow]) -> Iterator[tuple[FactorRow, FactorRow]]:
    """Each tree after what it is compared with, a message for each recipient."""
    for group in cases(table):
        without = next((row for row in group if row.program.way == NONE), None)
        if without is not None:
            yield from ((without, row) for row in group if row is not without)


def gain(without: FactorRow, tree: FactorRow) -> Interval | None:
    """How many times as fast the tree is, with the widest interval of both times; None if not measured."""
    slow, fast = without.time, tree.time
    if slow is None or fast is None or slow.bounds is None or fast.bounds is None or not fast.bounds[0] > 0:
        return None
    value = slow.median / fast.median
    return Interval(value=value, low=slow.bounds[0] / fast.bounds[1], high=slow.bounds[1] / fast.bounds[0])


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
    gains_of_trees = [_gains(group, machine) for group in cases(table) if len(group) > 1]
    return (
        *kept,
        *(one for one in complete if one is not None),
        *(one for one in gains_of_trees if one is not None),
        _checked(results, table),
    )


def _key(row: FactorRow, what: str) -> str:
    one = row.program
    size = f"{one.tiles}x{one.columns}-block{one.block}-{one.grid}"
    return "-".join([one.task, what, one.build, size, *one.variants, f"n{row.item.n}"])


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
            f"{_place(first)}: what tasks lose of their speed while messages travel is not judged. Processes "
            "compute on one core in turns, and each turn brings other data into its caches."
        )
        level = "n/a"
    else:
        parts = [f"{lost_text(row.kept)} with {row.program.way}" for row in known]
        text = f"{_place(first)}: tasks lose {', '.join(parts)} of their speed while messages travel."
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


RATE = Axis(label="Gflop/s", reach=0.0)


def figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:  # noqa: ARG001
    """Gflop/s over the order, a line for each tree and build; of one matrix a point for each."""
    table = [(row, rate) for row in rows(results) if (rate := row.gflops) is not None]
    if not table:
        return ()
    task = table[0][0].program.task
    over_order = len({row.program.rows for row, _ in table}) > 1
    ways = tuple(dict.fromkeys(row.program.way for row, _ in table))
    x_axis = Axis(label="Rows of the matrix") if over_order else Axis(label="Tree of broadcasts", names=ways)
    lines = grouped(table, lambda entry: _line(entry[0], over_order))
    differing = [len({key[i] for key in lines}) > 1 for i in range(len(next(iter(lines))))]
    grids = ", ".join(dict.fromkeys(row.program.grid for row, _ in table))
    return (
        Figure(
            name=f"{task}-performance",
            title=f"{TASKS[task]} by tree, {grids} processes",
            x=x_axis,
            left=RATE,
            series=tuple(
                _series(_line_name(key, differing), group, ways, over_order) for key, group in lines.items()
            ),
            caption="By LAPACK's count of operations; none: a message for each recipient. 95 % intervals.",
        ),
    )


def _line(row: FactorRow, over_order: bool) -> tuple[str, ...]:
    """The words of a curve: its build first."""
    one = row.program
    variants = ", ".join(VARIANTS[name] for name in one.variants)
    fixed = (f"n = {row.item.n}", f"tiles of {one.block}", one.grid, variants)
    return (BUILDS[one.build], one.way if over_order else "", *fixed)


def _line_name(words: tuple[str, ...], differing: Sequence[bool]) -> str:
    """What differs among the curves; the build always."""
    build, way, *others = words
    own = [word for word, differs in zip(others, differing[2:], strict=True) if word and differs]
    return ", ".join([f"{way} ({build})" if way else build, *own])


def _series(
    name: str, group: Sequence[tuple[FactorRow, Interval]], ways: tuple[str, ...], over_order: bool
) -> Series:
    known = [
        (float(row.program.rows if over_order else ways.index(row.program.way)), rate, row.item.id)
        for row, rate in group
    ]
    return interval_line(
        name,
        known,
        side="computation",
        drawn="curve" if over_order else "points",
        value="Gflop/s",
        flat=False,
    )


COLUMNS: tuple[Column[FactorRow], ...] = (
    Column("tree", lambda row: row.program.way, left=True),
    Column("build", lambda row: BUILDS[row.program.build], left=True),
    Column("n", lambda row: str(row.item.n)),
    Column("ms", lambda row: rounded(row.time, 4, unit=1e3)),
    Column("Gflop/s", lambda row: rounded(row.gflops)),
    Column("residual", lambda row: formatted(row.fact("residual"), ".0e")),
    Column("broadcasts", lambda row: formatted(row.fact("broadcasts"), ".0f")),
    Column("complete", lambda row: formatted(row.fact("complete_share"), ".1%")),
    Column("late", lambda row: formatted(row.fact("late"), ".0f")),
    Column("messages", lambda row: formatted(row.fact("messages"), ".0f")),
)
LEGEND = (
    "Gflop/s by LAPACK's count of operations. broadcasts: data with several recipients; complete: share "
    "whose recipients were all known when the data were sent; late: recipients that were not; messages: data "
    "and recipients, one by one."
)


def tables(results: Sequence[PointResult], machine: Machine) -> tuple[TextTable, ...]:  # noqa: ARG001
    """A line for each tree and build; what a program did not report is a dash."""
    return tuple(
        table(f"{TASKS[group[0].program.task]}: {group[0].where}", group, COLUMNS, legend=LEGEND)
        for group in sizes(rows(results))
    )
