"""What a run of `kernels` says row by row: sends beside a task, cores that wait, times, and the paper's
claims about them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from elbowroom.experiments.wording import Values, cores_text, hit, intensity_text, kept_text
from elbowroom.stats.result import Finding, Kept, PointResult, Summary

TASKS = {"cg": "CG, dense", "cg-sparse": "CG, sparse", "gemm": "GEMM"}
BUILDS = {"openmp": "OpenMP", "starpu": "StarPU"}

CONTRASTS = ("cg", "gemm")
"""The paper's two tasks; its CG is dense."""

SCHEDULING = "scheduling"
"""The flag of points where two computing threads share a core."""

TURNS = "both processes compute on one core in turns, so a receiver may be late for the scheduler's reasons"

Judged = Literal["confirmed", "refuted", "undecided"]


class Row(msgspec.Struct, frozen=True, kw_only=True):
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
        which is the scheduler's doing (METHOD.md, rule 4).
        """
        return SCHEDULING in self.item.flags

    @property
    def stalled(self) -> float | None:
        """Share of the time that cores wait for memory."""
        facts = self.item.facts
        return facts.get("stalled_measured", facts.get("stalled_modelled"))

    @property
    def source(self) -> Literal["measured", "modelled"]:
        """Whether counters told `stalled`, or the arithmetic intensity and the bandwidth."""
        return "measured" if "stalled_measured" in self.item.facts else "modelled"

    @property
    def intensity(self) -> float | None:
        """flop/B, as the program counts them."""
        return self.item.facts.get("arithmetic_intensity")

    @property
    def time(self) -> Summary | None:
        """A whole solution or product, us."""
        return None if self.item.steps is None else self.item.steps.total


def rows(results: Sequence[PointResult]) -> tuple[Row, ...]:
    """A row for each point that was measured: by task, build and n."""
    tasks, builds = list(TASKS), list(BUILDS)
    found = [
        Row(task=item.program.task, build=item.program.build, n=item.n, item=item)
        for item in results
        if item.program is not None and item.program.name == "kernels" and item.status != "failed"
    ]
    found.sort(key=lambda row: (tasks.index(row.task), builds.index(row.build), row.n))
    largest: dict[tuple[str, str], float] = {}
    for row in found:
        sends = row.item.comm.together
        if sends is not None:
            case = (row.task, row.build)
            largest[case] = max(largest.get(case, 0.0), sends.median)
    return tuple(_normalised(row, largest.get((row.task, row.build), 0.0)) for row in found)


def cases(table: Sequence[Row]) -> tuple[tuple[Row, ...], ...]:
    """The rows of each task in each build, by rising n."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in table:
        found.setdefault((row.task, row.build), []).append(row)
    return tuple(tuple(group) for group in found.values())


def _normalised(row: Row, largest: float) -> Row:
    sends = row.item.comm.together
    if sends is None or largest <= 0:
        return row
    share = (sends.median / largest, sends.low / largest, sends.high / largest)
    return msgspec.structs.replace(row, normalised=share)


def waits(group: Sequence[Row]) -> str:
    """How long cores wait for memory, of rows over n; where it is known, and from what."""
    known = [(row, row.stalled) for row in group if row.stalled is not None]
    if not known:
        return "How long its cores wait for memory is not known."
    last, most = known[-1]
    shares = f"{most:.0%}" if len(known) == 1 else f"{known[0][1]:.0%} to {most:.0%}"
    said = "counters" if last.source == "measured" else "modelled"
    if last.source == "modelled" and last.intensity is not None:
        said += f" from {intensity_text(last.intensity)} and the memory bandwidth"
    return f"Its cores wait for memory {shares} of the time ({said})."


