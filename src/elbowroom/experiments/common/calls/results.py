"""What calls beside a computation show: whether they progress, by which policy, what each hides and loses."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import msgspec

from elbowroom.draw.figure import Axis, Figure, Hue, Series, TextTable
from elbowroom.experiments.common.panels import interval_line
from elbowroom.experiments.common.sentences import (
    Values,
    cores_text,
    grouped,
    nothing,
    size_text,
)
from elbowroom.experiments.common.tables import Column, rounded, table
from elbowroom.machine.topology import Machine
from elbowroom.plan.kernels import kernel_name
from elbowroom.points.calls import CallBesideComputation, overlap_of
from elbowroom.points.point import running
from elbowroom.quantities import format_cores, number, percent
from elbowroom.results.result import Finding, PointResult
from elbowroom.stats.interval import Interval
from elbowroom.stats.overlap.measures import PROGRESSES, OverlapMeasures

REASONS = {
    "contention": "contention",
    "no_progress": "no progress",
    "late": "a late rank",
    "tail": "tail",
    "none": "-",
}
"""How tables name what a step loses by."""


class CallRow(msgspec.Struct, frozen=True, kw_only=True):
    """A call with its policy beside a kernel, and its result."""

    call: CallBesideComputation
    item: PointResult

    @property
    def measured(self) -> OverlapMeasures | None:
        """What it hides and loses; None where nothing was computed beside it."""
        return overlap_of(self.item.payload)

    @property
    def progresses(self) -> bool:
        """Whether it proceeds outside of calls of MPI."""
        return self.measured is not None and self.measured.progressed.value >= PROGRESSES

    @property
    def policy(self) -> str:
        """What lets it progress: `a progress thread on core 3`."""
        if self.call.progress == "thread":
            cores = sorted(set(self.call.progress_cores))
            return f"{self.call.policy} on core{'s' if len(cores) > 1 else ''} {format_cores(cores)}"
        return self.call.policy

    @property
    def case(self) -> Hashable:
        """Equal for rows that differ in their policy only."""
        return (self.family, self.item.size)

    @property
    def family(self) -> tuple[Hashable, ...]:
        """Equal for rows that differ in policy and size only."""
        call, item = self.call, self.item
        return call.operation, call.neighbours, call.form, item.kernel, item.cursor, item.n, call.ranks


def rows(results: Sequence[PointResult]) -> tuple[CallRow, ...]:
    """A row for each point that was measured, in the plan's order."""
    return tuple(
        CallRow(call=call, item=item)
        for item, call in running(results, CallBesideComputation)
        if item.status != "failed"
    )


SUFFERS = 0.95
"""What a side keeps at most if it suffers, and its whole interval is below 1."""

LOSSES = {
    "contention": "most of what is lost is lost to contention",
    "no_progress": "most of what is lost is lost because it does not progress",
    "late": "most of what is lost is lost to a rank that starts late",
    "tail": "most of what is lost is the part of the call that is longer than the computation",
}


def findings(results: Sequence[PointResult], machine: Machine) -> tuple[Finding, ...]:  # noqa: ARG001
    """For each call that does not block: whether its largest size progresses, what each policy changes."""
    table = [row for row in rows(results) if row.measured is not None and row.call.form != "blocking"]
    if not table:
        return (nothing("overlap", "The overlap of calls with a computation"),)
    findings = []
    for family in grouped(table, lambda row: row.family).values():
        largest = max(row.item.size for row in family)
        findings.append(_finding([row for row in family if row.item.size == largest]))
    return tuple(sorted(findings, key=lambda finding: finding.level != "interference"))


def _finding(policies: Sequence[CallRow]) -> Finding:
    """`policies`: rows of one call and size."""
    plain = next((row for row in policies if row.call.progress == "none"), policies[0])
    others = [row for row in policies if row is not plain]
    best = max(policies, key=_overlap)
    values: Values = {f"{row.call.policy_id}_overlap": _overlap(row) for row in policies}
    kept, reason = _measures(best).kept_comp, _measures(best).reason
    values |= {"best": best.call.policy_id, "kept_comp": kept.value, "reason": reason}
    sentence = f"{_how(plain)}: overlap {_overlap(plain):.2f}"
    sentence += "".join(f"; with {row.policy}, {_overlap(row):.2f}" for row in others)
    kernel = kernel_name(best.item.kernel)
    with_best = f" with {best.policy}" if others and best is not plain else ""
    sentence += f". {kernel} loses {percent(1 - kept.value, digits=0)}{with_best}"
    sentence += f", and {LOSSES[reason]}." if reason in LOSSES else "."
    return Finding(
        key=f"overlap-{plain.call.operation}-{plain.call.form}-{plain.call.neighbours}-{plain.item.kernel}"
        f"-{plain.item.n}-{plain.call.ranks}-{plain.item.size}",
        level="interference" if kept.value < SUFFERS and kept.below(1.0) else "quiet",
        text=sentence,
        values=values,
        points=tuple(row.item.id for row in policies),
    )


