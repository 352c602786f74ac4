"""What a run of `kernels` shows: sends beside a task, cores that wait, times, and the paper's claim; both
panels of Fig. 10 of Denis et al. (2021), and strong scaling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import msgspec

from elbowroom.draw.figure import Axis, Drawn, Figure, Series, Side, TextTable
from elbowroom.experiments.common.panels import CORES, cores_of, interval_line
from elbowroom.experiments.common.sentences import (
    Claim,
    Values,
    cores_text,
    grouped,
    hit,
    intensity_text,
    interval_values,
    level_of,
    lost_text,
    nothing,
    onset_over,
    onset_values,
    suffers,
)
from elbowroom.experiments.common.tables import Column, formatted, rounded, table
from elbowroom.experiments.kernels.points import NAME
from elbowroom.machine.topology import Machine
from elbowroom.points.matrices import MatrixProgram
from elbowroom.points.point import running
from elbowroom.results.judgement import Judgement, larger
from elbowroom.results.result import Finding, PointResult
from elbowroom.stats.interval import Interval, Kept, Summary

TASKS = {"cg": "CG, dense", "cg-sparse": "CG, sparse", "gemm": "GEMM"}
BUILDS = {"openmp": "OpenMP", "starpu": "StarPU"}

CONTRASTS = ("cg", "gemm")
"""The paper's two tasks; its CG is dense."""

SCHEDULING = "scheduling"
"""The flag of points where two computing threads share a core."""

TURNS = "both processes compute on one core in turns, so a receiver may be late because of the scheduler"


class TaskRow(msgspec.Struct, frozen=True, kw_only=True):
    """A task in a build on `n` computing cores of each process. `normalised`: the bandwidth of
    sends while computing, relative to the largest one over n (Fig. 10).
    """

    task: str
    build: str
    n: int
    item: PointResult
    normalised: Interval | None = None

    @property
    def name(self) -> str:
        """`CG, dense (OpenMP)`."""
        return f"{TASKS[self.task]} ({BUILDS[self.build]})"

    @property
    def kept(self) -> Kept | None:
        """What sends keep of their bandwidth while the task computes."""
        return self.item.comm.kept

    @property
    def takes_turns(self) -> bool:
        """Whether its processes compute on one core in turns: who sends then waits for whoever's turn it is,
        which is the scheduler's doing (docs/design/method.md, rule 4).
        """
        return SCHEDULING in self.item.flags

    @property
    def stalled(self) -> float | None:
        """Share of the time that cores wait for memory."""
        facts = self.item.payload.facts
        return facts.get("stalled_measured", facts.get("stalled_modelled"))

    @property
    def waiting(self) -> Interval | None:
        """The share that counters say, with its range over the repetitions; None where none was read."""
        value, low, high = (self.fact(f"stalled_measured{end}") for end in ("", "_low", "_high"))
        if value is None or low is None or high is None:
            return None
        return Interval(value=value, low=low, high=high)

    @property
    def source(self) -> Literal["measured", "modelled"]:
        """Whether `stalled` comes from counters, or from the arithmetic intensity and the bandwidth."""
        return "measured" if "stalled_measured" in self.item.payload.facts else "modelled"

    def fact(self, name: str) -> float | None:
        """What the program reported."""
        return self.item.payload.facts.get(name)

    @property
    def intensity(self) -> float | None:
        """flop/B, as the program counts them."""
        return self.fact("arithmetic_intensity")

    @property
    def time(self) -> Summary | None:
        """A whole solution or product, us."""
        return None if self.item.payload.steps is None else self.item.payload.steps.total


def rows(results: Sequence[PointResult]) -> tuple[TaskRow, ...]:
    """A row for each point that was measured: by task, build and n."""
    tasks, builds = list(TASKS), list(BUILDS)
    table = [
        TaskRow(task=program.task, build=program.build, n=item.n, item=item)
        for item, program in running(results, MatrixProgram)
        if item.status != "failed"
    ]
    table.sort(key=lambda row: (tasks.index(row.task), builds.index(row.build), row.n))
    largest: dict[tuple[str, str], float] = {}
    for row in table:
        sends = row.item.comm.together
        if sends is not None:
            case = (row.task, row.build)
            largest[case] = max(largest.get(case, 0.0), sends.median)
    return tuple(_normalised(row, largest.get((row.task, row.build), 0.0)) for row in table)


def cases(table: Sequence[TaskRow]) -> tuple[tuple[TaskRow, ...], ...]:
    """The rows of each task in each build, by rising n."""
    return tuple(tuple(group) for group in grouped(table, lambda row: (row.task, row.build)).values())


