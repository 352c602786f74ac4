"""What forwarding costs the computation of an inner node: what it keeps by tree, what a broadcast and a byte
cost it, and what a model expects.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from elbowroom.draw.figure import Axis, Figure, TextTable
from elbowroom.experiments.common.panels import kept_curve, size_of
from elbowroom.experiments.common.sentences import (
    Claim,
    Values,
    cores_text,
    grouped,
    hit,
    interval_values,
    lost_text,
    nothing,
    size_text,
)
from elbowroom.experiments.common.tables import Column, formatted, rounded, table
from elbowroom.experiments.forwarding.points import NAME
from elbowroom.machine.topology import Machine
from elbowroom.points.broadcasts import Forwarding
from elbowroom.points.point import running
from elbowroom.quantities import number, percent
from elbowroom.results.judgement import Judgement, larger
from elbowroom.results.result import Finding, PointResult
from elbowroom.stats.interval import Interval, Kept

MEGA = 1e6


def expected_kept(loss: float, message_rate: float, passing: float) -> float:
    """What the computation keeps beside `passing` MB/s of received and forwarded bytes.

    `loss`: the bandwidth alone over that together, as a model predicts it beside messages that arrive at
    `message_rate` MB/s. A byte that is sent is taken to cost as much as one that is received, so that the
    share that is lost is proportional to the rate. Nothing is clamped.
    """
    return 1.0 - (1.0 - 1.0 / loss) * passing / message_rate


def cost_per_byte(kept: Interval, passing: float) -> Interval:
    """Seconds of computation, of all computing cores together, that are lost for each byte that is received
    or forwarded: the weight `forwarding` of the cost model of trees. `passing`: MB/s of such bytes.
    """
    scale = 1.0 / (passing * MEGA)
    return Interval(
        value=(1.0 - kept.value) * scale, low=(1.0 - kept.high) * scale, high=(1.0 - kept.low) * scale
    )


def lost_per_broadcast(kept: Interval, rate: Interval, size: int) -> Interval:
    """Microseconds of computation that a broadcast of `size` bytes costs while broadcasts follow each other
    at `rate` MB/s: a slow tree disturbs for longer.
    """
    ends = [
        (1.0 - share) * size / speed for share in (kept.low, kept.high) for speed in (rate.low, rate.high)
    ]
    return Interval(value=(1.0 - kept.value) * size / rate.value, low=min(ends), high=max(ends))


NAMES = {"triad": "TRIAD", "gemm": "GEMM"}

CONTRASTS = ("binary", "binomial")
"""The trees of the thesis' hypothesis."""


class TreeRow(msgspec.Struct, frozen=True, kw_only=True):
    """A point: the kernel beside broadcasts of one tree and size."""

    item: PointResult
    workload: Forwarding

    @property
    def name(self) -> str:
        """`TRIAD`."""
        return NAMES[self.workload.kernel]

    @property
    def tree(self) -> str:
        return self.workload.tree

    @property
    def kept(self) -> Kept | None:
        return self.item.comp.kept

    @property
    def copies(self) -> float:
        """How often the rank forwards each broadcast: bytes forwarded over bytes received, as counted."""
        return self.item.payload.facts.get("copies", 0.0)

    @property
    def rate(self) -> Interval | None:
        """MB/s of broadcasts that each rank receives beside the computation."""
        together = self.item.comm.together
        if together is None or together.low is None or together.high is None:
            return None
        return Interval(value=together.median, low=together.low, high=together.high)

    @property
    def passing(self) -> float | None:
        """MB/s that the rank receives and forwards beside the computation."""
        together = self.item.comm.together
        return None if together is None else together.median * (1.0 + self.copies)

    @property
    def lost(self) -> Interval | None:
        """Microseconds of computation that each broadcast costs; None without intervals."""
        kept, rate = _interval(self.kept), self.rate
        return None if kept is None or rate is None else lost_per_broadcast(kept, rate, self.item.size)

    @property
    def weight(self) -> Interval | None:
        """Seconds of computation lost for each byte received or forwarded."""
        kept, passing = _interval(self.kept), self.passing
        return None if kept is None or not passing else cost_per_byte(kept, passing)

    @property
    def expected(self) -> float | None:
        """What the run's model expects the computation to keep; None without a model."""
        losses, passing = self.workload.losses, self.passing
        if losses is None or losses.comm_rate is None or passing is None:
            return None
        return expected_kept(losses.comp, losses.comm_rate, passing)


def _interval(kept: Kept | None) -> Interval | None:
    if kept is None or kept.low is None or kept.high is None:
        return None
    return Interval(value=kept.value, low=kept.low, high=kept.high)


def rows(results: Sequence[PointResult]) -> tuple[TreeRow, ...]:
    """A row for each point that was measured: by kernel, cores, size, and tree in the plan's order."""
    table = [
        TreeRow(item=item, workload=workload)
        for item, workload in running(results, Forwarding)
        if item.status != "failed"
    ]
    kernels = list(NAMES)
    table.sort(key=lambda row: (kernels.index(row.workload.kernel), row.item.n, row.item.size))
    return tuple(table)


def cases(table: Sequence[TreeRow]) -> tuple[tuple[TreeRow, ...], ...]:
    """The rows of each kernel, number of cores and size: one for each tree."""
    groups = grouped(table, lambda row: (row.workload.kernel, row.item.n, row.item.size))
    return tuple(tuple(group) for group in groups.values())