def _how(row: CallRow) -> str:
    """`MPI_Iallreduce of 1 MiB progresses only inside MPI calls here`."""
    of = "" if row.call.operation == "barrier" else f" of {size_text(row.item.size)}"
    call = f"{row.call.call}{of} between {row.call.ranks} ranks"
    call = call[0].upper() + call[1:]
    if row.call.progress != "none":
        return f"{call}, with {row.policy}"
    return f"{call} progresses {'while they compute' if row.progresses else 'only inside MPI calls here'}"


def _measures(row: CallRow) -> OverlapMeasures:
    assert row.measured is not None
    return row.measured


def _overlap(row: CallRow) -> float:
    return _measures(row).overlap.value


SIZE = Axis(label="Size", scale="log2", bytes=True)
HIDDEN = Axis(label="Overlap (1 hides the shorter side)", reference=1.0)
KEPT = Axis(label="Kept by the computation (1 = undisturbed)", reference=1.0)
CAPTION = "The band is the 95 % interval."
HUES: dict[str, Hue] = {"blocking": "black", "nonblocking": "blue", "persistent": "red"}

Value = Callable[[OverlapMeasures], Interval]


def figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:  # noqa: ARG001
    """Two panels for each call, kernel and number of cores and ranks: overlap, what the computation keeps."""
    table = [row for row in rows(results) if row.measured is not None and row.call.operation != "barrier"]
    groups = grouped(
        table,
        lambda row: (row.call.operation, row.call.neighbours, row.item.kernel, row.item.n, row.call.ranks),
    )
    drawn = []
    for group in groups.values():
        drawn.append(_panel(group, "hidden", HIDDEN, lambda measures: measures.overlap))
        drawn.append(_panel(group, "kept", KEPT, lambda measures: measures.kept_comp))
    return tuple(figure for figure in drawn if figure.series)


def _panel(group: Sequence[CallRow], what: str, axis: Axis, value: Value) -> Figure:
    first = group[0]
    call, item = first.call, first.item
    name = f"exchange with {call.neighbours} neighbours" if call.operation == "exchange" else call.operation
    policies = grouped(group, lambda row: (row.call.form, row.call.policy_id))
    return Figure(
        name=f"{call.operation}-{call.neighbours}-{item.kernel}-{item.n}-{call.ranks}-{what}",
        title=f"{name}, {call.ranks} ranks, each beside {kernel_name(item.kernel)} on {cores_text(item.n)}",
        x=SIZE,
        left=axis,
        series=tuple(
            _series(form, policy, of_policy, value) for (form, policy), of_policy in policies.items()
        ),
        caption=CAPTION,
    )


def _series(form: str, policy: str, group: Sequence[CallRow], value: Value) -> Series:
    ordered = sorted(group, key=lambda row: row.item.size)
    name = form if form == "blocking" else f"{form}, {policy}"
    known = [
        (float(row.item.size), value(row.measured), row.item.id)
        for row in ordered
        if row.measured is not None
    ]
    return interval_line(name, known, hue=HUES[form])


def _of_both(text: Callable[[OverlapMeasures], str]) -> Callable[[CallRow], str | None]:
    """The text of what is only measured beside a computation."""
    return lambda row: None if row.measured is None else text(row.measured)


def _alone(row: CallRow) -> str | None:
    """The time of the call alone, us."""
    if row.measured is not None:
        return number(row.measured.message.value * 1e6, 3)
    return rounded(row.item.comm.alone)


COLUMNS: tuple[Column[CallRow], ...] = (
    Column("call", lambda row: row.call.call.removeprefix("MPI_"), left=True),
    Column("progress", lambda row: None if row.call.form == "blocking" else row.call.policy_id, left=True),
    Column("T_N", _alone),
    Column("T_M", _of_both(lambda measures: number(measures.computation.value * 1e6, 3))),
    Column("overlap", _of_both(lambda measures: f"{measures.overlap.value:.2f}")),
    Column("OSU", _of_both(lambda measures: f"{measures.osu_overlap.value:.2f}")),
    Column("comp", _of_both(lambda measures: f"{measures.kept_comp.value:.2f}")),
    Column("comm", _of_both(lambda measures: f"{measures.kept_comm.value:.2f}")),
    Column("lost by", _of_both(lambda measures: REASONS[measures.reason]), left=True),
)

LEGEND = (
    "T_N, T_M: the call and the computation alone, us from the last arrival to the last departure. overlap: "
    "(T_N + T_M - both) / min(T_N, T_M), which is the fraction of the ideal speedup too; OSU: the same by "
    "the formula of the OSU Micro-Benchmarks; comp, comm: what each side keeps."
)


def tables(results: Sequence[PointResult], machine: Machine) -> tuple[TextTable, ...]:  # noqa: ARG001
    """A table for each kernel, number of cores and of ranks, and size."""
    groups = grouped(
        rows(results),
        lambda row: (row.item.kernel, row.item.cursor, row.item.n, row.call.ranks, row.item.size),
    )
    return tuple(_table(group) for group in groups.values())


def _table(group: Sequence[CallRow]) -> TextTable:
    item, ranks = group[0].item, group[0].call.ranks
    size = f" of {size_text(item.size)}" if item.size else ""
    beside = f", each beside {kernel_name(item.kernel)} on {cores_text(item.n)}" if item.n else ""
    title = f"Calls{size} between {ranks} ranks{beside}"
    return table(title, group, COLUMNS, legend=LEGEND)