def _normalised(row: TaskRow, largest: float) -> TaskRow:
    sends = row.item.comm.together
    if sends is None or largest <= 0:
        return row
    low, high = sends.ends(sends.median)
    share = Interval(value=sends.median / largest, low=low / largest, high=high / largest)
    return msgspec.structs.replace(row, normalised=share)


def waits(group: Sequence[TaskRow]) -> str:
    """How long cores wait for memory, of rows over n; where it is known, and from what."""
    known = [(row, row.stalled) for row in group if row.stalled is not None]
    if not known:
        return "It is not known how long its cores wait for memory."
    last, most = known[-1]
    shares = f"{most:.0%}" if len(known) == 1 else f"{known[0][1]:.0%} to {most:.0%}"
    source = "counters" if last.source == "measured" else "modelled"
    if last.source == "modelled" and last.intensity is not None:
        source += f" from {intensity_text(last.intensity)} and the memory bandwidth"
    return f"Its cores wait for memory {shares} of the time ({source})."


def claim(group: Sequence[TaskRow]) -> Finding:
    """Whether sends lose more beside CG than beside GEMM, in one build, on the most cores that both have."""
    by_place = {(row.task, row.n): row for row in group}
    both = [n for task, n in by_place if task == "cg" and ("gemm", n) in by_place]
    build = group[0].build
    statement = f"sends lose more beside CG than beside GEMM ({BUILDS[build]}"
    key = f"kernels-claim-{build}"
    if not both:
        why = "only one of the two tasks was measured"
        return Claim(statement=f"{statement})", judgement="not tested", why=why).finding(key)
    rows = [by_place[task, max(both)] for task in CONTRASTS]
    judgement, why = judge(*rows)
    cg, gemm = (lost_text(row.kept) for row in rows)
    claim = Claim(
        statement=f"{statement}, {cores_text(max(both))})",
        judgement=judgement,
        why=why,
        paper="90 % and 20 % at worst",
    )
    values: Values = {"n": max(both), "paper_cg": 0.1, "paper_gemm": 0.8}
    for row in rows:
        values |= interval_values(row.kept, f"{row.task}_kept", f"{row.task}_")
        values[f"{row.task}_stalled"] = row.stalled
    return claim.finding(
        key,
        before=f"Sends lose {cg} of their bandwidth beside CG and {gemm} beside GEMM.",
        values=values,
        points=(row.item.id for row in rows),
    )


def judge(cg: TaskRow, gemm: TaskRow) -> tuple[Judgement, str]:
    """The judgement on the paper's claim from what sends keep beside either, and why it is not decided."""
    if cg.takes_turns or gemm.takes_turns:
        return "undecided", TURNS
    judgement = larger(gemm.kept, cg.kept)
    loser = {"confirmed": cg, "refuted": gemm}.get(judgement)
    if judgement == "not tested" or (loser is not None and hit(loser.item, "comm")):
        return judgement, ""
    if not hit(cg.item, "comm") and not hit(gemm.item, "comm"):
        return "undecided", "neither loses more than 5 %"
    return "undecided", "the intervals overlap"


def faster(openmp: TaskRow, starpu: TaskRow) -> tuple[str, Values]:
    """The time of the StarPU build over that of the OpenMP build, with the widest interval of both, and how
    far their results' checksums are apart.
    """
    place = f"{TASKS[openmp.task]} on {cores_text(openmp.n)}"
    first, second = openmp.time, starpu.time
    if first is None or second is None or not (first.above(0.0) and second.above(0.0)):
        return f"{place}: the times of both builds are not known.", {}
    ends, others = first.ends(first.median), second.ends(second.median)
    ratio, low, high = second.median / first.median, others[0] / ends[1], others[1] / ends[0]
    sure = "" if low > 1 or high < 1 else ": no difference that the intervals show"
    text = (
        f"{place}: {first.median / 1e3:.4g} ms with OpenMP, {second.median / 1e3:.4g} ms with StarPU, "
        f"{ratio:.2f} ({low:.2f} to {high:.2f}) times as long{sure}."
    )
    values: Values = {"ratio": ratio, "low": low, "high": high, "task": openmp.task, "n": openmp.n}
    sums = [row.item.payload.facts.get("checksum") for row in (openmp, starpu)]
    if sums[0] and sums[1] is not None:
        values["apart"] = abs(sums[1] / sums[0] - 1)
        apart = f"{values['apart']:.0e} apart (relative)" if values["apart"] else "equal"
        text += f" The results of both are {apart}."
    return text, values


