"""Rows of a run of `kernels`: sends beside a task, cores that wait, times, and the paper's claim."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from elbowroom.experiments.common.claims import Claim
from elbowroom.experiments.common.sentences import Values, cores_text, grouped, hit, intensity_text, kept_text
from elbowroom.points import MatrixProgram, running
from elbowroom.results.judgement import Judgement, larger
from elbowroom.results.result import Finding, Kept, PointResult, Summary
from elbowroom.stats.interval import Interval

TASKS = {"cg": "CG, dense", "cg-sparse": "CG, sparse", "gemm": "GEMM"}
BUILDS = {"openmp": "OpenMP", "starpu": "StarPU"}

CONTRASTS = ("cg", "gemm")
"""The paper's two tasks; its CG is dense."""

SCHEDULING = "scheduling"
"""The flag of points where two computing threads share a core."""

TURNS = "both processes compute on one core in turns, so a receiver may be late because of the scheduler"


class TaskRow(msgspec.Struct, frozen=True, kw_only=True):
    """A task in a build on `n` computing cores of each process. `normalised`: (value, low, high) of the
    bandwidth of sends while computing, relative to the largest one over n (Fig. 10).
    """

    task: str
    build: str
    n: int
    item: PointResult
    normalised: tuple[float, float, float] | None = None

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
        facts = self.item.facts
        return facts.get("stalled_measured", facts.get("stalled_modelled"))

    @property
    def waiting(self) -> Interval | None:
        """The share that counters say, with its range over the repetitions; None where none was read."""
        value, low, high = (self.item.facts.get(f"stalled_measured{end}") for end in ("", "_low", "_high"))
        return (
            None
            if value is None or low is None or high is None
            else Interval(value=value, low=low, high=high)
        )

    @property
    def source(self) -> Literal["measured", "modelled"]:
        """Whether `stalled` comes from counters, or from the arithmetic intensity and the bandwidth."""
        return "measured" if "stalled_measured" in self.item.facts else "modelled"

    @property
    def intensity(self) -> float | None:
        """flop/B, as the program counts them."""
        return self.item.facts.get("arithmetic_intensity")

    @property
    def time(self) -> Summary | None:
        """A whole solution or product, us."""
        return None if self.item.steps is None else self.item.steps.total


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
    share = (sends.median / largest, low / largest, high / largest)
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
    cg, gemm = (kept_text(row.kept) for row in rows)
    claim = Claim(
        statement=f"{statement}, {cores_text(max(both))})",
        judgement=judgement,
        why=why,
        paper="0.1 and 0.8 at worst",
    )
    values: Values = {"n": max(both), "paper_cg": 0.1, "paper_gemm": 0.8}
    for row in rows:
        if row.kept is not None:
            values |= {
                f"{row.task}_kept": row.kept.value,
                f"{row.task}_low": row.kept.low,
                f"{row.task}_high": row.kept.high,
            }
        values[f"{row.task}_stalled"] = row.stalled
    return claim.finding(
        key,
        before=f"Sends keep {cg} of their bandwidth beside CG and {gemm} beside GEMM.",
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
    sums = [row.item.facts.get("checksum") for row in (openmp, starpu)]
    if sums[0] and sums[1] is not None:
        values["apart"] = abs(sums[1] / sums[0] - 1)
        apart = f"{values['apart']:.0e} apart (relative)" if values["apart"] else "equal"
        text += f" The results of both are {apart}."
    return text, values


def exactness(table: Sequence[TaskRow]) -> tuple[str, Values]:
    """The largest residual and error of all results."""
    parts, values = [], Values()
    for fact, word in (("residual", "residual"), ("relative_error", "relative error")):
        known = [(row.item.facts[fact], row) for row in table if fact in row.item.facts]
        if known:
            worst, row = max(known, key=lambda entry: entry[0])
            parts.append(f"largest {word} {worst:.1e} ({row.name})")
            values[f"largest_{fact}"] = worst
    if not parts:
        return "The programs reported no residuals.", values
    return f"The results were checked: {', '.join(parts)}.", values
