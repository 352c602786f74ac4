"""Rows of a run of `forwarding`: what the computation keeps by tree, what a broadcast costs it, and what a
model expects.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from elbowroom.experiments.common.sentences import grouped, hit
from elbowroom.experiments.forwarding.cost import cost_per_byte, expected_kept, lost_per_broadcast
from elbowroom.points import Forwarding, running
from elbowroom.results.judgement import Judgement, larger
from elbowroom.results.result import Kept, PointResult
from elbowroom.stats.interval import Interval

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
        """The kind of tree."""
        return self.workload.tree

    @property
    def kept(self) -> Kept | None:
        """What the computation keeps."""
        return self.item.comp.kept

    @property
    def copies(self) -> float:
        """How often the rank forwards each broadcast: bytes forwarded over bytes received, as counted."""
        return self.item.facts.get("copies", 0.0)

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