def exactness(table: Sequence[TaskRow]) -> tuple[str, Values]:
    """The largest residual and error of all results."""
    parts, values = [], Values()
    for fact, word in (("residual", "residual"), ("relative_error", "relative error")):
        known = [(row.item.payload.facts[fact], row) for row in table if fact in row.item.payload.facts]
        if known:
            worst, row = max(known, key=lambda entry: entry[0])
            parts.append(f"largest {word} {worst:.1e} ({row.name})")
            values[f"largest_{fact}"] = worst
    if not parts:
        return "The programs reported no residuals.", values
    return f"The results were checked: {', '.join(parts)}.", values


def findings(results: Sequence[PointResult], machine: Machine) -> tuple[Finding, ...]:  # noqa: ARG001
    """What sends keep beside each task, over the number of cores; whether CG disturbs them more than GEMM,
    as in the paper; StarPU beside OpenMP; how exact the results are.
    """
    table = rows(results)
    if not table:
        return (nothing(NAME, "Sends beside conjugate gradients and matrix products"),)
    findings = [_kept_finding(group) for group in cases(table)]
    findings.sort(key=lambda finding: finding.level != "interference")
    by_build = [[row for row in table if row.build == build] for build in BUILDS]
    findings += [claim(group) for group in by_build if group]
    findings += [_builds(pair) for pair in _pairs(table)]
    return (*findings, _checked(table))


def _kept_finding(group: Sequence[TaskRow]) -> Finding:
    """One task in one build: what its sends keep, at which number of cores, and the cores' waiting."""
    last = group[-1]
    items = [row.item for row in group]
    onset = onset_over(items, "comm", cores_of)
    if len(group) > 1:
        text = suffers(f"{last.name}: the bandwidth of sends", onset, cores_text)
    else:
        lost = lost_text(last.kept)
        text = f"{last.name} on {cores_text(last.n)}: sends lose {lost} of their bandwidth."
    turns = any(row.takes_turns for row in group)
    text += f" {waits(group)}" + f" This is not contention alone: {TURNS}." * turns
    values: Values = {"task": last.task, "build": last.build, "n": last.n, "stalled": last.stalled}
    values |= onset_values("send", onset)
    values |= interval_values(last.kept, "kept")
    return Finding(
        key=f"kernels-{last.task}-{last.build}",
        level="note" if turns else level_of(onset),
        text=text,
        values=values,
        points=tuple(item.id for item in items),
    )


def _pairs(table: Sequence[TaskRow]) -> Iterator[tuple[TaskRow, TaskRow]]:
    """OpenMP and StarPU of each task, on the most cores that both were measured on."""
    by_place = {(row.task, row.build, row.n): row for row in table}
    for task in TASKS:
        both = [row.n for row in table if (row.task, row.build) == (task, "openmp")]
        both = [n for n in both if (task, "starpu", n) in by_place]
        if both:
            yield by_place[task, "openmp", max(both)], by_place[task, "starpu", max(both)]


def _builds(pair: tuple[TaskRow, TaskRow]) -> Finding:
    text, values = faster(*pair)
    return Finding(
        key=f"kernels-builds-{pair[0].task}",
        level="note",
        text=text,
        values=values,
        points=tuple(row.item.id for row in pair),
    )


def _checked(table: Sequence[TaskRow]) -> Finding:
    text, values = exactness(table)
    return Finding(key="kernels-checked", level="note", text=text, values=values)


Of = Callable[[TaskRow], Kept | Interval | None]

INTENSITY = Axis(label="Arithmetic intensity (flop/B)", scale="log10")
STALLED = "Share of the time stalled on memory"


def over_cores(table: Sequence[TaskRow]) -> tuple[Figure, ...]:
    """Fig. 10: bandwidth of sends, normalised to the largest, and the share of the time that cores wait."""
    sends = Figure(
        name="kernels-sends",
        title="Bandwidth of sends while computing",
        x=CORES,
        left=Axis(label="Normalised bandwidth of sends", reference=1.0),
        series=_lines(table, lambda row: row.normalised, _n, "communication", "normalised"),
        caption="Relative to the largest over the numbers of cores; bands are 95 % intervals.",
    )
    return tuple(figure for figure in (sends, _stalled(table, CORES, _n, "curve")) if figure.series)