def claim(group: Sequence[Row]) -> Finding:
    """Whether sends lose more beside CG than beside GEMM, in one build, on the most cores that both have."""
    by_place = {(row.task, row.n): row for row in group}
    both = [n for task, n in by_place if task == "cg" and ("gemm", n) in by_place]
    name = BUILDS[group[0].build]
    key = f"kernels-claim-{group[0].build}"
    if not both:
        text = f"CG against GEMM ({name}): not both were measured, undecided."
        return Finding(key=key, level="n/a", text=text, values={"verdict": "undecided"})
    cg, gemm = (by_place[task, max(both)] for task in CONTRASTS)
    judged, why = judge(cg, gemm)
    text = (
        f"Sends lose more beside CG than beside GEMM ({name}, {cores_text(max(both))}): {judged}. CG keeps "
        f"{kept_text(cg.kept)}, GEMM {kept_text(gemm.kept)}{why}. The paper: 0.1 and 0.8 at worst."
    )
    values: Values = {"verdict": judged, "n": max(both), "paper_cg": 0.1, "paper_gemm": 0.8}
    for row in (cg, gemm):
        if row.kept is not None:
            values |= {
                f"{row.task}_kept": row.kept.value,
                f"{row.task}_low": row.kept.low,
                f"{row.task}_high": row.kept.high,
            }
        values[f"{row.task}_stalled"] = row.stalled
    points = (cg.item.id, gemm.item.id)
    return Finding(key=key, level="note", text=text, values=values, points=points)


def judge(cg: Row, gemm: Row) -> tuple[Judged, str]:
    """The verdict on the paper's claim from what sends keep beside either, and why it is not decided."""
    if cg.kept is None or gemm.kept is None:
        return "undecided", ""
    if cg.takes_turns or gemm.takes_turns:
        return "undecided", f"; {TURNS}"
    if hit(cg.item, "comm") and cg.kept.high < gemm.kept.low:
        return "confirmed", ""
    if hit(gemm.item, "comm") and gemm.kept.high < cg.kept.low:
        return "refuted", ""
    if not hit(cg.item, "comm") and not hit(gemm.item, "comm"):
        return "undecided", "; neither loses more than 5 %"
    return "undecided", "; the intervals overlap"


def faster(openmp: Row, starpu: Row) -> tuple[str, Values]:
    """The time of the StarPU build over that of the OpenMP build, with the widest interval of both, and how
    far their results' checksums are apart.
    """
    place = f"{TASKS[openmp.task]} on {cores_text(openmp.n)}"
    one, other = openmp.time, starpu.time
    if one is None or other is None or min(one.low, other.low) <= 0:
        return f"{place}: the times of both builds are not known.", {}
    ratio, low, high = other.median / one.median, other.low / one.high, other.high / one.low
    sure = "" if low > 1 or high < 1 else ": no difference that the intervals show"
    text = (
        f"{place}: {one.median / 1e3:.4g} ms with OpenMP, {other.median / 1e3:.4g} ms with StarPU, "
        f"{ratio:.2f} ({low:.2f} to {high:.2f}) times as long{sure}."
    )
    values: Values = {"ratio": ratio, "low": low, "high": high, "task": openmp.task, "n": openmp.n}
    sums = [row.item.facts.get("checksum") for row in (openmp, starpu)]
    if sums[0] and sums[1] is not None:
        values["apart"] = abs(sums[1] / sums[0] - 1)
        apart = f"{values['apart']:.0e} apart (relative)" if values["apart"] else "equal"
        text += f" The results of both are {apart}."
    return text, values


def exactness(table: Sequence[Row]) -> tuple[str, Values]:
    """The largest residual and error of all results."""
    said, values = [], Values()
    for fact, word in (("residual", "residual"), ("relative_error", "relative error")):
        known = [(row.item.facts[fact], row) for row in table if fact in row.item.facts]
        if known:
            worst, row = max(known, key=lambda entry: entry[0])
            said.append(f"largest {word} {worst:.1e} ({row.name})")
            values[f"largest_{fact}"] = worst
    if not said:
        return "The programs told no residuals.", values
    return f"Results are checked: {', '.join(said)}.", values