def judge(group: Sequence[TreeRow]) -> tuple[Judgement, str]:
    """Whether a broadcast costs the computation more by a binomial tree than by a binary one, and why this is
    not decided.
    """
    by_tree = {row.tree: row for row in group}
    if not set(CONTRASTS) <= by_tree.keys():
        return "not tested", "only one of the two trees was measured"
    binary, binomial = (by_tree[tree] for tree in CONTRASTS)
    if binomial.copies <= binary.copies:
        return "not tested", (
            f"of so few ranks, one forwards as many copies in both trees ({binary.copies:.3g} and "
            f"{binomial.copies:.3g}); 16 or more differ"
        )
    judgement = larger(binomial.lost, binary.lost)
    if judgement == "not tested":
        return judgement, "too few repetitions for intervals"
    if not hit(binary.item, "comp") and not hit(binomial.item, "comp"):
        return "undecided", "the computation loses less than 5 % beside either"
    return judgement, "the intervals overlap" if judgement == "undecided" else ""


SHARED = "Ranks share a host's memory, so this is the cost of the copies of all of them: an upper bound."


def findings(results: Sequence[PointResult], machine: Machine) -> tuple[Finding, ...]:
    """What the computation keeps beside each tree; whether a binomial tree costs more than a binary one, as
    the thesis supposes; what a model expects; the cost of a byte, for the choice of trees.
    """
    table = rows(results)
    if not table:
        return (nothing(NAME, "A computation beside broadcasts"),)
    groups = cases(table)
    findings = [_kept(group) for group in groups]
    findings.sort(key=lambda finding: finding.level != "interference")
    findings += [_claim(group) for group in groups]
    findings += [_expectation(group) for group in groups if any(row.expected is not None for row in group)]
    weights = [_weight(group, machine) for group in groups]
    return (*findings, *(finding for finding in weights if finding is not None))


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
        parts.append(f"{lost_text(row.kept)} beside a {row.tree} tree ({copies})")
        values |= {f"{row.tree}_copies": row.copies}
        values |= interval_values(row.kept, f"{row.tree}_kept", f"{row.tree}_")
    known = any(row.kept is not None for row in group)
    affected = any(hit(row.item, "comp") for row in group)
    return Finding(
        key=_key(group),
        level="interference" if affected else "quiet" if known else "n/a",
        text=f"{_place(group)}: the computation of the forwarding rank loses {'; '.join(parts)}.",
        values=values,
        points=_points(group),
    )


def _claim(group: Sequence[TreeRow]) -> Finding:
    judgement, why = judge(group)
    parts, values = [], Values()
    for row in group:
        if row.lost is not None:
            parts.append(f"{_microseconds(row.lost)} with a {row.tree} tree")
            values |= interval_values(row.lost, f"{row.tree}_lost_us", f"{row.tree}_lost_")
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


def _expectation(group: Sequence[TreeRow]) -> Finding:
    parts, values, errors = [], Values(), []
    for row in group:
        if row.expected is None or row.kept is None:
            continue
        expected = percent(1 - row.expected, digits=0)
        parts.append(f"{expected} beside a {row.tree} tree (measured: {lost_text(row.kept)})")
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
            f"{_place(group)}: from the bytes that pass, the model expects the computation to lose "
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
    values = interval_values(weight, "forwarding") | {"tree": row.tree}
    return Finding(key=_key(group, "weight"), level="note", text=text, values=values, points=(row.item.id,))


SIZE = Axis(label="Size of a broadcast", scale="log2", bytes=True)


def figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:  # noqa: ARG001
    """A figure for each kernel and number of computing cores."""
    groups = grouped(rows(results), lambda row: (row.workload.kernel, row.item.n))
    drawn = (_over_size(group) for group in groups.values())
    return tuple(figure for figure in drawn if figure.series)


def _over_size(group: Sequence[TreeRow]) -> Figure:
    first = group[0]
    curves = [
        kept_curve([row.item for row in of_tree], "comp", size_of, tree)
        for tree, of_tree in grouped(group, lambda row: row.tree).items()
    ]
    return Figure(
        name=f"forwarding-{first.workload.kernel}-{first.item.n}",
        title=f"{first.name} on {cores_text(first.item.n)} of a rank that forwards broadcasts",
        x=SIZE,
        left=Axis(label="Kept by the computation (1 = undisturbed)", reference=1.0),
        series=tuple(curve for curve in curves if curve is not None),
        caption="together/alone of the computing rate; the band is the 95 % interval.",
    )


def tables(results: Sequence[PointResult], machine: Machine) -> tuple[TextTable, ...]:  # noqa: ARG001
    """A line for each kernel, number of cores, size and tree."""
    every = rows(results)
    if not every:
        return ()
    with_model = any(row.expected is not None for row in every)
    stored = sum(
        row.item.payload.facts.get("stored", 0.0) + row.item.payload.facts.get("bypassed", 0.0)
        for row in every
    )
    below = [
        "copies: bytes that the rank forwards over bytes that it receives; passing: both together; lost: "
        "computation lost during one broadcast."
    ]
    if stored:
        below.append(
            f"{stored:.0f} broadcasts came before their receive was posted, and were stored or bypassed."
        )
    columns: tuple[Column[TreeRow], ...] = (
        Column("kernel", lambda row: row.name, left=True),
        Column("n", lambda row: str(row.item.n)),
        Column("size", lambda row: size_text(row.item.size)),
        Column("tree", lambda row: row.tree, left=True),
        Column("copies", lambda row: number(row.copies, 3)),
        Column("comp kept", lambda row: formatted(row.kept, ".2f")),
        Column("comm kept", lambda row: formatted(row.item.comm.kept, ".2f")),
        Column("passing (MB/s)", lambda row: rounded(row.passing, 4)),
        Column("lost (us)", lambda row: rounded(row.lost)),
        Column("model", lambda row: formatted(row.expected, ".2f"), shown=with_model),
    )
    title = "Computation on a forwarding rank (Swartvagher 2022, 4.4.3)"
    return (table(title, every, columns, below=tuple(below)),)