def over_intensity(table: Sequence[TaskRow]) -> tuple[Figure, ...]:
    """The same for one number of cores, where lines have one point: over the arithmetic intensity."""
    known = [row for row in table if row.intensity is not None]
    sends = Figure(
        name="kernels-sends",
        title="What sends keep of their bandwidth while computing",
        x=INTENSITY,
        left=Axis(label="Kept by sends (1 = undisturbed)", reach=0.0),
        series=_lines(known, lambda row: row.kept, _intensity, "communication", "kept", "points"),
        caption="together/alone; whiskers are 95 % intervals.",
    )
    return tuple(
        figure for figure in (sends, _stalled(known, INTENSITY, _intensity, "points")) if figure.series
    )


def scaling(table: Sequence[TaskRow]) -> tuple[Figure, ...]:
    """The time of a whole solution or product over the number of computing cores."""
    figure = Figure(
        name="kernels-time",
        title="Strong scaling",
        x=CORES,
        left=Axis(label="Time (ms)", scale="log10"),
        series=_lines(table, _milliseconds, _n, "computation", "median"),
        caption="The same matrices for every number of cores; bands are 95 % intervals.",
    )
    return (figure,) if figure.series else ()


def _stalled(table: Sequence[TaskRow], axis: Axis, x: Callable[[TaskRow], float], drawn: Drawn) -> Figure:
    by_model = {row.source for row in table if row.stalled is not None} == {"modelled"}
    caption = "Modelled from the arithmetic intensity and the memory bandwidth: no counter was read."
    return Figure(
        name="kernels-stalled",
        title="Cores that wait for memory" + " (modelled)" * by_model,
        x=axis,
        left=Axis(label=STALLED, reach=0.0),
        series=_lines(table, _waiting, x, "computation", "share", drawn),
        caption=caption if by_model else "",
    )


def _lines(
    table: Sequence[TaskRow],
    of: Of,
    x: Callable[[TaskRow], float],
    side: Side,
    value: str,
    drawn: Drawn = "curve",
) -> tuple[Series, ...]:
    """One line for each task and build; what is not known is left out."""
    lines = []
    for group in cases(table):
        known = [(x(row), interval, row.item.id) for row in group if (interval := of(row)) is not None]
        if known:
            name = group[0].name
            lines.append(interval_line(name, known, side=side, value=value, drawn=drawn, flat=False))
    return tuple(lines)


def _n(row: TaskRow) -> float:
    return float(row.n)


def _intensity(row: TaskRow) -> float:
    return row.intensity or 0.0


def _waiting(row: TaskRow) -> Interval | None:
    share = row.stalled
    return None if share is None else Interval(value=share, low=share, high=share)


def _milliseconds(row: TaskRow) -> Interval | None:
    if row.time is None:
        return None
    low, high = row.time.ends(row.time.median)
    return Interval(value=row.time.median / 1e3, low=low / 1e3, high=high / 1e3)


def figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:  # noqa: ARG001
    """Over computing cores the two panels of Fig. 10 and the strong scaling; of a single number of cores what
    sends keep and cores wait over the arithmetic intensity.
    """
    table = rows(results)
    if len({row.n for row in table}) > 1:
        return (*over_cores(table), *scaling(table))
    return over_intensity(table)


def tables(results: Sequence[PointResult], machine: Machine) -> tuple[TextTable, ...]:  # noqa: ARG001
    """A line for each task, build and number of cores; what a program did not report is a dash."""
    every = rows(results)
    if not every:
        return ()
    several = len({row.n for row in every}) > 1
    sources = {row.source for row in every if row.stalled is not None}
    known = " and ".join(sorted(sources)) or "not known"
    below = [f"stalled: share of the time that cores wait for memory ({known})."]
    if several:
        below.append("of best: bandwidth of sends while computing, relative to the largest over n.")
    columns: tuple[Column[TaskRow], ...] = (
        Column("task", lambda row: TASKS[row.task], left=True),
        Column("build", lambda row: BUILDS[row.build], left=True),
        Column("n", lambda row: str(row.n)),
        Column("order", lambda row: rounded(row.fact("order"), 7)),
        Column("flop/B", lambda row: rounded(row.intensity)),
        Column("stalled", lambda row: formatted(row.stalled, ".0%")),
        Column("of best", lambda row: formatted(row.normalised, ".2f"), shown=several),
        Column("time (ms)", lambda row: rounded(row.time, 4, unit=1e3)),
        Column("residual", lambda row: formatted(row.fact("residual"), ".0e")),
        Column("error", lambda row: formatted(row.fact("relative_error"), ".0e")),
    )
    return (table("Tasks (Denis 2021, section 6)", every, columns, below=tuple(below)),)
